"""What lint says of the packaged specifications (nothing) and of each way to break one: line, fault, mend."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from lint_faults import REGISTER, SPEC, Fault, verify, write

import openapi
from openapi.contract import SPECS
from openapi.lint import lint

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("name", [name for name in openapi.NAMES if (SPECS / f"{name}.yaml").exists()])
def test_packaged_specification_is_sound(name: str) -> None:
    assert lint(SPECS / f"{name}.yaml") == []


def test_the_runtime_api_is_packaged() -> None:
    assert (SPECS / "runtime-api.yaml").exists()


DOCUMENT = {
    "not-yaml": Fault(
        "tags: [jobs]\n",
        "tags: [jobs\n",
        "while parsing a flow sequence",
        "mend the YAML",
        at="      summary: List jobs that wait",
    ),
    "tab-as-indentation": Fault("  title: Runtime API", "\ttitle: Runtime API", "found character", "mend the YAML"),
    "control-character": Fault("title: Runtime API", "title: Runtime\x07 API", "control characters", "mend the YAML"),
    "key-twice": Fault(
        "  version: 0.1.0\n",
        "  version: 0.1.0\n  version: 0.2.0\n",
        "the key stands twice in its mapping",
        "keep one of the two",
    ),
    "mapping-twice": Fault(
        "    CredentialStatus: {type: string, enum: [valid, invalid]}\n",
        "    CredentialStatus: {type: string, enum: [valid, invalid]}\n"
        "    CredentialStatus: {type: string, enum: [valid]}\n",
        "the key stands twice in its mapping",
        "keep one of the two",
    ),
    "file-outside": Fault(
        "{$ref: '#/components/schemas/PollRequest'}",
        "{$ref: '../other.yaml#/PollRequest'}",
        "`../other.yaml#/PollRequest` lies outside the folder of the specification",
        "keep all files of a specification in one folder",
    ),
    "file-by-absolute-path": Fault(
        "{$ref: '#/components/schemas/PollRequest'}",
        "{$ref: '/etc/other.yaml#/PollRequest'}",
        "lies outside the folder of the specification",
        "keep all files of a specification in one folder",
    ),
    "file-on-the-web": Fault(
        "{$ref: '#/components/schemas/PollRequest'}",
        "{$ref: 'https://example.com/other.yaml#/PollRequest'}",
        "lies outside the folder of the specification",
        "keep all files of a specification in one folder",
    ),
    "file-unknown": Fault(
        "{$ref: '#/components/schemas/PollRequest'}",
        "{$ref: 'other.yaml#/PollRequest'}",
        "`other.yaml#/PollRequest` refers to a file that does not exist",
        "correct the file's name",
    ),
    "file-without-the-place": Fault(
        "{$ref: '#/components/schemas/PollRequest'}",
        "{$ref: 'runtime-api.requirements.yaml#/PollRequest'}",
        "`runtime-api.requirements.yaml#/PollRequest` refers to nowhere",
        "correct the pointer",
    ),
    "file-with-an-ill-formed-pointer": Fault(
        "{$ref: '#/components/schemas/PollRequest'}",
        "{$ref: 'runtime-api.requirements.yaml#PollRequest'}",
        "`runtime-api.requirements.yaml#PollRequest` refers to nowhere",
        "correct the pointer",
    ),
    "file-in-a-circle": Fault(
        "    CredentialStatus: {type: string, enum: [valid, invalid]}",
        "    CredentialStatus: {$ref: 'runtime-api.yaml#/components/schemas/CredentialStatus'}",
        "`runtime-api.yaml#/components/schemas/CredentialStatus` refers to itself",
        "break the circle",
    ),
}

OPENAPI = {
    "version-3.1": Fault("openapi: 3.0.3", "openapi: 3.1.0", "is OpenAPI `3.1.0`", "write OpenAPI 3.0.x"),
    "title-missing": Fault(
        "  title: Runtime API\n", "", '"title" is a required property', "see the OpenAPI 3.0", at="info:"
    ),
    "type-unknown": Fault(
        "jobId: {type: string, minLength: 1,",
        "jobId: {type: strin, minLength: 1,",
        "'strin' is not one of",
        "see the OpenAPI 3.0",
        beside=("is not valid under any",),
    ),
    "reference-to-nowhere": Fault(
        "{$ref: '#/components/schemas/PollRequest'}",
        "{$ref: '#/components/schemas/PolRequest'}",
        "`#/components/schemas/PolRequest` leads nowhere",
        "correct the reference",
    ),
    "component-unused": Fault(
        "    CredentialStatus: {type: string, enum: [valid, invalid]}",
        "    CredentialStatus: {type: string, enum: [valid, invalid]}\n    Unused: {type: string}",
        "nothing refers to `Unused`",
        "use it or drop it",
    ),
    "example-not-valid": Fault(
        "LockRequest: {value: {runtimeInstanceId: runtime-001}}",
        "LockRequest: {value: {runtimeInstanceId: 1}}",
        "the example is not valid: 1 is not of type",
        "correct the example",
        at="examples: {seed: {$ref: '#/components/examples/LockRequest'}}",
    ),
    "example-of-a-parameter-not-valid": Fault(
        "      example: job-abc123",
        "      example: 1",
        "the example is not valid: 1 is not of type",
        "correct the example",
    ),
    "example-leads-nowhere": Fault(
        "{$ref: '#/components/examples/LockRequest'}",
        "{$ref: '#/components/examples/LokRequest'}",
        "`#/components/examples/LokRequest` leads nowhere",
        "correct the reference",
    ),
    "status-undocumented": Fault(
        "        '400': {$ref: '#/components/responses/InvalidRequest'}\n"
        "        '401': {$ref: '#/components/responses/Unauthorized'}\n"
        "        '413': {$ref: '#/components/responses/PayloadTooLarge'}\n"
        "        '415': {$ref: '#/components/responses/UnsupportedMediaType'}\n"
        "        '422':",
        "        '400': {$ref: '#/components/responses/InvalidRequest'}\n"
        "        '401': {$ref: '#/components/responses/Unauthorized'}\n"
        "        '413': {$ref: '#/components/responses/PayloadTooLarge'}\n        '422':",
        "pollJobs does not document 415",
        "add it",
        at="    post:\n      operationId: pollJobs",
    ),
    "error-without-a-code": Fault(
        "          x-error-codes: [JOB_ALREADY_LOCKED]\n",
        "",
        "409 names no error code",
        "add x-error-codes",
        at="        '409':\n          description: The job is not pending",
        beside=("which lockJob does not document under 409",),
    ),
    "code-unknown": Fault(
        "          x-error-codes: [SNAPSHOT_EXPIRED]",
        "          x-error-codes: [SNAPSHOT_EXPIRED, SNAPSHOT_TOO_OLD]",
        "`SNAPSHOT_TOO_OLD` is no code of x-errors",
        "add the code there",
        at="        '410':",
    ),
    "code-under-another-status": Fault(
        "          x-error-codes: [SNAPSHOT_EXPIRED]",
        "          x-error-codes: [SNAPSHOT_EXPIRED, JOB_CANCELLED]",
        "`JOB_CANCELLED` has another status in x-errors",
        "correct one of the two",
        at="        '410':",
    ),
}

RULES = {
    "rule-unknown": Fault(
        "x-rules: [RT-LOCK-02]", "x-rules: [RT-LOCK-99]", "`RT-LOCK-99` is not in the register", "add it to"
    ),
    "rule-of-a-step-unknown": Fault(
        "requirements: [RT-LOCK-13, RT-LOCK-50]",
        "requirements: [RT-LOKC-13, RT-LOCK-50]",
        "`RT-LOKC-13` is not in the register",
        "add it to",
    ),
    "rule-stated-nowhere": Fault(
        "requirements: [RT-LOCK-13, RT-LOCK-50]",
        "requirements: [RT-LOCK-50]",
        "`RT-LOCK-13` is stated nowhere",
        "name it where the spec states it",
        at="x-requirements: {$ref",
    ),
    "register-missing": Fault(
        "x-requirements: {$ref: runtime-api.requirements.yaml}",
        "x-requirements: {$ref: requirements.yaml}",
        "`requirements.yaml` refers to a file that does not exist",
        "correct the file's name",
    ),
    "register-outside": Fault(
        "x-requirements: {$ref: runtime-api.requirements.yaml}",
        "x-requirements: {$ref: ../requirements.yaml}",
        "`../requirements.yaml` lies outside the folder of the specification",
        "keep all files of a specification in one folder",
    ),
}

EXTENSIONS = {
    "error-code-without-a-status": Fault(
        "NOT_FOUND: {status: 404, retryable: false, description: The path",
        "NOT_FOUND: {retryable: false, description: The path",
        '"status" is a required property',
        "see the notation",
    ),
    "error-code-no-mapping": Fault(
        "  LOCK_NOT_HELD: {status: 409, retryable: false, description: 'The caller does not hold "
        "this job''s lock (any more): "
        "it drops the work',"
        " x-rules: [RT-ERR-75]}",
        "  LOCK_NOT_HELD: 409",
        '409 is not of type "object"',
        "see the notation",
    ),
    "rules-no-list": Fault(
        "x-rules: [RT-LOCK-02]", "x-rules: RT-LOCK-02", 'is not of type "array"', "see the notation"
    ),
    "error-codes-no-list": Fault(
        "x-error-codes: [SNAPSHOT_EXPIRED]",
        "x-error-codes: SNAPSHOT_EXPIRED",
        'is not of type "array"',
        "see the notation",
    ),
    "operation-without-an-id": Fault(
        "      operationId: lockJob\n",
        "",
        "post has no operationId",
        "give it one",
        at="    post:\n      tags: [jobs]\n      summary: Lock",
    ),
    "default-response": Fault(
        "        '200':\n          description: Locked;",
        "        default: {$ref: '#/components/responses/InternalError'}\n"
        "        '200':\n          description: Locked;",
        "`default` is no status",
        "document each status by its number",
    ),
    "range-of-statuses": Fault(
        "        '200':\n          description: Locked;",
        "        4XX: {$ref: '#/components/responses/InternalError'}\n        '200':\n          description: Locked;",
        "`4XX` is no status",
        "document each status by its number",
    ),
}

ALL = DOCUMENT | OPENAPI | RULES | EXTENSIONS


def test_every_problem_is_one_line(tmp_path: Path) -> None:
    """Editors and CI logs read a line a problem, also where a validator would dump the document."""
    problems = lint(
        write(tmp_path, SPEC.replace("jobId: {type: string, minLength: 1,", "jobId: {type: strin, minLength: 1,", 1))
    )
    assert problems
    for problem in problems:
        assert "\n" not in str(problem)
        assert len(problem.message) < 300


def test_a_reference_in_a_circle_ends(tmp_path: Path) -> None:
    status = "    CredentialStatus: {type: string, enum: [valid, invalid]}"
    text = SPEC.replace(status, "    CredentialStatus: {$ref: '#/components/schemas/CredentialStatus'}", 1)
    line = SPEC[: SPEC.index(status)].count("\n") + 1
    told = [problem for problem in lint(write(tmp_path, text)) if problem.line == line]
    assert [(problem.message, problem.mend) for problem in told] == [
        ("`#/components/schemas/CredentialStatus` leads nowhere", "correct the reference")
    ]


@pytest.mark.parametrize("fault", [pytest.param(fault, id=name) for name, fault in ALL.items()])
def test_fault_is_named_with_its_line_and_mend(fault: Fault, tmp_path: Path) -> None:
    verify(fault, tmp_path)


def test_the_packaged_files_are_sound_elsewhere_too(tmp_path: Path) -> None:
    """What the broken copies differ in is the fault alone."""
    assert lint(write(tmp_path, SPEC, REGISTER)) == lint(write(tmp_path, SPEC)) == []


def test_file_that_does_not_exist(tmp_path: Path) -> None:
    (problem,) = lint(tmp_path / "runtime-api.yaml")
    assert (
        str(problem)
        == f"{tmp_path / 'runtime-api.yaml'}:1: cannot be read: No such file or directory (name an existing file)"
    )


def test_file_that_cannot_be_read(tmp_path: Path) -> None:
    (problem,) = lint(tmp_path)
    assert str(problem) == f"{tmp_path}:1: cannot be read: Is a directory (name an existing file)"


@pytest.mark.parametrize(
    ("content", "message", "mend"),
    [
        pytest.param("title: Prüfung".encode("latin-1"), "is not UTF-8", "save the file as UTF-8", id="not-utf-8"),
        pytest.param(b"- openapi", "is not a mapping", "start from an OpenAPI document", id="list"),
        pytest.param(b"", "is not a mapping", "start from an OpenAPI document", id="empty"),
        pytest.param(b"{}", "is OpenAPI ``", "write OpenAPI 3.0.x", id="empty-mapping"),
    ],
)
def test_file_that_is_no_specification(content: bytes, message: str, mend: str, tmp_path: Path) -> None:
    path = tmp_path / "runtime-api.yaml"
    path.write_bytes(content)
    (problem,) = lint(path)
    assert str(problem) == f"{path}:1: {message} ({mend})".replace(" (write", " at /openapi (write")


REGISTER_FAULTS = {
    "id-twice": ("RT-LOCK-02:\n", "RT-LOCK-01:\n", "the key stands twice in its mapping", "keep one of the two"),
    "level-missing": (
        REGISTER[REGISTER.index("  level: seed\n") :][:14],
        "",
        '"level" is a required property',
        "correct the rule",
    ),
    "level-unknown": ("  level: seed\n", "  level: sed\n", '"sed" is not one of', "correct the rule"),
    "bound-unknown": ("  bound: client\n", "  bound: runtime\n", '"runtime" is not one of', "correct the rule"),
    "verify-unknown": ("  verify: [http]\n", "  verify: [htpp]\n", '"htpp" is not one of', "correct the rule"),
    "not-a-rule": ("RT-AUTH-01:\n", "RT-AUTH-00: text\nRT-AUTH-01:\n", 'is not of type "object"', "correct the rule"),
}


@pytest.mark.parametrize(
    ("old", "new", "message", "mend"), [pytest.param(*row, id=name) for name, row in REGISTER_FAULTS.items()]
)
def test_fault_of_the_register_is_named_with_its_line_and_mend(
    old: str, new: str, message: str, mend: str, tmp_path: Path
) -> None:
    assert old in REGISTER
    broken = REGISTER.replace(old, new, 1)
    problems = lint(write(tmp_path, SPEC, broken))
    found = [problem for problem in problems if message in problem.message]
    assert found, "\n".join(map(str, problems))
    changed = REGISTER[: REGISTER.index(old)].count("\n") + 1
    assert found[0].file == tmp_path / "runtime-api.requirements.yaml"
    assert found[0].line in {changed, changed - 1 if not new else changed}
    assert mend in found[0].mend


def test_a_rule_that_no_server_shows_may_be_stated_nowhere(tmp_path: Path) -> None:
    """A rule bound to Runtimes, or one that nobody can observe, needs no place in the specification."""
    assert "RT-CLIENT-99" not in REGISTER
    extra = "  level: decision\n  verify: [none]\n  source: [A1]\n  sentence: x\n  sentenceZh: x\n"
    register = (
        REGISTER
        + f"\nRT-CLIENT-99:\n  bound: client\n{extra}\n"
        + f"RT-API-99:\n  bound: server\n  notObservable: its own log\n{extra}"
    )
    assert lint(write(tmp_path, SPEC, register)) == []


def test_every_fault_is_told_at_once_and_in_the_order_of_the_file(tmp_path: Path) -> None:
    text = SPEC.replace("x-error-codes: [SNAPSHOT_EXPIRED]", "x-error-codes: [SNAPSHOT_EXPIRED, JOB_CANCELLED]")
    text = text.replace("set: [renew, {startedAt: now}]", "set: [renew, {beganAt: now}]")
    text = text.replace("to: locked", "to: loked")
    problems = lint(write(tmp_path, text))
    assert [problem.line for problem in problems] == sorted(problem.line for problem in problems)
    messages = [problem.message for problem in problems]
    for message in ("has another status", "sets `beganAt`", "`loked` is no state"):
        assert sum(message in text for text in messages) == 1, messages


def test_a_specification_of_several_files_is_sound(tmp_path: Path) -> None:
    text = SPEC.replace(
        "    CredentialStatus: {type: string, enum: [valid, invalid]}",
        "    CredentialStatus: {$ref: 'more.yaml#/status'}",
    )
    path = write(tmp_path, text)
    (tmp_path / "more.yaml").write_text("status: {type: string, enum: [valid, invalid]}\n")
    assert lint(path) == []
    (tmp_path / "more.yaml").write_text("status: {type: string, enum: [valid, invalid]}\nstatus: {type: string}\n")
    (problem,) = lint(path)
    assert (problem.file, problem.line, problem.message) == (
        tmp_path / "more.yaml",
        2,
        "the key stands twice in its mapping",
    )


def test_lint_leaves_the_files_alone(tmp_path: Path) -> None:
    folder = shutil.copytree(SPECS, tmp_path / "specs", ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    before = {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}
    lint(folder / "runtime-api.yaml")
    assert {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()} == before


SMALL = """\
openapi: 3.0.3
info: {{title: Small, version: '1'}}
paths:
  /a/{{id}}:
    parameters:
      - {{name: id, in: path, required: true, schema: {{type: string, minLength: 1}}}}
      - {{name: of-the-path, in: header, schema: {{type: string}}}}
    get:
      operationId: read
      parameters: [{parameter}]
      responses:
        '200': {{description: Read}}
        '401': {{description: No key, x-error-codes: [unauthorized]}}
        '500': {{description: A fault, x-error-codes: [internal_error]}}
x-errors:
  unauthorized: {{status: 401, retryable: false, description: No key}}
  internal_error: {{status: 500, retryable: true, description: A fault}}
"""


@pytest.mark.parametrize(
    ("parameter", "demanded"),
    [
        pytest.param("", False, id="path-alone"),
        pytest.param("{name: q, in: query, schema: {type: string, default: x}}", False, id="any-text"),
        pytest.param("{name: q, in: query, schema: {type: string, enum: [x]}}", True, id="some-texts"),
        pytest.param("{name: q, in: query, schema: {type: integer}}", True, id="no-text"),
        pytest.param("{name: q, in: header, required: true, schema: {type: string}}", True, id="required"),
        pytest.param("{name: q, in: query, content: {application/json: {schema: {type: string}}}}", True, id="json"),
        pytest.param("{name: of-the-path, in: header, schema: {type: string, minLength: 1}}", True, id="replaced"),
    ],
)
def test_400_is_demanded_where_something_can_be_ill_formed(parameter: str, demanded: bool, tmp_path: Path) -> None:
    """A path that is ill-formed names nothing, and a text that may be anything breaks no rule."""
    path = tmp_path / "small.yaml"
    path.write_text(SMALL.format(parameter=parameter), encoding="utf-8")
    assert [problem.message for problem in lint(path)] == ["read does not document 400"] * demanded


def test_400_is_demanded_of_an_operation_with_a_body(tmp_path: Path) -> None:
    path = tmp_path / "small.yaml"
    body = "post:\n      requestBody: {content: {application/json: {schema: {type: object}}}}\n"
    text = SMALL.format(parameter="").replace("get:\n", body)
    path.write_text(text, encoding="utf-8")
    wanted = ["read does not document 400", "read does not document 413", "read does not document 415"]
    assert sorted(problem.message for problem in lint(path)) == wanted
