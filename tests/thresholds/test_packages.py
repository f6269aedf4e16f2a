"""The readers as packages: the npm package packs, installs and types; the Go module is vetted, formatted and tested."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.thresholds.go_toolchain import run_go

CONSUMERS = Path(__file__).parents[2] / "docs" / "consumers"
JAVASCRIPT, GO = CONSUMERS / "javascript", CONSUMERS / "go"
VECTORS = Path(__file__).parents[2] / "calibrate" / "thresholds" / "vectors"
needs_node = pytest.mark.skipif(shutil.which("npm") is None, reason="no node and npm here")

USE = """
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { FORMAT, decide, read } from "touchstone-thresholds";
import { follow } from "touchstone-thresholds/follow";
const schema = createRequire(import.meta.url)("touchstone-thresholds/schema.json");
const { document } = JSON.parse(readFileSync(process.argv[2], "utf8"));
const file = read(Buffer.from(JSON.stringify(document)));
console.log(JSON.stringify([FORMAT, typeof follow, typeof schema.$defs, decide(file, {}).verdict]));
"""


def call(*command: str, cwd: Path) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=110, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@needs_node
def test_the_javascript_package_meets_its_own_tests() -> None:
    found = call("node", "--test", "--test-reporter", "tap", cwd=JAVASCRIPT)
    assert "\n# fail 0\n" in found
    assert int(found.split("\n# pass ")[1].split("\n")[0]) >= len(list(VECTORS.glob("*.json"))) + 7


@needs_node
def test_the_javascript_package_installs_from_its_tarball(tmp_path: Path) -> None:
    (packed,) = json.loads(call("npm", "pack", "--json", "--pack-destination", str(tmp_path), cwd=JAVASCRIPT))
    files = {file["path"] for file in packed["files"]}
    assert files == {"LICENSE", "README.md", "follow.d.mts", "follow.mjs", "package.json", "schema.json",
                     "touchstone.d.mts", "touchstone.mjs"}  # fmt: skip
    assert (JAVASCRIPT / "LICENSE").read_bytes() == (JAVASCRIPT.parents[2] / "LICENSE").read_bytes()
    assert not json.loads((JAVASCRIPT / "package.json").read_text()).keys() & {"dependencies", "devDependencies"}
    (tmp_path / "package.json").write_text('{"private": true, "type": "module"}')
    call("npm", "install", "--offline", "--no-audit", "--no-fund", f"./{packed['filename']}", cwd=tmp_path)
    (tmp_path / "use.mjs").write_text(USE)
    used = json.loads(call("node", "use.mjs", str(VECTORS / "tiers.json"), cwd=tmp_path))
    assert used == [2, "function", "object", "REVIEW"]


@needs_node
def test_the_types_name_what_the_modules_export() -> None:
    listed = "console.log(JSON.stringify(Object.keys(await import(process.argv[1]))))"
    for module in ("touchstone", "follow"):
        call_names = call(
            "node", "--input-type=module", "-e", listed, str(JAVASCRIPT / f"{module}.mjs"), cwd=JAVASCRIPT
        )
        typed = (JAVASCRIPT / f"{module}.d.mts").read_text(encoding="utf-8")
        words = {line.split("(")[0].split(":")[0].split()[2] for line in typed.splitlines()
                 if line.startswith(("export function", "export class", "export const"))}  # fmt: skip
        assert words == set(json.loads(call_names))


@pytest.mark.network
@pytest.mark.timeout(900)  # the first build of Go's own library takes half a minute of processor time
def test_the_go_module_is_vetted_and_meets_its_own_tests() -> None:
    run_go("vet", "./...", cwd=GO)
    found = run_go("test", "-count=1", "-json", "./...", cwd=GO)
    events = [json.loads(line) for line in found.splitlines()]
    passed = {event.get("Test") for event in events if event["Action"] == "pass"}
    assert {f"TestVectors/{path.stem}" for path in VECTORS.glob("*.json")} <= passed
    assert "Example" in passed
