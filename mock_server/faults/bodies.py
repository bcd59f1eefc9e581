"""Seeded faults of what the bodies of results and failures may hold."""

from __future__ import annotations

from mock_server.faults.edits import put, schema, schema_property
from mock_server.mutants import Mutant

FAULTS = (
    Mutant(
        "result.schema-is-form",
        "an unknown schema version is a 400",
        ("RT-RES-17", "RT-ERR-13"),
        edit=schema_property(
            "ResultRequest", "schemaVersion", enum=["analysis_output_v1", "quiz_output_v1", "flashcard_output_v1"]
        ),
    ),
    Mutant(
        "result.example-refused",
        "an empty list of validationErrors is refused, as the protocol's own example has it",
        ("RT-RES-01", "RT-RES-13", "RT-RES-71"),
        edit=schema_property("ResultRequest", "validationErrors", minItems=1),
    ),
    Mutant(
        "result.flat-output",
        "an output may hold nothing but texts",
        ("RT-RES-18", "RT-ERR-73"),
        edit=schema_property("ResultRequest", "validatedOutput", additionalProperties={"type": "string"}),
    ),
    Mutant(
        "result.no-attempt",
        "attemptNo may be left out",
        ("RT-RES-65", "RT-ERR-60"),
        edit=schema(
            "ResultRequest", required=["runtimeInstanceId", "schemaVersion", "status", "validatedOutput", "outputHash"]
        ),
    ),
    Mutant(
        "result.raw-is-object",
        "rawOutput has to be an object",
        ("RT-RES-66", "RT-ERR-73"),
        edit=schema_property("ResultRequest", "rawOutput", type="object"),
    ),
    Mutant(
        "result.any-status",
        "any status is taken for succeeded",
        ("RT-RES-67", "RT-ERR-60"),
        edit=put("components", "schemas", "ResultRequest", "properties", "status", value={"type": "string"}),
    ),
    Mutant(
        "result.hash-255",
        "a hash of 256 characters is refused",
        ("RT-RES-68",),
        edit=schema_property("ResultRequest", "outputHash", maxLength=255),
    ),
    Mutant(
        "result.hash-any-length",
        "a hash of any length is accepted",
        ("RT-RES-68", "RT-ERR-60"),
        edit=schema_property("ResultRequest", "outputHash", maxLength=100_000),
    ),
    Mutant(
        "result.hash-empty",
        "an empty hash is accepted",
        ("RT-RES-68", "RT-ERR-60"),
        edit=schema_property("ResultRequest", "outputHash", minLength=0),
    ),
    Mutant(
        "result.negative-tokens",
        "a negative number of tokens is accepted",
        ("RT-RES-69", "RT-ERR-60"),
        edit=put("components", "schemas", "Usage", "properties", "outputTokens", value={"type": "integer"}),
    ),
    Mutant(
        "result.whole-cost",
        "a cost with a fraction is refused",
        ("RT-RES-70",),
        edit=schema_property("Usage", "costEstimate", type="integer"),
    ),
    Mutant(
        "result.int32",
        "numbers beyond 2^31-1 are refused",
        ("RT-ERR-71",),
        edit=schema("Count", maximum=2**31 - 1),
    ),
    Mutant(
        "result.errors-any",
        "validationErrors may be anything",
        ("RT-RES-71", "RT-ERR-60"),
        edit=put("components", "schemas", "ResultRequest", "properties", "validationErrors", value={}),
    ),
    Mutant(
        "fail.example-refused",
        "rawError has to be an object, unlike in the protocol's own example",
        ("RT-FAIL-01", "RT-FAIL-10"),
        edit=schema_property("FailRequest", "rawError", type="object"),
    ),
    Mutant(
        "fail.known-codes-only",
        "a code that is not in the table is refused",
        ("RT-FAIL-65",),
        edit=schema_property(
            "FailRequest",
            "errorCode",
            enum=[
                "MODEL_TIMEOUT",
                "MODEL_RATE_LIMIT",
                "NETWORK_ERROR",
                "TEMPORARY_PROVIDER_ERROR",
                "INVALID_SNAPSHOT",
                "INVALID_SCHEMA",
                "INVALID_CREDENTIAL",
                "JOB_TIMEOUT",
            ],
        ),
    ),
    Mutant(
        "fail.any-code",
        "any text is taken for a code",
        ("RT-FAIL-64", "RT-ERR-60"),
        edit=put("components", "schemas", "FailRequest", "properties", "errorCode", value={"type": "string"}),
    ),
    Mutant(
        "fail.code-begins-rightly",
        "a code that only begins in the right form is accepted",
        ("RT-FAIL-64", "RT-ERR-60"),
        edit=schema_property("FailRequest", "errorCode", pattern="^[A-Z][A-Z0-9_]*"),
    ),
    Mutant(
        "fail.no-flag",
        "retryable may be left out",
        ("RT-FAIL-63", "RT-ERR-60"),
        edit=schema("FailRequest", required=["runtimeInstanceId", "errorCode", "errorMessage"]),
    ),
    Mutant(
        "fail.raw-not-null",
        "rawError null is refused",
        ("RT-ERR-73",),
        edit=schema_property("FailRequest", "rawError", nullable=False),
    ),
)
