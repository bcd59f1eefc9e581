"""Streams that a test plays itself."""

import asyncio

from contract_tests.checks import NoAnswer, Silent


class PlayedStream:
    """An answer whose body is what the test says; :meth:`say`, :meth:`end`, :meth:`break_off`."""

    def __init__(self, *chunks: bytes, status: int = 200, ends: bool = False, **headers: str) -> None:
        self.status = status
        self.headers = {"content-type": "text/event-stream"} | {
            name.replace("_", "-"): value for name, value in headers.items()
        }
        self.closed = False
        self._coming: asyncio.Queue[bytes | Exception] = asyncio.Queue()
        for chunk in chunks:
            self.say(chunk)
        if ends:
            self.end()

    def say(self, chunk: bytes) -> None:
        self._coming.put_nowait(chunk)

    def tell(self, name: str, id_: int, data: str = "{}") -> None:
        self.say(f"id: {id_}\nevent: {name}\ndata: {data}\n\n".encode())

    def end(self) -> None:
        self._coming.put_nowait(b"")

    def break_off(self) -> None:
        self._coming.put_nowait(NoAnswer("an answer", "the connection broke"))

    async def read(self, seconds: float) -> bytes:
        try:
            async with asyncio.timeout(seconds):
                came = await self._coming.get()
        except TimeoutError:
            raise Silent("more of the answer", f"nothing within {seconds:g} s") from None
        if isinstance(came, Exception):
            raise came
        return came

    async def close(self) -> None:
        self.closed = True

    async def __aenter__(self):
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()
