"""The commands of README's sections on worlds work as they stand, one after the other."""

from __future__ import annotations

import subprocess

import httpx
import yaml
from mock_world import start, stop
from services import README, needs, readme_blocks

SECTIONS = ("Isolated worlds", "Snapshots and data files", "Moving time")


@needs("bash", "curl")
def test_every_command_works(tmp_path):
    process, url = start("--data", str(README.parent / "mock_server/data/example.yaml"), "--clock", "manual")
    script = "\n".join(["set -e -o pipefail", *readme_blocks(*SECTIONS, language="sh", url=url)])
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(yaml.safe_load((tmp_path / "world.yaml").read_text())["jobs"]) == 5
    assert httpx.get(f"{url}/__control__/worlds/copy").json()["jobs"] == {"pending": 5}
    stop(process)
