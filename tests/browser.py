"""A real browser for tests: the system's Chromium, without a display, that speaks to this machine alone.

A test takes the fixture `browser` and opens pages with it. When the test ends, it also fails for what its pages did
wrong unseen: an error or warning on the console, an exception nobody caught, a crash, a request to another machine.
"""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from services import require

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request

PROGRAM = "chromium"
HERE = "127.0.0.1"
ALONE = ("--no-proxy-server", f"--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE {HERE}")
"""What a page, or Chromium itself, would ask of another machine finds none."""

PATIENCE = 10_000
"""Milliseconds that a step may take at most, on a busy machine, too."""


class Watched:
    """Opens pages and keeps what they did; one for each test."""

    def __init__(self, chromium: Browser) -> None:
        self.chromium = chromium
        self.contexts: list[BrowserContext] = []
        self.requests: list[Request] = []
        """Every request of every page, in order."""
        self.console: list[str] = []
        """What was written on the consoles: kind and text."""
        self.faults: list[str] = []
        self._expected: list[str] = []

    def open(self, url: str, **options: Any) -> Page:
        """A page in a context of its own (nothing is shared with other pages); ``options`` are Playwright's for it."""
        context = self.chromium.new_context(**options)
        self.contexts.append(context)
        context.set_default_timeout(PATIENCE)
        context.on("request", self._asked)
        context.on("console", self._written)
        context.on("weberror", lambda error: self.faults.append(f"an exception nobody caught: {error.error}"))
        page = context.new_page()
        page.on("crash", lambda _: self.faults.append("the page crashed"))
        page.goto(url)
        return page

    def expects(self, pattern: str) -> None:
        """The consoles will show an error like this pattern, as Chromium itself tells of answers such as 401."""
        self._expected.append(pattern)

    def close(self) -> None:
        """Close the pages and judge what they did. Raises :class:`AssertionError` where something was wrong."""
        for context in self.contexts:
            context.close()
        loud = [line for line in self.console if line.startswith(("error", "warning"))]
        faults = self.faults + [line for line in loud if not any(re.search(one, line) for one in self._expected)]
        unseen = [one for one in self._expected if not any(re.search(one, line) for line in loud)]
        faults += [f"expected on the console, but not seen: {one}" for one in unseen]
        assert not faults, "\n".join(["the browser's pages did wrong:", *faults])

    def _asked(self, request: Request) -> None:
        self.requests.append(request)
        address = urlsplit(request.url)
        if address.scheme not in ("data", "blob") and address.hostname != HERE:
            self.faults.append(f"a request to another machine: {request.method} {request.url}")

    def _written(self, message: ConsoleMessage) -> None:
        self.console.append(f"{message.type}: {message.text}")


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """One Chromium for the tests of a module; it needs no more than a second.

    Not for longer: while Playwright's event loop lives in this thread no other test could run one of its own.
    """
    require(PROGRAM)
    # Not at the top: tests without a browser need not wait for it.
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # CI is root, under which Chromium has no sandbox; that is Playwright's default.
        launched = playwright.chromium.launch(executable_path=shutil.which(PROGRAM), args=list(ALONE))
        yield launched
        launched.close()


@pytest.fixture
def browser(chromium: Browser) -> Iterator[Watched]:
    """Chromium, watched."""
    watched = Watched(chromium)
    yield watched
    watched.close()
