"""What the Runtime API's cases are made of."""

from __future__ import annotations

from contract_tests.fuzz.generation import Source

SOURCE = Source("runtime-api")
INSTANCE = "x-runtime-instance-id"
