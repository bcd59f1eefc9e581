"""The contracts: OpenAPI specifications with their behaviour, and how they are loaded, checked and bundled.

This package knows nobody else of the project. It parses, resolves and compiles the text of a contract; it executes
nothing of it and judges nobody by it.
"""

from openapi.contract import NAMES, Contract, ErrorCode, Operation, load
from openapi.problems import Problem, SpecError
from openapi.register import Place, Register, Requirement

__all__ = [
    "NAMES",
    "Contract",
    "ErrorCode",
    "Operation",
    "Place",
    "Problem",
    "Register",
    "Requirement",
    "SpecError",
    "load",
]
