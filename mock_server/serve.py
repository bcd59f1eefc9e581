"""``contract serve``: the mock on one port."""

from __future__ import annotations

import asyncio
import gc
import ipaddress
import json
import logging
import signal
import socket
import sys
from pathlib import Path

import click
import uvicorn

import openapi
from mock_server.control import Guard
from mock_server.provider_states import ProviderStates
from mock_server.seed_data import DataError, SeedData
from mock_server.server import Server
from mock_server.worlds import Options, Worlds
from openapi import SpecError

_BACKLOG = 2048
_KEEP_ALIVE = 75
_GRACE = 5


def is_loopback(host: str) -> bool:
    """Whether nobody but this machine reaches the host."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class _Uvicorn(uvicorn.Server):
    """Tells on standard output when it answers; a line of JSON, so that a test in any language can wait for it."""

    def __init__(self, config: uvicorn.Config, base_url: str) -> None:
        super().__init__(config)
        self.base_url = base_url

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, then say so."""
        await super().startup(sockets)
        if self.started:
            sys.stdout.write(json.dumps({"event": "ready", "baseUrl": self.base_url}) + "\n")
            sys.stdout.flush()


def listen(host: str, port: int) -> socket.socket:
    """A socket bound to the address; port 0 picks one. Raises :class:`click.ClickException` where it can't be had."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host, port))
        sock.listen(_BACKLOG)
    except OSError as error:
        sock.close()
        mend = "choose another --port, or 0 to have one picked" if port else "name an address of this machine"
        raise _UsageError(f"can't listen on {host}:{port}: {error.strerror or error}; {mend}") from None
    return sock


class _UsageError(click.ClickException):
    exit_code = 2


@click.command("serve", short_help="Serve the reference: the mock of the Runtime API.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port", default=8080, show_default=True, type=click.IntRange(0, 65535), help="Port; 0 picks a free one."
)
@click.option("--clock", default="real", show_default=True, help="real, manual, or a rate such as x60.")
@click.option(
    "--data", type=click.Path(path_type=Path), help="Seed data: jobs, snapshots and credentials in YAML or JSON."
)
@click.option("--mutant", metavar="ID", help="Serve a build with this seeded fault (see `contract mutants list`).")
@click.option(
    "--without-state", "without_states", multiple=True, metavar="NAME", help="Hide a provider state (repeatable)."
)
@click.option(
    "--api-key", envvar="CONTRACT_API_KEY", default="test-internal-key", help="Service token of the Runtime API."
)
@click.option("--control-token", envvar="CONTRACT_CONTROL_TOKEN", help="Bearer token of the control plane.")
def serve_command(
    host: str,
    port: int,
    clock: str,
    data: Path | None,
    mutant: str | None,
    without_states: tuple[str, ...],
    api_key: str,
    control_token: str | None,
) -> None:
    """Serve the Runtime API and its control plane on one port until SIGTERM or Ctrl-C.

    Prints one line of JSON on standard output once it answers: {"event": "ready", "baseUrl": ...}.
    """
    if not is_loopback(host) and not control_token:
        raise _UsageError(
            f"{host} is not a loopback address: everybody could use the control plane; add --control-token"
        )
    if not api_key:
        raise _UsageError("--api-key is empty; give the token that Runtimes are to send")
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    options = Options(clock=clock, mutant=mutant, without_states=frozenset(without_states), api_key=api_key)
    try:
        ProviderStates(openapi.load("control")).known(without_states)
        worlds = Worlds(options)
        seeds = SeedData.read(data) if data else None
    except (ValueError, SpecError, DataError) as error:
        raise _UsageError(str(error)) from None
    shown = f"[{host}]" if ":" in host else host
    hosts = frozenset({"127.0.0.1", "localhost", "[::1]", shown}) if is_loopback(host) else None
    sock = listen(host, port)
    base_url = f"http://{shown}:{sock.getsockname()[1]}"
    app = Server(worlds, Guard(hosts, control_token))

    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        lifespan="on",
        ws="none",
        timeout_keep_alive=_KEEP_ALIVE,
        backlog=_BACKLOG,
        server_header=False,
        timeout_graceful_shutdown=_GRACE,
    )

    async def run() -> None:
        if seeds is not None:
            await worlds.default.fill(seeds)
        gc.collect()
        gc.freeze()  # what was loaded stays for good: no need to look at it again with each collection
        await _Uvicorn(config, base_url).serve([sock])

    for number in (signal.SIGTERM, signal.SIGINT):
        # uvicorn stops gracefully and then raises the signal again; to have stopped as asked is no failure.
        signal.signal(number, lambda *_: None)
    try:
        with asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
            runner.run(run())
    except DataError as error:
        raise _UsageError(str(error)) from None
