"""The seeded faults of the Runtime API."""

from mock_server.mutants import Mutant

FAULTS: tuple[Mutant, ...] = ()
