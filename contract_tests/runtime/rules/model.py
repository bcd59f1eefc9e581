"""RT-CRED: whom the Runtime calls with which key."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from contract_tests.runtime.calls import MODEL, REPORTS
from contract_tests.runtime.monitors import Finding, broken, kept, monitor
from contract_tests.runtime.rules.reporting import GRACE, code_of, first
from contract_tests.runtime.rules.troubles import CREDENTIAL, last
from contract_tests.runtime.rules.wire_shapes import shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contract_tests.runtime.calls import Call
    from contract_tests.runtime.history import History, Hold

PLATFORM = "platform_key"


def _platform(call: Call) -> bool:
    """Whether a resolve was for the platform's key: the Runtime's own goes first there (RT-CRED-11)."""
    mode = call.told("apiKeyMode") or call.get("apiKeyMode")
    return bool(mode == PLATFORM)


def _follows(history: History, call: Call) -> Call | None:
    """The redirect of the model that a request follows; None where it follows none."""
    for earlier in history.of(MODEL):
        location = earlier.answer_headers.get("location")
        if earlier is call or not (300 <= earlier.status < 400) or not location or earlier.ended > call.sent:
            continue
        path = unquote(urlsplit(location).path)
        if path and (path.endswith(call.path) or call.path.endswith(path)):
            return earlier
    return None


@monitor("RT-CRED-11")
def own_key_first(history: History) -> Iterator[Finding]:
    """In the mode of the platform's key a Runtime that has a key of its own calls the model with that.

    Its own is the world's platform key, so that the mock knows it; an answer without a key, or with another one, tells
    which was taken.
    """
    if history.facts.own_key is not True:
        return
    for call in history.of(MODEL):
        resolve = call.resolve
        if resolve is None or not resolve.ok or not _platform(resolve) or call.key is None:
            continue
        if call.key != "right":
            what = "another key" if call.key == "wrong" else "no key"
            yield broken(call, "the key of PLATFORM_MODEL_API_KEY", f"{what} in a model call for {call.job}")
        elif resolve.garbled or not resolve.told("apiKey"):
            yield kept(call)


@monitor("RT-CRED-73")
def as_resolved(history: History) -> Iterator[Finding]:
    """A model call goes to the resolved ``baseUrl`` with the resolved ``model`` and ``apiKey``."""
    for call in history.of(MODEL):
        resolve = call.resolve
        if resolve is None:
            if _follows(history, call) is None and any(item.ok for item in history.of(CREDENTIAL)):
                yield broken(call, "a model call at the baseUrl of a resolve", f"{call.method} {call.path[:120]}")
            continue
        if not resolve.ok or not isinstance(resolve.answer, dict) or call.cut:
            continue
        model, asked = resolve.told("model"), call.get("model")
        if isinstance(model, str) and asked != model:
            yield broken(call, f"model {model}, as resolved", f"model {shown(asked)} in a call for {call.job}")
        elif call.key in ("wrong", "none") and not _excused(history, resolve, call):
            what = "another key" if call.key == "wrong" else "no key"
            yield broken(call, "the resolved apiKey as bearer token", f"{what} in a model call for {call.job}")
        elif call.key == "right":
            yield kept(call)


def _excused(history: History, resolve: Call, call: Call) -> bool:
    """Whether another key than the resolved one may be in order, or is judged elsewhere."""
    if not _platform(resolve):
        return False
    if not resolve.told("apiKey"):
        return True  # RT-CRED-76, RT-CRED-71, RT-CRED-11
    return call.key == "wrong" and history.facts.own_key is not False  # RT-CRED-11


@monitor("RT-CRED-74")
def for_that_lock(history: History) -> Iterator[Finding]:
    """A resolved credential is used only for the job of the lock for which it was resolved, until that is done."""
    for hold in history.holds:
        for call in hold.model_calls:
            if call.resolve is None:
                continue
            own = call.resolve in hold.calls
            done = _done(hold)
            if not own and history.hold_of(call.resolve) is None:
                continue
            if not own:
                expected = f"a credential that was resolved for this lock of {hold.job}"
                yield broken(call, expected, f"that of a resolve at {call.resolve.sent:.1f} s, before the lock")
            elif done is not None and call.sent > done.ended + GRACE:
                yield broken(
                    call,
                    f"no use of the credential after {done.name} was answered",
                    f"a model call {call.sent - done.ended:.1f} s later",
                )
            else:
                yield kept(call)
    yield from _with_those_of_others(history)


def _with_those_of_others(history: History) -> Iterator[Finding]:
    """Jobs whose log tells of a model call that went well, of which none came with a credential of theirs."""
    called = {call.job for call in history.of(MODEL)}
    if not called - {None}:
        return
    for submission, entry in history.logs:
        job = entry.get("jobId")
        if entry.get("success") is True and job not in called and any(hold.job == job for hold in history.holds):
            called.add(job)
            expected = f"a model call with the credential that was resolved for {job}"
            yield broken(submission, expected, f"a log of one for {job}, and calls for other jobs alone")


def _done(hold: Hold) -> Call | None:
    """The report that was taken: what comes after it is not for the job."""
    return next((call for call in hold.reports if call.ok), None)


@monitor("RT-CRED-75")
def no_redirect(history: History) -> Iterator[Finding]:
    """Nobody goes where the model redirects to with the key."""
    for call in history.of(MODEL):
        if not call.heard or not (300 <= call.status < 400) or not call.answer_headers.get("location"):
            continue
        after = [item for item in history.calls if item.sent >= call.ended and _follows(history, item) is call]
        taken = next((item for item in after if "authorization" in item.headers), None)
        if taken is not None:
            yield broken(
                taken,
                "no request with the key where the model redirected to",
                f"{taken.method} {taken.path[:80]} with authorization",
            )
        elif history.end >= call.ended + 1 or any(
            report.job == call.job and report.sent > call.ended for report in history.of(*REPORTS)
        ):
            yield kept(call)


@monitor("RT-CRED-76")
def own_key_variable(history: History) -> Iterator[Finding]:
    """A key of the Runtime's own is that of PLATFORM_MODEL_API_KEY: with it there is one, without it there is none."""
    for hold in history.holds:
        found = last(history, hold, CREDENTIAL)
        if found is None or history.facts.own_key is None:
            continue
        resolve = found[0]
        if not resolve.ok or not isinstance(resolve.answer, dict) or not _platform(resolve) or resolve.told("apiKey"):
            continue
        keyed = next((call for call in hold.model_calls if call.key in ("right", "wrong")), None)
        report = first(history, hold)
        if not history.facts.own_key:
            if keyed is not None:
                yield broken(
                    keyed, "no model key without PLATFORM_MODEL_API_KEY", f"a model call with a key for {hold.job}"
                )
            elif report is not None:
                yield kept(report)
        elif keyed is not None:
            yield kept(keyed)
        elif report is not None and code_of(report) == "INVALID_CREDENTIAL":
            yield broken(
                report, "a model call with the key of PLATFORM_MODEL_API_KEY", f"fail INVALID_CREDENTIAL of {hold.job}"
            )
