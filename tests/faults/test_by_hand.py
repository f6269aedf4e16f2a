"""A threshold set by hand on the command line is held to what was asked for before, as on the Tune page."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from calibrate.cli import main
from calibrate.types import StateReason
from calibrate.workflow.releasing import release as releasing
from db import Store, open_store
from db.releases import ReleaseRequest
from tests.workflow.making import DETECTOR, NOW, fill, save
from tests.workflow.releasing.test_known_bad import scored


@pytest.fixture
def lite(sqlite_url: str) -> Iterator[Store]:
    store = open_store(sqlite_url)
    yield store
    store.close()


@pytest.fixture
def choose(sqlite_url: str) -> list[str]:
    return ["choose", DETECTOR, "--save", "--store", sqlite_url, "--policy"]


def test_by_hand_is_no_way_round_a_target(lite: Store, choose: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """14 of 20 flagged are hallucinated. 95% is asked for: moving the threshold by hand does not reach it."""
    fill(lite, *scored(14, 6))
    assert main([*choose, "manual:0.3"]) == 2
    assert "not saved: nothing says what it must reach" in capsys.readouterr().out
    assert main([*choose, "precision>=0.999", "--strength", "bounded"]) == 2
    assert '--moved-from "precision>=0.999" --reason TEXT --save' in capsys.readouterr().out
    assert main([*choose, "manual:0.3", "--moved-from", "precision>=0.95"]) == 2
    assert "Do not release this" in capsys.readouterr().out
    assert lite.points.latest() == {}
    assert main([*choose, "manual:0.3", "--moved-from", "precision>=0.95", "--reason", "a pilot"]) == 0
    assert main([*choose, "manual:0.301"]) == 2  # the target that the saved one was moved from is asked again
    assert main([*choose, "f1", "--moved-from", "precision>=0.95"]) == 2
    assert "leave it out" in capsys.readouterr().err


def test_the_target_of_the_live_release_counts(lite: Store, choose: list[str]) -> None:
    fill(lite, *scored(14, 6))
    save(lite, "precision>=0.7")
    releasing.release(lite, ReleaseRequest(by="ann", reason="a pilot"), now=NOW)
    save(lite, "f1")
    assert main([*choose, "manual:0.95"]) == 2  # flags everything: 14 of 80
    assert main([*choose, "manual:0.95", "--reason", "a pilot"]) == 0
    state = lite.points.latest()[DETECTOR].data.state
    assert state is not None
    assert (state.why, state.moved_from) == (StateReason.BELOW_TARGET, "precision>=0.7")
