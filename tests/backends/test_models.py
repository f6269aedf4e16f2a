"""`models list|pull|verify`: against a small hub of our own over HTTP, without one, and on files that were changed."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from calibrate.backends import hub
from calibrate.cli import main
from tests.backends.hub_server import entry, serving
from tests.tiny_nli import known_model

ROOT = Path(__file__).parents[2]
MODEL = "an-org/a-model"


def call(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, dict[str, Any]]:
    code = main(["models", *args, "--json"])
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    return code, json.loads(out)


def process(*args: str, **environment: str) -> tuple[int, dict[str, Any]]:
    """As a process of its own: the hub client reads its settings when it is imported."""
    env = {**os.environ, "HF_HUB_OFFLINE": "1", **environment}
    done = subprocess.run(
        [sys.executable, "-m", "calibrate", "models", *args, "--json"],
        env=env,
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert "Traceback" not in done.stderr
    return done.returncode, json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = known_model(tmp_path_factory.mktemp("known"))
    (folder / "model.onnx").write_bytes(b"not wanted")
    return folder


@pytest.fixture(scope="module")
def endpoint(known: Path) -> Iterator[str]:
    with serving({MODEL: {path.name: path.read_bytes() for path in known.iterdir()}}) as address:
        yield address


def test_pull_makes_a_model_ready_and_verify_finds_what_changed(
    endpoint: str, tmp_path: Path, known: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    monkeypatch.setenv("TOUCHSTONE_NLI_MODEL", MODEL)
    code, before = call(capsys, "list")
    about = {one["kind"]: one for one in before["models"]}["nli"]
    assert (code, about["status"], about["revision"]) == (0, "missing", None)
    assert "models pull nli" in about["how"]

    code, pulled = process("pull", "nli", HF_ENDPOINT=endpoint)
    assert code == 0, pulled
    folder = Path(pulled["directory"])
    assert sorted(path.name for path in folder.iterdir()) == sorted(
        path.name for path in known.iterdir() if path.name != "model.onnx"
    )
    assert call(capsys, "pull", "nli")[0] == 0, "it is here already, and nothing is asked of the hub"

    about = {one["kind"]: one for one in call(capsys, "list")[1]["models"]}["nli"]
    assert (about["status"], about["revision"], about["directory"]) == ("ready", pulled["revision"], str(folder))
    assert about["bytes"] == (known / "model.safetensors").stat().st_size
    assert {"nli", "selfcheck_nli", "semantic_entropy"} <= set(about["used_by"])

    code, checked = call(capsys, "verify")
    ours = [one for one in checked["files"] if one["model"] == MODEL]
    assert (code, checked["differing"]) == (0, [])
    assert len(ours) >= 3
    assert all(one["intact"] for one in ours)
    for name in ("model.safetensors", "config.json"):
        blob = (folder / name).resolve()
        kept = blob.read_bytes()
        blob.write_bytes(kept[:-1] + b"?")
        code, checked = call(capsys, "verify")
        assert (code, [Path(path).name for path in checked["differing"]]) == (1, [name])
        blob.write_bytes(kept)


def test_a_model_the_hub_does_not_have(endpoint: str, tmp_path: Path) -> None:
    code, answer = process("pull", "an-org/other", HF_ENDPOINT=endpoint, HF_HOME=str(tmp_path))
    assert code == 1
    assert "no such model" in answer["error"]


def test_without_a_network_the_error_says_what_to_do(tmp_path: Path) -> None:
    with socket.socket() as held:  # a port that nothing listens on
        held.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{held.getsockname()[1]}"
        code, answer = process("pull", MODEL, HF_ENDPOINT=address, HF_HOME=str(tmp_path))
    assert code == 1
    assert f"{MODEL} could not be fetched" in answer["error"]
    assert "copy the directory here" in answer["error"]


@pytest.mark.parametrize(
    ("args", "match"),
    [
        (("pull",), "say which model"),
        (("pull", "nonsense"), "no model 'nonsense'"),
        (("pull", "../../etc/passwd"), "there is no directory ../../etc/passwd"),
        (("pull", "/tmp"), "a directory is fetched already"),
        (("pull", "chat"), "TOUCHSTONE_CHAT_URL"),
        (("list", "nli"), "takes no name"),
    ],
)
def test_what_cannot_be_pulled_is_said(
    args: tuple[str, ...], match: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("TOUCHSTONE_CHAT_URL", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    code, answer = call(capsys, *args)
    assert code == 2
    assert match in answer["error"]


def test_a_directory_has_nothing_to_compare_with(
    known: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOUCHSTONE_NLI_MODEL", str(known))
    code, checked = call(capsys, "verify")
    (found,) = [one for one in checked["files"] if one["file"] == str(known / "model.safetensors")]
    assert (code, found["intact"]) == (0, None)
    assert found["sha256"] == hashlib.sha256((known / "model.safetensors").read_bytes()).hexdigest()


def test_every_kind_is_listed_once(capsys: pytest.CaptureFixture[str]) -> None:
    code, answer = call(capsys, "list")
    assert code == 0
    assert [one["kind"] for one in answer["models"]] == ["embedder", "nli", "grounded", "grounded_spans", "chat"]
    assert all(one["status"] in ("ready", "missing") for one in answer["models"])
    assert all(bool(one["how"]) is (one["status"] != "ready") for one in answer["models"])


def test_a_directory_that_is_not_there_is_missing_not_downloadable(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TOUCHSTONE_NLI_MODEL", str(tmp_path / "nothing"))
    about = {one["kind"]: one for one in call(capsys, "list")[1]["models"]}["nli"]
    assert about["status"] == "missing"


def test_blobs_are_named_by_what_they_hold(tmp_path: Path) -> None:
    """Git's own command gives the same name to a small file."""
    (tmp_path / "blobs").mkdir()
    held = b'{"a": 1}\n'
    path = tmp_path / "blobs" / entry("config.json", held)["oid"]
    path.write_bytes(held)
    assert hub.is_intact(path) is True
    if git := shutil.which("git"):
        named = subprocess.run([git, "hash-object", str(path)], capture_output=True, text=True, check=True)
        assert named.stdout.strip() == path.name
    path.write_bytes(held + b" ")
    assert hub.is_intact(path) is False
    assert hub.is_intact(tmp_path) is None
