"""What a build that is right in another way is made of: traits, each something that a contract leaves open.

A trait is made of what the reference is made of: an edit of the specification that is executed, a layer over a part,
a rewriting of answers, a style of HTTP. None is an option of the product: they are served by ``serve_variants.py``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from variant_rewrites import Reply
    from variant_streams import EventStyle
    from variant_wire import Posting, Style

FUZZED = ", fuzzed"
"""What is put behind the name of a build to have generated requests sent to it, too."""


@dataclass(frozen=True)
class Trait:
    """One thing done otherwise; ``layers`` are put over parts of the build by their names in ``mutants.Parts``."""

    edits: tuple[Callable[[dict[str, Any]], None], ...] = ()
    layers: Mapping[str, type] = field(default_factory=dict)
    rewrite: Callable[[Reply], None] | None = None
    """Of answers, of the events of streams, and of webhooks."""
    style: Style | None = None
    events: EventStyle | None = None
    posting: Posting | None = None
    """How webhooks are sent."""
    delay: float = 0
    """Seconds by which an answer, or a piece of a stream, may be late."""
    clock: str | None = None
    without: tuple[str, ...] = ()
    """Provider states that are not offered."""
    one_key: bool = False
    """Whether nobody has a second key."""
    secret: str | None = ""
    """What webhooks are signed with, where it is not what they usually are; None: they are not."""
    tells_secret: bool = True
    """Whether the check is told what webhooks are signed with."""
    arguments: tuple[str, ...] = ()
    """What the check has to be told."""


@dataclass(frozen=True)
class Variants:
    """What the contract of one API leaves open."""

    traits: Mapping[str, Trait]
    builds: Mapping[str, tuple[str, ...]]
    """Builds that show many traits at once; every trait but the slow ones is in one of them."""
    fuzzed: tuple[str, ...] = ()
    """Builds that generated requests are sent to as well."""
    fuzzed_slowly: tuple[str, ...] = ()
    """Those whose generated requests take long, since time flows or a sweeper is late: in the soak alone."""
    slow: tuple[str, ...] = ()
    """Traits whose checks take long: in the soak alone."""

    def of(self, name: str) -> list[Trait]:
        """The traits of a build, or a single one, by name."""
        plain = name.removesuffix(FUZZED)
        return [self.traits[trait] for trait in self.builds.get(plain, (plain,))]

    def is_fuzzed(self, name: str) -> bool:
        """Whether generated requests are sent to a build."""
        return name in self.fuzzed or name.endswith(FUZZED)

    def arguments(self, name: str) -> list[str]:
        """What the check of a build has to be told."""
        return [argument for trait in self.of(name) for argument in trait.arguments]

    def secret(self, name: str, usual: str) -> str | None:
        """What the check of a build is told that webhooks are signed with; None: nothing."""
        traits = self.of(name)
        if not all(trait.tells_secret for trait in traits):
            return None
        return next((trait.secret for trait in traits if trait.secret != ""), usual)
