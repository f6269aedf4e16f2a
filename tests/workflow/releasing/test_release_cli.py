"""The verb `release` as a team types it: what it prints, what it refuses, who may approve."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from calibrate.cli import main
from calibrate.runtime import load
from db import open_store
from tests.workflow.making import DETECTOR, draw, fill, save

Call = Callable[..., tuple[int, Any]]


@pytest.fixture
def call(sqlite_url: str, capsys: pytest.CaptureFixture[str]) -> Call:
    """Runs `release …` on a store with one saved point."""
    store = open_store(sqlite_url)
    labels, scores = draw(120)
    fill(store, labels, scores)
    save(store, "manual:0.55")
    store.close()

    def run(*arguments: str) -> tuple[int, Any]:
        code = main(["release", *arguments, "--store", sqlite_url, "--json"])
        return code, json.loads(capsys.readouterr().out)

    return run


@pytest.fixture
def choose(sqlite_url: str, capsys: pytest.CaptureFixture[str]) -> Callable[[str], None]:
    def run(policy: str) -> None:
        choice = ["choose", DETECTOR, "--policy", policy, "--save", "--reason", "a drill"]
        assert main([*choice, "--store", sqlite_url]) == 0
        capsys.readouterr()

    return run


def test_a_release_says_what_changes_and_is_held_back(
    call: Call, choose: Callable[[str], None], tmp_path: Path
) -> None:
    out = str(tmp_path / "t.json")
    code, first = call("--out", out)
    assert (code, first["sentence"]) == (0, None)
    assert first["changes"][0].startswith(f"{DETECTOR} added")
    assert call("--out", out) == (2, {"error": "nothing changes against v1: save another point, or change a tier"})
    choose("manual:0.56")
    code, second = call("--out", out, "--tier", f"{DETECTOR}=page")
    assert code == 0
    assert second["sentence"].startswith("v2 pages ")
    assert second["changes"][0].startswith("Token overlap: flags at ≤ 0.56 (was ≤ 0.55), precision ")
    assert any("not certified" in said for said in second["cautions"])
    choose("manual:0.1")
    code, held = call("--out", out)
    assert code == 2
    assert "is worse than in v2 on the same 120 labels" in held["error"]
    assert load(out).version == 2
    code, third = call("--out", out, "--reason", "a drill")
    assert (code, len(third["worse"])) == (0, 1)
    assert load(out).extra["x-reason"] == "a drill"
    code, back = call("--out", out, "--rollback", "2")
    assert (code, back["version"]) == (0, 4)
    assert load(out).detectors[DETECTOR].threshold == 0.56
    assert call()[1]["error"].startswith("name the thresholds file")


def test_two_people_release_where_that_is_asked(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sqlite_url: str
) -> None:
    out = tmp_path / "t.json"
    monkeypatch.setenv("TOUCHSTONE_APPROVAL", "1")
    monkeypatch.setenv("TOUCHSTONE_USER", "ann")
    code, proposed = call("--note", "first")
    assert (code, proposed["proposal"], proposed["version"]) == (0, 1, None)
    (waits,) = call("--proposals")[1]["proposals"]
    assert (waits["by"], waits["detectors"], waits["note"]) == ("ann", [DETECTOR], "first")
    assert call("--approve", "1", "--out", str(out))[0] == 2
    assert not out.exists()
    monkeypatch.setenv("TOUCHSTONE_USER", "bob")  # a name that anybody may set
    code, refused = call("--approve", "1", "--out", str(out))
    assert (code, refused["error"].startswith("bob is a name that was typed in")) == (2, True)
    assert not out.exists()
    with closing(open_store(sqlite_url)) as store:
        refusals = [(entry.who, entry.how, entry.what[:27]) for entry in store.audit.entries(verb="refused")]
    assert refusals == [
        ("bob", "environment", "bob is a name that was type"),
        ("ann", "environment", "proposal 1 is your own (ann"),
    ]
    monkeypatch.delenv("TOUCHSTONE_USER")
    code, released = call("--approve", "1", "--out", str(out))
    assert (code, released["version"], load(out).released_by) == (0, 1, "ann")
    call("--tier", f"{DETECTOR}=page")
    assert call("--decline", "2") == (0, {"proposal": 2, "outcome": "declined"})
    assert call("--proposals")[1] == {"proposals": []}


@pytest.mark.parametrize(
    ("arguments", "wrong"),
    [
        (["rouge_l", "--rollback", "1", "--tier", "rouge_l=off", "--ensemble", "zz"], "--ensemble, --tier, the d"),
        (
            ["--again", "1", "--note", "hi", "--reason", "zz"],
            "--again does not go with --note, --reason; it goes with --out",
        ),
        (["--again", "1", DETECTOR], f"--again does not go with the detector {DETECTOR}"),
        (["--proposals"], "--proposals does not go with --out; it goes with nothing"),
        (["--approve", "1", "--tier", f"{DETECTOR}=page"], "--approve does not go with --tier"),
        (["--decline", "1", DETECTOR], f"--decline does not go with --out, the detector {DETECTOR}"),
    ],
)
def test_an_option_that_would_not_be_read_is_refused(
    call: Call, choose: Callable[[str], None], tmp_path: Path, arguments: list[str], wrong: str
) -> None:
    out = tmp_path / "t.json"
    call("--out", str(out))
    choose("manual:0.56")
    assert call("--out", str(out))[0] == 0
    written = out.read_bytes()
    code, refused = call(*arguments, "--out", str(out))
    assert (code, wrong in refused["error"]) == (2, True)
    assert out.read_bytes() == written
    assert call("--again", "3", "--out", str(out)) == (2, {"error": "there is no release 3; the newest is 2"})


def test_a_rollback_keeps_its_reason_and_says_what_is_on_offer(
    call: Call, choose: Callable[[str], None], tmp_path: Path
) -> None:
    out = str(tmp_path / "t.json")
    call("--out", out)
    choose("manual:0.56")
    call("--out", out)
    code, back = call("--rollback", "1", "--note", "woken", "--reason", "too loud", "--out", out)
    assert (code, back["version"], load(out).note) == (0, 3, "woken\nReason: too loud")
    assert back["offer"] == ["v1's points are on offer again: the next release starts from them"]
    code, tier = call("--tier", f"{DETECTOR}=off", "--out", out)
    assert (code, tier["changes"]) == (0, [f"{DETECTOR}: tier changed from signal to off"])


def test_what_is_not_there_is_said(call: Call, tmp_path: Path) -> None:
    out = ["--out", str(tmp_path / "t.json")]
    assert call("nosuch", *out)[1]["error"].startswith("no detector 'nosuch'; ")
    assert "rouge_l has no saved operating point" in call("rouge_l", *out)[1]["error"]
    call(*out)
    many = "9" * 20
    assert call("--rollback", many, *out) == (2, {"error": f"there is no release {many}; the newest is 1"})
    assert call("--approve", many, *out)[0] == 2


def test_a_proposal_that_was_overtaken_is_marked(
    call: Call, choose: Callable[[str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sqlite_url: str
) -> None:
    out = str(tmp_path / "t.json")
    call("--out", out)
    choose("manual:0.56")
    monkeypatch.setenv("TOUCHSTONE_APPROVAL", "1")
    monkeypatch.setenv("TOUCHSTONE_USER", "ann")
    code, proposed = call("--out", out)
    assert (code, proposed["cautions"][-1]) == (0, f"{out} is not written yet: approving writes it")
    assert load(out).version == 1
    assert [one["stale"] for one in call("--proposals")[1]["proposals"]] == [None]
    monkeypatch.setenv("TOUCHSTONE_APPROVAL", "0")
    _, released = call("--tier", f"{DETECTOR}=page", "--out", out)
    assert released["problems"] == [
        "proposal 1 by ann still waited for a second person, and can no longer be approved: decline it, or propose it "
        "anew against v2"
    ]
    with closing(open_store(sqlite_url)) as store:
        (entry,) = store.audit.entries(verb="proposal overtaken")
    assert (entry.what, entry.after) == ("proposal 1", {"version": 2})
    assert call("--rollback", "1", "--out", out)[1]["problems"] == []  # it is told once
    (waits,) = call("--proposals")[1]["proposals"]
    assert waits["stale"].startswith("v3 was released after proposal 1 was made: take it back or decline it")


def test_a_name_with_a_blank_is_nobody_else(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOUCHSTONE_APPROVAL", "1")
    monkeypatch.setenv("TOUCHSTONE_USER", "Ann  Lee ")
    call()
    assert call("--proposals")[1]["proposals"][0]["by"] == "Ann Lee"
    for name in ("Ann Lee ", "ann lee"):
        monkeypatch.setenv("TOUCHSTONE_USER", name)
        code, refused = call("--approve", "1", "--out", str(tmp_path / "t.json"))
        assert (code, "is your own" in refused["error"]) == (2, True)
    monkeypatch.setenv("TOUCHSTONE_USER", " \t ")
    code, refused = call("--decline", "1")
    assert (code, refused["error"].startswith("TOUCHSTONE_USER is blank")) == (2, True)


def test_a_release_stands_whatever_git_and_webhook_do(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run(["git", "init", "--quiet", str(tmp_path / "repository")], check=True)
    monkeypatch.setenv("TOUCHSTONE_RELEASE_GIT", str(tmp_path / "repository"))
    monkeypatch.setenv("TOUCHSTONE_RELEASE_WEBHOOK", "http://127.0.0.1:1/sekret")
    code, released = call("--out", str(tmp_path / "t.json"))
    assert code == 0
    (said,) = released["problems"]
    assert said.startswith("v1 is released, but the webhook at 127.0.0.1 was not told")
    committed = (tmp_path / "repository" / "thresholds.json").read_bytes()
    assert committed == (tmp_path / "t.json").read_bytes()
