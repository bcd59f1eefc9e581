"""``contract serve``: the mock on one port."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import os
import re
import signal
import socket
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click
import uvicorn

import openapi
from mock_server import journal, recording
from mock_server.builds import fault_targets
from mock_server.control import Guard
from mock_server.fault_plans import read_plans
from mock_server.hub.accounts import tokens
from mock_server.hub.hub import HubOptions
from mock_server.hub.states import HubStates
from mock_server.hub.webhooks import sound_secret
from mock_server.ports import BACKLOG, PortsServer, bind, is_loopback
from mock_server.provider_states import ProviderStates
from mock_server.seed_data import DataError, SeedData
from mock_server.server import Server
from mock_server.state_set import known
from mock_server.timing import read_timing
from mock_server.wire import HTTP
from mock_server.worlds import Options, Worlds
from openapi import SpecError

if TYPE_CHECKING:
    from types import FrameType

_HOST = re.compile(r"[A-Za-z0-9._-]+|\[?[0-9A-Fa-f:.]+\]?")
_KEEP_ALIVE = 75
_GRACE = 5


class _Uvicorn(PortsServer):
    """Tells on standard output when it answers; a line of JSON, so that a test in any language can wait for it."""

    def __init__(self, config: uvicorn.Config, sock: socket.socket, base_url: str, worlds: Worlds) -> None:
        super().__init__(config, sock)
        self.base_url, self.worlds = base_url, worlds

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop; streams that are open end first, so that nobody waits for them."""
        for world in self.worlds:
            world.end_streams()
        super().handle_exit(sig, frame)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, then say so."""
        await super().startup(sockets)
        if self.started:
            sys.stdout.write(json.dumps({"event": "ready", "baseUrl": self.base_url}) + "\n")
            sys.stdout.flush()


def listen(host: str, port: int) -> socket.socket:
    """A socket bound to the address; port 0 picks one. Raises :class:`click.ClickException` where it can't be had."""
    try:
        return bind(host, port)
    except OSError as error:
        mend = "choose another --port, or 0 to have one picked" if port else "name an address of this machine"
        raise _UsageError(f"can't listen on {host}:{port}: {error.strerror or error}; {mend}") from None


def _recorder(path: Path | None, max_bytes: int) -> recording.Recorder | None:
    """The recording at a path. Raises :class:`click.ClickException` where it can't be written."""
    try:
        return recording.Recorder(path, max_bytes) if path else None
    except OSError as error:
        raise _UsageError(
            f"can't record to {path}: {error.strerror or error}; name a file that can be written"
        ) from None


def _end_at_eof() -> None:
    """Stop as SIGTERM would once nobody holds our standard input any more; at once where that does not help."""
    while sys.stdin.buffer.read(65536):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(2 * _GRACE)
    os._exit(1)


class _UsageError(click.ClickException):
    exit_code = 2


def _sound_hub(api_key: str, hub_token: str, callback_hosts: tuple[str, ...]) -> None:
    """Raises :class:`_UsageError` for a key that no client could send, one that opens both APIs, what is no host."""
    if not hub_token:
        raise _UsageError("--hub-token is empty; give the API key that integrators are to send")
    if not all(33 <= ord(char) < 127 for char in hub_token):
        raise _UsageError("--hub-token holds a character that no header can carry (ASCII without blanks)")
    if api_key in tokens(hub_token):
        raise _UsageError("--api-key opens the Agent Hub, too; give the APIs keys of their own")
    for host in callback_hosts:
        if not _HOST.fullmatch(host):
            raise _UsageError(f"--allow-callback-host {host}: name a host alone, without scheme, port and path")


@click.command("serve", short_help="Serve the reference: the mock of both APIs.")
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
    "--timing",
    "timings",
    multiple=True,
    metavar="NAME=SECONDS",
    help="A number in place of the specification's: `lock=3` for locks of three seconds.",
)
@click.option(
    "--fault",
    "faults",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Fault plans in YAML or JSON: one or a list (repeatable).",
)
@click.option(
    "--without-state", "without_states", multiple=True, metavar="NAME", help="Hide a provider state (repeatable)."
)
@click.option(
    "--api-key", envvar="CONTRACT_API_KEY", default="test-internal-key", help="Service token of the Runtime API."
)
@click.option(
    "--hub-token",
    envvar="CONTRACT_HUB_TOKEN",
    default="zqa_live_test",
    help="API key of the Agent Hub; the second one has _b behind it.",
)
@click.option(
    "--webhook-secret",
    envvar="CONTRACT_WEBHOOK_SECRET",
    help="Secret by which webhooks are signed: whsec_ and base64, or any text; without it they are not.",
)
@click.option(
    "--allow-callback-host",
    "callback_hosts",
    multiple=True,
    metavar="HOST",
    help="Host to which webhooks may go, beside loopback ones (repeatable).",
)
@click.option("--control-token", envvar="CONTRACT_CONTROL_TOKEN", help="Bearer token of the control plane.")
@click.option(
    "--journal-entries",
    default=journal.MAX_ENTRIES,
    show_default=True,
    type=click.IntRange(1),
    help="Exchanges that a world's journal keeps at most.",
)
@click.option(
    "--journal-bytes",
    default=journal.MAX_BYTES,
    show_default=True,
    type=click.IntRange(1),
    help="Bytes that a world's journal takes at most, about.",
)
@click.option("--record", type=click.Path(path_type=Path), help="Write every exchange of every world to this HAR file.")
@click.option(
    "--record-bytes",
    default=recording.MAX_BYTES,
    show_default=True,
    type=click.IntRange(recording.LEAST_BYTES),
    help="Largest size of the recording.",
)
@click.option(
    "--until-eof", is_flag=True, help="End when standard input is closed, as when the test that started it was killed."
)
def serve_command(
    host: str,
    port: int,
    clock: str,
    data: Path | None,
    mutant: str | None,
    timings: tuple[str, ...],
    faults: tuple[Path, ...],
    without_states: tuple[str, ...],
    api_key: str,
    hub_token: str,
    webhook_secret: str | None,
    callback_hosts: tuple[str, ...],
    control_token: str | None,
    journal_entries: int,
    journal_bytes: int,
    record: Path | None,
    record_bytes: int,
    until_eof: bool,
) -> None:
    """Serve the Runtime API, the Agent Hub and their control plane on one port until SIGTERM or Ctrl-C.

    Prints one line of JSON on standard output once it answers: {"event": "ready", "baseUrl": ...}.
    """
    if not is_loopback(host) and not control_token:
        raise _UsageError(
            f"{host} is not a loopback address: everybody could use the control plane; add --control-token"
        )
    if control_token == "":
        raise _UsageError("--control-token is empty; give a token, or leave the option out")
    if not api_key:
        raise _UsageError("--api-key is empty; give the token that Runtimes are to send")
    _sound_hub(api_key, hub_token, callback_hosts)
    if webhook_secret is not None and not sound_secret(webhook_secret):
        raise _UsageError("--webhook-secret can't be used: it is empty, or no base64 follows `whsec_`")
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    options = Options(
        clock=clock,
        mutant=mutant,
        without_states=frozenset(without_states),
        api_key=api_key,
        hub=HubOptions(tokens(hub_token), webhook_secret, frozenset(host.lower() for host in callback_hosts)),
        journal_entries=journal_entries,
        journal_bytes=journal_bytes,
        sightings=record is not None,
    )
    try:
        if timings:
            options = replace(options, timing=read_timing(timings))
        if faults:
            options = replace(options, faults=read_plans(faults, fault_targets()))
        known(without_states, ProviderStates(openapi.load("control")), HubStates(openapi.load("control")))
        worlds = Worlds(options)
        seeds = SeedData.read(data) if data else None
    except (ValueError, SpecError, DataError) as error:
        raise _UsageError(str(error)) from None
    shown = f"[{host}]" if ":" in host else host
    hosts = frozenset({"127.0.0.1", "localhost", "[::1]", shown}) if is_loopback(host) else None
    sock = listen(host, port)
    base_url = f"http://{shown}:{sock.getsockname()[1]}"
    app = Server(worlds, Guard(hosts, control_token), _recorder(record, record_bytes))

    config = uvicorn.Config(
        app,
        http=HTTP,
        log_config=None,
        access_log=False,
        lifespan="on",
        ws="none",
        timeout_keep_alive=_KEEP_ALIVE,
        backlog=BACKLOG,
        server_header=False,
        timeout_graceful_shutdown=_GRACE,
    )

    async def run() -> None:
        if seeds is not None:
            await worlds.default.fill(seeds)
        gc.collect()
        gc.freeze()  # what was loaded stays for good: no need to look at it again with each collection
        worlds.listener = server = _Uvicorn(config, sock, base_url, worlds)
        expiring = asyncio.create_task(worlds.keep_expiring())
        await server.serve([sock])
        expiring.cancel()
        for world in worlds:
            world.close()

    for number in (signal.SIGTERM, signal.SIGINT):
        # uvicorn stops gracefully and then raises the signal again; to have stopped as asked is no failure.
        signal.signal(number, lambda *_: None)
    if until_eof:
        threading.Thread(target=_end_at_eof, daemon=True).start()
    try:
        with asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
            runner.run(run())
    except DataError as error:
        raise _UsageError(str(error)) from None
