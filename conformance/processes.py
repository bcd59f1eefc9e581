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
    from types import FrameType

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

    One that came is dealt with afterwards by whoever deals with it otherwise; where nobody does, ``KeyboardInterrupt``
    is raised. Other threads than the main one get no signals.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    heard = [number for number in ENDING if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, lambda caught, _: came.append(caught)) for number in heard}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler or signal.SIG_DFL)
    if came:
        if callable(before[came[0]]):
            signal.raise_signal(came[0])
        else:
            raise KeyboardInterrupt


@contextlib.contextmanager
def first_signal_alone() -> Iterator[None]:
    """While it lasts only the first signal that asks for an end is dealt with, as Ctrl-C is; more change nothing.

    For an event loop that cleans up when it is interrupted: asyncio answers a second Ctrl-C by breaking off whatever
    runs. What it is for has to come to its end in a bounded time.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    interrupt = signal.getsignal(signal.SIGINT)
    before = {number: handler for number in ENDING if callable(handler := signal.getsignal(number))}
    asked = False

    def ask(_: int, frame: FrameType | None) -> None:
        nonlocal asked
        if not asked and callable(interrupt):
            asked = True
            interrupt(signal.SIGINT, frame)

    if callable(interrupt):
        for number in before:
            signal.signal(number, ask)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
