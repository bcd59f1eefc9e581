"""The seeded faults of the Runtime API, an area a module, each with the rules that it is expected to break.

Most change the specification that the build executes; those that no specification can say replace a handler, the
engine, the judgement or the error bodies.
"""

from __future__ import annotations

from mock_server.faults import (
    access,
    application,
    bodies,
    credential,
    errors,
    expiry,
    failure,
    generated,
    heartbeat,
    hub_batch,
    hub_detail,
    hub_list,
    hub_progress,
    hub_sums,
    hub_surroundings,
    lock,
    logs,
    poll,
    requests,
    result,
    secrets,
    snapshot,
    state,
)

AREAS = (
    lock,
    heartbeat,
    expiry,
    poll,
    access,
    errors,
    requests,
    snapshot,
    credential,
    secrets,
    result,
    failure,
    bodies,
    logs,
    state,
    application,
    generated,
    hub_batch,
    hub_detail,
    hub_list,
    hub_progress,
    hub_sums,
    hub_surroundings,
)
FAULTS = tuple(fault for area in AREAS for fault in area.FAULTS)
