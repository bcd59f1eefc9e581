"""The report as JSON (``schemas/report.schema.json``)."""

from __future__ import annotations

import json
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from conformance.results import CheckResult, RuleResult, Run
    from openapi.redaction import Redactor


def to_json(run: Run, redactor: Redactor) -> str:
    """The whole run, without secrets."""
    return json.dumps(redactor.data(as_data(run)), ensure_ascii=False, indent=1) + "\n"


def as_data(run: Run) -> dict[str, Any]:
    """The whole run as plain data."""
    return {
        "schemaVersion": 1,
        "tool": {"name": "contract", "version": version("runtime-contract")},
        "target": run.target,
        "startedAt": run.started_at,
        "durationSeconds": run.seconds,
        "seed": run.seed,
        "level": run.level,
        "verdict": run.verdict,
        "summary": run.summary,
        "problems": run.reasons,
        "reach": run.reach,
        "requirements": [_rule(rule) for rule in run.rules],
    }


def _rule(rule: RuleResult) -> dict[str, Any]:
    return {
        "id": rule.rule.id,
        "level": rule.rule.level,
        "status": rule.status,
        "reason": rule.reason,
        "checks": [_check(check) for check in rule.checks],
    }


def _check(check: CheckResult) -> dict[str, Any]:
    return {
        "id": check.id,
        "status": check.status,
        "message": check.message,
        "reproduce": "\n".join(check.commands),
        "exchanges": check.exchanges,
        **({"timeline": check.timeline} if check.timeline else {}),
    }
