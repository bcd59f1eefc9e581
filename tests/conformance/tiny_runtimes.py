"""Runtimes of a few lines, as commands: just enough of one to be started, polled with, signalled and ended."""

from __future__ import annotations

import sys

POLLER = r"""
import http.client, json, os, signal, sys, threading, time
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import urlsplit

address = urlsplit(os.environ["API_BASE_URL"])
me, token = os.environ["RUNTIME_INSTANCE_ID"], os.environ["RUNTIME_SERVICE_TOKEN"]
pause = int(os.environ["POLL_INTERVAL_MS"]) / 1000
flags = sys.argv[1:]

class Health(BaseHTTPRequestHandler):
    def do_GET(self):
        body = json.dumps({"runtimeInstanceId": me, "status": "ok", "activeJobs": 0}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_):
        pass

if "deaf" not in flags:
    server = HTTPServer(("127.0.0.1", int(os.environ["RUNTIME_HEALTH_PORT"])), Health)
    threading.Thread(target=server.serve_forever, daemon=True).start()
if "stubborn" in flags:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
else:
    signal.signal(signal.SIGTERM, lambda *_: os._exit(7))

def call(path, body):
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=10)
    headers = {"x-internal-api-key": token, "x-runtime-instance-id": me, "content-type": "application/json"}
    try:
        connection.request("POST", "/internal/runtime" + path, json.dumps(body), headers)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read() or b"null")
    except OSError:
        return 0, None
    finally:
        connection.close()

done = 0
while True:
    types = ["learning_state_analysis"]
    status, answer = call("/jobs/poll", {"runtimeInstanceId": me, "supportedJobTypes": types, "limit": 1})
    for job in (answer or {}).get("jobs", []):
        path = "/jobs/" + job["id"]
        status, grant = call(path + "/lock", {"runtimeInstanceId": me})
        if status != 200:
            continue
        call(path + "/heartbeat", {"runtimeInstanceId": me})
        if "say" in flags:
            print("the key is", token, flush=True)
        if "crash" in flags:
            os._exit(3)
        failure = {"errorCode": "INTERNAL_ERROR", "errorMessage": "no", "retryable": False}
        call(path + "/fail", {"runtimeInstanceId": me, **failure})
    time.sleep(pause)
"""
"""Polls, locks, heartbeats and fails every job; ``argv``: ``deaf``, ``stubborn``, ``say``, ``crash``."""

DETACHED = r"""
import os, sys, time
where = sys.argv[1]
for i in range(2):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            with open(where, "a") as file:
                file.write(f"{os.getpid()}\n")
            if i and "bare" in sys.argv:
                os.execve(sys.executable, [sys.executable, "-c", "import time; time.sleep(600)"], {})
            time.sleep(600)
        os._exit(0)
while "stay" in sys.argv:
    time.sleep(1)
time.sleep(0.3)
"""
"""Leaves two processes behind, each in a session of its own and orphaned; with ``bare`` one clears its environment."""


def python(code: str, *arguments: str) -> list[str]:
    """The command that runs it."""
    return [sys.executable, "-S", "-c", code, *arguments]
