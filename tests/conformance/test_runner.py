"""Children that take job after job: what one job leaves behind never reaches the next."""

from __future__ import annotations

import queue

import pytest

from conformance.children import Crew


def test_a_stopped_crew_tells_nothing_more():
    with Crew() as crew:
        crew.prepare([("runtime-api", "scenarios")])
        crew.stop()
        with pytest.raises(queue.Empty):
            crew.next(0)
