"""What cron does of the week: scores, a sample, a report that stands alone; and nothing twice."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import timedelta
from html.parser import HTMLParser
from pathlib import Path

import pytest
from sqlalchemy import func, select

from calibrate.cli import main
from calibrate.errors import BadInput
from calibrate.report import weekly_html
from calibrate.report.sentences.watching import drift
from calibrate.report.sentences.watching import weekly as sentences
from calibrate.stats.choosing.policy import parse
from calibrate.stats.sampling import designs
from calibrate.types import Label, Record, Source, Trace
from calibrate.workflow.detection import detect
from calibrate.workflow.detection.detect import utc_now
from calibrate.workflow.evidence import loading
from calibrate.workflow.releasing import release
from calibrate.workflow.tuning import operating_points
from calibrate.workflow.week import weekly as step
from db import Store
from db.releases import ReleaseRequest
from db.tables import ScoreRow
from tests.workflow.making import save

NAME = "token_overlap"
SOURCE = "the warranty covers parts and labour for two years after delivery"
NASTY = '</script><img src=x onerror="alert(1)">&amp;m'
SECRET = "the caller's own account number"


def log(store: Store, count: int, *, hours: int, model: str, labelled: bool, drifted: bool = False) -> None:
    """Answers an hour apart up to `hours` ago; drifted ones say little that is in the source."""
    now, records = utc_now(), []
    for place in range(count):
        bad = place % 3 == 0
        words = SOURCE.split()[: 4 + place % 7]
        extra = f"{SECRET} besides" if drifted or bad else ""
        answer = f"{' '.join(words[: 2 if drifted else None])} {extra} {place} {model}"
        at = now - timedelta(hours=hours + place)
        trace = Trace(f"{model}-{place}", answer, sources=(Source("1", SOURCE),), model=model, timestamp=at)
        label = (Label(trace.id, "", "hallucinated" if bad else "clean"),) if labelled else ()
        records.append(Record(place + 1, trace, label))
    store.traces.add(records, labels_as="gold", now=now)


@pytest.fixture
def live(store: Store) -> Store:
    """v1 made on the model `old` four days ago; since then another model answers, and differently."""
    log(store, 60, hours=4 * 24, model="old", labelled=True)
    detect.work(store, run_id=detect.queue(store, [NAME], {"all": True}).id)
    save(store, "f1")
    release.release(store, ReleaseRequest(by="ann"), now=utc_now() - timedelta(hours=4 * 24 - 0.5))
    log(store, 60, hours=2, model=NASTY, labelled=False, drifted=True)
    return store


def scores(store: Store) -> int:
    with store.engine.connect() as connection:
        return connection.scalar(select(func.count()).select_from(ScoreRow)) or 0


@pytest.mark.parametrize("engine", ["local", "processes"])
def test_it_scores_draws_and_looks_and_the_second_time_nothing_is_left(
    live: Store, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOUCHSTONE_ENGINE", engine)
    now = utc_now()
    done = step.weekly(live, size=20, now=now)
    assert done.scored == (step.Scored(NAME, 60, 0),)
    assert done.sample is not None
    assert (done.drawn, done.sample.size, done.sample.design) == (True, 20, "octave")
    assert done.sample.name == f"{now.isocalendar().year}-W{now.isocalendar().week:02d}"
    assert done.report is not None
    assert [line.state for line in done.report.lines] == ["recalibrate"]
    assert done.report.lines[0].moved is not None
    assert done.report.lines[0].moved.scores
    assert [line for line in sentences.next_steps(done) if "made without" in line] == sentences.next_steps(done)[-1:]
    before = scores(live)
    again = step.weekly(live, size=50, now=now)
    assert (again.drawn, again.sample, again.scored) == (False, done.sample, (step.Scored(NAME),))
    assert scores(live) == before
    assert again.report is not None
    assert [drift.line_verdict(line) for line in again.report.lines] == [
        drift.line_verdict(line) for line in done.report.lines
    ]


@pytest.mark.both_databases
def test_before_the_first_release_it_draws_and_says_what_is_missing(store: Store) -> None:
    log(store, 30, hours=1, model="old", labelled=False)
    done = step.weekly(store, size=10, now=utc_now())
    assert (done.version, done.report, done.scored) == (None, None, ())
    assert done.sample is not None
    assert (done.sample.size, done.sample.design) == (10, "random")
    assert sentences.next_steps(done) == [f"10 traces of {done.sample.name} left to label. (the Label page)"]
    assert "there is nothing that could drift" in weekly_html.page(done)


def test_what_is_done_already_is_not_asked_for_again(store: Store) -> None:
    """Detectors that have scored every label are not to be run; a saved threshold is not to be chosen."""
    log(store, 60, hours=2, model="old", labelled=True)

    def last() -> str:
        return sentences.next_steps(step.weekly(store, size=20, now=utc_now()))[-1]

    assert last().startswith("The labels are in. Run the detectors")
    detect.work(store, run_id=detect.queue(store, [NAME], {"all": True}).id)
    assert last() == "1 detector scored the traces. Choose where each should flag. (`choose`)"
    data = loading.load_evidence(store, NAME, sample=designs.default_name(utc_now()))
    point = operating_points.choose_point(data, parse("f1"))
    operating_points.save_point(store, data, point, reason="a test's few labels", by="ann", now=utc_now())
    assert last() == "1 threshold is chosen. Release them for your runtimes to read. (`release`)"


def test_an_empty_store_is_no_failure(store: Store) -> None:
    done = step.weekly(store, size=10, now=utc_now())
    assert (done.sample, done.drawn) == (None, False)
    assert "No trace has come in yet" in sentences.next_steps(done)[0]


def test_a_size_that_no_sample_has_is_refused(live: Store) -> None:
    with pytest.raises(BadInput):
        step.weekly(live, size=0, now=utc_now())


class _Page(HTMLParser):
    """Tags and text outside of scripts, as a browser sees them."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.text = ""
        self._in_script = False

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [value for name, value in attrs if name in ("src", "href") and value]
        self._in_script = tag == "script"

    def handle_endtag(self, tag: str) -> None:
        self._in_script = False

    def handle_data(self, data: str) -> None:
        self.text += "" if self._in_script else data


def test_the_report_stands_alone_and_shows_no_trace(live: Store, store_url: str, tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    assert main(["weekly", "--out", str(out), "--size", "20", "--store", store_url]) == 0
    text = out.read_text(encoding="utf-8")
    seen = _Page()
    seen.feed(text)
    assert "img" not in seen.tags
    assert seen.links == []  # nothing is fetched
    assert NASTY in seen.text  # as text
    assert SECRET not in text
    assert "made without" in seen.text
    charts = re.findall(r"Plotly\.newPlot\(\s*\"chart-\d+\",\s*(\[.*?\]),\s*\{", text, re.DOTALL)
    assert len(charts) == 1
    assert [one["name"] for one in json.loads(charts[0])] == ["before", "since the release"]


@pytest.mark.both_databases
def test_the_verb_says_what_to_do_next(live: Store, store_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["weekly", "--json", "--size", "20", "--store", store_url]) == 0
    first = json.loads(capsys.readouterr().out)
    assert (first["drawn"], first["version"], first["scored"][NAME]["scored"]) == (True, 1, 60)
    assert main(["weekly", "--size", "20", "--store", store_url]) == 0
    said = capsys.readouterr().out
    assert f"sample {first['sample']} exists already" in said
    assert re.search(rf"Next: .*\d+ traces of {first['sample']} left", said)
    assert main(["weekly", "--size", "0", "--store", store_url]) == 2
