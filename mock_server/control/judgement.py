"""The judgement of control-plane requests: as that of the APIs, and nothing that is misspelt is passed over."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from mock_server.calls import Violation
from mock_server.judgement import OperationJudge
from openapi.problems import nearest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mock_server.calls import Exchange


class ControlJudge(OperationJudge):
    """Refuses query parameters that the operation does not know: a misspelt filter must not list everything."""

    def __init__(self, operation_id: str, document: Mapping[str, Any], operation: Any, limit: int) -> None:
        super().__init__(operation_id, document, operation, limit)
        self.looks_at_query = True

    def _judge_query(self, query_string: bytes, exchange: Exchange, violations: list[Violation]) -> dict[str, Any]:
        if not query_string:
            return super()._judge_query(query_string, exchange, violations)
        known = [item.name for item in self.query]
        given = Counter(name for name, _ in parse_qsl(query_string.decode("latin-1"), keep_blank_values=True))
        for name, times in given.items():
            shown = exchange.world.redactor.text(name)
            if name not in known:
                mend = nearest(name, known, None if known else "this operation takes none")
                message = f"no query parameter is named `{shown}`; {mend}"
                violations.append(Violation(shown, "additionalProperties", "no such parameter", "present", message))
            elif times > 1:
                message = f"{name} is given {times} times; give it once"
                violations.append(Violation(name, "maxItems", 1, times, message))
        return super()._judge_query(query_string, exchange, violations)
