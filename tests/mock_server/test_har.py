"""The journal as HAR, over HTTP and as a file that is written while the mock serves."""

from __future__ import annotations

import errno
import json
import os
import resource
import signal
import subprocess
import threading

import httpx
import pytest
from har_schema import check_har
from mock_world import KEY, SERVE, World, start, stop

from mock_server import har
from mock_server.clock import ManualClock
from mock_server.journal import MAX_BODY
from mock_server.recording import Recorder
from mock_server.worlds import Options, Worlds


def test_an_export_is_a_har_of_what_happened(world):
    job = world.state("job")["jobId"]
    world.lock(job)
    world.send("GET", "/internal/runtime/nothing?a=1&b=%C3%A9&b=", headers={"x-internal-api-key": "wrong"})
    answer = world.control("GET", "/journal/har")
    assert answer.headers["content-type"] == "application/json"
    locked, refused = check_har(answer.json())

    assert locked["request"]["method"] == "POST"
    assert locked["request"]["url"] == f"{world.base_url}{world.path}/internal/runtime/jobs/{job}/lock"
    assert json.loads(locked["request"]["postData"]["text"]) == {"runtimeInstanceId": "runtime-1"}
    assert locked["request"]["postData"]["mimeType"] == "application/json"
    assert (locked["response"]["status"], locked["response"]["statusText"]) == (200, "OK")
    assert json.loads(locked["response"]["content"]["text"])["status"] == "locked"
    assert locked["response"]["bodySize"] == len(locked["response"]["content"]["text"])
    assert locked["time"] == locked["timings"]["wait"] > 0
    assert (locked["_world"], locked["_operationId"], locked["_jobId"]) == (world.path, "lockJob", job)

    assert refused["request"]["queryString"] == [
        {"name": "a", "value": "1"},
        {"name": "b", "value": "é"},
        {"name": "b", "value": ""},
    ]
    assert "postData" not in refused["request"]
    assert (refused["response"]["status"], refused["_verdict"]) == (401, "refused")
    assert KEY not in answer.text
    assert "wrong" not in {pair["value"] for pair in refused["request"]["headers"]}


def test_an_export_takes_the_filters_of_the_journal(world):
    job = world.state("job")["jobId"]
    world.lock(job)
    world.lock(job)
    world.poll()
    found = check_har(world.control("GET", "/journal/har", params={"verdict": "refused"}).json())
    assert [entry["_number"] for entry in found] == [2]
    assert check_har(world.control("GET", "/journal/har", params={"since": 3}).json()) == []
    assert "`verdict`?" in world.control("GET", "/journal/har", params={"verdikt": "ok"}).json()["error"]


def test_a_large_export_is_whole(world):
    for _ in range(250):
        world.poll()
    assert len(check_har(world.control("GET", "/journal/har").json())) == 250


def test_a_body_that_was_cut_says_so(world):
    world.send("POST", "/internal/runtime/jobs/poll", json={"runtimeInstanceId": "x" * 20_000})
    (entry,) = check_har(world.control("GET", "/journal/har").json())
    post = entry["request"]["postData"]
    assert len(post["text"]) == MAX_BODY
    assert post["comment"] == f"cut after {MAX_BODY} characters; it had {entry['request']['bodySize']} bytes"


def test_a_journal_that_was_full_says_so():
    process, url = start("--journal-entries", "2")
    with httpx.Client() as client:
        for _ in range(5):
            World(client, url, "").poll()
        document = client.get(f"{url}/__control__/journal/har").json()
    stop(process)
    assert len(check_har(document)) == 2
    assert document["log"]["comment"] == "the journal was full and dropped 3 exchanges"


# The recording.


@pytest.fixture
def worlds():
    return Worlds(Options(api_key=KEY, clock="manual"))


@pytest.fixture
def entry(worlds, exchange):
    """Any entry."""
    return worlds.default.journal.record(exchange(request_body=b'{"a":1}', response_body=b"{}"))


def read(path):
    return json.loads(path.read_bytes())


def test_a_recording_is_valid_from_the_start_and_after_every_exchange(tmp_path, entry):
    path = tmp_path / "run.har"
    recorder = Recorder(path)
    for count in range(5):
        document = read(path)
        assert len(check_har(document)) == count
        assert "comment" not in document["log"]
        recorder.add("/__worlds__/w", entry)
    recorder.close()
    assert oct(path.stat().st_mode)[-3:] == "600"


def test_a_recording_has_every_world(tmp_path):
    path = tmp_path / "run.har"
    process, url = start("--record", str(path), "--clock", "manual")
    with httpx.Client() as client:
        made = client.post(f"{url}/__control__/worlds", json={}).json()
        for prefix in ("", made["path"]):
            key = World(client, url, prefix).state("credential")["apiKey"]
            World(client, url, prefix).poll(runtimeInstanceId=key)
        client.delete(f"{url}/__control__/worlds/{made['id']}")
    assert stop(process) == ""
    assert [entry["_world"] for entry in check_har(read(path))] == ["/", made["path"]]
    assert key not in path.read_text()
    assert KEY not in path.read_text()


def test_a_recording_survives_that_the_mock_is_killed(tmp_path):
    path = tmp_path / "run.har"
    process, url = start("--record", str(path))
    answered = []
    killed = threading.Event()

    def load():
        with httpx.Client() as client:
            while not killed.is_set():
                try:
                    answered.append(World(client, url, "").poll().status_code)
                except httpx.TransportError:
                    return

    threads = [threading.Thread(target=load) for _ in range(4)]
    for thread in threads:
        thread.start()
    while len(answered) < 200:
        assert process.poll() is None
    process.send_signal(signal.SIGKILL)
    process.wait(10)
    killed.set()
    for thread in threads:
        thread.join(10)
    # An exchange is written when its answer has been handed over: at most the one of each client may be missing.
    assert len(check_har(read(path))) >= len(answered) - 4
    process.communicate()


def test_a_recording_stays_within_its_bytes_and_says_what_is_missing(tmp_path, entry, caplog):
    path = tmp_path / "run.har"
    recorder = Recorder(path, 64 * 1024)
    for _ in range(200):
        recorder.add("", entry)
    recorder.close()
    document = read(path)
    kept = len(check_har(document))
    assert path.stat().st_size <= 64 * 1024
    assert 20 < kept < 200
    assert document["log"]["comment"] == f"{200 - kept} exchanges are missing, for want of room"
    assert [record.message for record in caplog.records if "--record-bytes" in record.message] == caplog.messages
    assert len(caplog.records) == 1


def test_a_full_disk_stops_the_recording_and_not_the_mock(tmp_path):
    """The system's limit of a file's size stands for the disk; writes then come through in part, or not at all."""
    path = tmp_path / "run.har"
    process = subprocess.Popen(
        [*SERVE, "--port", "0", "--record", str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000)),
    )
    url = json.loads(process.stdout.readline())["baseUrl"]
    with httpx.Client() as client:
        answers = [World(client, url, "").poll().status_code for _ in range(30)]
    errors = stop(process)
    assert answers == [200] * 30
    assert len(errors.strip().splitlines()) == 1
    assert str(path) in errors
    assert "could not be recorded" in errors
    assert 3 <= len(check_har(read(path))) < 30


def test_writing_in_part_leaves_no_trace(tmp_path, entry, monkeypatch):
    path = tmp_path / "run.har"
    recorder = Recorder(path)
    recorder.add("", entry)
    before = check_har(read(path))
    write, scraps = os.pwrite, iter([40, 0])

    def scarce(file, data, at):
        if len(data) < 200:  # the end alone; the space for it is there
            return write(file, data, at)
        room = next(scraps)
        if not room:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(file, data[:room], at)

    monkeypatch.setattr(os, "pwrite", scarce)
    recorder.add("", entry)
    monkeypatch.undo()
    assert check_har(read(path)) == before
    assert read(path)["log"]["comment"] == "1 exchanges are missing, for want of room"
    recorder.add("", entry)
    assert len(check_har(read(path))) == 2
    recorder.close()


@pytest.mark.parametrize("name", ["no/such/folder/run.har", "."])
def test_a_file_that_can_not_be_written_is_a_wrong_usage(tmp_path, name):
    done = subprocess.run(
        [*SERVE, "--port", "0", "--record", str(tmp_path / name)],
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.strip().splitlines()) == 1
    assert "can't record to" in done.stderr


def test_an_exchange_without_an_answer_is_a_har_entry_too(exchange):
    journal = Worlds(Options(api_key=KEY)).default.journal
    journal.record(exchange(status=0, headers={b"host": b"127.0.0.1:1"}, path="/a b/ü", at=ManualClock().now()))
    (entry,) = journal.query()
    document = {"log": {**json.loads(har.HEAD + har.tail())["log"], "entries": [har.exchange("", entry)]}}
    (shown,) = check_har(document)
    assert shown["request"]["url"] == "http://127.0.0.1:1/a%20b/%C3%BC"
    assert (shown["response"]["status"], shown["response"]["statusText"], shown["_verdict"]) == (0, "", "aborted")
