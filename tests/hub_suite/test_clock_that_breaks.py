"""A build that breaks while its clock is moved: the clock goes on, and the API shows what became of what was due."""

import asyncio

import pytest
from fake_hub import FakeHub

from contract_tests.clock import Clock
from contract_tests.transport import StateBroken


class Breaking(FakeHub):
    """Breaks at instants of its clock, milliseconds from its start: once at each, or whenever it is asked."""

    def __init__(self, *instants, for_ever=False):
        super().__init__()
        self.began, self.due, self.for_ever = self.now, list(instants), for_ever
        self.asked = []

    async def set_up(self, state, params):
        self.asked.append(params["seconds"])
        for at in self.due:
            if self.began + at <= self.now + params["seconds"] * 1000:
                self.now = max(self.now, self.began + at)
                if not self.for_ever:
                    self.due.remove(at)
                raise StateBroken("provider state advance-time: 500 boom")
        return await super().set_up(state, params)


def advanced(hub, *, rate=0):
    async def run():
        clock = Clock(hub, rate=rate, grace=0)
        await clock.now()
        await clock.advance(10)
        return await clock.now()

    return asyncio.run(run())


@pytest.mark.parametrize("at", [4_000, 10_000])
def test_a_clock_that_broke_on_the_way_goes_on_to_its_instant(at):
    hub = Breaking(at)
    assert advanced(hub) == hub.began + 10_000
    assert hub.now == hub.began + 10_000


@pytest.mark.parametrize("hub", [Breaking(4_000, for_ever=True), Breaking(4_000, 6_000)], ids=["for ever", "twice"])
def test_a_clock_that_breaks_again_is_given_up(hub):
    with pytest.raises(StateBroken):
        advanced(hub)


def test_a_clock_that_flows_is_not_asked_again():
    hub = Breaking(4_000)
    with pytest.raises(StateBroken):
        advanced(hub, rate=1)
    assert hub.asked == [0, 10]
