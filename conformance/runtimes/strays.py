"""Ends whatever a Runtime left behind: children that forked, detached and changed their session included."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import os
import signal
import sys
import time
from typing import TYPE_CHECKING

import psutil

from conformance.processes import ENDING, held_back
from conformance.runtimes.environment import MARK

if TYPE_CHECKING:
    from collections.abc import Iterator

_SET_CHILD_SUBREAPER, _GET_CHILD_SUBREAPER = 36, 37
_PATIENCE = 5.0
_PAUSE = 0.01
_REAPING = 1.0
_GONE = (psutil.NoSuchProcess, psutil.AccessDenied, OSError)


_living: dict[str, int | None] = {}
"""Marks of Runtimes that were started and not yet ended for good, and their first processes, where these are known."""


@contextlib.contextmanager
def adopting() -> Iterator[None]:
    """While it lasts, orphans below us become our children (Linux), so that they can be found, ended and reaped.

    At its end every Runtime that began meanwhile and still lives is ended, and so are those that nothing told of:
    children of ours that came meanwhile and are still there, and theirs. Signals that ask for an end have to wait
    until that is done. Where even this end is not come to, it is made up for at the end of the interpreter. Processes
    that we started and wait for have to have ended by then.
    """
    ending = _Ending()
    atexit.register(ending.last)
    try:
        yield
    finally:
        with held_back():
            ending.end()
            atexit.unregister(ending.last)


class _Ending:
    """What there was before, so that all that came later can be ended."""

    def __init__(self) -> None:
        self._marks, self._before, self._adopts = set(_living), _children(), _subreaper()

    def end(self) -> None:
        """End all that came later."""
        for mark in _living.keys() - self._marks:
            end_all(mark, _living.get(mark))
        if self._adopts:
            _end_children(self._before)
            _set_subreaper(on=False)

    def last(self) -> None:
        """The same, at the end of the interpreter, when nobody is left to whom an interruption could be told."""
        for number in ENDING:
            signal.signal(number, signal.SIG_IGN)
        self.end()


def expect(mark: str, first: int | None = None) -> None:
    """A Runtime with this mark is being started, or was: until :func:`end_all` has ended it, it is owed an end."""
    _living[mark] = first


def end_all(mark: str, first: int | None = None) -> None:
    """Kill the group of a Runtime's first process and every process that has its mark, until none is left.

    ``first`` None: it is not known whether there is one. Takes some milliseconds, and at most five seconds with one
    that forks as fast as it is killed. A process of another user (of a Runtime that uses ``sudo``) can't be seen.
    """
    until = time.monotonic() + _PATIENCE
    killed: set[int] = set()
    while True:
        if first is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(first, signal.SIGKILL)
        found = list(_marked(mark))
        for process in found:
            killed.add(process.pid)
            with contextlib.suppress(*_GONE):
                process.kill()
        if not found or time.monotonic() > until:
            break
        time.sleep(_PAUSE)
    _living.pop(mark, None)
    _reap(killed - ({first} if first else set()))  # asyncio waits for that one


def _end_children(before: set[int]) -> None:
    """Kill and reap children that were not there before, and all below them, which come to us as orphans."""
    until = time.monotonic() + _PATIENCE
    while (found := _children() - before) and time.monotonic() < until:
        for pid in found:
            with contextlib.suppress(*_GONE):
                child = psutil.Process(pid)
                for process in (child, *child.children(recursive=True)):
                    process.kill()
        _reap(found)


def _marked(mark: str) -> Iterator[psutil.Process]:
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK) == mark and process.status() != psutil.STATUS_ZOMBIE:
                yield process
        except _GONE:
            continue


def _reap(ended: set[int]) -> None:
    """Take the exit statuses of those that are our children, or become so when their parents are gone, too."""
    left, until = set(ended), time.monotonic() + _REAPING
    while left and time.monotonic() < until:
        for pid in list(left):
            try:
                gone = os.waitpid(pid, os.WNOHANG)[0] == pid
            except ChildProcessError:
                gone = not psutil.pid_exists(pid)
            if gone:
                left.discard(pid)
        if left:
            time.sleep(_PAUSE)


def _children() -> set[int]:
    return {child.pid for child in psutil.Process().children()}


def _subreaper() -> bool:
    """Become the one to whom orphans come; False where that can't be had, or where we are it already."""
    if sys.platform != "linux":
        return False
    was = ctypes.c_int(0)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_GET_CHILD_SUBREAPER, ctypes.byref(was), 0, 0, 0) != 0 or was.value:
        return False
    return _set_subreaper(on=True)


def _set_subreaper(*, on: bool) -> bool:
    return bool(ctypes.CDLL(None, use_errno=True).prctl(_SET_CHILD_SUBREAPER, int(on), 0, 0, 0) == 0)
