"""Learning through the store: what is fitted, which labels count afterwards, and the same score in production."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

from calibrate.cli import main
from calibrate.errors import BadInput
from calibrate.report.sentences.tuning import learning as learning_sentences
from calibrate.report.sentences.tuning.scoreboard import sentences
from calibrate.stats.choosing.policy import parse
from calibrate.types import Label, Member, Record, Source, Trace, TraceFilter
from calibrate.workflow.detection import detect
from calibrate.workflow.evidence import loading
from calibrate.workflow.evidence.basis import Basis
from calibrate.workflow.evidence.counted_labels import count_labels
from calibrate.workflow.releasing import release
from calibrate.workflow.tuning import learn as step
from calibrate.workflow.tuning import operating_points
from calibrate.workflow.tuning.scoreboard import scoreboard
from db import Store
from db.releases import ReleaseRequest
from tests.workflow.making import NOW

WORDS = "parcels leave our warehouse before noon except on holidays and every driver carries a signed list"
DETECTORS = ["token_overlap", "rouge_l", "bleu"]


def write(store: Store, first: int, n: int, *, one_bad_sentence: bool) -> None:
    """Answers of three sentences of the source's words. A hallucinated one has one wholly foreign sentence; clean ones
    have as many foreign words, one in each sentence: only sentences tell them apart."""
    rng, records = np.random.default_rng(first), []
    for place in range(first, first + n):
        bad = bool(rng.random() < 0.4)
        sentences = []
        for at in range(3):
            words = [str(word) for word in rng.choice(WORDS.split(), 6)]
            foreign = 3 * (at == 1) if bad and one_bad_sentence else 1
            words[1 : 1 + foreign] = [f"qx{place}{at}{i}z" for i in range(foreign)]
            sentences.append(" ".join(words).capitalize() + ".")
        trace = Trace(
            f"t{place}", " ".join(sentences), question="When?", sources=(Source("1", f"{WORDS}."),),
            timestamp=NOW - timedelta(hours=place), group=f"g{place // 2}",
        )  # fmt: skip
        records.append(Record(place + 1, trace, (Label(trace.id, "", "hallucinated" if bad else "clean"),)))
    store.traces.add(records, labels_as="gold", now=NOW)


def scored(store: Store, names: list[str]) -> None:
    queued = detect.queue(store, names, detect.scope_of(everything=True))
    finished = detect.work(store, run_id=queued.id)
    assert finished is not None
    assert finished.status == "done", finished.error


@pytest.fixture
def learned(store: Store) -> Store:
    """A head in use, fitted to 160 labels, and 60 more traces with labels that it has not seen, all scored."""
    write(store, 0, 160, one_bad_sentence=True)
    scored(store, DETECTORS)
    step.save(store, step.learn(store, now=NOW), by="ann", now=NOW)
    write(store, 160, 60, one_bad_sentence=True)
    scored(store, [*DETECTORS, "learned"])
    return store


@pytest.mark.both_databases
def test_it_finds_what_only_sentences_tell_and_its_labels_count_no_more(learned: Store) -> None:
    head = step.workspace_of(learned).head
    assert head is not None
    assert (head.n, [base.name for base in head.bases]) == (160, sorted(DETECTORS))
    data = loading.load_evidence(learned, "learned", basis=Basis(None))
    assert data.config.revision == head.digest
    assert (len(data.rows), data.fitted) == (60, 160)
    assert {row.trace_id for row in data.rows} == {f"t{place}" for place in range(160, 220)}
    assert (data.sweep.auroc or 0) > 0.9
    other = loading.load_evidence(learned, "token_overlap", basis=Basis(None))
    assert (len(other.rows), other.fitted) == (220, 0)
    assert count_labels(learned, data.config, None).fitted == 160


def test_it_says_how_many_labels_are_left_for_its_threshold(learned: Store) -> None:
    everything = step.learn(learned, now=NOW)
    assert (everything.n, everything.left) == (220, 0)
    assert "0 labels would be left to choose its threshold" in learning_sentences.cost(everything)
    assert "--sample OLDER" in learning_sentences.cost(everything)
    place = [learned.traces.find(f"t{n}") or 0 for n in range(160)]
    learned.samples.add(
        "older", design="random", by=None, seed=1, pool=220, undated=0, where=TraceFilter(), strata={"": (220, 160)},
        members=[Member(pk, 160 / 220, "") for pk in place], now=NOW,
    )  # fmt: skip
    older = step.learn(learned, sample="older", now=NOW)
    assert older.n + older.left == 220
    assert f"{older.left} other labels would be left" in learning_sentences.cost(older)


def test_the_scoreboard_leaves_out_the_labels_that_fitted_it_as_choose_does(learned: Store) -> None:
    board = scoreboard(learned)
    line, other = board.line("learned"), board.line("token_overlap")
    assert (line.n, line.scored, line.fitted, line.not_run) == (60, 60, 160, 0)
    assert (other.n, other.fitted) == (220, 0)
    data = loading.load_evidence(learned, "learned", basis=Basis(None))
    point = operating_points.choose_point(data, parse("precision>=0.7"))
    assert line.point is not None
    assert line.point.recall.value == pytest.approx(point.recall.value)
    assert line.auroc.value == pytest.approx(data.sweep.auroc)
    said = " ".join(sentences(board))
    assert "Learned from labels: 160 of 220 labels fitted it, so its figures are of the other 60" in said
    assert "Not run" not in said


def test_the_same_labels_are_the_same_head_and_other_labels_another(learned: Store) -> None:
    first = step.workspace_of(learned).head
    again, other = step.learn(learned, now=NOW), step.learn(learned, ["rouge_l", "bleu"], now=NOW)
    assert step.learn(learned, now=NOW + timedelta(days=1)).head.digest == again.head.digest
    assert first is not None
    assert len({first.digest, again.head.digest, other.head.digest}) == 3
    assert [base.name for base in other.head.bases] == ["bleu", "rouge_l"]


def test_no_gain_is_said_and_saved_only_for_a_reason(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    write(store, 0, 80, one_bad_sentence=False)
    scored(store, DETECTORS)
    learning = step.learn(store, now=NOW)
    assert not learning.gains
    with pytest.raises(BadInput, match="nothing was saved"):
        step.save(store, learning, by="ann", now=NOW)
    url = str(store.engine.url.render_as_string(hide_password=False))
    assert main(["learn", "--store", url, "--json", "--save"]) == 2
    document = json.loads(capsys.readouterr().out)
    assert (document["gains"], document["saved"]) == (False, False)
    assert document["sentence"].startswith("Learning ")
    assert document["difference"]["low"] <= 0
    assert main(["learn", "--store", url, "--save", "--reason", "a trial"]) == 0
    assert "saved; `detect learned --all`" in capsys.readouterr().out


def test_what_a_head_cannot_read_is_refused_by_name(store: Store) -> None:
    write(store, 0, 60, one_bad_sentence=True)
    with pytest.raises(BadInput, match="no detector has scores yet"):
        step.learn(store, now=NOW)
    scored(store, DETECTORS)
    with pytest.raises(BadInput, match="nli has no scores yet"):
        step.learn(store, ["nli"], now=NOW)
    with pytest.raises(BadInput, match="cannot read itself"):
        step.learn(store, ["learned"], now=NOW)


IN_PRODUCTION = """
import json, sys
for name in ("numpy", "sklearn", "scipy", "pandas", "sqlalchemy"):
    sys.modules[name] = None
from calibrate.runtime import load
from calibrate.runtime.scoring import Scorer
from calibrate.types import Source, Trace
file, rows = sys.argv[1:]
scorer = Scorer(load(file))
for id, answer, text in json.loads(rows):
    (checked,) = scorer.score([Trace(id, answer, question="When?", sources=(Source("1", text),))])
    print(json.dumps([id, checked.numbers, list(checked.decision.flags)]))
"""


def test_a_runtime_without_numpy_gives_the_same_scores(learned: Store, tmp_path: Path) -> None:
    data = loading.load_evidence(learned, "learned", basis=Basis(None))
    point = operating_points.choose_point(data, parse("f1"))
    operating_points.save_point(learned, data, point, reason="a test", by="ann", now=NOW)
    out = tmp_path / "thresholds.json"
    release.release(learned, ReleaseRequest(note="n", by="ann", reason="a test"), now=NOW, out=out)
    traces = learned.traces.load([row.pk for row in data.rows[:12]])
    rows = json.dumps([[trace.id, trace.answer, trace.sources[0].text] for trace in traces])
    ran = subprocess.run(
        [sys.executable, "-c", IN_PRODUCTION, str(out), rows], capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.returncode == 0, ran.stderr
    stored = {row.trace_id: row.value for row in data.rows}
    for line in ran.stdout.splitlines():
        name, scores, flags = json.loads(line)
        assert scores["learned"] == stored[name]
        assert flags == (["learned"] if scores["learned"] >= point.threshold else [])
    # A head that is newer than the threshold is not released with it, and the old one still knows its labels.
    step.save(learned, step.learn(learned, now=NOW), reason="newer", by="ann", now=NOW)
    with pytest.raises(BadInput, match="learned: its head or the lists of refusals have changed"):
        release.release(learned, ReleaseRequest(note="n", by="ann", reason="a test"), now=NOW, out=None)
    assert loading.load_evidence(learned, "learned", config=data.config, basis=Basis(None)).fitted == 160
