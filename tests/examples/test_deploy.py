"""The container files keep what they promise: no root, nothing writable, no secret, no floating tag, ports checked."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from calibrate.cli.grammar import build

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples" / "deploy"
COMPOSE: dict[str, Any] = yaml.safe_load((FOLDER / "compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = {name: service for name, service in SERVICES.items() if name != "postgres"}
LASTING = {name: service for name, service in SERVICES.items() if name != "store"}


def instructions() -> list[tuple[str, str]]:
    """The Dockerfile's instructions, continued lines joined."""
    text = re.sub(r"\\\n\s*", " ", (FOLDER / "Dockerfile").read_text())
    lines = (line.strip() for line in text.splitlines())
    pairs = (line.partition(" ") for line in lines if line and not line.startswith("#"))
    return [(name.upper(), rest.strip()) for name, _, rest in pairs]


STEPS = instructions()


def test_the_base_images_are_pinned() -> None:
    bases = [rest.split()[0] for name, rest in STEPS if name == "FROM"]
    images = [*bases, *(service["image"] for service in SERVICES.values())]
    assert len(bases) == 2
    for image in images:
        name, _, tag = image.partition(":")
        assert name in ("python", "postgres", "touchstone")
        # The patch version of what others make; ours is the version of the image.
        assert re.fullmatch(r"\d+" if name == "touchstone" else r"\d+\.\d+(\.\d+)?-[a-z]\w*(-\w+)?", tag), image


def test_the_image_runs_as_nobody_in_particular() -> None:
    names = [name for name, _ in STEPS]
    user = next(rest for name, rest in STEPS if name == "USER")
    assert re.fullmatch(r"[1-9]\d{3,}:[1-9]\d{3,}", user)
    last = len(names) - 1 - names[::-1].index("USER")
    assert not {"RUN", "COPY", "ADD"} & set(names[last:])
    assert "ADD" not in names
    assert "HEALTHCHECK" in names
    for service in OURS.values():
        assert service["user"] == user


def test_what_the_image_takes_is_there_and_past_the_ignore_file() -> None:
    kept = {line[1:] for line in (FOLDER / "Dockerfile.dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = [source for name, rest in STEPS if name == "COPY" and "--from" not in rest for source in rest.split()[:-1]]
    assert set(copied) == kept
    for source in copied:
        assert (ROOT / source).exists(), source


def test_nothing_asks_the_network_at_start_and_no_secret_is_baked_in() -> None:
    environment = " ".join(rest for name, rest in STEPS if name in ("ENV", "ARG"))
    assert {"HF_HUB_OFFLINE=1", "TRANSFORMERS_OFFLINE=1"} <= set(environment.split())
    assert not re.search(r"TOKEN|PASSWORD|KEY|SECRET", environment)
    text = (FOLDER / "compose.yaml").read_text()
    assert not re.search(r"(TOKEN|PASSWORD|KEY|SECRET)\w*\s*[=:]", text)
    ignored = (FOLDER / ".gitignore").read_text().split()
    for service in SERVICES.values():
        assert "environment" not in service
        (file,) = service["env_file"]
        assert file in ignored
        assert (FOLDER / f"{file}.example").is_file()


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_can_write_nowhere_and_gain_nothing(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert not {"privileged", "network_mode", "pid", "devices", "cap_add"} & service.keys()
    assert service["user"].split(":")[0] not in ("0", "root")
    assert any(mount.startswith("/tmp:") for mount in service["tmpfs"])
    assert {volume.split(":")[0] for volume in service.get("volumes", [])} <= set(COMPOSE["volumes"])
    assert {"mem_limit", "pids_limit"} <= service.keys()


@pytest.mark.parametrize("name", LASTING)
def test_a_service_is_checked_and_waits_for_the_store(name: str) -> None:
    service = LASTING[name]
    assert service["restart"] == "unless-stopped"
    check = service["healthcheck"]
    assert {"test", "interval", "timeout", "retries", "start_period"} <= check.keys()
    for port in service.get("ports", []):
        address, outside, inside = port.split(":")
        assert (address, outside) == ("127.0.0.1", inside)
        assert f"127.0.0.1:{inside}/" in check["test"][-1]
        assert inside in service["command"]
    if name != "postgres":
        assert service["depends_on"] == {"store": {"condition": "service_completed_successfully"}}


@pytest.mark.parametrize(("age", "healthy"), [(0, True), (800, True), (1000, False), (None, False)])
def test_a_watch_that_hangs_is_not_healthy(tmp_path: Path, age: float | None, healthy: bool) -> None:
    command, check = SERVICES["watch"]["command"], SERVICES["watch"]["healthcheck"]["test"]
    inside = command[command.index("--alive") + 1]
    assert inside.startswith("/tmp/")  # the only place that can be written to
    assert check[:3] == ["CMD", "python", "-c"]
    file = tmp_path / "watching"
    if age is not None:
        file.touch()
        os.utime(file, (time.time() - age,) * 2)
    done = subprocess.run([sys.executable, "-c", check[3].replace(inside, str(file))], stderr=subprocess.DEVNULL)
    assert (done.returncode == 0) is healthy


def test_the_commands_are_those_of_the_product() -> None:
    entry = next(rest for name, rest in STEPS if name == "ENTRYPOINT")
    assert yaml.safe_load(entry) == ["python", "-m"]
    for name in ("serve", "receive", "watch"):
        module, *words = SERVICES[name]["command"]
        assert module == "calibrate"
        assert build().parse_args(words).verb == name
    module, *options = SERVICES["workbench"]["command"]
    assert (ROOT / Path(*module.split("."))).with_suffix(".py").is_file()
    assert yaml.safe_load(next(rest for name, rest in STEPS if name == "CMD")) == [module, *options]


def test_the_store_is_made_before_the_others_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python, flag, code = SERVICES["store"]["entrypoint"]
    assert (python, flag) == ("python", "-c")
    monkeypatch.setenv("TOUCHSTONE_STORE", f"sqlite:///{tmp_path}/new.db")
    exec(compile(code, "store", "exec"), {})
    assert (tmp_path / "new.db").is_file()


def test_the_example_settings_are_ones_that_the_product_reads() -> None:
    page = (ROOT / "docs" / "reference" / "configuration.md").read_text(encoding="utf-8")
    lines = (FOLDER / "touchstone.env.example").read_text().splitlines()
    names = [line.lstrip("#").split("=")[0] for line in lines if re.match(r"#?TOUCHSTONE_", line)]
    assert len(names) >= 3
    assert {"TOUCHSTONE_SERVE_TOKEN=", "TOUCHSTONE_RECEIVE_TOKEN="} <= {*lines}  # none that works as it is
    for name in names:
        assert f"`{name}`" in page
    assert shlex.split((FOLDER / "postgres.env.example").read_text(), comments=True)[0] == "POSTGRES_USER=touchstone"
