"""The example workflow of a gate: its shell steps run as written, on the demo's store."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from calibrate.cli import main
from calibrate.workflow.demo import story
from db import open_store

ROOT = Path(__file__).parents[2]
NOW = datetime(2026, 11, 25, 15, 30, tzinfo=UTC)
JOB: dict[str, Any] = yaml.safe_load((ROOT / "examples" / "gate" / "touchstone-gate.yml").read_text())["jobs"]["gate"]
STEPS = {step["name"]: step for step in JOB["steps"] if "name" in step}


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the change's repository holds: the archive of the demo's store, and its live thresholds."""
    folder = tmp_path_factory.mktemp("checkout")
    (folder / "touchstone").mkdir()
    url = f"sqlite:///{folder}/demo.db"
    store = open_store(url)
    story.fill(store, NOW)
    (folder / "touchstone" / "thresholds.json").write_text(store.releases.list()[0].document)
    store.close()
    assert main(["export", "--all", str(folder / "touchstone" / "store.zip"), "--store", url]) == 0
    return folder


def run(step: str, checkout: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a step as the runner does: `bash -e`, with the job's environment. `python` is this one."""
    python = checkout / "bin" / "python"
    if not python.exists():
        python.parent.mkdir()
        python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
        python.chmod(0o755)
    own = {name: str(value) for name, value in JOB["env"].items() if "${{" not in str(value)}
    given = {"SAMPLE": "2026-W42", "PYTHONPATH": str(ROOT), "GITHUB_STEP_SUMMARY": str(checkout / "summary.md"),
             "GITHUB_OUTPUT": str(checkout / "output"), "PATH": f"{python.parent}:{os.environ['PATH']}"}  # fmt: skip
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", STEPS[step]["run"]]
    environment = {**os.environ, **own, **given, **variables}
    return subprocess.run(
        command, cwd=checkout, env=environment, capture_output=True, text=True, timeout=100, check=False
    )


@pytest.mark.timeout(300)  # it makes a demo store, and runs four steps of a pipeline as processes
def test_the_steps_restore_score_and_decide(checkout: Path) -> None:
    for step in ("Restore the store", "Score the sample"):
        done = run(step, checkout)
        assert done.returncode == 0, done.stderr
    done = run("Gate", checkout, MAX_RECALL_DROP="0.4", MAX_PRECISION_DROP="0.3")
    assert done.returncode == 0, done.stderr
    assert json.loads((checkout / "gate.json").read_text())["decision"] == "holds"
    assert "## Touchstone gate: holds" in (checkout / "summary.md").read_text()
    few = run("Gate", checkout)
    document = json.loads((checkout / "gate.json").read_text())
    assert (few.returncode, document["decision"], document["exit_code"]) == (2, "too few labels", 2)
    broken = run("Gate", checkout, SAMPLE="none", TOO_FEW_LABELS="pass")
    assert (broken.returncode, (checkout / "output").read_text().split()[-1]) == (3, "code=3")


def test_every_action_is_pinned_and_no_secret_is_printed() -> None:
    for step in JOB["steps"]:
        assert ("uses" in step) != ("run" in step)
        assert "@v" in step.get("uses", "@v")
        # What a pull request can set goes through the environment, never into the text of a script.
        assert "${{" not in step.get("run", "")
