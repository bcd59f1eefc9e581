"""A receiver of webhooks: a server of our own that the build calls, with scripted answers, keeping all that came.

It serves from threads, as receivers do, so that a build that waits for one answer can be seen doing other things;
checks wait for deliveries in their event loop. Every wait has a limit in real seconds.
"""

from __future__ import annotations

import asyncio
import contextvars
import json
import secrets
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

from flask import Flask, Response, request
from werkzeug.serving import BaseWSGIServer, WSGIRequestHandler, make_server

from contract_tests.checks import CheckFailed, expect

if TYPE_CHECKING:
    from concurrent.futures import Future
    from types import TracebackType
    from typing import Self

WITHIN = 5.0
"""Real seconds in which a delivery that is due has to come."""
QUIET = 0.5
"""Real seconds after which nothing is taken to come any more of what was due before."""
READ_SECONDS = 5.0
"""Real seconds that reading back may take while a delivery waits for its answer."""

BROKEN = 0
"""In a script: no answer, the connection is cut."""
HELD = -1
"""In a script: no answer before :meth:`Hook.release`, then 200."""


@dataclass(frozen=True)
class Delivery:
    """One request that came; header names are lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    at: float
    """When it came, monotonic seconds."""
    number: int
    """Which one of its hook, from 1."""

    @property
    def json(self) -> dict[str, Any]:
        """The body, a JSON object. Fails the check where it is none."""
        try:
            body = json.loads(self.body)
        except (ValueError, RecursionError):
            body = None
        if not isinstance(body, dict):
            raise CheckFailed("a webhook whose body is a JSON object", repr(self.body[:200]))
        return body

    @property
    def type(self) -> str:
        """The ``type`` of the event, as text."""
        return str(self.json.get("type"))

    @property
    def data(self) -> dict[str, Any]:
        """The ``data`` of the event, an object. Fails the check where it is none."""
        data = self.json.get("data")
        if not isinstance(data, dict):
            raise CheckFailed("a webhook with `data`, an object", repr(self.body[:200]), "/data")
        return data


@dataclass(frozen=True)
class Answered:
    """What a delivery was answered, and when, monotonic seconds; ``read`` is what was read back before.

    ``status`` is :data:`BROKEN` where the connection was cut instead.
    """

    delivery: Delivery
    status: int
    at: float
    read: Any = None


Script = Sequence[int] | Callable[[Delivery], int]
ReadBack = Callable[[Delivery], Awaitable[Any]]


@dataclass
class Hook:
    """A URL of its own and what comes there; made by :meth:`Receiver.hook`."""

    url: str
    receiver: Receiver
    answers: Script
    delay: float = 0.0
    redirect_to: str | None = None
    read_back: ReadBack | None = None
    deliveries: list[Delivery] = field(default_factory=list)
    """All that came, in order."""
    answered: list[Answered] = field(default_factory=list)
    """All that was answered, in order."""
    _taken: int = 0
    _released: threading.Event = field(default_factory=threading.Event)

    def release(self) -> None:
        """Answer what is held, and at once whatever comes to be held later."""
        self._released.set()

    def hold(self) -> None:
        """Wait until it is released, which the receiver's end does, too."""
        self._released.wait()

    async def next(self, type: str | None = None, within: float = WITHIN) -> Delivery:  # noqa: A002 - the protocol's word
        """The next delivery that was not taken yet; fails the check where it is not of ``type`` or does not come."""
        wanted = f"a webhook `{type}`" if type else "a webhook"
        if not await self.receiver.wait(lambda: len(self.deliveries) > self._taken, within):
            raise CheckFailed(f"{wanted} within {within:g} s", f"nothing; {self.so_far()}")
        delivery = self.deliveries[self._taken]
        self._taken += 1
        if type is not None:
            expect(delivery.type == type, wanted, f"`{delivery.type}`; {self.so_far()}", "/type")
        return delivery

    async def counts(self, number: int, within: float = WITHIN) -> list[Delivery]:
        """Fail the check unless so many have come in time, and no more by then; all of them."""
        await self.receiver.wait(lambda: len(self.deliveries) >= number, within)
        expect(len(self.deliveries) == number, f"{number} webhooks", f"{len(self.deliveries)}; {self.so_far()}")
        return list(self.deliveries)

    async def count_stays(self, number: int, seconds: float = QUIET) -> None:
        """Fail the check unless there are so many, and still are after so many real seconds."""
        await self.receiver.wait(lambda: len(self.deliveries) > number, seconds)
        expect(len(self.deliveries) == number, f"{number} webhooks", f"{len(self.deliveries)}; {self.so_far()}")

    async def answer_given(self, number: int, within: float = WITHIN) -> Answered:
        """What the delivery of that number, from 1, was answered; waits for it."""
        if not await self.receiver.wait(lambda: any(one.delivery.number == number for one in self.answered), within):
            raise CheckFailed(f"webhook number {number} within {within:g} s", f"it is not answered; {self.so_far()}")
        return next(one for one in self.answered if one.delivery.number == number)

    def so_far(self) -> str:
        """What came, in a line."""
        names = [_name(delivery) for delivery in self.deliveries[-12:]]
        return f"so far came: {', '.join(names) or 'nothing'}"

    def status_for(self, delivery: Delivery) -> int:
        """What the script says; of a list the last one repeats."""
        if callable(self.answers):
            return self.answers(delivery)
        return self.answers[min(delivery.number, len(self.answers)) - 1]


class Receiver:
    """Serves hooks until it is closed; what came to a URL that no hook has is in :attr:`strays`."""

    def __init__(self, host: str = "127.0.0.1", patience: float = 1.0) -> None:
        """``host`` is the name under which the build reaches us; where it is no loopback one, we listen everywhere.

        Every wait lasts ``patience`` times as long as it says.
        """
        self.host, self.patience = host, patience
        self.strays: list[Delivery] = []
        self._hooks: dict[str, Hook] = {}
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._server: BaseWSGIServer | None = None
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._news = asyncio.Event()
        self._contexts: dict[str, contextvars.Context] = {}

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self._server = make_server(listen_on(self.host), 0, self._app(), threaded=True, request_handler=_QuietHandler)
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, name="webhook receiver", daemon=True
        )
        self._thread.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.set()
        for hook in self._hooks.values():
            hook.release()
        if self._server is not None and self._thread is not None:
            await asyncio.to_thread(self._server.shutdown)
            await asyncio.to_thread(self._thread.join)
            self._server.server_close()

    @property
    def base_url(self) -> str:
        """Where the build reaches us."""
        if self._server is None:
            raise RuntimeError("the receiver is not open")
        return f"http://{bracketed(self.host)}:{self._server.server_port}"

    def hook(
        self,
        answers: Script = (200,),
        *,
        delay: float = 0.0,
        redirect_to: str | None = None,
        read_back: ReadBack | None = None,
    ) -> Hook:
        """A URL of its own.

        ``answers``: the status of each delivery (or :data:`BROKEN`, or :data:`HELD`), the last one repeats, or what
        says it. ``delay``: real seconds before each answer. ``redirect_to``: where answers of 3xx point.
        ``read_back``: what is done, in the check's event loop, while a delivery waits for its answer; what it gives is
        told in :class:`Answered`.
        """
        path = f"/hooks/{secrets.token_hex(8)}"
        hook = Hook(self.base_url + path, self, answers, delay, redirect_to, read_back)
        self._hooks[path] = hook
        self._contexts[path] = contextvars.copy_context()
        return hook

    async def wait(self, done: Callable[[], bool], within: float) -> bool:
        """Whether it is done within so many real seconds; asked again with everything that comes."""
        deadline = time.monotonic() + within * self.patience
        while not done():
            self._news.clear()
            if done():
                break
            try:
                async with asyncio.timeout(max(deadline - time.monotonic(), 0)):
                    await self._news.wait()
            except TimeoutError:
                return done()
        return True

    def _app(self) -> Flask:
        app = Flask("webhook receiver", static_folder=None)
        app.before_request(self._receive)
        return app

    def _receive(self) -> Response:
        at = time.monotonic()
        headers = {name.lower(): value for name, value in request.headers.items()}
        try:
            body = request.get_data(cache=False)
        except OSError:
            return Response("a body that is broken or cut off\n", 400)
        path = request.path
        hook = self._hooks.get(path)
        with self._lock:
            seen = self.strays if hook is None else hook.deliveries
            delivery = Delivery(request.method, request.full_path.rstrip("?"), headers, body, at, len(seen) + 1)
            seen.append(delivery)
        self._tell()
        if hook is None:
            return Response("nobody waits for this\n", 404)
        return self._answer(hook, delivery, path)

    def _answer(self, hook: Hook, delivery: Delivery, path: str) -> Response:
        read = None
        if hook.read_back is not None:
            read = self._in_loop(hook.read_back(delivery), self._contexts[path])
        if hook.delay:
            self._closing.wait(hook.delay)
        status = hook.status_for(delivery)
        if status == HELD:
            hook.hold()
            status = 200
        if status == BROKEN:
            request.environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
        headers = {"location": hook.redirect_to} if hook.redirect_to and 300 <= status < 400 else {}
        with self._lock:
            hook.answered.append(Answered(delivery, status, time.monotonic(), read))
        self._tell()
        return Response(status=status or 500, headers=headers)

    def _in_loop(self, work: Awaitable[Any], context: contextvars.Context) -> Any:
        """Do it in the event loop, as a part of the check that made the hook; what fails there is given, not raised."""
        if self._loop is None:
            raise RuntimeError("the receiver is not open")

        async def done() -> Any:
            return await work

        own = context.copy()  # one context can't be entered by two deliveries at a time
        future: Future[Any] = own.run(asyncio.run_coroutine_threadsafe, done(), self._loop)
        try:
            return future.result(READ_SECONDS)
        except Exception as error:
            future.cancel()
            return error

    def _tell(self) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._news.set)


class _QuietHandler(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"

    def log(self, type: str, message: str, *args: Any) -> None:  # noqa: A002 - as the base class has it
        """Nothing is printed: what came is in the hooks."""


def listen_on(host: str) -> str:
    """The address to listen on for a name under which a build reaches us."""
    if host == "localhost":
        return "127.0.0.1"
    try:
        address = ip_address(host)
    except ValueError:
        return "0.0.0.0"  # noqa: S104 - the build is on another machine
    if address.is_loopback:
        return host
    return "::" if address.version == 6 else "0.0.0.0"  # noqa: S104


def bracketed(host: str) -> str:
    """A host as URLs have it."""
    return f"[{host}]" if ":" in host else host


def _name(delivery: Delivery) -> str:
    try:
        return delivery.type
    except CheckFailed:
        return f"{delivery.method} {delivery.body[:40]!r}"
