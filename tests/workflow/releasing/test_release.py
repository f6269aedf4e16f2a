"""Releasing: all or nothing, one number each, the same bytes again, and the same flags in production."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from calibrate.errors import BadInput, TouchstoneError
from calibrate.report.sentences.releasing import release as sentences
from calibrate.runtime import decide, load
from calibrate.stats.choosing import policy
from calibrate.thresholds import files
from calibrate.types import Guarantee
from calibrate.workflow.evidence import loading
from calibrate.workflow.releasing import history
from calibrate.workflow.releasing import release as step
from calibrate.workflow.tuning import operating_points
from db import Store, open_store
from db.releases import ReleaseRequest
from tests.workflow.making import ABOVE, DETECTOR, NOW, draw, fill, give_scores, keep_old_point, keep_sample, save

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def ready(store: Store) -> Store:
    """Two detectors with a saved point each."""
    labels, scores = draw()
    fill(store, labels, scores)
    traces = store.traces.load([row.pk for row in loading.load_evidence(store, DETECTOR).rows])
    give_scores(store, traces, [None if s is None else 1 - s for s in scores], name=ABOVE)
    save(store, "precision>=0.7")
    save(store, "elbow", name=ABOVE)
    return store


def make(store: Store, *, out: Any = None, expect: int | None = None, **given: Any) -> Any:
    request = ReleaseRequest(**{"note": "first", "by": "ann", **given})
    return step.release(store, request, now=NOW, out=out, expect=expect)


def test_the_file_flags_what_the_sweep_flagged(ready: Store, tmp_path: Path) -> None:
    out = tmp_path / "thresholds.json"
    row = make(ready, out=out)
    thresholds = load(out)
    assert out.read_text() == row.document
    for name in (DETECTOR, ABOVE):
        saved = ready.points.latest()[name].point
        rows = loading.load_evidence(ready, name).rows
        flagged = [decide(thresholds, {name: one.value}).flags == (name,) for one in rows]
        gold = [one.gold == "hallucinated" for one in rows]
        assert sum(f and y for f, y in zip(flagged, gold, strict=True)) == saved.true_positives
        assert sum(f and not y for f, y in zip(flagged, gold, strict=True)) == saved.false_positives


def test_versions_count_up_and_name_what_they_replace(ready: Store) -> None:
    first, second = make(ready), make(ready, detectors=[DETECTOR], tiers={DETECTOR: "page"}, note="second")
    assert (first.version, second.version) == (1, 2)
    assert history.read_release(first).replaces is None
    assert history.read_release(second).replaces == 1
    assert list(history.read_release(second).detectors) == [DETECTOR]
    assert history.read_release(second).detectors[DETECTOR].tier == "page"
    assert history.read_release(first).detectors[ABOVE].tier == "signal"


def test_again_is_the_same_bytes(ready: Store, tmp_path: Path) -> None:
    first, other = tmp_path / "a.json", tmp_path / "b.json"
    row = make(ready, out=first, note="Ünïcode ✓ \u202e note")
    make(ready, tiers={DETECTOR: "page"})
    step.again(ready, 1, other)
    assert other.read_bytes() == first.read_bytes() == row.document.encode()
    with pytest.raises(BadInput, match="there is no release 9; the newest is 2"):
        step.again(ready, 9, other)


def test_an_unwritable_place_releases_nothing(ready: Store, tmp_path: Path) -> None:
    for out in (tmp_path / "no such folder" / "t.json", tmp_path):
        with pytest.raises(TouchstoneError, match=r"cannot write .*(make it first|it is a directory)"):
            make(ready, out=out)
    assert ready.releases.list() == []
    assert not list(tmp_path.rglob(".touchstone-*"))


def test_a_full_disk_releases_nothing(ready: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "thresholds.json"
    make(ready, out=out)
    before = out.read_bytes()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(TouchstoneError, match="No space left on device"):
        make(ready, out=out, tiers={DETECTOR: "page"})
    assert [row.version for row in ready.releases.list()] == [1]
    assert out.read_bytes() == before
    assert not list(tmp_path.glob(".touchstone-*"))


def test_a_store_that_refuses_leaves_no_file(ready: Store, tmp_path: Path) -> None:
    out = tmp_path / "thresholds.json"
    staged = []

    @event.listens_for(ready.engine, "commit")
    def gone(_: Any) -> None:
        staged.extend(tmp_path.glob(".touchstone-*"))
        raise TouchstoneError("the store went away")

    with pytest.raises(TouchstoneError, match="went away"):
        make(ready, out=out)
    event.remove(ready.engine, "commit", gone)
    assert len(staged) == 1
    assert ready.releases.list() == []
    assert not out.exists()
    assert not list(tmp_path.glob(".touchstone-*"))


KILLED = """
import os, signal, sys
from pathlib import Path
from calibrate.workflow.releasing import release
from calibrate.thresholds import files
from calibrate.types import Guarantee
from db import open_store
from db.releases import ReleaseRequest
from tests.workflow.making import NOW
real = files.stage
def stage(*given):
    real(*given)
    os.kill(os.getpid(), signal.SIGKILL)
files.stage = stage
release.release(open_store(sys.argv[1]), ReleaseRequest(by="ann"), now=NOW, out=Path(sys.argv[2]))
"""


def test_a_release_killed_on_the_way_is_none_and_the_next_one_is_whole(ready: Store, tmp_path: Path) -> None:
    out = tmp_path / "thresholds.json"
    url = ready.engine.url.render_as_string(hide_password=False)
    done = subprocess.run([sys.executable, "-c", KILLED, url, str(out)], cwd=ROOT, capture_output=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert ready.releases.list() == []
    assert not out.exists()
    assert make(ready, out=out).version == 1
    assert load(out).version == 1


@pytest.mark.both_databases
def test_two_releases_at_once_get_two_numbers(ready: Store) -> None:
    url, rows, errors = ready.engine.url.render_as_string(hide_password=False), [], []
    start = threading.Barrier(2)

    def press(name: str, tier: str) -> None:
        mine = open_store(url)
        try:
            start.wait()
            rows.append(make(mine, by=name, tiers={DETECTOR: tier}))
        except Exception as error:
            errors.append(error)
        finally:
            mine.close()

    threads = [threading.Thread(target=press, args=one) for one in (("ann", "page"), ("bob", "off"))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert sorted(row.version for row in rows) == [1, 2]
    newest, oldest = ready.releases.list()
    assert history.read_release(newest).replaces == oldest.version == 1


def test_expecting_a_number_that_is_taken_releases_nothing(ready: Store) -> None:
    make(ready, expect=1)
    with pytest.raises(BadInput, match="version 1 was released in the meantime"):
        make(ready, expect=1)
    assert len(ready.releases.list()) == 1


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"detectors": ["rouge_l"]}, "rouge_l has no saved operating point"),
        ({"detectors": []}, "nothing to release"),
        ({"tiers": {"rouge_l": "page"}}, "a tier is given for rouge_l, which is not in this release"),
        ({"tiers": {DETECTOR: "loud"}}, "token_overlap has the tier 'loud'; a tier is one of page, signal, off"),
    ],
)
def test_what_cannot_be_released_says_why(ready: Store, given: dict[str, Any], match: str) -> None:
    with pytest.raises(BadInput, match=match):
        make(ready, **given)
    assert ready.releases.list() == []


def test_a_point_that_meets_no_policy_is_not_released(store: Store) -> None:
    fill(store, [True, False] * 10, [0.5] * 20)
    save(store, "precision>=0.7")
    with pytest.raises(BadInput, match=r"no threshold meets precision>=0\.7"):
        make(store)
    save(store, "manual:0.5")
    assert make(store).version == 1


def test_a_guarantee_goes_into_the_file_and_paging_without_a_certificate_is_said(ready: Store) -> None:
    sure = Guarantee("certified", 0.7, 0.95, 0.733, 84, 69, "fresh")
    data = loading.load_evidence(ready, DETECTOR)
    operating_points.save_point(
        ready,
        data,
        replace(operating_points.choose_point(data, policy.Policy("elbow")), guarantee=sure),
        by="ann",
        now=NOW,
    )
    file = history.read_release(make(ready, tiers={DETECTOR: "page", ABOVE: "page"}))
    assert file.detectors[DETECTOR].guarantee == sure
    assert file.detectors[ABOVE].strength == "measured"
    (said,) = sentences.cautions(file)
    assert said.startswith(
        "Citation validity pages people, and its precision is measured, not certified: certify it first"
    )
    assert sentences.cautions(history.read_release(make(ready, tiers={ABOVE: "signal"}))) == []


def test_a_point_saved_before_there_were_guarantees_is_measured(ready: Store) -> None:
    saved = ready.points.latest()[DETECTOR]
    old = {key: value for key, value in asdict(saved.point).items() if key != "guarantee"}
    keep_old_point(ready, saved, point=old, data=saved.data.to_json())
    assert history.read_release(make(ready)).detectors[DETECTOR].guarantee is None


def test_points_of_two_samples_share_no_sample_name(ready: Store) -> None:
    keep_sample(ready, ["all"] * 30, {"all": 600})
    save(ready, "elbow", sample="w47")
    data = history.read_release(make(ready)).data
    assert (data.sample, data.n) == (None, 60)
    data = history.read_release(make(ready, detectors=[DETECTOR])).data
    assert (data.sample, data.design, data.n) == ("w47", "stratified", 30)
    assert data.window is not None
