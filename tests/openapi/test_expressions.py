"""The grammar of the specifications' expressions: what parses to what, what is refused where, how it is shown."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openapi.expressions import (
    OPERATORS,
    Binary,
    Call,
    Conditional,
    Expression,
    ExpressionError,
    Field,
    Index,
    ListOf,
    Literal,
    Name,
    Not,
    children,
    literal,
    parse,
    rebuild,
    render,
    walk,
)

A, B, C, D = (Name(name) for name in "abcd")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("null", Literal(None), id="null"),
        pytest.param("true", Literal(True), id="true"),
        pytest.param("false", Literal(False), id="false"),
        pytest.param("0", Literal(0), id="zero"),
        pytest.param("-5", Literal(-5), id="negative"),
        pytest.param("- 5", Literal(-5), id="sign-apart"),
        pytest.param("''", Literal(""), id="empty-string"),
        pytest.param('"it\'s"', Literal("it's"), id="double-quotes"),
        pytest.param("'中文'", Literal("中文"), id="text-beyond-ascii"),
        pytest.param("nullable", Name("nullable"), id="name-that-begins-like-a-literal"),
        pytest.param("inside", Name("inside"), id="name-that-begins-like-an-operator"),
        pytest.param("_a1", Name("_a1"), id="underscore-and-digit"),
        pytest.param("a.b.c", Field(Field(A, "b"), "c"), id="fields"),
        pytest.param(" a\t.\n b ", Field(A, "b"), id="blanks"),
        pytest.param("[]", ListOf(()), id="empty-list"),
        pytest.param("[a, [b]]", ListOf((A, ListOf((B,)))), id="lists"),
        pytest.param("a()", Call("a", ()), id="call-without-arguments"),
        pytest.param("a(b, c ? d : a)", Call("a", (B, Conditional(C, D, A))), id="call"),
        pytest.param("!!a", Not(Not(A)), id="not-not"),
        pytest.param("!a.b", Not(Field(A, "b")), id="field-binds-tighter-than-not"),
        pytest.param("a[0]", Index(A, Literal(0)), id="item"),
        pytest.param(
            "a.b[c - 1].d[1]",
            Index(Field(Index(Field(A, "b"), Binary("-", C, Literal(1))), "d"), Literal(1)),
            id="items-and-fields",
        ),
        pytest.param("[a, b][0]", Index(ListOf((A, B)), Literal(0)), id="item-of-a-list-at-hand"),
        pytest.param("a in [b]", Binary("in", A, ListOf((B,))), id="a-list-behind-an-operator-is-no-index"),
        pytest.param("!a[0]", Not(Index(A, Literal(0))), id="item-binds-tighter-than-not"),
    ],
)
def test_parses(text: str, expected: Expression) -> None:
    assert repr(parse(text)) == repr(expected)  # not ==: True would pass for 1


@pytest.mark.parametrize(
    ("text", "grouped"),
    [
        ("a || b && c", "a || (b && c)"),
        ("a && b || c", "(a && b) || c"),
        ("a && b == c", "a && (b == c)"),
        ("a == b && c", "(a == b) && c"),
        ("a < b + c", "a < (b + c)"),
        ("a + b in c", "(a + b) in c"),
        ("a + b * c", "a + (b * c)"),
        ("a * b + c", "(a * b) + c"),
        ("!a && b", "(!a) && b"),
        ("!a == b", "(!a) == b"),
        ("a - b - c", "(a - b) - c"),
        ("a - b + c", "(a - b) + c"),
        ("a || b || c", "(a || b) || c"),
        ("a == b != c", "(a == b) != c"),
        ("a - -1", "a - (-1)"),
        ("a ? b : c ? d : a", "a ? b : (c ? d : a)"),
        ("a || b ? c : d", "(a || b) ? c : d"),
        ("a ? b && c : d", "a ? (b && c) : d"),
    ],
)
def test_groups_as_cel_does(text: str, grouped: str) -> None:
    assert parse(text) == parse(grouped)


@pytest.mark.parametrize(
    ("text", "grouped"),
    [
        ("a - b - c", "a - (b - c)"),
        ("a || b && c", "(a || b) && c"),
        ("!a.b", "(!a).b"),
        ("!a == b", "!(a == b)"),
        ("a ? b : c ? d : a", "(a ? b : c) ? d : a"),
    ],
)
def test_parentheses_change_the_grouping(text: str, grouped: str) -> None:
    assert parse(text) != parse(grouped)


@pytest.mark.parametrize("operator", OPERATORS)
def test_every_operator_takes_two_operands(operator: str) -> None:
    assert parse(f"a {operator} b") == Binary(operator, A, B)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r"'\n'", "\n"),
        (r"'\t'", "\t"),
        (r"'\r'", "\r"),
        (r"'\\'", "\\"),
        (r"'\''", "'"),
        (r"'\"'", '"'),
        (r"'\\n'", r"\n"),
        (r'"a\"b"', 'a"b'),
    ],
)
def test_escapes(text: str, value: str) -> None:
    assert parse(text) == Literal(value)


@pytest.mark.parametrize(
    ("text", "character", "message"),
    [
        pytest.param("", 1, "a value expected, not `end of the text`", id="empty"),
        pytest.param("   ", 4, "a value expected", id="blank"),
        pytest.param("a &&", 5, "a value expected, not `end of the text`", id="operand-missing"),
        pytest.param("&& a", 1, "a value expected, not `&&`", id="left-operand-missing"),
        pytest.param("a b", 3, "unexpected `b`", id="two-values"),
        pytest.param("a == 'x' y", 10, "unexpected `y`", id="text-goes-on"),
        pytest.param("(a", 3, "`)` expected, not `end of the text`", id="parenthesis-open"),
        pytest.param("a)", 2, "unexpected `)`", id="parenthesis-too-many"),
        pytest.param("[a, b", 6, "`,` expected, not `end of the text`", id="list-open"),
        pytest.param("[a b]", 4, "`,` expected, not `b`", id="comma-missing"),
        pytest.param("a[]", 3, "a value expected, not `]`", id="index-missing"),
        pytest.param("a[0", 4, "`]` expected, not `end of the text`", id="index-open"),
        pytest.param("a[0, 1]", 4, "`]` expected, not `,`", id="two-indexes"),
        pytest.param("f(a", 4, "`,` expected, not `end of the text`", id="call-open"),
        pytest.param("a ? b", 6, "`:` expected, not `end of the text`", id="colon-missing"),
        pytest.param("a ? b ? c : d : a", 7, "`:` expected, not `?`", id="conditional-within-conditional"),
        pytest.param("a.", 3, "a field's name expected", id="field-missing"),
        pytest.param("a.1", 3, "a field's name expected, not `1`", id="field-is-a-number"),
        pytest.param("a = b", 3, "`=` is not part of the language", id="single-equals"),
        pytest.param("a & b", 3, "`&` is not part of the language", id="single-ampersand"),
        pytest.param("a / b", 3, "`/` is not part of the language", id="division"),
        pytest.param("a % b", 3, "`%` is not part of the language", id="modulo"),
        pytest.param("{a: b}", 1, "`{` is not part of the language", id="map"),
        pytest.param("a == 'b", 6, "`'` is not part of the language", id="string-open"),
        pytest.param("'a\nb'", 1, "`'` is not part of the language", id="string-over-two-lines"),
        pytest.param("1.5", 3, "a field's name expected, not `5`", id="double"),
        pytest.param("-a", 2, "a number expected after `-`", id="minus-name"),
        pytest.param("--1", 2, "a number expected after `-`", id="minus-minus"),
        pytest.param("in", 1, "a value expected, not `in`", id="operator-as-name"),
        pytest.param("a.b(c)", 4, "unexpected `(`", id="method"),
        pytest.param("a == b &&\n c ==", 16, "a value expected", id="second-line"),
    ],
)
def test_refuses_and_names_the_character(text: str, character: int, message: str) -> None:
    with pytest.raises(ExpressionError) as raised:
        parse(text)
    assert message in str(raised.value)
    assert f"at character {character} of `{text}`" in str(raised.value)
    assert (raised.value.text, raised.value.position) == (text, character - 1)


@pytest.mark.parametrize(
    ("text", "character"),
    [(r"'\q'", 1), (r"a == 'b\x41' && c", 6), (r"""f("\u")""", 3)],
)
def test_unknown_escape_is_named_at_its_string(text: str, character: int) -> None:
    with pytest.raises(ExpressionError, match="unknown escape") as raised:
        parse(text)
    assert raised.value.position == character - 1


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("1\N{ARABIC-INDIC DIGIT THREE}", id="digit-beyond-ascii"),
        pytest.param("\N{ARABIC-INDIC DIGIT THREE}", id="only-a-digit-beyond-ascii"),
        pytest.param("caf\N{LATIN SMALL LETTER E WITH ACUTE}", id="letter-beyond-ascii"),
        pytest.param("a\N{NO-BREAK SPACE}&& b", id="no-break-space"),
    ],
)
def test_refuses_what_cel_knows_in_ascii_only(text: str) -> None:
    with pytest.raises(ExpressionError, match="is not part of the language"):
        parse(text)


@pytest.mark.parametrize("value", [2**63 - 1, -(2**63) + 1, -(2**63)])
def test_integers_up_to_64_bits(value: int) -> None:
    assert parse(str(value)) == Literal(value)


@pytest.mark.parametrize(
    "text", [str(2**63), str(-(2**63) - 1), f"a == {2**64}", pytest.param("9" * 5000, id="5000-digits")]
)
def test_larger_integers_are_refused(text: str) -> None:
    with pytest.raises(ExpressionError, match="at most 64 bits"):
        parse(text)


names = st.sampled_from(["a", "job", "lockUntil", "now", "_x1"])
literals = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(min_value=-(2**63), max_value=2**63 - 1),
    st.text(alphabet="ab'\"\\ \n\r\t中", max_size=6),
).map(Literal)
trees: st.SearchStrategy[Expression] = st.recursive(
    st.one_of(literals, names.map(Name)),
    lambda inner: st.one_of(
        st.builds(Field, inner, names),
        st.builds(Index, inner, inner),
        st.builds(ListOf, st.lists(inner, max_size=3).map(tuple)),
        st.builds(Not, inner),
        st.builds(Binary, st.sampled_from(OPERATORS), inner, inner),
        st.builds(Conditional, inner, inner, inner),
        st.builds(Call, names, st.lists(inner, max_size=3).map(tuple)),
    ),
    max_leaves=12,
)


@settings(max_examples=250, deadline=None, database=None, derandomize=True)
@given(trees)
def test_what_is_shown_parses_to_the_same(expression: Expression) -> None:
    assert repr(parse(render(expression))) == repr(expression)


@pytest.mark.parametrize(
    "text",
    [
        "a || b && !c",
        "(a || b) && c",
        "a - (b - c)",
        "a - b - c",
        "(a ? b : c) ? d : a",
        "a ? b : c ? d : a",
        "job.status in ['locked', 'running'] && now <= job.lockUntil",
        "f(a, [1, -2, null, true], 'it\\'s')",
        "now + [30000, 120000][job.attempt - 1]",
        "(a ? b : c)[d ? 0 : 1]",
    ],
)
def test_shows_no_more_parentheses_than_needed(text: str) -> None:
    assert render(parse(text)) == text


def test_a_plain_value_as_an_expression() -> None:
    assert literal([1, "x", None]) == parse("[1, 'x', null]")
    assert literal(False) == parse("false")


def test_children_and_walk_go_from_left_to_right() -> None:
    expression = parse("a.b && f(c, [d]) ? !a : b[1]")
    shown = [render(node) for node in walk(expression)]
    assert shown == [
        "a.b && f(c, [d]) ? !a : b[1]",
        "a.b && f(c, [d])",
        "a.b",
        "a",
        "f(c, [d])",
        "c",
        "[d]",
        "d",
        "!a",
        "a",
        "b[1]",
        "b",
        "1",
    ]
    assert [render(child) for child in children(expression)] == ["a.b && f(c, [d])", "!a", "b[1]"]


def test_rebuild_changes_every_node_and_leaves_the_original() -> None:
    expression = parse("a == [a, f(a)] ? !a[a] : a.b")

    def change(node: Expression) -> Expression:
        return Name("z") if node == A else node

    assert render(rebuild(expression, change)) == "z == [z, f(z)] ? !z[z] : z.b"
    assert render(expression) == "a == [a, f(a)] ? !a[a] : a.b"
