"""What the model believes of a project and its jobs, and what time, their node and the text do to them."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import openapi
from contract_tests.model.stepper import Row, Stepper

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from contract_tests.agent_hub import given
    from contract_tests.agent_hub.given import HubTiming

NAME = "agent-hub"
ACCOUNT, OTHER = "a", "b"
MOST = 500
"""Things that happen to a project between two looks, at most."""
JITTER = 100
"""By so much a node's heartbeat may be late, milliseconds."""
NOTHING = {"toolCalls": 0, "tokensIn": 0, "tokensOut": 0, "iterations": 0, "lastActivity": ""}
"""Progress that was reported and has no values yet (HUB-GET-67)."""
HEARD, ENDED = "heard", "endedFrom"
"""Columns that the text does not have: what is known of a round's reports; where its end came late, when it was."""

LIMIT = "round-limit"
"""The timer of a round that takes too long; a node that comes back tells what it would have told."""

World = tuple[Row, ...]
"""The rows of a project's jobs, in the order in which they were made."""


@dataclass(eq=False)
class Job:
    """A job, and what its node does in each attempt. Its row is that of its number in each world of its place."""

    ref: given.Job
    rounds: Sequence[Mapping[str, Any]]
    place: Place
    number: int


@dataclass(eq=False)
class Place:
    """A project on a node of its own, and what may have become of its jobs: more than one world where that is open."""

    project: given.Project
    jobs: list[Job] = field(default_factory=list)
    worlds: list[World] = field(default_factory=lambda: [()])
    online: bool = True

    def rows(self, job: Job) -> list[Row]:
        """The rows that a job of the project may have."""
        return different(world[job.number] for world in self.worlds)


@dataclass(frozen=True)
class Heard:
    """What is known of a round's reports: instants, epoch milliseconds.

    The node has been heard ``since`` then, ``until`` then; its last report is not older than ``fresh``, where it had to
    tell one at all (that is ``taken``, the round's start, until then). ``told``: entries of its script that it told.
    ``past``: the job waits for its next attempt, and nobody says that what was told in the last one is still shown.
    """

    taken: int
    since: int
    until: int
    fresh: int
    told: int = 0
    past: bool = False

    def begun(self, taken: int) -> Heard:
        """The same of a round that was taken at another instant."""
        since, fresh = (taken if one == self.taken else one for one in (self.since, self.fresh))
        return replace(self, taken=taken, since=since, until=max(self.until, taken), fresh=fresh)

    def up_to(self, instant: int, beat: int) -> Heard:
        """The same when the node is heard up to an instant: it told something in the time between two heartbeats."""
        lately = instant - beat - JITTER
        return replace(self, until=instant, fresh=max(self.fresh, lately) if lately > self.since else self.fresh)


def different(found: Iterable[Any]) -> list[Any]:
    """Each of them once."""
    once: list[Any] = []
    for one in found:
        if one not in once:
            once.append(one)
    return once


def stepper(timing: HubTiming) -> Stepper:
    """The text of the specification, with the times that the build was said to have."""
    return _stepper(
        openapi.load(NAME), tuple(round(one * 1000) for one in timing.backoff), round(timing.node_lost * 1000)
    )


@functools.lru_cache(maxsize=4)
def _stepper(contract: openapi.Contract, backoff: tuple[int, ...], silence: int) -> Stepper:
    def merge(first: Row | None, second: Row) -> Row:
        return (first or {}) | second

    def differs(first: Row | None, second: Row) -> bool:
        return any((first or {}).get(name) != value for name, value in second.items() if name != "updatedAt")

    text = contract.document["x-state-machine"]
    return Stepper(text, {"backoff": list(backoff), "silence": silence}, {"merge": merge, "differs": differs})


def submitted(id_: str, item: Mapping[str, Any]) -> Row:
    """The row of a job that was just submitted, whose place in the queue is not known yet."""
    columns = openapi.load(NAME).document["components"]["schemas"]["HubJob"]["properties"]
    row: Row = dict.fromkeys(columns)
    return row | {
        "id": id_,
        "account": ACCOUNT,
        "status": "queued",
        "attempt": 0,
        "maxAttempts": item["maxAttempts"],
        "timeoutSeconds": item.get("timeoutSeconds"),
        HEARD: None,
        ENDED: None,
    }


Happening = tuple[int, int, int, str]
"""Something that happens to a project: its instant, its place among those of the same one, the job's number, what."""


class Course:
    """What happens to the jobs of one place."""

    def __init__(self, steps: Stepper, place: Place) -> None:
        self.steps, self.place = steps, place

    def later(self, world: World, since: int, now: int) -> World:
        """The world as time, the scheduler and the node leave it: at one instant reports, then timers, then starts."""
        for _ in range(MOST):
            happening = min(self._happening(world, since), default=None)
            if happening is None or happening[0] > now:
                return self._beats(world, now)
            world, since = self._happened(self._beats(world, happening[0]), happening), max(since, happening[0])
        raise RuntimeError(f"more happens to {self.place.project.id} than can be followed")

    def possible(self, world: World, since: int, high: int) -> list[World]:
        """The world as it is, and after each thing that happens to it until then."""
        found = [world]
        for _ in range(MOST):
            happening = min(self._happening(world, since), default=None)
            if happening is None or happening[0] > high:
                return found
            world, since = self._happened(self._beats(world, happening[0]), happening), max(since, happening[0])
            found.append(world)
        raise RuntimeError(f"more happens to {self.place.project.id} than can be followed")

    def next(self, world: World, number: int, now: int) -> int | None:
        """The first instant after now at which a job is another one, heartbeats apart."""
        since, before = now, world[number]
        for _ in range(MOST):
            happening = min(self._happening(world, since), default=None)
            if happening is None:
                return None
            world, since = self._happened(self._beats(world, happening[0]), happening), max(since, happening[0])
            if self._known(world[number]) != self._known(before):
                return since
        return None

    @staticmethod
    def _known(row: Row) -> Row:
        """A row without what heartbeats alone bring."""
        known = {name: value for name, value in row.items() if name not in (HEARD, "progress")}
        return known | {HEARD: row[HEARD].told if row[HEARD] else None}

    def switched(self, world: World, now: int, *, online: bool) -> World:
        """The world when the node goes offline, or comes back, which it is already in the place."""
        return tuple(self._turned(row, now, online=online) if row["round"] else row for row in world)

    def _turned(self, row: Row, now: int, *, online: bool) -> Row:
        if not online:
            return self._judged("silence", row, now)
        entry, start = row["round"], row["roundStartedAt"]
        if entry["result"] == "node_lost" and now >= start + _after(entry):
            return row  # the round itself has nothing more to say
        row = self._judged("hear", row, now)
        row = row | {HEARD: row[HEARD] and replace(row[HEARD], since=now, until=now)}
        end, limit = _end(row), start + self.steps.value("roundLimit")({self.steps.row: row})
        told = self.steps.text["timers"].get(LIMIT, {}).get("with")
        if told and now > limit and (end is None or end > limit):
            return self._over(self._reported(row, now, limit), now, limit, told)
        row = self._reported(row, now, now)
        return self._ended(row, now) if end is not None and end <= now else row

    def _happening(self, world: World, since: int) -> Iterator[Happening]:
        for number, row in enumerate(world):
            if _is_heard(row):
                yield from ((instant, order, number, what) for instant, order, what in _told(row))
            due = self.steps.due(row)
            if due is not None:
                yield due, 1, number, "timer"
        queued = [(row["queuedAt"], number) for number, row in enumerate(world) if row["status"] == "queued"]
        if queued and self.place.online and all(row["roundStartedAt"] is None for row in world):
            instant, number = min(queued)
            yield max(instant, since), 2, number, "take"

    def _happened(self, world: World, happening: Happening) -> World:
        now, _, number, what = happening
        row = world[number]
        match what:
            case "timer":
                row = self._fired(row)
            case "take":
                row = self._taken(row, now)
            case "progress":
                row = self._reported(row, now, now)
            case "report":
                row = self._ended(row, now)
            case _:
                row = self._judged(what, row, now)
        return (*world[:number], row, *world[number + 1 :])

    def _fired(self, row: Row) -> Row:
        new = self.steps.fire(row).row or row
        if new["status"] == "queued" != row["status"] and new[HEARD]:
            new = new | {HEARD: replace(new[HEARD], past=True)}
        return new

    def _judged(self, what: str, row: Row, now: int, **said: Any) -> Row:
        taken = self.steps.judge("internal", what, {self.steps.row: row, "now": now, **said})
        return taken.row or row

    def _taken(self, row: Row, now: int) -> Row:
        rounds = next(job.rounds for job in self.place.jobs if job.ref.id == row["id"])
        entry = dict(rounds[min(row["attempt"], len(rounds) - 1)])
        row = self._judged("take", row, now, round=entry, newSession=f"session {row['attempt']}")
        return row | {HEARD: Heard(now, now, now, now), ENDED: None}

    def _beats(self, world: World, now: int) -> World:
        """The heartbeats up to now of the rounds that are heard: the last one stands for all."""
        return tuple(self._beat(row, now) if _is_heard(row) else row for row in world)

    def _beat(self, row: Row, now: int) -> Row:
        if row["status"] != "running":
            return row
        heard: Heard = row[HEARD]
        every = self.steps.constants["heartbeat"]
        beat = heard.taken + (now - heard.taken) // every * every
        if beat > max(heard.since, (row["progress"] or {}).get("updatedAt", 0)):
            row = self._progress(row, {}, beat)
        return row | {HEARD: heard.up_to(now, every)}

    def _reported(self, row: Row, now: int, until: int) -> Row:
        """The row when the node tells what its script has it tell up to an instant."""
        heard: Heard = row[HEARD]
        if row["status"] != "running":
            return row
        for told in _entries(row)[heard.told :]:
            instant = heard.taken + round(told["atSeconds"] * 1000)
            if instant <= until:
                row = self._progress(row, {name: value for name, value in told.items() if name != "atSeconds"}, now)
                heard = replace(heard, told=heard.told + 1, until=now, fresh=max(heard.fresh, instant))
        return row | {HEARD: heard}

    def _progress(self, row: Row, values: Mapping[str, Any], now: int) -> Row:
        update = {**(row["progress"] or NOTHING), **values, "updatedAt": now}
        return self._judged("progress", row, now, update=update)

    def _ended(self, row: Row, now: int) -> Row:
        """The end of the round, with a last report of progress."""
        entry, end = row["round"], int(_end(row) or now)
        if row["roundStartedAt"] < now:
            running = row["status"] == "running"
            row = self._progress(self._reported(row, now, now), {}, now)
            row = row | {HEARD: replace(row[HEARD], until=now, fresh=end)} if running else row
        if entry["result"] == "done":
            report = {"type": "done", "message": None, "retriable": None, "result": {"summary": ""}}
        else:
            names = {"type": "failureType", "message": "message", "retriable": "retriable"}
            report = {"result": None, **{name: entry[key] for name, key in names.items()}}
        return self._over(row, now, end, {"report": report})

    def _over(self, row: Row, now: int, end: int, told: Mapping[str, Any]) -> Row:
        """The row when the round is over, whose end may count from any instant from ``end`` to now."""
        was = row["status"]
        row = self._judged("report", row, now, **told)
        return row | {ENDED: end} if was == "running" and end < now else row


def _is_heard(row: Row) -> bool:
    """Whether a node has the row's round in hand, and says what there is to say."""
    return bool(row["round"]) and row["roundStartedAt"] is not None and row["silentSince"] is None


def _after(entry: Mapping[str, Any]) -> int:
    seconds: float = entry.get("afterSeconds", 1)
    return round(seconds * 1000)


def _end(row: Row) -> int | None:
    """When the round ends at the node; None where it does not by itself."""
    entry = row["round"]
    return row["roundStartedAt"] + _after(entry) if entry["result"] in ("done", "failed") else None


def _entries(row: Row) -> list[Mapping[str, Any]]:
    """The reports of progress of the round's script, those after its end left out."""
    last = _after(row["round"]) if row["round"]["result"] != "hang" else None
    told = row["round"].get("progress", ())
    return [one for one in told if last is None or round(one["atSeconds"] * 1000) <= last]


def _told(row: Row) -> Iterator[tuple[int, int, str]]:
    """What the node of a round has to say: its instant, its place among those of one instant, what it is."""
    start, entry = row["roundStartedAt"], row["round"]
    left = _entries(row)[row[HEARD].told :] if row["status"] == "running" else []
    if left:
        yield start + round(left[0]["atSeconds"] * 1000), -1, "progress"
    end = _end(row)
    if end is not None:
        yield end, 0, "report"
    elif entry["result"] == "node_lost":
        yield start + _after(entry), 0, "silence"
