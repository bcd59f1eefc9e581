"""The commands of README's section on the model work as they stand, and its table has every kind of outcome."""

from __future__ import annotations

import re
import subprocess

from mock_world import start, stop
from services import README, needs, readme_blocks

import openapi


@needs("bash", "curl")
def test_every_command_works(tmp_path):
    process, url = start("--clock", "manual")
    script = "\n".join(["set -e -o pipefail", *readme_blocks("The model", language="sh", url=url)])
    script = script.replace("curl -s", "curl -s -f")
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count('"answered":0') == 4
    stop(process)


def test_the_table_has_every_kind_of_outcome():
    section = README.read_text(encoding="utf-8").partition("## The model\n")[2].partition("\n## ")[0]
    told = "".join(row.split("|")[1] for row in section.splitlines() if row.startswith("| `"))
    schemas = openapi.load("control").document["components"]["schemas"]
    outcomes = schemas["ModelScript"]["properties"]["calls"]["items"]["oneOf"]
    names = [outcome["$ref"].rpartition("/")[2] for outcome in outcomes]
    kinds = [kind for name in names for kind in schemas[name]["properties"]["kind"]["enum"]]
    assert sorted(re.findall("`([a-z-]+)`", told)) == sorted(kinds)
