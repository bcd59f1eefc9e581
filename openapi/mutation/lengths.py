"""Whether a limit moved by one lets another text in at all, where a pattern is asked for beside it."""

from __future__ import annotations

import copy
import re
from typing import TYPE_CHECKING, Any

from openapi.documents import at_pointer
from openapi.mutation.edit import parent

if TYPE_CHECKING:
    from openapi.mutation.edit import Data, Edit

_LEAST = "minLength"


def same_texts(document: Data, edit: Edit) -> str | None:
    """Why the same texts are taken where the least length goes from 1 to 0: that lets in one more, the empty one."""
    above, token = parent(edit.pointer)
    if token != _LEAST:
        return None
    changed = copy.deepcopy({key: value for key, value in document.items() if key != "x-requirements"})
    edit.change(changed)
    old: Any = at_pointer(document, above)
    new: Any = at_pointer(changed, above)
    pattern = old.get("pattern")
    if (old[_LEAST], new[_LEAST]) != (1, 0) or pattern is None or re.search(pattern, ""):
        return None
    return f"the one text that is no longer too short, the empty one, the pattern {pattern} refuses"
