"""The child processes in which checks run, apart from us: a check that goes astray takes its child down alone."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import tempfile
import threading
from typing import TYPE_CHECKING, Any, Self

from conformance.processes import held_back, python

if TYPE_CHECKING:
    from collections.abc import Iterable

    from conformance.judging import Job

Event = dict[str, Any]
Place = tuple[str, str]
"""A system's name and a part of its suite; what follows a ``#`` tells children of the same part apart."""


class Child:
    """One child process with a part of a system's suite: ``scenarios``, ``fuzz`` or ``all``. It takes job after job."""

    def __init__(self, place: Place, events: queue.Queue[tuple[Child, Event | None]]) -> None:
        """Begin to collect; what it tells goes to ``events``, None when it has ended."""
        environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONWARNINGS": "ignore"}
        self._scratch = tempfile.TemporaryDirectory(prefix="contract-")
        environment["HYPOTHESIS_STORAGE_DIRECTORY"] = self._scratch.name  # nothing is left in the caller's folder
        for name in ("PYTEST_ADDOPTS", "PYTEST_PLUGINS"):
            environment.pop(name, None)
        self.system, part = place[0], place[1].partition("#")[0]
        self.name = f"{part} of {self.system}"
        self.process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
            python("conformance.child", self.system, part),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
            start_new_session=True,  # Ctrl-C is the parent's: it tells what was found by then
        )
        self.errors: list[str] = []
        self._threads = [
            threading.Thread(target=self._read, args=(events,), daemon=True),
            threading.Thread(target=self._read_errors, daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def send(self, job: Job) -> None:
        """Give it a job; it is done when it tells ``end`` or ``broken``."""
        with contextlib.suppress(BrokenPipeError):  # it has ended, which it tells
            if self.process.stdin is not None:
                self.process.stdin.write(job.to_json() + "\n")
                self.process.stdin.flush()

    def said_last(self) -> str:
        """Its last words, for one that broke off."""
        return "".join(self.errors[-5:]).strip() or f"exit status {self.process.returncode}"

    def _read(self, events: queue.Queue[tuple[Child, Event | None]]) -> None:
        for line in self.process.stdout or ():
            with contextlib.suppress(ValueError):
                events.put((self, json.loads(line)))
        self.process.wait()
        events.put((self, None))

    def _read_errors(self) -> None:
        self.errors += list(self.process.stderr or ())

    def stop(self) -> None:
        """End the child whatever it does."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for thread in self._threads:
            thread.join(timeout=5)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()
        self._scratch.cleanup()


class Crew:
    """Children, one for each part of a system's suite; they can take job after job. Ends them when it is left."""

    def __init__(self) -> None:
        self._events: queue.Queue[tuple[Child, Event | None]] = queue.Queue()
        self._children: dict[Place, Child] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def prepare(self, places: Iterable[Place]) -> None:
        """Start children for parts that have none, so that they have collected by the time that they get their jobs."""
        with held_back():
            for place in places:
                if place not in self._children:
                    self._children[place] = Child(place, self._events)

    def send(self, part: str, job: Job) -> Child:
        """Give a job to the child of a part of its system's suite."""
        place = (job.system, part)
        self.prepare([place])
        child = self._children[place]
        child.send(job)
        return child

    def dismiss(self, part: str) -> None:
        """End the children of a part that are to get no other job."""
        for place in [place for place in self._children if place[1] == part]:
            self._children.pop(place).stop()

    def next(self, seconds: float | None) -> tuple[Child, Event | None]:
        """What a child tells next; None where it has ended. Raises ``queue.Empty`` when nothing comes in time."""
        return self._events.get(timeout=seconds)

    def stop(self) -> None:
        """End every child whatever it does; new ones are started when they are needed.

        What the ended ones still told is forgotten: it would be taken for what the next job finds.
        """
        for child in self._children.values():
            child.stop()
        self._children.clear()
        self._events = queue.Queue()
