"""The receiver of webhooks, called over HTTP as a build calls it."""

import asyncio
import http.client
import json
import time
from urllib.parse import urlsplit

import pytest

from contract_tests.agent_hub.receiver import BROKEN, HELD, Receiver, bracketed, listen_on
from contract_tests.checks import CheckFailed

EVENT = json.dumps({"type": "job.completed", "timestamp": "2026-11-09T10:05:00.000Z", "data": {"id": "job_1"}}).encode()


def call(url, body=EVENT, method="POST", **headers):
    """One call of a build; its answer's status and headers."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=5)
    try:
        sent = {"content-type": "application/json"} | {name.replace("_", "-"): value for name, value in headers.items()}
        chunked = "transfer-encoding" in sent
        connection.request(method, url.removeprefix(f"http://{parts.netloc}"), body, sent, encode_chunked=chunked)
        answer = connection.getresponse()
        answer.read()
        return answer.status, dict(answer.getheaders())
    finally:
        connection.close()


async def called(url, *args, **parts):
    return await asyncio.to_thread(call, url, *args, **parts)


def receive(check, host="127.0.0.1"):
    async def run():
        async with Receiver(host) as receiver:
            await check(receiver)

    asyncio.run(run())


def test_a_delivery_is_kept_as_it_came():
    async def check(receiver):
        hook = receiver.hook()
        began = time.monotonic()
        assert (await called(f"{hook.url}?x=1", Webhook_Id="msg_1"))[0] == 200
        delivery = await hook.next("job.completed")
        assert (delivery.method, delivery.body, delivery.number) == ("POST", EVENT, 1)
        assert delivery.path == urlsplit(hook.url).path + "?x=1"
        assert delivery.headers["webhook-id"] == "msg_1"
        assert delivery.data == {"id": "job_1"}
        assert began <= delivery.at <= time.monotonic()
        answered = await hook.answer_given(1)
        assert (answered.status, answered.delivery) == (200, delivery)
        assert receiver.strays == []

    receive(check)


def test_every_hook_has_a_url_of_its_own():
    async def check(receiver):
        one, two = receiver.hook(), receiver.hook()
        await called(two.url)
        await two.next()
        await one.count_stays(0, 0.05)

    receive(check)


def test_answers_follow_their_script():
    async def check(receiver):
        hook = receiver.hook([500, 503, 204])
        assert [(await called(hook.url))[0] for _ in range(4)] == [500, 503, 204, 204]
        told = receiver.hook(lambda delivery: 410 if b"job" in delivery.body else 200)
        assert [(await called(told.url, body))[0] for body in (EVENT, b"{}")] == [410, 200]
        assert len(await hook.counts(4)) == 4

    receive(check)


def test_a_redirect_points_elsewhere():
    async def check(receiver):
        other = receiver.hook()
        hook = receiver.hook([307], redirect_to=other.url)
        status, headers = await called(hook.url)
        assert (status, headers["Location"]) == (307, other.url)

    receive(check)


def test_an_answer_can_be_late_and_others_are_not():
    async def check(receiver):
        slow, quick = receiver.hook(delay=0.4), receiver.hook()
        waiting = asyncio.create_task(called(slow.url))
        first = await slow.next()
        await called(quick.url)
        assert slow.answered == []
        assert (await waiting)[0] == 200
        assert (await slow.answer_given(1)).at - first.at >= 0.4

    receive(check)


def test_closing_waits_for_no_late_answer():
    """A check that ends while a build waits does not hold the run up."""

    async def run():
        async with Receiver() as receiver:
            hook = receiver.hook(delay=60)
            waiting = asyncio.create_task(called(hook.url))
            await hook.next()
        await waiting

    began = time.monotonic()
    asyncio.run(run())
    assert time.monotonic() - began < 5


def test_something_is_read_back_before_the_answer():
    """It is done in the check's own loop, while the build waits for the answer; a failure there is told, not lost."""

    async def check(receiver):
        home = asyncio.get_running_loop()

        async def read(delivery):
            assert asyncio.get_running_loop() is home
            assert hook.answered == []
            return delivery.data["id"]

        async def fails(delivery):
            raise CheckFailed("a detail", "nothing")

        hook = receiver.hook(read_back=read)
        await called(hook.url)
        assert (await hook.answer_given(1)).read == "job_1"
        hook = receiver.hook(read_back=fails)
        assert (await called(hook.url))[0] == 200
        assert isinstance((await hook.answer_given(1)).read, CheckFailed)

    receive(check)


def test_what_does_not_come_is_told_with_what_came():
    async def check(receiver):
        hook = receiver.hook()
        with pytest.raises(CheckFailed, match=r"a webhook `job\.failed` within 0\.05 s; got nothing"):
            await hook.next("job.failed", within=0.05)
        await called(hook.url)
        with pytest.raises(CheckFailed, match=r"`job\.failed`; got `job\.completed`"):
            await hook.next("job.failed")
        with pytest.raises(CheckFailed, match=r"2 webhooks; got 1; so far came: job\.completed"):
            await hook.counts(2, within=0.05)
        with pytest.raises(CheckFailed, match="0 webhooks; got 1"):
            await hook.count_stays(0)

    receive(check)


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"\xff", b'{"type": "x", "data": 1}'])
def test_a_body_of_another_form_fails_who_reads_it(body):
    async def check(receiver):
        hook = receiver.hook()
        assert (await called(hook.url, body))[0] == 200
        delivery = await hook.next()
        assert delivery.body == body
        with pytest.raises(CheckFailed):
            _ = delivery.data

    receive(check)


@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND"])
def test_another_method_is_kept_too(method):
    async def check(receiver):
        hook = receiver.hook()
        assert (await called(hook.url, method=method))[0] == 200
        assert (await hook.next()).method == method

    receive(check)


def test_a_url_that_nobody_has_is_a_stray():
    async def check(receiver):
        hook = receiver.hook()
        assert (await called(hook.url + "/more"))[0] == 404
        assert (await called(receiver.base_url + "/"))[0] == 404
        assert [stray.path for stray in receiver.strays] == [urlsplit(hook.url).path + "/more", "/"]
        await hook.count_stays(0, 0.05)

    receive(check)


def test_chunked_bodies_are_read_whole():
    async def check(receiver):
        hook = receiver.hook()
        await called(hook.url, iter([EVENT[:10], EVENT[10:]]), transfer_encoding="chunked")
        assert (await hook.next()).body == EVENT

    receive(check)


def test_many_at_once():
    async def check(receiver):
        hook = receiver.hook(delay=0.05)
        await asyncio.gather(*(called(hook.url) for _ in range(20)))
        deliveries = await hook.counts(20)
        assert [delivery.number for delivery in deliveries] == list(range(1, 21))

    receive(check)


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("127.0.0.9", "127.0.0.9"),
        ("localhost", "127.0.0.1"),
        ("::1", "::1"),
        ("192.0.2.7", "0.0.0.0"),
        ("2001:db8::7", "::"),
        ("build-host.example", "0.0.0.0"),
        ("host.docker.internal", "0.0.0.0"),
    ],
)
def test_we_listen_everywhere_only_where_the_build_is_elsewhere(host, address):
    assert listen_on(host) == address


def test_urls_name_the_host_that_the_build_knows():
    async def check(receiver):
        assert urlsplit(receiver.hook().url).hostname == "build-host.example"

    receive(check, "build-host.example")
    assert bracketed("2001:db8::7") == "[2001:db8::7]"


def test_a_script_can_cut_the_connection_and_hold_an_answer_back():
    async def check(receiver):
        hook = receiver.hook([BROKEN, HELD, 204])
        with pytest.raises((http.client.RemoteDisconnected, ConnectionError)):
            await called(hook.url)
        assert (await hook.answer_given(1)).status == BROKEN
        held = asyncio.create_task(called(hook.url))
        await hook.counts(2)
        assert (await called(hook.url))[0] == 204
        assert not held.done()
        hook.release()
        assert (await held)[0] == 200
        assert [answered.status for answered in hook.answered] == [BROKEN, 204, 200]

    receive(check)


def test_many_deliveries_of_one_hook_are_read_back_side_by_side():
    async def check(receiver):
        async def read(delivery):
            await asyncio.sleep(0.001)
            return delivery.number

        hook = receiver.hook(read_back=read)
        statuses = await asyncio.gather(*(called(hook.url) for _ in range(60)))
        assert {status for status, _ in statuses} == {200}
        assert sorted(answered.read for answered in hook.answered) == list(range(1, 61))

    receive(check)


def test_the_end_of_the_receiver_releases_what_it_holds():
    held = []

    async def check(receiver):
        hook = receiver.hook([HELD])
        held.append(asyncio.create_task(called(hook.url)))
        await hook.counts(1)

    async def run():
        async with Receiver() as receiver:
            await check(receiver)
        assert (await held[0])[0] == 200

    asyncio.run(run())
