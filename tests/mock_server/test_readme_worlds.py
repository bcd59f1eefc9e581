"""The commands of README's sections on worlds work as they stand, one after the other."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import httpx
import pytest
import yaml
from mock_world import start, stop

README = Path(__file__).parents[2] / "README.md"
SECTIONS = ("Isolated worlds", "Snapshots and data files", "Moving time")


def commands() -> str:
    sections = re.split(r"^## ", README.read_text(encoding="utf-8"), flags=re.MULTILINE)
    found = [text for name in SECTIONS for text in sections if text.startswith(f"{name}\n")]
    assert len(found) == len(SECTIONS)
    return "\n".join(block for text in found for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL))


@pytest.mark.skipif(not (shutil.which("bash") and shutil.which("curl")), reason="bash and curl are not there")
def test_every_command_works(tmp_path):
    data = Path(README.parent, "mock_server/data/example.yaml")
    process, url = start("--data", str(data), "--clock", "manual")
    script = "set -e -o pipefail\n" + commands().replace("http://localhost:8080", url)
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(yaml.safe_load((tmp_path / "world.yaml").read_text())["jobs"]) == 5
    assert httpx.get(f"{url}/__control__/worlds/copy").json()["jobs"] == {"pending": 5}
    stop(process)
