"""The fixture `browser` fails a test for what its pages do wrong."""

from __future__ import annotations

import pytest
from browser import Watched

PAGE = "data:text/html,<!doctype html><link rel=icon href=data:,><script>{}</script>"


@pytest.fixture
def watched(chromium):
    watched = Watched(chromium)
    yield watched
    for context in watched.contexts:
        context.close()


def test_a_page_that_does_no_wrong_passes(watched):
    page = watched.open(PAGE.format("console.log(1)"))
    assert page.evaluate("1 + 1") == 2
    watched.close()
    assert watched.console == ["log: 1"]


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("console.error('oh')", "error: oh"),
        ("console.warn('well')", "warning: well"),
        ("nothing.there", "an exception nobody caught: nothing is not defined"),
        ("Promise.reject(new Error('late'))", "an exception nobody caught: late"),
        ("fetch('http://example.org/x').catch(() => {})", "a request to another machine: GET http://example.org/x"),
    ],
)
def test_what_a_page_does_wrong_fails(watched, script, told):
    page = watched.open(PAGE.format(script))
    page.evaluate("new Promise((done) => setTimeout(done))")
    with pytest.raises(AssertionError, match="did wrong") as failed:
        watched.close()
    assert told in str(failed.value)


def test_an_error_that_is_expected_must_come(watched):
    watched.expects("oh")
    watched.open(PAGE.format("console.error('oh')"))
    watched.close()
    watched.expects("something else")
    with pytest.raises(AssertionError, match="not seen: something else"):
        watched.close()


def test_no_name_leads_to_another_machine(watched):
    page = watched.open(PAGE.format(""))
    with pytest.raises(Exception, match="ERR_NAME_NOT_RESOLVED"):
        page.goto("http://example.org/")
