"""A Runtime in Python: polls, locks, heartbeats, calls the model, reports (httpx and asyncio, nothing of this project).

``RUNTIME_FAULT=NAME`` (or ``--fault NAME``) makes it break the rules that this fault names; ``RUNTIME_VARIANT=NAME``
(or ``--variant NAME``) makes it right in another way.
"""
