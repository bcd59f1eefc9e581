"""Builds of the Agent Hub that are right in another way than the reference."""

from __future__ import annotations

import hub_layers as layers
import hub_rewrites as rewrites
import hub_seed_alone
from variant_rewrites import Spelling
from variant_streams import EventStyle
from variant_traits import Trait, Variants
from variant_wire import Posting, Style, title

from mock_server.faults.edits import machine, put, set_step

FLOWS = ("--timing", "sweep=0.5")
"""Where time flows, the checks wait for real; these builds sweep at once, or nearly so."""
SHORT = ("--timing", "backoff=10/20/40,idempotency=7200,ping=5,node-lost=12,sweep=0.5")
_HAS_NEWS = "update.toolCalls + update.tokensIn + update.tokensOut + update.iterations > 0 || update.lastActivity != ''"

TRAITS: dict[str, Trait] = {
    # Bodies
    "more properties": Trait(rewrite=rewrites.more_properties),
    "other words": Trait(rewrite=rewrites.other_words),
    "no details": Trait(rewrite=rewrites.no_details),
    "lists in another order": Trait(rewrite=rewrites.reversed_lists),
    "keys reversed, escapes, spaces": Trait(rewrite=Spelling(escapes=True, spaces=True)),
    "whole numbers with a fraction": Trait(rewrite=Spelling(fractions=True)),
    "numbers of JavaScript": Trait(layers={"submissions": layers.NumbersOfJavaScript}),
    "halves rounded otherwise": Trait(layers={"summaries": layers.Halves}),
    "seen just now": Trait(layers={"shapes": layers.SeenNow}),
    # Ids
    "ids: UUID": Trait(layers={"submissions": layers.UuidJobs, "nodes": layers.UuidSessions}),
    "ids: 128 characters": Trait(layers={"submissions": layers.LongIds, "nodes": layers.LongSessions}),
    "ids: to be encoded": Trait(layers={"submissions": layers.EncodedIds}),
    "ids of requests": Trait(layers={"gate": layers.RequestIds}),
    "places over all keys": Trait(layers={"api": layers.PlacesOverAllKeys}),
    # HTTP
    "charset": Trait(rewrite=rewrites.charset),
    "more headers": Trait(rewrite=rewrites.more_headers),
    "pages elsewhere": Trait(rewrite=rewrites.html_elsewhere),
    "slow": Trait(delay=0.003),
    "closes at the end": Trait(style=Style(framing="close")),
    "HTTP/1.0": Trait(style=Style(title, "close", version="1.0")),
    "chunks, Title-Case, open": Trait(style=Style(title, "chunked", lingers=2)),
    "UPPER-CASE": Trait(style=Style(str.upper)),
    "bodies of 40 MiB": Trait(edits=(put("x-limits", "bodyBytes", value=40 * 2**20),)),
    # Jobs
    "a result of a failure": Trait(layers={"shapes": layers.KeptResult}),
    "a cancel frees the project": Trait(edits=(set_step("cancel", set=["abort", "over"]),)),
    "progress of a round that ends at its start": Trait(layers={"nodes": layers.ReportsAtItsStart}),
    "nothing is no progress": Trait(
        edits=(set_step("progress", when=f"differs(job.progress, update) && (job.progress != null || {_HAS_NEWS})"),)
    ),
    "failures in its own words": Trait(
        edits=(
            machine("effects", "abort", "failureMessage", value="'its owner does not want it'"),
            machine("timers", "round-limit", "with", "report", "message", value="太久了"),
            machine("timers", "node-lost", "with", "report", "message", value="nobody\nthere"),
        )
    ),
    "409 while a submission is worked on": Trait(layers={"api": layers.InProgress}),
    # Event streams
    "events: CRLF": Trait(events=EventStyle("\r\n")),
    "events: CR, BOM": Trait(events=EventStyle("\r", begins="\ufeff")),
    "events: no spaces, data first": Trait(events=EventStyle(order=("data", "event", "id"), gap="")),
    "events: more fields and comments": Trait(
        events=EventStyle(
            begins=": connected\n\nretry: 3000\n\n\n",
            before=(": an event", "x-trace: 7"),
            after=(": its end", "retry: 4000"),
            between=(":", "", ": keep-alive", ""),
        )
    ),
    "events: cut anywhere": Trait(events=EventStyle("\r\n", ("event", "id", "data"), "", cut=40)),
    # Webhooks
    "webhooks: late": Trait(layers={"webhooks": layers.LateWebhooks}),
    "webhooks: a second late": Trait(layers={"webhooks": layers.LaterWebhooks}),
    "webhooks: HTTP/1.0": Trait(posting=Posting("1.0", title)),
    "webhooks: chunks, more headers": Trait(
        posting=Posting(name=str.upper, chunked=True, expects=True, more=(("user-agent", "hub"), ("accept", "*/*")))
    ),
    "webhooks: two signatures": Trait(layers={"webhooks": layers.MoreSignatures}),
    "webhooks: signed with a text": Trait(secret="no base64 at all é"),
    "webhooks: not signed": Trait(secret=None, tells_secret=False),
    "webhooks: signed, nobody tells how": Trait(tells_secret=False),
    # Time
    "time flows": Trait(clock="real", arguments=FLOWS),
    "time flies": Trait(clock="x60", arguments=FLOWS),
    "time flows, swept late": Trait(clock="real", layers={"engine": layers.LateSweeper}, arguments=FLOWS),
    "short times": Trait(
        edits=(
            machine("constants", "backoff", "seconds", value=[10, 20, 40]),
            machine("constants", "silence", "seconds", value=12),
            machine("constants", "ping", "seconds", value=5),
            machine("constants", "idempotencyWindow", "hours", value=2),
        ),
        arguments=SHORT,
    ),
    # What is not offered
    "no advance-time": Trait(clock="real", without=("advance-time",), arguments=FLOWS),
    "no outcome": Trait(without=("outcome",)),
    "no node-online, no default-callback": Trait(without=("node-online", "default-callback")),
    "no reset": Trait(without=("reset",)),
    "no node": Trait(without=("node",)),
    "one key": Trait(one_key=True),
    # Decisions
    "by the seed alone": hub_seed_alone.TRAIT,
}
"""Everything that the contract leaves open and a build of these parts can show."""

BUILDS: dict[str, tuple[str, ...]] = {
    "talkative": (
        "more properties",
        "other words",
        "ids: to be encoded",
        "ids of requests",
        "places over all keys",
        "seen just now",
        "charset",
        "more headers",
        "chunks, Title-Case, open",
        "slow",
        "keys reversed, escapes, spaces",
        "events: more fields and comments",
        "webhooks: chunks, more headers",
    ),
    "other numbers": (
        "ids: UUID",
        "whole numbers with a fraction",
        "numbers of JavaScript",
        "halves rounded otherwise",
        "lists in another order",
        "no details",
        "UPPER-CASE",
        "bodies of 40 MiB",
        "a result of a failure",
        "a cancel frees the project",
        "progress of a round that ends at its start",
        "failures in its own words",
        "409 while a submission is worked on",
        "events: cut anywhere",
        "webhooks: two signatures",
        "webhooks: signed with a text",
    ),
    "of old": (
        "ids: 128 characters",
        "HTTP/1.0",
        "pages elsewhere",
        "nothing is no progress",
        "events: CR, BOM",
        "webhooks: HTTP/1.0",
        "webhooks: late",
        "webhooks: not signed",
        "one key",
    ),
    "few states": ("no outcome", "no node-online, no default-callback", "no reset"),
}

VARIANTS = Variants(
    TRAITS,
    BUILDS,
    fuzzed=("talkative",),
    fuzzed_slowly=(
        "other numbers",
        "of old",
        "no node-online, no default-callback",
        "time flows",
        "time flows, swept late",
        "short times",
    ),
    slow=(
        "closes at the end",
        "events: CRLF",
        "events: no spaces, data first",
        "webhooks: a second late",
        "webhooks: signed, nobody tells how",
        "time flows",
        "time flies",
        "time flows, swept late",
        "short times",
        "no advance-time",
        "no node",
        "by the seed alone",
    ),
)
