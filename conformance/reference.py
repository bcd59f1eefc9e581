"""The reference server as a child process, for the self-check."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import threading
from typing import TYPE_CHECKING, Any

import requests

from conformance.processes import held_back, python

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from conformance.systems import Settings, System

START_SECONDS = 30


class ReferenceFailed(RuntimeError):  # noqa: N818
    """The reference server did not start; the text holds what it said."""


def variables(targets: Iterable[tuple[System, Settings]]) -> dict[str, str]:
    """The environment variables from which the reference takes the secrets of what it is to serve."""
    return {name: value for system, settings in targets for value, name in system.variables(settings).items()}


@contextlib.contextmanager
def serve(secrets: str | Mapping[str, str], *options: str) -> Iterator[str]:
    """Serve the reference on a free port; gives its base URL, ends it in any case.

    ``secrets`` are by the environment variables from which it takes them; one alone is ``CONTRACT_API_KEY``. Raises
    :class:`ReferenceFailed`.
    """
    given = {"CONTRACT_API_KEY": secrets} if isinstance(secrets, str) else dict(secrets)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("CONTRACT_")}
    with contextlib.ExitStack() as ending:
        with held_back():
            process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
                # not as the caller's contract.toml serves it
                python("conformance", "--config", os.devnull, "serve", "--port", "0", "--until-eof", *options),
                stdin=subprocess.PIPE,  # held until we end, whatever ends us
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                env={**environment, **given},
                start_new_session=True,  # Ctrl-C is the parent's: it ends this process when it is done with it
            )
            errors: list[str] = []
            reader = threading.Thread(target=lambda: errors.extend(process.stderr or ()), daemon=True)
            reader.start()
            ending.callback(_end, process, reader)
        timer = threading.Timer(START_SECONDS, process.kill)
        ending.callback(timer.cancel)
        timer.start()
        line = (process.stdout.readline() if process.stdout else "").strip()
        timer.cancel()
        if not line:
            process.wait()
            reader.join(timeout=5)
            raise ReferenceFailed("".join(errors).strip() or f"exit status {process.returncode}")
        yield json.loads(line)["baseUrl"]


def _end(process: subprocess.Popen[str], reader: threading.Thread) -> None:
    process.terminate()
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    reader.join(timeout=5)
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            stream.close()


def make_world(base_url: str, **options: Any) -> str:
    """Make a world on a mock; returns the base URL under which it is reached. Raises :class:`ReferenceFailed`."""
    with requests.Session() as session:
        session.trust_env = False  # no proxy of the user's between us and a child of ours
        response = session.post(f"{base_url}/__control__/worlds", json=options, timeout=START_SECONDS)
    if response.status_code != 201:
        raise ReferenceFailed(response.text)
    return f"{base_url}{response.json()['path']}".rstrip("/")


def drop_world(base_url: str, world: str) -> None:
    """Drop a world that :func:`make_world` made on a mock; ``world`` is what it returned."""
    with requests.Session() as session:
        session.trust_env = False
        session.delete(f"{base_url}/__control__/worlds/{world.rpartition('/')[2]}", timeout=START_SECONDS)
