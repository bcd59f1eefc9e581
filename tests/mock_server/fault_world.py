"""Servers of each kind of connection, their worlds, and clients that tell how a call ends for them."""

from __future__ import annotations

import http.client
import json
import subprocess
import threading
import time
from contextlib import contextmanager

import httpx
import uvicorn
from mock_world import KEY, World
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from mock_server.control import Guard
from mock_server.serve import listen
from mock_server.server import Server
from mock_server.wire import WiredServer, wired
from mock_server.worlds import Options, Worlds

HEADERS = {"x-internal-api-key": KEY, "x-runtime-instance-id": "runtime-1", "content-type": "application/json"}
PROTOCOLS = {"h11": H11Protocol, "httptools": HttpToolsProtocol}
PATIENT, IMPATIENT = 20.0, 0.2
"""Seconds after which clients give up: on a busy machine, too, the patient ones never do."""


@contextmanager
def served(protocol, loop):
    """The base URL of a server in a thread of this process, with that protocol and event loop."""
    sock = listen("127.0.0.1", 0)
    app = Server(Worlds(Options(api_key=KEY, clock="manual")), Guard(None, None))
    config = uvicorn.Config(app, http=wired(PROTOCOLS[protocol]), loop=loop, ws="none", log_config=None)
    server = WiredServer(config)
    thread = threading.Thread(target=server.run, args=([sock],))
    thread.start()
    try:
        yield f"http://127.0.0.1:{sock.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        sock.close()


class FaultyWorld(World):
    """A world with fault plans."""

    def plan(self, fault, match=None, when=None, id_=None):
        """Add a plan; its id."""
        body = {"fault": fault, "match": match, "when": when, "id": id_}
        answer = self.try_plans({name: value for name, value in body.items() if value is not None})
        assert answer.status_code == 201, answer.text
        return answer.json()["faults"][0]["id"]

    def try_plans(self, body):
        """Add plans that may be refused."""
        return self.control("POST", "/faults", json=body)

    def counts(self):
        """Matched and applied of each plan by id."""
        plans = self.control("GET", "/faults").json()["faults"]
        return {plan["id"]: (plan["matched"], plan["applied"]) for plan in plans}

    def status_of(self, job):
        """The state in which a job is."""
        return self.state("inspect-job", jobId=job)["status"]

    def lock_url(self, job):
        """Where a job is locked."""
        return f"{self.base_url}{self.path}/internal/runtime/jobs/{job}/lock"

    def met(self, **query):
        """What the journal says of faults, one for each request; it is there when the request has ended."""
        return [entry["fault"] for entry in self.journal(**query)]


@contextmanager
def world_on(base_url, **options):
    """A world of its own, and the client that speaks to it."""
    with httpx.Client(trust_env=False, verify=False) as client:
        made = client.post(f"{base_url}/__control__/worlds", json={"clock": "manual", **options})
        assert made.status_code == 201, made.text
        yield FaultyWorld(client, base_url, made.json()["path"])
        client.delete(f"{base_url}/__control__/worlds/{made.json()['id']}")


def eventually(look, seconds=5.0):
    """The first true value that ``look`` gives."""
    end = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)
    return found


BODY = {"runtimeInstanceId": "runtime-1"}


def by_httpx(url, body=None, patience=PATIENT):
    """How a call ends with httpx: status and JSON, or the name of the error."""
    with httpx.Client(trust_env=False, verify=False, timeout=patience) as client:
        try:
            answer = client.post(url, headers=HEADERS, json=BODY if body is None else body)
            return answer.status_code, answer.json()
        except (httpx.HTTPError, json.JSONDecodeError) as error:
            return type(error).__name__


def by_http_client(url, body=None, patience=PATIENT):
    """How a call ends with the standard library."""
    host, _, path = url.removeprefix("http://").partition("/")
    connection = http.client.HTTPConnection(host, timeout=patience)
    try:
        connection.request("POST", f"/{path}", json.dumps(BODY if body is None else body), HEADERS)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    except (OSError, http.client.HTTPException, json.JSONDecodeError) as error:
        return type(error).__name__
    finally:
        connection.close()


def by_curl(url, body=None, patience=PATIENT):
    """How a call ends with curl: its exit status, and the JSON or ``JSONDecodeError`` when that is 0."""
    fields = [part for name, value in HEADERS.items() for part in ("-H", f"{name}: {value}")]
    command = ["curl", "-q", "-s", "-f", "--noproxy", "*", "-m", str(patience), *fields]
    done = subprocess.run(
        [*command, "-d", json.dumps(BODY if body is None else body), url], capture_output=True, check=False
    )
    if done.returncode:
        return done.returncode
    try:
        return 0, json.loads(done.stdout)
    except json.JSONDecodeError as error:
        return type(error).__name__
