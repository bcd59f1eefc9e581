"""The seeded faults of both APIs, an area a module, each with the rules that it is expected to break.

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
    hub_bodies,
    hub_cancel,
    hub_failure,
    hub_fields,
    hub_idempotency,
    hub_list,
    hub_node,
    hub_retry,
    hub_stream,
    hub_stream_told,
    hub_stream_way,
    hub_submission,
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
    hub_stream,
    hub_stream_told,
    hub_stream_way,
    hub_submission,
    hub_fields,
    hub_idempotency,
    hub_bodies,
    hub_failure,
    hub_retry,
    hub_cancel,
    hub_node,
    hub_list,
)
FAULTS = tuple(fault for area in AREAS for fault in area.FAULTS)
