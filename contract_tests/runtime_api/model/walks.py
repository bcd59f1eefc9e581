"""Random sequences of commands over several jobs."""

from __future__ import annotations

from contract_tests.model.walks import Walks
from contract_tests.runtime_api.model.commands import OPERATIONS, WAYS

WALKS = Walks(
    made=("plain", "twice", "once", "short", "short, once", "named", "key valid"),
    often={
        "lock": 8,
        "heartbeat": 6,
        "snapshot": 1,
        "resolve": 2,
        "result": 2,
        "fail": 3,
        "cancel": 1,
        "revoke": 1,
        "rerun": 1,
        "again": 1,
        "time": 8,
    },
    ways=WAYS,
    callers=(*("holder",) * 4, "former", "stranger"),
    asked=OPERATIONS,
    length=24,
)
