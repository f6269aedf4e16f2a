"""What the tables, cards and lines of the pages say of what they are given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from calibrate import settings as environment
from calibrate.errors import BadInput
from calibrate.ingest import ImportReport
from calibrate.report.sentences.tuning.compare import settings, verdict
from calibrate.report.tables.models import columns
from calibrate.stats.choosing.policy import Policy
from calibrate.stats.intervals.best_of_many import judge
from calibrate.thresholds import Change
from calibrate.thresholds.states import Judged
from calibrate.types import (
    FlagWhen,
    Guarantee,
    Interval,
    PointState,
    PointVerdict,
    Sample,
    StateReason,
    TraceFilter,
)
from calibrate.workflow.evidence.evidence import Evidence
from calibrate.workflow.evidence.label_counts import LabelCounts
from calibrate.workflow.evidence.labels_at_hand import LabelsAtHand
from calibrate.workflow.evidence.prevalence import Prevalence
from calibrate.workflow.releasing.unknown_models import UnknownModel
from calibrate.workflow.traces.membership import InSample, Membership
from calibrate.workflow.tuning import operating_points
from calibrate.workflow.upgrade.models_seen import NoStep, Registry, Seen
from calibrate.workflow.watching.live import Estimate, LiveThreshold
from calibrate.workflow.week.standing import Standing
from calibrate.workflow.week.week import Week
from db.labels import Place
from db.releases import Release
from db.runs import Run
from db.scores import Config, Row
from db.tables.filters import NONE
from pages.components import run_view
from pages.components.release_diff import lines_of
from pages.components.text import middle
from pages.thresholds.tune_overview import way_on
from pages.thresholds.tune_setting import Setting, chance, span_of
from pages.traces import import_report
from pages.week.week_steps import cards, next_of

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
LATER = NOW + timedelta(minutes=1)
SURE = Guarantee("certified", target=0.7, confidence=0.95, bound=0.72, labels=84, hallucinated=70)


CONFIG = Config(1, "token_overlap", "1", {}, "")


# Differences


@pytest.mark.parametrize(
    ("figure", "compare", "of_settings"),
    [
        (Interval(0.1, 0.01, 0.2), "ranks better than", "B ranks better than A"),
        (Interval(-0.1, -0.2, -0.01), "ranks worse than", "B ranks worse than A"),
        (Interval(0.0, -0.1, 0.1), "is not shown to differ from", "B is not shown to differ from A"),
        (Interval(0.1), "cannot be told from", "Too few labels to compare the two"),
    ],
)
def test_a_difference_is_one_where_its_interval_leaves_out_zero(
    figure: Interval, compare: str, of_settings: str
) -> None:
    assert verdict(judge(figure, figure)) == compare
    assert settings(figure) == of_settings


# Changes of a release


def test_a_change_shows_both_its_values_as_people_say_them() -> None:
    changes = [
        Change("bleu", "threshold", 0.123456, 0.5),
        Change("bleu", "tier", "signal", "page"),
        Change("bleu", "policy", "precision>=0.7", "what nobody knows"),
        Change("bleu", "guarantee", None, SURE),
        Change("bleu", "params.k", "", 3),
        Change("bleu", "precision", Interval(0.5), Interval(None)),
        Change(None, "data.n", 340, 400),
        Change(None, "data.samples", (), ("a", "b")),
    ]
    rules, labels = lines_of(changes)
    assert rules.startswith(
        "**BLEU precision**: "
        "threshold 0\\.1235 → 0\\.5, tier signal → page, policy precision at least 70% → what nobody knows, "
        "guarantee none → "
    )
    assert "k none → 3" in rules
    assert rules.endswith(":gray[:small[precision 50% → unknown]]")
    assert labels == "Labels: number 340 → 400, samples none → a, b"


def test_a_detector_comes_in_or_leaves_as_a_whole() -> None:
    changes = [Change("new", "detector", None, "flags at 1"), Change("old", "detector", "flagged at 2", None)]
    assert lines_of(changes) == ["**new** comes in: flags at 1", "**old** leaves: flagged at 2"]
    assert lines_of([Change("a", "recall", Interval(0.1), Interval(0.2))])[0].startswith(
        "**a**: same threshold, measured anew"
    )


# The Models page


def seen(**changed: Any) -> Seen:
    nothing = Seen("gpt", 1200, 0.31, NOW, NOW, None, 0, 0, Interval(None))
    return replace(nothing, **changed)


REGISTRY = Registry("model", (), 0, "day", {}, 3, None, None, NoStep("same day"))


def row_of(seen: Seen) -> dict[str, Any]:
    return {column.heading: column.value(seen) for column in columns(REGISTRY)}


def test_a_model_is_shown_with_what_its_labels_say() -> None:
    assert row_of(seen(labels=20, hallucinated=5, prevalence=Interval(0.25, 0.1, 0.4))) == {
        "Model": "gpt", "Traces": 1200, "Share": "31%", "First seen": "20 Nov 2026", "Last seen": "20 Nov 2026",
        "Release": "v3 made without it",
        "Hallucinated": "25% (10–40%)", "Labels": 20,
    }  # fmt: skip
    undated = row_of(seen(name=NONE, first=None, last=None, released=False))
    assert (undated["Model"], undated["First seen"], undated["Hallucinated"]) == ("not given", "undated", "no labels")
    assert undated["Release"] == "v3 made without it"
    assert row_of(seen(released=True))["Release"] == "v3 made on it"


def test_the_first_column_is_called_after_what_traces_are_told_apart_by() -> None:
    assert columns(REGISTRY)[0].heading == "Model"
    heading, *rest = (column.heading for column in columns(replace(REGISTRY, by="prompt\nv")))
    assert heading == "prompt v"
    assert "Release" not in rest


# The Tune page


def evidence(golds: str, values: list[float | None], *, flag_when: FlagWhen = "above") -> Evidence:
    words = {"h": "hallucinated", "c": "clean"}
    nothing = (None, None, None)
    rows = tuple(
        Row(place, f"t{place}", "00", words[gold], value, None if value is None else "scored", None, "all", *nothing)
        for place, (gold, value) in enumerate(zip(golds, values, strict=True))
    )
    return Evidence(CONFIG, flag_when, None, rows)


def test_what_is_missing_leads_to_where_it_is_to_be_had() -> None:
    assert way_on(evidence("", [])) == "label"
    assert way_on(evidence("hh", [0.1, 0.2])) == "label"
    not_run = evidence("hc", [None, None])
    assert way_on(not_run) == "detect"
    abstained = Evidence(CONFIG, "above", None, tuple(replace(row, status="abstained") for row in not_run.rows))
    assert way_on(abstained) == "another detector"


def test_the_chart_spans_the_scores_with_room_on_both_sides() -> None:
    data = evidence("hchc", [0.0, 1.0, 0.25, 0.5])
    assert span_of(data) == pytest.approx((-0.03, 1.03))
    one = evidence("hc", [4.0, 4.0])
    assert span_of(one) == pytest.approx((2.0, 6.0))
    assert span_of(evidence("hc", [0.0, 0.0])) == pytest.approx((-0.5, 0.5))


# Runs


def run(status: Any = "running", **changed: Any) -> Run:
    counts = {"bleu": {"scored": 0, "reused": 0, "abstained": 3, "failed": 1, "seconds": 1.5,
                       "why": {"no context": 3, "broken": 1}}}  # fmt: skip
    specs = [{"name": "bleu", "params": {}}]
    nothing = Run(7, status, specs, {"sample": "w47"}, None, 100, 0, counts, False, None, None, NOW, NOW, NOW, None)
    return replace(nothing, **changed)


def test_a_run_says_how_far_it_is_once_a_worker_has_it() -> None:
    assert run_view.progress_text(run("queued"), NOW) == "Starting a worker …"
    assert run_view.progress_text(run(total=0), NOW) == "Starting a worker …"
    assert run_view.progress_text(run(), NOW) == "0 of 100 scores"
    assert run_view.progress_text(run(done=25), NOW, 0.5) == "25 of 100 scores · 0.5/s · about 2 min left"
    quiet = run_view.progress_text(run(), NOW + timedelta(seconds=100))
    assert quiet == "0 of 100 scores · its worker was last heard of 2 min ago"


@pytest.mark.parametrize(
    ("changed", "gone"),
    [
        ({"heartbeat_at": NOW - timedelta(minutes=5)}, True),
        ({"heartbeat_at": LATER}, False),
        ({"heartbeat_at": None}, False),
        ({"status": "done", "heartbeat_at": NOW}, False),
        ({"status": "queued", "started_at": NOW}, True),
        ({"status": "queued", "started_at": None}, True),
        ({"status": "queued", "started_at": None, "created_at": LATER}, False),
    ],
)
def test_a_run_that_nobody_works_on_is_interrupted(changed: Mapping[str, Any], gone: bool, tmp_path: Path) -> None:
    store: Any = SimpleNamespace(url=f"sqlite:///{tmp_path}/store.db")
    assert run_view.is_interrupted(store, run(**changed), LATER) is gone


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"status": "queued", "heartbeat_at": None, "created_at": LATER}, None),
        ({"status": "queued", "heartbeat_at": None}, "None took it for 60 s."),
        ({"status": "queued", "heartbeat_at": LATER}, None),  # given back a moment ago
        ({"heartbeat_at": LATER - timedelta(seconds=100)}, None),
        (
            {"heartbeat_at": LATER - timedelta(minutes=5)},
            "The one that had it was last heard of 5 min ago; the next that is free goes on with it.",
        ),
    ],
)
def test_a_run_that_a_pool_carries_out_waits_for_a_worker(
    changed: Mapping[str, Any], why: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOUCHSTONE_RUNS", "workers")
    store: Any = SimpleNamespace(url=f"sqlite:///{tmp_path}/store.db")
    waiting = run(**changed)
    assert run_view.is_interrupted(store, waiting, LATER) is (why is not None)
    if why is not None:
        assert run_view.waiting_text(waiting, LATER) == why
    elif waiting.status == "queued":
        assert run_view.progress_text(waiting, LATER) == "Waiting for a worker …"


def test_where_runs_are_carried_out_is_one_of_two_words() -> None:
    assert [environment.runs_here({"TOUCHSTONE_RUNS": word}) for word in ("", "here", "Workers ")] == [
        True,
        True,
        False,
    ]
    with pytest.raises(BadInput, match="TOUCHSTONE_RUNS cannot be 'pool'; it is here or workers"):
        environment.runs_here({"TOUCHSTONE_RUNS": "pool"})


def test_a_detector_that_scored_nothing_says_why_above_the_table() -> None:
    (row,) = run_view.rows_of(run())
    assert (row["Abstained"], row["Failed"], row["Refusals"]) == (3, 1, 0)
    assert row["Why"] == "no context (3); broken (1)"
    tally = run().counts["bleu"]
    line = run_view.silence_of("bleu", tally)
    assert line is not None
    assert line.endswith("could score 0 of 4: no context and broken.")
    assert run_view.silence_of("bleu", {**tally, "scored": 1}) is None
    assert run_view.silence_of("bleu", {**tally, "reused": 1}) is None
    assert run_view.silence_of("bleu", {**tally, "abstained": 0, "failed": 0}) is None


def test_the_scope_of_a_run_is_named() -> None:
    assert run_view.scope_text(run()) == "sample w47"
    assert run_view.scope_text(run(scope={"labelled": True})) == "all labelled traces"
    assert run_view.scope_text(run(scope={})) == "all traces"


# Imports


def job(*, stopped: bool = False, **counts: Any) -> Any:
    report = ImportReport(**counts)
    nowhere = Membership(0, ())
    file = SimpleNamespace(name="a.jsonl")
    state = SimpleNamespace(
        report=report, file=file, problem=None, sample=None, membership=nowhere, scores=(), refused={}, done=None
    )
    return SimpleNamespace(files=[state], stopped=stopped, seconds=12.0, total=lambda figure: getattr(report, figure))


@pytest.mark.parametrize(
    ("done", "text"),
    [
        (job(imported=2), "**2 traces imported** in 12 s."),
        (
            job(imported=2, stopped=True),
            "**Stopped.** 2 traces imported before that; going on adds the rest.",
        ),
        (job(duplicates=1), "**Nothing new.** 1 trace was in the store already."),
        (job(duplicates=2), "**Nothing new.** 2 traces were in the store already."),
        (job(rejected=2), "**Nothing was imported.**"),
    ],
)
def test_an_import_says_what_came_of_it(done: Any, text: str) -> None:
    assert import_report.headline(done) == text


def test_an_import_says_what_else_there_is_to_know() -> None:
    assert import_report.details(job(duplicates=2)) == []
    lines = import_report.details(job(imported=1, duplicates=2, labels=3, repaired=1, cut=True, left_out={"x": 4}))
    assert lines == [
        "2 traces already in the store, left as it is.",
        "3 labels kept, 0 left out.",
        "1 character that no database can hold became \ufffd.",
        ":material/warning: a\\.jsonl is damaged and could not be read to its end: what stands before that is kept.",
        "Not kept: x.",
    ]


def about_labels() -> None:
    from pathlib import Path

    from pages.traces.import_form import choose_about_labels
    from pages.traces.import_job import ImportFile

    choose_about_labels([ImportFile("a.jsonl", Path("a.jsonl"))])


@pytest.mark.parametrize("samples", [(), (InSample("w47", 3, 0),)])
def test_an_import_names_the_control_that_says_how_traces_were_chosen(samples: tuple[InSample, ...]) -> None:
    report = job(imported=4, purged=2)
    report.files[0].membership = Membership(2, samples)
    text = " ".join(import_report.details(report))
    asked = "How were these traces chosen?"
    assert f"“{asked}”" in text.replace("\\", "")
    assert AppTest.from_function(about_labels, default_timeout=30).run().radio[0].label == asked
    assert "2 traces were purged and stay out" in text
    assert "--" not in text.replace("\\", "")
    assert "python -m" not in text


# This week


SAMPLE = Sample(1, "w47", "random", None, 40, 1, 900, 0, TraceFilter(), {}, NOW)
RELEASE = Release(3, "{}", "", "ann", LATER, "")
NO_LABELS = LabelsAtHand(LabelCounts(0, 40, 0, 0, 0, 0, 0), Prevalence(Interval(None)))
WAITING = LabelsAtHand(LabelCounts(27, 40, 27, 0, 0, 0, 12), Prevalence(Interval(None)))
ALL_LABELLED = LabelsAtHand(LabelCounts(40, 40, 30, 10, 0, 0, 0), Prevalence(Interval(0.25, 0.142, 0.402)))


BAD = PointVerdict.DO_NOT_RELEASE
FALLEN = Judged("a", PointState(BAD, StateReason.RECHECK_FELL, 0.7, flagged=40, hits=20), "")
WIDE = Judged("b", PointState(BAD, StateReason.WIDE, None, Interval(0.83, 0.11, 1.0), 6, 5), "a pilot")


def live(name: str, judged: Judged | None = None, **changed: Any) -> LiveThreshold:
    row = LiveThreshold(
        name, "signal", False, "≤ 0.4", 0.7, "measured", judged, Estimate(Interval(None), None, None, 0, 0, None, None),
        NOW, False, False, False, (), {},
    )  # fmt: skip
    return replace(row, **changed)


def week(next_step: Any, **changed: Any) -> Week:
    nothing = Week(
        "w47", 900, 0, True, SAMPLE, None, {}, NO_LABELS, Place(0, 0, 0, 40, None), None, (), (), (), None, (),
        (next_step,),
    )  # fmt: skip
    return replace(nothing, **changed)


@pytest.mark.parametrize(
    ("state", "sentence", "button", "page"),
    [
        (week("sample", sample=None), "Draw the traces to label this week.", "Draw a sample", "sample"),
        (week("sample", release=RELEASE), "v3 is out. Draw this week's traces to label.", "Draw the next sample",
         "sample"),
        (week("done", release=RELEASE), "Nothing to do until Monday: v3 is out.", "Look at the traces", "traces"),
        (week("settle", disputes=19), "19 labels are disputed: they are in no figure until settled.",
         "Settle disputes", "agreement"),
        (week("check", live=Standing(3, (live("a", stale=True), live("b", under_way=True)))),
         "**a**: Nobody has looked at its precision for four weeks. And 1 more.", "Recheck", "recheck"),
        (week("check", live=Standing(3, (live("a", changes=("version 1 → 2",)),))),
         "**a**: It is no longer what was released: version 1 → 2.", "Recalibrate", "recalibrate"),
        (week("check", unknown_models=(UnknownModel("m2", 30, 100, NOW, None),), release=RELEASE),
         "m2 answers 30% of the 100 traces at hand, and v3 was made without: its thresholds are not known to hold "
         "there.", "Look at new models", "watch"),
        (week("sample", fresh=False), "No trace came in the last 14 days: import what your app has logged.",
         "Import traces", "import"),
        (week("release", proposals=1, release=RELEASE), "1 release waits for a second person.", "Look at it",
         "release"),
        (week("label", gap="w47", gold={"clean": 39}, at_hand=WAITING),
         "12 labels wait behind a trace that nobody has labelled, in no figure until then; 1 trace of w47 left.",
         "Label the gap", "label"),
        (week("fix", live=Standing(3, (live("a", FALLEN), live("b", WIDE)))),
         "**a**: It is live and known to be bad. A recheck found it below its target of 70%: 20 of 40 flagged labels "
         "were hallucinated. And 1 more.", "Recalibrate", "recalibrate"),
        (week("fix", live=Standing(3, (live("b", WIDE),))),
         "**b**: It is live and known to be bad. Its precision may be nearly anything, 11–100%: 5 of 6 flagged labels "
         "were hallucinated. Released because: a pilot.", "Choose another threshold", "tune"),
        (week("label"), "40 traces of w47 left to label.", "Start labelling", "label"),
        (week("label", gold={"clean": 39}, place=Place(39, 39, 0, 40, 30.0)),
         "1 trace of w47 left to label, about 30 s at your pace.", "Continue labelling", "label"),
        (week("label", aside=replace(SAMPLE, name="twice"), place=Place(None, 40, 0, 40, None)),
         "The sample twice is not all labelled yet.", "Label it", "label"),
        (week("label", aside=replace(SAMPLE, name="twice"), gold={"clean": 40}),
         "The sample twice is not all labelled yet.", "Label it", "label"),
        (week("label", aside=replace(SAMPLE, name="twice")), "40 traces of w47 left to label.", "Start labelling",
         "label"),
        (week("detect"), "The labels are in. Run the detectors over the same traces.", "Run detectors", "detect"),
        (week("detect", run=run()), "Run 7 is scoring the sample.", "Watch the run", "detect"),
        (week("detect", run=run("done")), "The labels are in. Run the detectors over the same traces.",
         "Run detectors", "detect"),
        (week("tune", scored_detectors=("a", "b")), "2 detectors scored the traces. Choose where each should flag.",
         "Tune thresholds", "tune"),
        (week("release", saved_points=("a",)), "1 threshold is chosen. Release them for your runtimes to read.",
         "Release v1", "release"),
        (week("release", saved_points=("a", "b"), release=RELEASE),
         "2 thresholds are chosen. Release them for your runtimes to read.", "Release v4", "release"),
    ],
)  # fmt: skip
def test_one_thing_is_to_be_done_next(state: Week, sentence: str, button: str, page: str) -> None:
    todo = next_of(state)
    assert (todo.sentence.replace("\\", ""), todo.button, todo.page) == (sentence, button, page)


def test_the_cards_of_an_empty_loop_and_of_a_whole_one() -> None:
    empty = cards(week("import", traces=0, sample=None, place=None), LATER)
    assert not any(card.done for card in empty)
    assert [card.headline for card in empty] == [
        "0 traces", "Nothing drawn yet", "No labels yet", "No scores yet", "No threshold yet", "Nothing released yet",
    ]  # fmt: skip
    whole = cards(
        week(
            "sample", new_this_week=5, gold={"clean": 30, "hallucinated": 10}, at_hand=ALL_LABELLED, release=RELEASE,
            scored_detectors=("a", "b"), silent_detectors=("c",), saved_points=("a",),
        ),
        LATER + timedelta(minutes=5),
    )  # fmt: skip
    assert all(card.done for card in whole)
    assert [(card.headline, card.detail) for card in whole] == [
        ("900 traces", "5 since Monday"), ("40 of 900", "w47"),
        ("40 of 40 labelled", "about 25% (14–40%) of the traffic hallucinated"),
        ("2 detectors", "1 could score nothing"), ("1 threshold", "a"), ("v3", "5 min ago"),
    ]  # fmt: skip


def test_a_live_threshold_is_not_denied() -> None:
    tune = cards(week("tune", release=RELEASE), LATER)[4]
    assert (tune.done, tune.headline, tune.detail) == (False, "None since the sample", "v3 is live")


def test_a_step_under_way_shows_how_far_it_is() -> None:
    some = LabelsAtHand(LabelCounts(10, 40, 10, 0, 0, 0, 5), Prevalence(Interval(None)))
    # Fifteen have a verdict, five of them behind a gap: the bar counts as the headline does.
    label, detect = cards(week("label", gold={"clean": 15}, at_hand=some, run=run(done=25)), LATER)[2:4]
    assert (label.done, label.progress) == (False, 0.25)
    assert (detect.headline, detect.progress) == ("Run 7 is going", 0.25)
    stuck = cards(week("label", run=run("queued")), LATER)[3]
    assert stuck.headline == "Run 7 was interrupted"
    assert cards(week("label", place=Place(None, 0, 0, 40, None)), LATER)[2].done, "others labelled the rest"
    older = replace(RELEASE, released_at=NOW - timedelta(days=8))
    assert not cards(week("label", release=older), LATER)[5].done, "a sample was drawn since"


@pytest.mark.parametrize(
    ("text", "limit", "cut"), [("abcdefghij", 10, "abcdefghij"), ("abcdefghijk", 10, "abcd…ghijk")]
)
def test_a_long_name_is_cut_in_the_middle_to_its_limit(text: str, limit: int, cut: str) -> None:
    assert middle(text, limit) == cut
    assert len(cut) <= limit


def test_a_chance_to_miss_is_of_a_measured_precision_alone() -> None:
    data = evidence("hchchchc", [0.9, 0.1, 0.8, 0.2, 0.7, 0.85, 0.6, 0.3])
    point = operating_points.choose_point(data, Policy("precision", 0.7))
    measured = Setting((1, None), Policy("precision", 0.7), "measured", False, point.threshold)
    assert chance(data, replace(measured, strength="bounded"), point) is None
    assert chance(data, replace(measured, strength="certified"), replace(point, guarantee=SURE)) is None
    missed = chance(data, measured, point)
    assert missed is not None
    assert 0 < missed < 1
