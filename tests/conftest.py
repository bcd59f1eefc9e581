"""What all folders of tests share. This file also puts `tests/` on the path, for `services` and `browser`."""

from services import pytest_configure, pytest_runtest_setup

__all__ = ["pytest_configure", "pytest_runtest_setup"]
