"""What all folders of tests share. This file also puts `tests/` on the path, for `services` and `browser`."""

from browser import browser, chromium
from services import pytest_configure, pytest_runtest_setup

__all__ = ["browser", "chromium", "pytest_configure", "pytest_runtest_setup"]
