"""No secret survives redaction, whatever form it takes and whatever surrounds it."""

from __future__ import annotations

import base64
import json
import re
import time
import urllib.parse
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import openapi
from openapi.redaction import REPLACEMENT, NamedValues, Redactor

if TYPE_CHECKING:
    from collections.abc import Callable

PATTERN = openapi.load("runtime-api").document["x-redaction"]["pattern"]
SECRET = 'zq+live/Tok en"é=~42'

secrets = st.text(alphabet='abXYZ019+/=_-.~ %"\\é中&', min_size=4, max_size=40)
around = st.text(alphabet="#$(),:;<>@^`{|}\n ", max_size=12)
paddings = st.binary(max_size=7)
once = settings(max_examples=60, deadline=None, database=None, derandomize=True)


def lower_percent(text: str) -> str:
    return re.sub("%[0-9A-F]{2}", lambda match: match[0].lower(), urllib.parse.quote(text, safe=""))


WHOLE: dict[str, Callable[[str], str]] = {
    "plain": str,
    "url": lambda text: urllib.parse.quote(text, safe=""),
    "url-path": urllib.parse.quote,
    "url-form": urllib.parse.quote_plus,
    "url-lower-case": lower_percent,
    "json": lambda text: json.dumps(text)[1:-1],
    "json-utf-8": lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
    "hex": lambda text: text.encode().hex(),
    "hex-upper-case": lambda text: text.encode().hex().upper(),
}


@pytest.mark.parametrize("form", WHOLE)
@once
@given(secret=secrets, before=around, after=around)
def test_whole_forms_are_replaced_and_what_is_around_stays(form: str, secret: str, before: str, after: str) -> None:
    shown = Redactor([secret]).text(f"{before}|{WHOLE[form](secret)}|{after}")
    assert shown == f"{before}|{REPLACEMENT}|{after}"


@pytest.mark.parametrize("alphabet", [base64.b64encode, base64.urlsafe_b64encode], ids=["standard", "urlsafe"])
@pytest.mark.parametrize("alignment", [0, 1, 2])
@once
@given(secret=secrets, before=paddings, after=paddings)
def test_base64_of_a_longer_text_with_the_secret_inside(
    alphabet: Callable[[bytes], bytes], alignment: int, secret: str, before: bytes, after: bytes
) -> None:
    prefix = before + b"\0" * ((alignment - len(before)) % 3)
    encoded = alphabet(prefix + secret.encode() + after).decode()
    shown = Redactor([secret]).text(f"data:{encoded};")
    assert REPLACEMENT in shown
    left = max(shown.removeprefix("data:").removesuffix(";").split(REPLACEMENT), key=len)
    # Around the secret at most the characters that carry bits of its neighbours stay.
    assert len(left) <= max(len(prefix), len(after)) * 4 // 3 + 4
    assert shown.startswith("data:" + encoded[: len(prefix) * 4 // 3])


@pytest.mark.parametrize("form", WHOLE)
def test_the_sample_is_changed_by_every_form(form: str) -> None:
    """The forms above are forms indeed: but for the plain one none contains the secret as it is."""
    assert (SECRET in WHOLE[form](SECRET)) == (form == "plain")


def test_several_secrets_and_several_times() -> None:
    redactor = Redactor(["first-secret", "second-secret"])
    assert redactor.text("first-secret second-secret first-secret") == " ".join([REPLACEMENT] * 3)


@pytest.mark.parametrize("order", [1, -1])
def test_of_secrets_that_begin_alike_the_longest_counts(order: int) -> None:
    assert Redactor(["token-1", "token-12"][::order]).text("token-12;token-1") == f"{REPLACEMENT};{REPLACEMENT}"


def test_overlapping_secrets_leave_nothing() -> None:
    assert Redactor(["abcdef", "defghi"]).text("<abcdefghi>") == f"<{REPLACEMENT}>"


def test_a_secret_added_later() -> None:
    redactor = Redactor()
    assert redactor.text("late-secret") == "late-secret"
    redactor.add("late-secret")
    assert redactor.text("late-secret") == REPLACEMENT


def test_a_secret_that_is_another_ones_encoding_is_known_in_all_forms_too() -> None:
    inner = "secret-1"
    outer = inner.encode().hex()
    assert Redactor([inner, outer]).text(base64.b64encode(outer.encode()).decode()).startswith(REPLACEMENT)


@pytest.mark.parametrize("value", ["", "a", "abc"])
def test_values_too_short_to_be_secrets_are_ignored(value: str) -> None:
    assert Redactor([value]).text("a abc b") == "a abc b"


@pytest.mark.parametrize("value", ["abcd", "中中中"], ids=["four-characters", "nine-bytes"])
def test_the_shortest_values_that_count(value: str) -> None:
    assert (Redactor([value]).text(f"<{value}>") == f"<{REPLACEMENT}>") == (len(value) >= 4)


class TestPattern:
    @pytest.mark.parametrize(
        ("text", "shown"),
        [
            ("key sk-abc_DEF-123.", f"key {REPLACEMENT}."),
            ("sk-a,sk-b", f"{REPLACEMENT},{REPLACEMENT}"),
            ("Bearer sk-abc", f"Bearer {REPLACEMENT}"),
            ("sk- is no key", "sk- is no key"),
            ("no key", "no key"),
        ],
    )
    def test_what_looks_like_a_key(self, text: str, shown: str) -> None:
        assert Redactor(pattern=PATTERN).text(text) == shown

    @pytest.mark.parametrize("known", ["sk-mock-1", "mock", "ock-12"])
    def test_a_known_secret_within_another_key_does_not_uncover_its_rest(self, known: str) -> None:
        assert Redactor([known], PATTERN).text("<sk-mock-123>") == f"<{REPLACEMENT}>"

    def test_a_known_secret_that_goes_on_behind_what_looks_like_a_key(self) -> None:
        assert Redactor(["sk-abc.def/ghi"], PATTERN).text("<sk-abc.def/ghi>") == f"<{REPLACEMENT}>"

    def test_without_a_pattern_nothing_looks_like_a_key(self) -> None:
        assert Redactor(["other"]).text("sk-abc") == "sk-abc"

    def test_the_specification_states_what_is_written_instead(self) -> None:
        assert openapi.load("runtime-api").document["x-redaction"]["replacement"] == REPLACEMENT


def test_a_secret_that_is_forgotten_is_text_again_and_others_stay() -> None:
    redactor = Redactor(["first-secret", "second-secret", "second-secret"])
    redactor.discard("first-secret")
    redactor.discard("second-secret")
    assert redactor.text("first-secret second-secret") == f"first-secret {REPLACEMENT}"
    redactor.discard("second-secret")
    assert redactor.text("second-secret") == "second-secret"


class TestData:
    redactor = Redactor(["the-secret"], PATTERN)

    def test_at_every_depth_in_keys_and_values(self) -> None:
        value = {"a": ["x the-secret", {"the-secret": "sk-1"}], "b": ("the-secret",)}
        assert self.redactor.data(value) == {"a": [f"x {REPLACEMENT}", {REPLACEMENT: REPLACEMENT}], "b": [REPLACEMENT]}

    @pytest.mark.parametrize("value", [None, True, False, 0, 1.5, [], {}, "text", [None, {"a": 1}]])
    def test_everything_else_stays_as_it_is(self, value: Any) -> None:
        assert repr(self.redactor.data(value)) == repr(value)

    def test_the_original_is_left_alone(self) -> None:
        value = {"a": ["the-secret"]}
        copy = self.redactor.data(value)
        copy["a"].append("more")
        assert value == {"a": ["the-secret"]}

    @once
    @given(
        st.recursive(
            st.one_of(
                st.none(),
                st.booleans(),
                st.integers(),
                st.sampled_from(["the-secret", "a the-secret b", "sk-abc", "x"]),
            ),
            lambda inner: st.one_of(
                st.lists(inner, max_size=3),
                st.dictionaries(st.sampled_from(["k", "the-secret", "sk-key"]), inner, max_size=3),
            ),
            max_leaves=10,
        )
    )
    def test_nothing_secret_is_left_in_any_json_value(self, value: Any) -> None:
        shown = json.dumps(self.redactor.data(value))
        assert "the-secret" not in shown
        assert "sk-" not in shown


NAMED = {
    "plain": '{"apiKey": "VALUE"}',
    "another case": '{"APIKEY":"VALUE"}',
    "deep": '{"logs":[{"errorMessage":{"a":[{"apikey":"VALUE"}]}}]}',
    "escaped name": r'{"api\u004Bey" : "VALUE"}',
    "escaped quotes": r'{"apiKey": "a\"VALUE\\"}',
    "a number": '{"apiKey": 1VALUE, "x": 1}',
    "an object": '{"apiKey": {"a": ["]}", "VALUE"], "b": "VALUE"}}',
    "a list": '{"apiKey": ["VALUE", {"a": "VALUE"}]}',
    "twice": '{"apiKey": "VALUE", "apiKey": "VALUE"}',
    "cut off": '{"apiKey": "VALU',
    "cut off in a list": '{"apiKey": ["x", "VALU',
    "single quotes": "{'apiKey': 'VALUE'}",
    "no quotes": "{apiKey: VALUE}",
    "a form": "a=1&apiKey=VALUE&b=2",
    "a text that is JSON": r'{"errorMessage": "{\"apiKey\": \"a\\\"VALUE\"}"}',
    "a text in a text that is JSON": r'{"a": "{\"b\": \"{\\\"apiKey\\\":\\n\\\"VALUE\\\"}\"}"}',
    "spread over lines": '{"apiKey"\n:\t\n"VALUE"\n}',
}


@pytest.mark.parametrize("text", NAMED.values(), ids=NAMED)
def test_values_of_secret_names_are_taken_out(text: str) -> None:
    shown = NamedValues(["apiKey"]).text(text)
    assert "VALU" not in shown
    assert REPLACEMENT in shown


@pytest.mark.parametrize(
    "text",
    [
        '{"myApiKey": "v", "apiKeyMode": "platform_key", "a": "apiKey"}',
        '{"location": "/logs/0/apiKey", "message": "/logs/0/apiKey must not be there"}',
        r'{"a": "\u4f5c"}',
        "",
    ],
)
def test_what_has_another_name_stays(text: str) -> None:
    assert NamedValues(["apiKey"]).text(text) == text
    assert NamedValues([]).text(text) == text


def test_what_stands_behind_a_secret_value_stays() -> None:
    named = NamedValues(["apiKey"])
    assert json.loads(named.text('{"apiKey": {"a": "}"}, "b": 1}')) == {"apiKey": "[redacted]", "b": 1}
    assert json.loads(named.text(r'{"a": "{\"apiKey\": \"x\"}", "b": 1}'))["b"] == 1
    assert named.text("apiKey=a&b=2") == "apiKey=[redacted]&b=2"


@pytest.mark.parametrize(
    "text",
    [
        '{"apiKey": ' + "[" * 20_000 + '"' * 20_001,
        '{"apiKey": "' + "\\" * 40_000,
        '{"apiKey": [' + "\\" * 40_000,
        '{"apiKey' + "\\" * 40_000,
        r'{"apiKey"\u' + "\\" * 40_000,
        '{"apiKey"' + " " * 40_000 + "x",
        '"apiKey":' * 5_000,
    ],
)
def test_an_odd_body_is_read_in_no_time(text: str) -> None:
    began = time.monotonic()
    NamedValues(["apiKey"]).text(text)
    assert time.monotonic() - began < 1
