"""The reference server as a child process, for the self-check."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import requests

if TYPE_CHECKING:
    from collections.abc import Iterator

START_SECONDS = 30


class ReferenceFailed(RuntimeError):  # noqa: N818
    """The reference server did not start; the text holds what it said."""


@contextlib.contextmanager
def serve(api_key: str, *options: str) -> Iterator[str]:
    """Serve the reference on a free port; gives its base URL, ends it in any case. Raises :class:`ReferenceFailed`."""
    process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
        [sys.executable, "-W", "ignore", "-m", "conformance", "serve", "--port", "0", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "CONTRACT_API_KEY": api_key},
    )
    errors: list[str] = []
    reader = threading.Thread(target=lambda: errors.extend(process.stderr or ()), daemon=True)
    reader.start()
    timer = threading.Timer(START_SECONDS, process.kill)
    timer.start()
    try:
        line = (process.stdout.readline() if process.stdout else "").strip()
        timer.cancel()
        if not line:
            process.wait()
            reader.join(timeout=5)
            raise ReferenceFailed("".join(errors).strip() or f"exit status {process.returncode}")
        yield json.loads(line)["baseUrl"]
    finally:
        timer.cancel()
        process.terminate()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        reader.join(timeout=5)
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()


def make_world(base_url: str, **options: Any) -> str:
    """Make a world on a mock; returns the base URL under which it is reached. Raises :class:`ReferenceFailed`."""
    response = requests.post(f"{base_url}/__control__/worlds", json=options, timeout=START_SECONDS)
    if response.status_code != 201:
        raise ReferenceFailed(response.text)
    return f"{base_url}{response.json()['path']}".rstrip("/")
