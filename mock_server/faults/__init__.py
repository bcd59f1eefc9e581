"""The seeded faults of the Runtime API, an area a module, each with the rules that it is expected to break.

Most change the specification that the build executes; those that no specification can say replace a handler, the
engine, the judgement or the error bodies.
"""

from __future__ import annotations

from mock_server.faults import application, errors, expiry, heartbeat, lock, poll

FAULTS = tuple(fault for area in (lock, heartbeat, expiry, poll, errors, application) for fault in area.FAULTS)
