"""How a check is written: what it answers for, what it needs, and how it fails."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

Check = TypeVar("Check", bound="Callable[..., Any]")


class CheckFailed(AssertionError):  # noqa: N818 - a verdict, not a fault
    """The build does not do what the rule says.

    ``expected`` lists every acceptable outcome, ``actual`` says what came, ``pointer`` is the first differing place
    (a JSON Pointer into the body, or a header's name). ``rules`` are those that it breaks, all of the check's where it
    is empty; ``step`` says what was done where that belongs to what checks start from. :func:`about` sets both.
    """

    rules: tuple[str, ...] = ()
    step: str | None = None

    def __init__(self, expected: str | list[str], actual: str, pointer: str | None = None) -> None:
        self.expected = [expected] if isinstance(expected, str) else expected
        self.actual, self.pointer = actual, pointer
        super().__init__(f"expected {' or '.join(self.expected)}; got {actual}" + (f" at {pointer}" if pointer else ""))


class NoAnswer(CheckFailed):
    """The build took the request and never gave a whole answer: silence, a broken connection, no HTTP."""


class Silent(NoAnswer):
    """The build took the request and said nothing in time."""


class CheckSkipped(Exception):  # noqa: N818 - no error, an outcome
    """The check can't be made on this target; the text is the reason."""


class SetUpFailed(CheckSkipped):
    """A provider state could not be set up: the check is skipped and the run is inconclusive."""


class TargetVanished(SetUpFailed):
    """The target can't be reached (any more)."""


def requirement(*ids: str) -> Callable[[Check], Check]:
    """The rules that a check answers for, all of one level. Its docstring's first line is its title."""

    def mark(check: Check) -> Check:
        check.requirements = ids  # type: ignore[attr-defined]
        return check

    return mark


def alone(check: Check) -> Check:
    """The check needs the build for itself: it runs before the others, after a ``reset`` (else it is skipped)."""
    check.alone = True  # type: ignore[attr-defined]
    return check


def last(check: Check) -> Check:
    """The check judges what the others saw: it runs after them."""
    check.last = True  # type: ignore[attr-defined]
    return check


def fuzz(check: Check) -> Check:
    """The check generates its requests; ``--no-fuzz`` leaves it out."""
    check.fuzz = True  # type: ignore[attr-defined]
    return check


@contextmanager
def about(*rules: str, step: str | None = None) -> Iterator[None]:
    """What fails inside breaks these rules alone: the check's others were not reached, so they are not shown wrong.

    With ``step`` it is something that checks of any rule start with. Where it fails, that is told once, under ``rules``
    (of level seed, each with a check of its own); the check itself could not be made and is skipped.
    """
    try:
        yield
    except CheckFailed as failure:
        if not failure.rules:
            failure.rules, failure.step = rules, step
        raise


def expect(truth: bool, expected: str | list[str], actual: object, pointer: str | None = None) -> None:
    """Fail the check unless ``truth``."""
    if not truth:
        raise CheckFailed(expected, str(actual), pointer)


def is_integer(value: Any) -> bool:
    """Whether a JSON value is an integer: ``1.0`` is one, ``true`` is not."""
    return isinstance(value, int | float) and not isinstance(value, bool) and value == value // 1


def same_json(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal: ``1.0`` is 1, ``true`` is not; the order of keys means nothing."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same_json(one[key], other[key]) for key in other)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same_json, one, other))
    return bool(one == other)


def expect_fields(
    came: Mapping[str, Any],
    wanted: Mapping[str, Any],
    at: str = "",
    rules: Mapping[str, Sequence[str]] | None = None,
) -> None:
    """Fail the check where a field is not as wanted; ``at`` is the JSON Pointer of ``came``.

    ``rules`` says which rules a field is about: those of the fields that are right are not shown wrong.
    """
    wrong = {}
    for name, value in wanted.items():
        found = came.get(name, "absent")
        if found != value or isinstance(found, bool) is not isinstance(value, bool):  # true is not 1
            wrong[name] = found
    if not wrong:
        return
    expected = ", ".join(f"{name} {json.dumps(wanted[name])}" for name in wrong)
    actual = ", ".join(json.dumps(found) for found in wrong.values())
    failure = CheckFailed(expected, actual, f"{at}/{next(iter(wrong))}")
    if rules and all(name in rules for name in wrong):
        failure.rules = tuple(dict.fromkeys(rule for name in wrong for rule in rules[name]))
    raise failure
