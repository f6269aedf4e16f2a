"""A file that carries a threshold known to be bad says so to whoever checks it or decides by it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from calibrate.cli import main
from calibrate.workflow.releasing import release as releasing
from db import Store
from db.releases import ReleaseRequest
from tests.workflow.making import DETECTOR, NOW, fill, save
from tests.workflow.releasing.test_known_bad import scored


@pytest.fixture
def file(store: Store, tmp_path: Path) -> Path:
    """A release of a point that flags three labels, let out for a reason."""
    fill(store, *scored(3, 0))
    save(store, "manual:0.3", reason="a pilot")
    path = tmp_path / "thresholds.json"
    releasing.release(store, ReleaseRequest(by="ann"), now=NOW, out=str(path))
    return path


def test_verify_and_decide_say_it_and_go_on(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scores = tmp_path / "scores.json"
    scores.write_text(json.dumps({DETECTOR: 0.1}))
    for words in (["verify", str(file)], ["decide", str(file), "--scores", str(scores)]):
        assert main(words) == 0
        said = capsys.readouterr().err
        assert f"caution: {DETECTOR}: when it was released, its state was do not release (few flagged)" in said
        assert "for this reason: a pilot" in said
        assert main([*words, "--json"]) == 0
        (caution,) = json.loads(capsys.readouterr().out)["known_bad"]
        assert caution in said
