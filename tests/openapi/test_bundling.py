"""Contracts of several files: what is referred to is put in place, and what can't be is named."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml

import openapi
from openapi.bundling import bundle
from openapi.documents import Document

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def bundled(folder: Path, skip: tuple[str, ...] = (), **files: Any) -> dict[str, Any]:
    for name, data in files.items():
        path = folder / f"{name.replace('__', '/')}.yaml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(data if isinstance(data, str) else yaml.safe_dump(data), encoding="utf-8")
    return bundle(Document.read(folder / "spec.yaml"), skip)


def test_one_file_stays_as_it_is(folder: Path) -> None:
    spec = {"a": {"$ref": "#/b"}, "b": [1, None, {"c": "#"}]}
    assert bundled(folder, spec=spec) == spec


def test_a_whole_file(folder: Path) -> None:
    assert bundled(folder, spec={"a": {"$ref": "more.yaml"}}, more={"x": [1, 2]}) == {"a": {"x": [1, 2]}}
    assert bundled(folder, spec={"a": {"$ref": "more.yaml#"}}, more={"x": 1}) == {"a": {"x": 1}}


def test_a_part_of_a_file(folder: Path) -> None:
    spec = {"a": [{"$ref": "more.yaml#/x/1"}, {"$ref": "more.yaml#/y~1z/~0"}]}
    assert bundled(folder, spec=spec, more={"x": [1, {"b": 2}], "y/z": {"~": "tilde"}}) == {"a": [{"b": 2}, "tilde"]}


def test_files_that_refer_to_further_ones(folder: Path) -> None:
    files = {"spec": {"a": {"$ref": "b.yaml#/x"}}, "b": {"x": {"y": {"$ref": "c.yaml#/z"}}}, "c": {"z": 3}}
    assert bundled(folder, **files) == {"a": {"y": 3}}


def test_a_file_in_a_folder_below_refers_from_where_it_lies(folder: Path) -> None:
    files = {"spec": {"a": {"$ref": "sub/b.yaml#/x"}}, "sub__b": {"x": {"$ref": "c.yaml#/y"}}, "sub__c": {"y": 1}}
    assert bundled(folder, **files) == {"a": 1}


def test_a_file_that_refers_within_itself_keeps_its_meaning(folder: Path) -> None:
    """`#/y` of another file is that file's, not the specification's."""
    files = {
        "spec": {"a": {"$ref": "b.yaml#/x"}, "y": "the specification's"},
        "b": {"x": {"z": {"$ref": "#/y"}}, "y": "the other's"},
    }
    assert bundled(folder, **files) == {"a": {"z": "the other's"}, "y": "the specification's"}


def test_the_same_part_twice_is_no_circle(folder: Path) -> None:
    spec = {"a": {"$ref": "b.yaml#/x"}, "c": [{"$ref": "b.yaml#/x"}]}
    assert bundled(folder, spec=spec, b={"x": 1}) == {"a": 1, "c": [1]}


def test_keys_to_leave_alone(folder: Path) -> None:
    spec = {"x-requirements": {"$ref": "missing.yaml"}, "a": {"$ref": "b.yaml#/x"}}
    assert bundled(folder, ("x-requirements",), spec=spec, b={"x": 1}) == {
        "x-requirements": {"$ref": "missing.yaml"},
        "a": 1,
    }


def test_a_property_named_like_a_reference_is_none(folder: Path) -> None:
    spec = {"properties": {"$ref": {"type": "string"}}}
    assert bundled(folder, spec=spec) == spec


@pytest.mark.parametrize(
    ("reference", "message", "mend"),
    [
        pytest.param("none.yaml", "refers to a file that does not exist", "correct the file's name", id="no-file"),
        pytest.param("b.yaml#/none", "refers to nowhere", "correct the pointer", id="no-key"),
        pytest.param("b.yaml#/list/7", "refers to nowhere", "correct the pointer", id="no-item"),
        pytest.param("b.yaml#/list/-1", "refers to nowhere", "correct the pointer", id="negative-item"),
        pytest.param("b.yaml#/x/deeper", "refers to nowhere", "correct the pointer", id="below-a-number"),
        pytest.param("b.yaml#x", "refers to nowhere", "correct the pointer", id="no-pointer"),
        pytest.param("../b.yaml#/x", "lies outside the folder of the specification", "keep all files", id="above"),
        pytest.param("/etc/hosts", "lies outside the folder of the specification", "keep all files", id="absolute"),
        pytest.param(
            "https://example.com/b.yaml", "lies outside the folder of the specification", "keep all files", id="web"
        ),
        pytest.param(
            "file:///etc/hosts", "lies outside the folder of the specification", "keep all files", id="file-url"
        ),
    ],
)
def test_what_cannot_be_put_in_place(folder: Path, reference: str, message: str, mend: str) -> None:
    with pytest.raises(openapi.SpecError) as raised:
        bundled(folder, spec=f"openapi: 3.0.3\na:\n  b: {{$ref: '{reference}'}}\n", b={"x": 1, "list": [1]})
    (problem,) = raised.value.problems
    assert str(problem).startswith(f"{folder / 'spec.yaml'}:3: `{reference}` {message} at /a/b ({mend}")


@pytest.mark.parametrize(
    ("files", "named"),
    [
        pytest.param({"b": {"x": {"$ref": "b.yaml#/x"}}}, "b.yaml:1: `b.yaml#/x`", id="to-itself"),
        pytest.param(
            {"b": {"x": {"$ref": "c.yaml#/y"}}, "c": {"y": {"$ref": "b.yaml#/x"}}},
            "c.yaml:1: `b.yaml#/x`",
            id="over-another-file",
        ),
        pytest.param({"b": {"x": {"deep": [{"$ref": "b.yaml"}]}}}, "b.yaml:3: `b.yaml`", id="to-what-is-around-it"),
    ],
)
def test_circles(folder: Path, files: dict[str, Any], named: str) -> None:
    with pytest.raises(openapi.SpecError) as raised:
        bundled(folder, spec={"a": {"$ref": "b.yaml#/x"}}, **files)
    assert f"{named} refers to itself" in str(raised.value)
    assert "(break the circle)" in str(raised.value)


def test_a_link_that_leads_out_of_the_folder(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    outside = tmp_path_factory.mktemp("outside") / "secret.yaml"
    outside.write_text("x: 1\n")
    (folder / "b.yaml").symlink_to(outside)
    with pytest.raises(openapi.SpecError, match="lies outside the folder of the specification"):
        bundled(folder, spec={"a": {"$ref": "b.yaml#/x"}})


@pytest.mark.parametrize(("content", "message"), [("a: [", "mend the YAML"), ("- 1", "is not a mapping")])
def test_a_file_that_cannot_be_used_is_named_itself(folder: Path, content: str, message: str) -> None:
    with pytest.raises(openapi.SpecError) as raised:
        bundled(folder, spec={"a": {"$ref": "b.yaml"}}, b=content)
    assert raised.value.problems[0].file == folder / "b.yaml"
    assert message in str(raised.value)


class TestContract:
    """What the bundled document is read as."""

    def test_a_packaged_name_is_read_once(self) -> None:
        assert openapi.load("runtime-api") is openapi.load("runtime-api")

    def test_a_name_that_is_not_packaged(self) -> None:
        with pytest.raises(openapi.SpecError, match="cannot be read"):
            openapi.load("runtime-apy")

    def test_operations(self) -> None:
        operation = openapi.load("runtime-api").operations["lockJob"]
        assert (operation.method, operation.path) == ("POST", "/internal/runtime/jobs/{jobId}/lock")
        assert set(operation.statuses) == {200, 400, 401, 404, 409, 413, 415, 500}
        assert set(openapi.load("runtime-api").operations) == {
            "pollJobs", "lockJob", "heartbeatJob", "getSnapshot", "resolveCredential", "submitResult",
            "failJob", "submitInvocationLogs",
        }  # fmt: skip

    @pytest.mark.parametrize(
        ("code", "status", "retryable"),
        [
            ("JOB_NOT_FOUND", 404, False),
            ("JOB_ALREADY_LOCKED", 409, True),
            ("LOCK_NOT_HELD", 409, False),
            ("INTERNAL_ERROR", 500, True),
        ],
    )
    def test_errors(self, code: str, status: int, retryable: bool) -> None:
        error = openapi.load("runtime-api").errors[code]
        assert (error.code, error.status, error.retryable) == (code, status, retryable)
        assert error.description

    def test_limits(self) -> None:
        assert openapi.load("runtime-api").limits["bodyBytes"] == 1024 * 1024

    def test_resolve_follows_references_to_their_end(self) -> None:
        contract = openapi.Contract("x", {"a": {"$ref": "#/b"}, "b": {"$ref": "#/c"}, "c": {"d": 1}})
        assert contract.resolve({"$ref": "#/a"}) == {"d": 1}
        assert contract.resolve({"e": 2}) == {"e": 2}
        with pytest.raises(KeyError, match="/none"):
            contract.resolve({"$ref": "#/none"})

    def test_a_document_changed_in_memory_has_no_lines(self) -> None:
        problem = openapi.Contract("runtime-api", {}).problem("/a", "is wrong", "mend it")
        assert str(problem).endswith("runtime-api.yaml:1: is wrong at /a (mend it)")
