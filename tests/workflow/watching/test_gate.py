"""The gate through store, file and command line: figures counted by hand, every exit code, a summary without markup."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from markdown_it import MarkdownIt

from calibrate.cli import main
from calibrate.errors import BadInput
from calibrate.report import markdown
from calibrate.report.sentences.watching.gate import cautions
from calibrate.runtime import decide
from calibrate.thresholds import Cuts, EnsembleEntry, EnsembleMetrics, Metrics, ThresholdsFile, write
from calibrate.types import Interval, Record, Score, Trace, TraceFilter
from calibrate.workflow.evidence.basis import choose_basis
from calibrate.workflow.traces.stated_samples import keep_stated, state_again
from calibrate.workflow.watching.gate import judge
from db import Store, open_store
from tests.thresholds.make import entry, release
from tests.workflow.making import NOW, draw, fill, give_scores, keep_sample

N, CUT = 400, 0.5
SURE = Interval(0.8, 0.79, 0.81)
NAME = "token_overlap"


def metrics(recall: Interval = SURE, precision: Interval = SURE, n: int = 5000) -> Metrics:
    return Metrics(precision, recall, SURE, SURE, n, n // 3)


def thresholds(recall: Interval = SURE, *, policy: str = "precision>=0.5", **changes: Any) -> ThresholdsFile:
    return release({NAME: entry(CUT, policy=policy, metrics=metrics(recall), **changes)})


@pytest.fixture
def data(store: Store) -> tuple[list[bool], list[float | None]]:
    """A sample w47 of two strata, one drawn whole and one to a fifth, with labels and scores."""
    labels, scores = draw(N)
    fill(store, labels, scores)
    keep_sample(store, ["all" if n % 2 else "rare" for n in range(N)], {"all": 5 * N // 2, "rare": N // 2})
    return labels, scores


def by_hand(labels: Sequence[bool], scores: Sequence[float | None]) -> tuple[float, float]:
    """Recall and precision, each label weighted by what it stands for."""
    weights = np.where(np.arange(N) % 2, 5.0, 1.0)
    y = np.array(labels)
    flagged = np.array([score is not None and score <= CUT for score in scores])
    hits = weights[y & flagged].sum()
    return hits / weights[y].sum(), hits / weights[flagged].sum()


def test_figures_are_those_of_the_weighted_labels(store: Store, data: Any) -> None:
    gate = judge(store, thresholds(), ["w47"])
    recall, precision = (each.now.value for each in gate.judged[0].figures)
    assert (recall, precision) == pytest.approx(by_hand(*data))
    assert (gate.labels, gate.positives, gate.left) == (N, sum(data[0]), 0)


def test_it_holds_falls_or_cannot_tell(store: Store, data: Any) -> None:
    recall, _ = by_hand(*data)

    def decision(value: float, half: float, **changes: Any) -> str:
        return judge(store, thresholds(Interval(value, value - half, value + half)), ["w47"], **changes).decision

    assert decision(recall, 0.01, recall_margin=0.2) == "holds"
    assert decision(recall + 0.15, 0.01) == "fell"
    assert decision(recall, 0.01, recall_margin=0.02) == "too few labels"
    assert decision(recall, 0.2, recall_margin=0.15) == "too few labels"  # the promise itself is not known well
    assert decision(recall, 0.2, recall_margin=0.15, exact=True) == "holds"


def test_precision_is_held_to_its_target_and_else_to_what_was_measured(store: Store, data: Any) -> None:
    _, precision = by_hand(*data)
    low = Interval(0.1, 0.09, 0.11)  # a recall that certainly holds
    near = thresholds(low, policy=f"precision>={precision:.3f}")
    figure = judge(store, near, ["w47"], precision_margin=0.2).judged[0].figures[1]
    assert (figure.promise.origin, figure.decision) == ("target", "holds")
    far = thresholds(low, policy=f"precision>={precision + 0.15:.3f}")
    assert judge(store, far, ["w47"]).decision == "fell"
    figure = judge(store, thresholds(low, policy="elbow"), ["w47"]).judged[0].figures[1]
    assert (figure.promise.origin, figure.promise.stated) == ("measured", SURE)


def test_an_ensemble_is_judged_as_a_runtime_decides(store: Store, data: Any) -> None:
    labels, scores = data
    other = [None if n % 7 == 0 else 0.9 * (score or 0.4) for n, score in enumerate(scores)]
    traces = store.traces.load([store.traces.find(f"t{n}") or 0 for n in range(N)])
    give_scores(store, traces, other, name="word_overlap")
    rule = {"form": "fixed", "k": 1, "thresholds": {NAME: ["below", 0.4], "word_overlap": ["below", 0.35]}}
    figures = EnsembleMetrics(SURE, SURE, SURE, 5000, 900)
    members = {name: entry(0.1, tier="off") for name in (NAME, "word_overlap")}
    file = release(members, ensembles={"pair": EnsembleEntry(rule, tuple(members), Cuts(None, 1.0), figures, 0.2)})
    (judged,) = judge(store, file, ["w47"]).judged
    flags = [bool(decide(file, {NAME: one, "word_overlap": two}).flags) for one, two in zip(scores, other, strict=True)]
    recall, precision = by_hand(labels, [0.0 if flag else None for flag in flags])
    assert [each.now.value for each in judged.figures] == pytest.approx([recall, precision])
    assert 0 < sum(flags) < N


def test_a_changed_detector_is_judged_by_what_it_says_now(store: Store, data: Any) -> None:
    released = judge(store, thresholds(), ["w47"]).judged[0]
    assert (released.tested.same, released.tested.version) == (True, "1")
    config = store.scores.config(NAME, "2", {"variant": "default"}, "", now=NOW)
    traces = store.traces.load([store.traces.find(f"t{n}") or 0 for n in range(N)])
    store.scores.save(config.id, [(trace.content_hash(), Score(trace.id, 0.2)) for trace in traces], now=NOW)
    changed = judge(store, thresholds(), ["w47"]).judged[0]
    assert (changed.tested.same, changed.tested.version) == (False, "2")
    assert changed.figures[0].now.value == 1  # flags everything


def test_a_sample_of_a_changed_system_need_not_be_like_the_traffic_beside_it(store: Store) -> None:
    """Labels stated as random, among traffic of the old system that scores otherwise."""
    labels, scores = draw(N)
    fill(store, labels, scores)
    beside = [Trace(f"old{n}", answer=f"old answer {n}", timestamp=NOW - timedelta(hours=n)) for n in range(N)]
    store.traces.add([Record(n + 1, trace) for n, trace in enumerate(beside)], labels_as=None, now=NOW)
    give_scores(store, beside, [0.95] * N)
    sample = keep_stated(store, "canary", [f"t{n}" for n in range(N)], design="random", now=NOW)
    assert choose_basis(store, "canary").caution is not None
    gate = judge(store, thresholds(Interval(0.99, 0.98, 1)), ["canary"])
    assert (gate.decision, gate.unlike) == ("fell", ("canary",))
    [note] = cautions(gate)
    assert "canary: scores are not like the other traffic's" in note
    state_again(store, sample, design="flagged", now=NOW)
    with pytest.raises(BadInput, match="flagged traces only"):
        judge(store, thresholds(), ["canary"])


# ------------------------------------------------------------------------------------------------ the command line


@pytest.fixture
def shop(sqlite_url: str, tmp_path: Path) -> Any:
    """A store with a labelled sample, and how to call the gate on a file."""
    store = open_store(sqlite_url, create=True)
    labels, scores = draw(N)
    fill(store, labels, scores)
    keep_sample(store, ["all"] * N, {"all": 5 * N})

    def call(file: ThresholdsFile | Path, *options: str, labels: str = "w47", url: str = sqlite_url) -> tuple[int, str]:
        path = file if isinstance(file, Path) else tmp_path / "thresholds.json"
        if isinstance(file, ThresholdsFile):
            write(file, path)
        summary = tmp_path / "summary.md"
        summary.unlink(missing_ok=True)
        given = ["gate", "--store", url, "--release", str(path), "--labels", labels, "--summary", str(summary)]
        return main([*given, *options]), summary.read_text() if summary.exists() else ""

    return call


def test_every_exit_code(shop: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    labels, scores = draw(N)
    flagged = [score is not None and score <= CUT for score in scores]
    recall = sum(bad and hit for bad, hit in zip(labels, flagged, strict=True)) / sum(labels)
    exact = thresholds(Interval(recall, recall - 0.01, recall + 0.01))
    for options, code, head in (
        (["--max-recall-drop", "0.2"], 0, "holds"),
        (["--max-recall-drop", "0.001"], 2, "too few labels"),
        (["--only", NAME, "--max-recall-drop", "0.2", "--as-stated"], 0, "holds"),
    ):
        assert (shop(exact, *options)[0], shop(exact, *options)[1].splitlines()[0]) == (
            code,
            f"## Touchstone gate: {head}",
        )
    assert shop(thresholds(Interval(0.99, 0.98, 1)))[0] == 1
    # Broken: a file that is damaged or not there, no such sample, store, threshold; a margin or a call that is none.
    damaged = tmp_path / "damaged.json"
    damaged.write_text((tmp_path / "thresholds.json").read_text().replace('"threshold": 0.5', '"threshold": 0.4'))
    for file, given in (
        (damaged, {}),
        (tmp_path / "none.json", {}),
        (exact, {"labels": "w48"}),
        (exact, {"url": f"sqlite:///{tmp_path}/none.db"}),
        (release({"schema": entry(metrics=metrics())}), {}),
        (thresholds(Interval(None), policy="manual:0.5", tier="off"), {}),
    ):
        code, summary = shop(file, **given)
        assert (code, summary.splitlines()[0]) == (3, "## Touchstone gate: broken")
    for call in (
        ["--max-recall-drop", "0"], ["--max-precision-drop", "nan"], ["--max-recall-drop", "much"],
        ["--only", "x"], ["-z"],
    ):  # fmt: skip
        assert shop(exact, *call)[0] == 3
    assert main(["gate"]) == 3
    assert "Traceback" not in capsys.readouterr().err


def test_a_promise_of_nothing_is_broken(shop: Any) -> None:
    nothing = Metrics(Interval(None), Interval(None), SURE, SURE, 0, 0)
    assert shop(release({NAME: entry(CUT, policy="manual:0.5", metrics=nothing)}))[0] == 3


def test_the_document_says_what_was_found(shop: Any, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    code, _ = shop(thresholds(), "--json", "--max-recall-drop", "0.01")
    document = json.loads(capsys.readouterr().out)
    assert (document["exit_code"], document["decision"]) == (code, "fell" if code == 1 else "too few labels")
    (threshold,) = document["thresholds"]
    assert [figure["figure"] for figure in threshold["figures"]] == ["recall", "precision"]
    for figure in threshold["figures"]:
        assert figure["change"]["low"] < figure["change"]["value"] < figure["change"]["high"]


def test_a_summary_shows_names_and_no_markup(sqlite_url: str, shop: Any) -> None:
    """Names that people and models chose do nothing in the page that shows the summary."""
    hostile = "<img src=x onerror=alert(1)> [a](http://evil.example) `x` | # @all *b* \u202e"
    store = open_store(sqlite_url)
    members = store.samples.members(store.samples.list()[0].id)
    store.samples.add(hostile, design="random", by=None, seed=1, pool=5 * N, undated=0, where=TraceFilter(),
                      strata={"all": (5 * N, N)}, members=members, now=NOW)  # fmt: skip
    code, summary = shop(thresholds(), "--max-recall-drop", "0.3", labels=hostile)
    assert code in (0, 1, 2)
    html = MarkdownIt("gfm-like", {"html": True, "linkify": False}).render(summary)
    assert set(re.findall(r"<(\w+)", html)) == {"h2", "p", "table", "thead", "tbody", "tr", "th", "td"}
    assert "&lt;img src=x onerror=alert(1)&gt; [a](http://evil.example) `x` | # @all *b* ⟦RLO⟧" in html
    assert "\u202e" not in summary
    rows = [line for line in summary.splitlines() if line.startswith("|")]
    assert {row.replace("\\|", "").count("|") for row in rows} == {8}
    assert "answer 1" not in summary  # the text of a trace
    assert markdown.escape("a_b.c|<d>") == "a\\_b\\.c\\|&lt;d&gt;"


def test_too_few_labels_names_a_number_or_why_there_is_none(shop: Any, capsys: pytest.CaptureFixture[str]) -> None:
    labels, scores = draw(N)
    flagged = [score is not None and score <= CUT for score in scores]
    recall = sum(bad and hit for bad, hit in zip(labels, flagged, strict=True)) / sum(labels)
    file = thresholds(Interval(recall, recall - 0.003, recall + 0.003), policy="precision>=0.3")
    capsys.readouterr()
    assert shop(file, "--json", "--max-recall-drop", "0.06")[0] == 2
    document = json.loads(capsys.readouterr().out)
    assert 50 < document["more"] < 5000
    assert f"about {float(format(document['more'], '.2g')):,.0f} more would" in document["verdict"]
    vague = thresholds(Interval(recall, recall - 0.2, recall + 0.15), policy="precision>=0.3")
    assert shop(vague, "--json", "--max-recall-drop", "0.05")[0] == 2
    document = json.loads(capsys.readouterr().out)
    assert document["more"] is None
    assert "--as-stated" in document["verdict"]
    # The promise of recall is vague, that of precision is a number.
    precision = sum(bad and hit for bad, hit in zip(labels, flagged, strict=True)) / sum(flagged)
    vague = thresholds(Interval(recall, recall - 0.2, recall + 0.15), policy=f"precision>={precision:.3f}")
    assert shop(vague, "--json", "--max-precision-drop", "0.05")[0] == 2
    document = json.loads(capsys.readouterr().out)
    assert "more would tell precision of Token overlap" in document["verdict"]
