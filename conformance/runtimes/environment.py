"""The environment of a Runtime that is judged: ours without keys and proxies, and what the contract gives."""

from __future__ import annotations

import re
import string
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

MARK = "CONTRACT_RUNTIME_MARK"
"""The variable by which a Runtime's descendants are found, wherever they went."""

STANDARD = {
    "API_BASE_URL": "{base_url}",
    "RUNTIME_SERVICE_TOKEN": "{token}",
    "RUNTIME_INSTANCE_ID": "{instance_id}",
    "RUNTIME_HEALTH_PORT": "{health_port}",
    "POLL_INTERVAL_MS": "{poll_interval_ms}",
    "HEARTBEAT_INTERVAL_MS": "{heartbeat_interval_ms}",
    "MODEL_TIMEOUT_MS": "{model_timeout_ms}",
    "PLATFORM_MODEL_API_KEY": "{platform_key}",
}
"""What every Runtime gets, as templates; one whose placeholder has no value is left out."""

PLACEHOLDERS = tuple(template[1:-1] for template in STANDARD.values())
_NAME = re.compile("[A-Za-z_][A-Za-z0-9_]*")
_KEYS = re.compile("KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL|_PROXY$", re.IGNORECASE)


class TemplateError(ValueError):
    """A ``NAME=TEMPLATE`` that can't be used; the text says what is wrong and the mend."""


@dataclass(frozen=True, slots=True)
class Template:
    """One ``--env NAME=TEMPLATE``: the variable is set to the filled-in template, *beside* the standard ones.

    So a Runtime that has other names for them gets both, and reads its own. A standard name is replaced. Placeholders
    are those of :data:`PLACEHOLDERS` in braces; ``{{`` and ``}}`` are braces. Where ``{platform_key}`` has no value,
    because the scenario gives the Runtime no key of its own, the whole variable is left out.
    """

    name: str
    text: str

    @classmethod
    def parse(cls, given: str) -> Template:
        """Read ``NAME=TEMPLATE``. Raises :class:`TemplateError`."""
        name, equals, text = given.partition("=")
        if not equals or not _NAME.fullmatch(name):
            raise TemplateError(f"`{given}` is no NAME=TEMPLATE; write for example MY_API_URL={{base_url}}")
        if "\0" in text:
            raise TemplateError(f"{name}: a variable can't hold the character NUL; leave it out")
        try:
            asked = [(field, spec, conversion) for _, field, spec, conversion in string.Formatter().parse(text)]
        except ValueError as error:
            raise TemplateError(f"{name}: {error} in `{text}`; write {{{{ and }}}} for braces") from None
        for field, spec, conversion in asked:
            if field is not None and (field not in PLACEHOLDERS or spec or conversion):
                shown = ", ".join(f"{{{known}}}" for known in PLACEHOLDERS)
                raise TemplateError(
                    f"{name}: there is no placeholder {{{field}}}; there are {shown}, and {{{{ and }}}} for braces"
                )
        return cls(name, text)

    def filled(self, values: Mapping[str, str]) -> str | None:
        """The variable's value; None where a placeholder has none."""
        pieces = []
        for literal, field, _, _ in string.Formatter().parse(self.text):
            pieces.append(literal)
            if field is not None:
                if field not in values:
                    return None
                pieces.append(values[field])
        return "".join(pieces)


@dataclass(frozen=True, slots=True)
class Given:
    """What one Runtime is given. ``platform_key`` None: it has no model key of its own. Times are milliseconds."""

    base_url: str
    token: str
    instance_id: str
    health_port: int
    poll_interval_ms: int
    heartbeat_interval_ms: int
    model_timeout_ms: int
    platform_key: str | None = None

    def variables(self, templates: Iterable[Template] = ()) -> dict[str, str]:
        """The variables that it gets, by name."""
        values = {name: str(value) for name in PLACEHOLDERS if (value := getattr(self, name)) is not None}
        standard = [Template(name, text) for name, text in STANDARD.items()]
        filled = {template.name: template.filled(values) for template in (*standard, *templates)}
        return {name: value for name, value in filled.items() if value is not None}


def surroundings(ours: Mapping[str, str], variables: Mapping[str, str], mark: str) -> dict[str, str]:
    """The whole environment of a Runtime: ours without keys and proxies, and these variables.

    A key of the user's must not come to a Runtime whose words are recorded, and no proxy may stand between it and us.
    """
    kept = {name: value for name, value in ours.items() if not _KEYS.search(name) and name not in STANDARD}
    return {**kept, "NO_PROXY": "127.0.0.1,localhost", **variables, MARK: mark}
