"""A Runtime's process: what it is given, what is heard of it, and that nothing of it is left."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import signal
import time
from contextlib import asynccontextmanager

import psutil
import pytest
from tiny_runtimes import DETACHED, python

from conformance.runtimes.environment import MARK, Given, Template, TemplateError, surroundings
from conformance.runtimes.leaks import MODEL_KEY, MOST, SERVICE_TOKEN, TAIL, OutputWatch
from conformance.runtimes.process import CannotStart, RuntimeProcess
from conformance.runtimes.strays import adopting

TOKEN = "service-0123456789abcdef0123456789abcdef"
KEY = "platform-fedcba9876543210fedcba9876543210"
GIVEN = Given("http://127.0.0.1:1", TOKEN, "runtime-1", 20_001, 200, 750, 2000)


def watching():
    leaks = []
    watch = OutputWatch(leaks.append)
    watch.know(TOKEN, SERVICE_TOKEN)
    watch.know(KEY, MODEL_KEY)
    return watch, leaks


@asynccontextmanager
async def started(command, variables=None):
    """A process, with its watch, leaks, and the statuses that were told; it is ended, and so is what it left."""
    watch, leaks = watching()
    exits = []
    process = await RuntimeProcess.start(command, variables or {}, watch, exits.append)
    try:
        yield process, watch, leaks, exits
    finally:
        await process.end()


def run(command, variables=None, within=20):
    """Let a command end by itself: its status, the end of its output, the leaks."""

    async def main():
        async with started(command, variables) as (process, watch, leaks, exits):
            status = await process.wait(within)
            await process.end()
            assert exits == [status]
            return status, watch.end(), leaks

    return asyncio.run(main())


async def comes(condition):
    for _ in range(1000):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it did not come within 10 s")


# The environment.


def test_a_runtime_gets_the_contracts_variables_and_no_key_of_ours():
    ours = {
        "PATH": "/bin",
        "OPENAI_API_KEY": "a",
        "deepseek_token": "b",
        "AWS_SECRET_x": "c",
        "DB_PASSWORD": "d",
        "GOOGLE_APPLICATION_CREDENTIALS": "e",
        "http_proxy": "f",
        "HTTPS_PROXY": "g",
        "all_proxy": "h",
        "no_proxy": "i",
        "POLL_INTERVAL_MS": "9",
        "PLATFORM_MODEL_API_KEY": "j",
    }
    assert surroundings(ours, GIVEN.variables(), "mark") == {
        "PATH": "/bin",
        "NO_PROXY": "127.0.0.1,localhost",
        "API_BASE_URL": "http://127.0.0.1:1",
        "RUNTIME_SERVICE_TOKEN": TOKEN,
        "RUNTIME_INSTANCE_ID": "runtime-1",
        "RUNTIME_HEALTH_PORT": "20001",
        "POLL_INTERVAL_MS": "200",
        "HEARTBEAT_INTERVAL_MS": "750",
        "MODEL_TIMEOUT_MS": "2000",
        MARK: "mark",
    }


def test_templates_stand_beside_the_standard_variables():
    templates = [
        Template.parse("MY_URL={base_url}/internal/runtime"),
        Template.parse("MY_TOKEN={token}"),
        Template.parse('JSON={{"every": {poll_interval_ms}, "beat": {heartbeat_interval_ms}}}'),
        Template.parse("OWN={platform_key}"),
        Template.parse("POLL_INTERVAL_MS=300"),
        Template.parse("EMPTY="),
    ]
    variables = GIVEN.variables(templates)
    assert variables["MY_URL"] == "http://127.0.0.1:1/internal/runtime"
    assert variables["MY_TOKEN"] == variables["RUNTIME_SERVICE_TOKEN"] == TOKEN
    assert json.loads(variables["JSON"]) == {"every": 200, "beat": 750}
    assert variables["POLL_INTERVAL_MS"] == "300"
    assert variables["EMPTY"] == ""
    assert not {"OWN", "PLATFORM_MODEL_API_KEY"} & set(variables)  # it has no key of its own
    assert surroundings({}, variables, "m")["MY_TOKEN"] == TOKEN  # what was asked for is no key of ours


def test_a_key_of_its_own_is_given_where_the_scenario_has_one():
    own = Given("u", TOKEN, "i", 1, 1, 1, 1, platform_key=KEY)
    variables = own.variables([Template.parse("MY_KEY={platform_key}")])
    assert variables["PLATFORM_MODEL_API_KEY"] == variables["MY_KEY"] == KEY


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("MY_URL={base_uri}", "{base_url}, {token}"),
        ("MY_URL={base_url!r}", "no placeholder"),
        ("MY_URL={}", "no placeholder {}"),
        ("MY_URL={base_url", "write {{ and }} for braces"),
        ("MY URL={base_url}", "MY_API_URL={base_url}"),
        ("MY_URL", "MY_API_URL={base_url}"),
        ("MY_URL=\0", "NUL"),
    ],
)
def test_a_template_that_cant_be_filled_is_refused_with_the_mend(given, says):
    with pytest.raises(TemplateError) as refused:
        Template.parse(given)
    assert says in str(refused.value)


def test_the_process_has_this_environment_no_input_and_a_session_of_its_own(monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", "of the user")
    monkeypatch.setenv("HTTP_PROXY", "http://proxy.test")
    code = (
        "import json, os, sys; "
        "print(json.dumps([dict(os.environ), sys.stdin.read(), os.getsid(0) == os.getpgid(0) == os.getpid()]))"
    )
    status, said, leaks = run(python(code), {"API_BASE_URL": "http://127.0.0.1:1"})
    environment, read, alone = json.loads(said)
    assert (status, read, alone, leaks) == (0, "", True, [])
    assert environment["API_BASE_URL"] == "http://127.0.0.1:1"
    assert environment["NO_PROXY"] == "127.0.0.1,localhost"
    assert not {"SOME_API_KEY", "HTTP_PROXY"} & set(environment)


@pytest.mark.parametrize("command", [["/no/such/program"], ["."], [__file__]])
def test_a_command_that_cant_be_started_is_said_to_be_so(command):
    with pytest.raises(CannotStart) as refused:
        run(command)
    assert command[0] in str(refused.value)
    assert "name a program" in str(refused.value)


# The output.


def test_the_end_of_the_output_is_kept_without_secrets():
    code = f"import sys; print('x' * 10**6); print('{TOKEN}', file=sys.stderr); print('the last words')"
    _, said, leaks = run(python(code))
    assert said.endswith("[redacted]\nthe last words")
    assert len(said) <= TAIL
    assert [(leak.secret, leak.form, leak.text) for leak in leaks] == [("service token", "plain", "[redacted]")]


@pytest.mark.parametrize("size", [1, 7, 64, 1000])
def test_a_secret_is_found_across_the_borders_of_pieces(size):
    encoded = base64.b64encode(f"key={KEY};".encode()).decode()
    said = f"start\nsent {TOKEN} to it\nnothing\ndump {encoded} end\nbye {KEY.encode().hex()}\n".encode()
    watch, leaks = watching()
    for i in range(0, len(said), size):
        watch.feed(said[i : i + size])
    found = [(leak.secret, leak.form) for leak in leaks]
    assert found == [("service token", "plain"), ("model key", "encoded"), ("model key", "encoded")]
    assert [leak.text.split()[0] for leak in leaks] == ["sent", "dump", "bye"]
    for leak in leaks:
        assert TOKEN not in leak.text
        assert encoded[8:20] not in leak.text


def test_no_part_of_a_secret_is_told_whatever_lies_around_it():
    for size in (3, 40, 50, 97):
        watch, leaks = watching()
        said = (f"{TOKEN} and {KEY} " * 200).encode()
        for i in range(0, len(said), size):
            watch.feed(said[i : i + size])
        told = [leak.text for leak in leaks] + [watch.end()]
        assert len(leaks) == 2 * MOST
        for secret in (TOKEN, KEY):
            parts = [secret[i : i + 10] for i in range(len(secret) - 9)]
            assert not [part for part in parts for text in told if part in text]


def test_a_secret_that_is_learnt_later_is_found_from_then_on():
    watch, leaks = watching()
    watch.feed(b"sk-00112233445566778899\n")
    watch.know("sk-00112233445566778899", MODEL_KEY)
    watch.feed(b"again sk-0011223344")
    watch.feed(b"5566778899\n")
    assert [leak.text for leak in leaks] == ["again [redacted]"]


def test_a_flood_of_output_grows_nothing_and_holds_nobody_up():
    code = (
        "import os, sys\n"
        f"line = ('y' * 1000 + ' {TOKEN}\\n').encode() * 60\n"
        "for _ in range(1000): os.write(1, line)\n"
        "print('whole')"
    )
    began = time.monotonic()

    async def main():
        async with started(python(code)) as (process, watch, leaks, _):
            late = 0.0
            while process.status is None:
                before = time.monotonic()
                await asyncio.sleep(0.01)
                late = max(late, time.monotonic() - before)
            await process.end()
            assert watch.bytes > 60 * 10**6
            assert watch.end().endswith("whole")
            assert len(leaks) == MOST
            assert len(watch._carry) + len(watch._tail) < 20_000
            return late

    late = asyncio.run(main())
    assert late < 1
    assert time.monotonic() - began < 60


def test_who_says_more_than_can_be_read_is_held_up(monkeypatch):
    monkeypatch.setattr("conformance.runtimes.process._MOST", 2**20)

    async def main():
        code = "import os\nwhile True: os.write(1, b'z' * 65536)"
        async with started(python(code)) as (_, watch, _, _):
            await asyncio.sleep(1.5)
            return watch.bytes

    assert 2**20 <= asyncio.run(main()) < 12 * 2**20


# Signals and the end.


def test_who_ignores_sigterm_is_killed():
    code = "import signal, time; signal.signal(15, signal.SIG_IGN); print('ready', flush=True); time.sleep(600)"

    async def main():
        async with started(python(code)) as (process, watch, _, exits):
            await comes(lambda: watch.bytes)
            process.signal("TERM")
            assert await process.wait(0.3) is None
            assert await process.end() == -signal.SIGKILL
            assert exits == [-signal.SIGKILL]
            assert not psutil.pid_exists(process.pid)

    asyncio.run(main())


def test_sigterm_goes_to_the_first_process_alone_and_the_others_to_the_group():
    code = (
        "import os, signal, sys, time\n"
        "child = os.fork()\n"
        "name = 'parent' if child else 'child'\n"
        "say = lambda word: os.write(1, f'{word} {name}\\n'.encode())\n"  # a handler may interrupt a print
        "signal.signal(15, lambda *_: say('TERM'))\n"
        "signal.signal(18, lambda *_: say('CONT'))\n"
        "print('ready', flush=True)\n"
        "while True: time.sleep(0.05)"
    )

    async def main():
        async with started(python(code)) as (process, watch, _, _):

            async def said(*words):
                await comes(lambda: all(watch.end().count(word) == words.count(word) for word in words))

            await said("ready", "ready")
            process.signal("TERM")
            await said("TERM parent")
            process.signal("STOP")
            process.signal("CONT")
            await said("CONT parent", "CONT child")
            assert "TERM child" not in watch.end()

    asyncio.run(main())


def left(where, count):
    """The processes that a file names, as soon as all are named; those of them that still live."""
    until = time.monotonic() + 10
    while True:
        pids = [int(line) for line in where.read_text().split()] if where.exists() else []
        if len(pids) == count or time.monotonic() > until:
            break
        time.sleep(0.01)
    assert len(pids) == count
    return [pid for pid in pids if psutil.pid_exists(pid)]


@pytest.mark.parametrize("how", ["stay", "go"])
def test_what_forked_and_detached_is_ended_with_the_runtime(tmp_path, how):
    where = tmp_path / "pids"

    async def main():
        async with started(python(DETACHED, str(where), how)) as (process, _, _, _):
            if how == "stay":
                assert len(left(where, 2)) == 2
            else:
                assert await process.wait(10) == 0
            await process.end()

    with adopting():
        asyncio.run(main())
        assert left(where, 2) == []  # nor a zombie of it


def test_what_cleared_its_environment_is_ended_when_all_is_over(tmp_path):
    where = tmp_path / "pids"
    before = psutil.Process().children()
    with adopting():
        status, _, _ = run(python(DETACHED, str(where), "bare"))
        assert status == 0
        assert len(left(where, 2)) == 1
    assert left(where, 2) == []
    assert psutil.Process().children() == before


def test_who_is_ended_while_he_starts_a_runtime_leaves_none(tmp_path):
    code = "import pathlib, sys, time; pathlib.Path(sys.argv[1]).write_text('x'); time.sleep(600)"

    async def main():
        task = asyncio.ensure_future(started(python(code, str(tmp_path / "there"))).__aenter__())
        while psutil.Process().children() == before:  # noqa: ASYNC110
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        if not task.cancelled():
            process, *_ = task.result()
            process.abandon()

    before = psutil.Process().children()
    asyncio.run(main())
    assert psutil.Process().children() == before


def test_a_process_is_found_by_its_mark_and_by_no_other():
    async def main():
        sleeping = python("import time; print('x', flush=True); time.sleep(600)")
        async with started(sleeping) as (one, heard, _, _), started(sleeping) as (other, _, _, _):
            await comes(lambda: heard.bytes)
            assert psutil.Process(one.pid).environ()[MARK] != psutil.Process(other.pid).environ()[MARK]
            await one.end()
            assert other.status is None
            assert not psutil.pid_exists(one.pid)

    asyncio.run(main())
    assert os.environ.get(MARK) is None
