"""How a check is written: what it answers for, what it needs, and how it fails."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Check = TypeVar("Check", bound="Callable[..., Any]")


class CheckFailed(AssertionError):  # noqa: N818 - a verdict, not a fault
    """The build does not do what the rule says.

    ``expected`` lists every acceptable outcome, ``actual`` says what came, ``pointer`` is the first differing place
    (a JSON Pointer into the body, or a header's name).
    """

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


def fuzz(check: Check) -> Check:
    """The check generates its requests; ``--no-fuzz`` leaves it out."""
    check.fuzz = True  # type: ignore[attr-defined]
    return check


def expect(truth: bool, expected: str | list[str], actual: object, pointer: str | None = None) -> None:
    """Fail the check unless ``truth``."""
    if not truth:
        raise CheckFailed(expected, str(actual), pointer)


def expect_fields(came: Mapping[str, Any], wanted: Mapping[str, Any], at: str = "") -> None:
    """Fail the check at the first field that is not as wanted; ``at`` is the JSON Pointer of ``came``."""
    for name, value in wanted.items():
        found = came.get(name, "absent")
        good = found == value and isinstance(found, bool) is isinstance(value, bool)  # true is not 1
        expect(good, f"{name} {json.dumps(value)}", json.dumps(found), f"{at}/{name}")
