"""How child processes of ours are started: with our own code, whatever the caller's folder holds."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_ROOT = str(Path(__file__).parents[1])
_START = """
import runpy, sys
root, module = sys.argv.pop(1), sys.argv.pop(1)
if root not in sys.path:
    sys.path.insert(0, root)
runpy.run_module(module, run_name="__main__", alter_sys=True)
"""


def python(module: str, *arguments: str) -> list[str]:
    """The command that runs a module of ours.

    Not ``python -m``: that puts the caller's folder first, whose ``json.py`` or ``openapi`` would hide the real one.
    """
    return [sys.executable, "-P", "-W", "ignore", "-c", _START, _ROOT, module, *arguments]


ENDING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
"""Signals that ask for an end: Ctrl-C, a polite kill, a terminal that was closed."""


@contextlib.contextmanager
def held_back() -> Iterator[None]:
    """Hold signals that ask for an end back until a child that is being started is known, so that it can be ended.

    Raises ``KeyboardInterrupt`` afterwards where one came. Other threads than the main one get no signals.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    before = {number: signal.signal(number, lambda caught, _: came.append(caught)) for number in ENDING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler or signal.SIG_DFL)
    if came:
        raise KeyboardInterrupt
