"""External detectors: taking scores again changes nothing, a changed score begins a revision, and the old one stays."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrate import registry, workspace
from calibrate.errors import BadInput
from calibrate.ingest.inspection.profile import Profile
from calibrate.types import Record, StatedScore, Trace
from calibrate.workflow.detection.external import Intake, TakenScores, define_external, take_scores
from calibrate.workflow.detection.usable import usable
from calibrate.workflow.traces import external_scores
from calibrate.workflow.traces.external_scores import use_external
from db import Store, open_store
from tests.workflow.making import NOW

NAME = "ragas_faithfulness"


@pytest.fixture(autouse=True)
def own_workspace() -> Iterator[None]:
    with workspace.using(workspace.Workspace()):
        yield
    workspace.use(workspace.Workspace())


@pytest.fixture
def traces(store: Store) -> Store:
    """Traces t0 … t9; t8 and t9 have the same content."""
    records = [Record(n, Trace(f"t{n}", f"answer {min(n, 8)}", "why?")) for n in range(10)]
    store.traces.add(records, labels_as=None, now=NOW)
    return store


def stated(values: Mapping[str, float]) -> list[StatedScore]:
    return [StatedScore(trace_id, value) for trace_id, value in values.items()]


def held(store: Store, revision: str) -> dict[str, float | None]:
    """The scores of a revision by trace."""
    contents = store.external.contents([f"t{n}" for n in range(10)])
    values = store.external.values(NAME, revision, sorted({*contents.values()}))
    return {trace: values[content] for trace, content in contents.items() if content in values}


def test_a_changed_score_begins_a_revision_that_takes_the_others_over(traces: Store) -> None:
    first = {f"t{n}": n / 10 for n in range(6)}
    assert take_scores(traces, NAME, stated(first), now=NOW) == TakenScores(NAME, "1", new=6)
    assert take_scores(traces, NAME, stated(first), now=NOW) == TakenScores(NAME, "1", same=6)
    # New scores keep the revision, however they come.
    assert take_scores(traces, NAME, stated({"t6": 0.6}), now=NOW) == TakenScores(NAME, "1", new=1)
    later = NOW + timedelta(days=1)
    changed = take_scores(traces, NAME, stated({"t0": 0.0, "t1": 0.9, "t7": 0.7}), now=later)
    assert changed == TakenScores(NAME, "2", new=1, same=1, changed=1)
    assert held(traces, "1") == {**first, "t6": 0.6}
    assert held(traces, "2") == {**first, "t1": 0.9, "t6": 0.6, "t7": 0.7}
    assert traces.external.revisions(NAME) == ["1", "2"]
    assert take_scores(traces, NAME, stated({"t1": 0.9}), now=later) == TakenScores(NAME, "2", same=1)


def test_a_stated_revision_is_the_teams_own_numbering(traces: Store) -> None:
    take_scores(traces, NAME, stated({"t0": 0.1, "t1": 0.2}), revision="ragas-0.2", now=NOW)
    # What stands in a stated revision stays: a judge that is run again may say something else.
    again = take_scores(traces, NAME, stated({"t0": 0.5, "t2": 0.3}), revision="ragas-0.2", now=NOW)
    assert again == TakenScores(NAME, "ragas-0.2", new=1, differing=1)
    assert take_scores(traces, NAME, stated({"t0": 0.5}), revision="ragas-0.3", now=NOW).changed == 1
    assert held(traces, "ragas-0.2") == {"t0": 0.1, "t1": 0.2, "t2": 0.3}
    assert held(traces, "ragas-0.3") == {"t0": 0.5, "t1": 0.2, "t2": 0.3}
    with pytest.raises(BadInput, match=r"the revision ragas-0\.2 was followed by ragas-0\.3"):
        take_scores(traces, NAME, stated({"t0": 0.1}), revision="ragas-0.2", now=NOW)
    with pytest.raises(BadInput, match="a revision cannot be called"):
        take_scores(traces, NAME, stated({"t0": 0.1}), revision="no good\x1b", now=NOW)


def test_one_content_has_one_score_and_the_first_counts(traces: Store) -> None:
    taken = take_scores(traces, NAME, stated({"t8": 0.8, "t9": 0.9}), now=NOW)
    assert taken == TakenScores(NAME, "1", new=1, differing=1)
    assert held(traces, "1") == {"t8": 0.8, "t9": 0.8}


def test_what_is_no_score_is_counted_and_the_rest_is_taken(traces: Store) -> None:
    define_external(traces, NAME, flag_when="below", low=0, high=1, now=NOW)
    wrong = {"t0": math.nan, "t1": math.inf, "t2": "0.5", "t3": True, "t4": 10**400, "t5": 1.5, "nobody": 0.1}
    taken = take_scores(traces, NAME, [*stated(wrong), StatedScore("t6", 1, "why")], now=NOW)  # type: ignore[arg-type]
    assert taken == TakenScores(NAME, "1", new=1, unknown=1, no_number=5, outside=1)
    assert taken.left_out == 7
    [(_, score)] = traces.scores.of_trace(traces.traces.find("t6") or 0)
    assert (score.value, score.status, [line.text for line in score.evidence]) == (1.0, "scored", ["why"])


def test_several_batches_begin_one_revision(traces: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(external_scores, "BATCH", 2)
    take_scores(traces, NAME, stated({f"t{n}": 0.0 for n in range(8)}), now=NOW)
    taken = take_scores(traces, NAME, stated({f"t{n}": 1.0 for n in range(8)}), now=NOW)
    assert taken == TakenScores(NAME, "2", changed=8)
    assert held(traces, "1") == {f"t{n}": 0.0 for n in range(8)}
    assert held(traces, "2") == {f"t{n}": 1.0 for n in range(8)}


@pytest.mark.both_databases
def test_an_import_that_others_overtake_looks_again(traces: Store) -> None:
    take_scores(traces, NAME, stated({"t0": 0.0, "t1": 0.0}), now=NOW)
    slow = Intake(traces, NAME, now=NOW)
    take_scores(traces, NAME, stated({"t0": 0.5}), now=NOW)
    slow.add(stated({"t1": 0.7, "t2": 0.2}))
    assert slow.taken == TakenScores(NAME, "3", new=1, changed=1)
    assert held(traces, "2") == {"t0": 0.5, "t1": 0.0}
    assert held(traces, "3") == {"t0": 0.5, "t1": 0.7, "t2": 0.2}


def test_a_detector_waits_for_its_direction(traces: Store) -> None:
    take_scores(traces, NAME, stated({"t0": 0.1}), now=NOW)
    assert NAME not in registry.names()
    with pytest.raises(BadInput, match=f"`scores define {NAME} --flag-when above`"):
        registry.get(NAME)
    define_external(traces, NAME, flag_when="below", unit="share of claims", now=NOW)
    detector = registry.make(NAME)
    assert (detector.flag_when, detector.unit, detector.revision()) == ("below", "share of claims", "1")
    [score] = detector.score([Trace("t0", "answer")])
    assert (score.value, score.status) == (None, "abstained")
    assert score.reason == f"its scores are imported: `scores import FILE --detector {NAME}`"
    what = [entry.verb for entry in traces.audit.entries() if entry.what == NAME]
    assert what == ["detector defined", "detector defined"]


def test_another_store_has_other_detectors(traces: Store, tmp_path: object) -> None:
    define_external(traces, NAME, flag_when="above", now=NOW)
    other = open_store(f"sqlite:///{tmp_path}/other.db")
    use_external(other)
    assert NAME not in registry.names()
    use_external(traces)
    assert NAME in registry.names()
    other.close()


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("rouge_l", "rouge_l is a detector of Touchstone"),
        ("all", "is taken for something else"),
        ("touchstone.rouge_l", "is taken for something else"),
        ("<script>", "cannot be called"),
        ("a\x1b[2J", "cannot be called"),
        ("\u202egnp", "cannot be called"),
        ("", "cannot be called"),
        ("x" * 101, "cannot be called"),
        ("'; DROP TABLE scores; --", "cannot be called"),
        ("../../etc/passwd", "cannot be called"),
    ],
)
def test_names_that_no_detector_can_have_are_refused(traces: Store, name: str, why: str) -> None:
    with pytest.raises(BadInput, match=why):
        take_scores(traces, name, stated({"t0": 0.1}), now=NOW)
    assert traces.external.all() == []


def test_names_with_blanks_are_those_of_other_systems(traces: Store) -> None:
    assert take_scores(traces, " Answer  relevancy", stated({"t0": 0.1}), now=NOW).name == "Answer_relevancy"


def test_bounds_and_directions_that_cannot_be_are_refused(traces: Store) -> None:
    with pytest.raises(BadInput, match="the lowest value 1 is not below the highest, 0"):
        define_external(traces, NAME, flag_when="below", low=1, high=0, now=NOW)
    with pytest.raises(BadInput, match="a bound is a finite number"):
        define_external(traces, NAME, flag_when="below", low=-math.inf, now=NOW)
    with pytest.raises(BadInput, match="flag-when cannot be 'sideways'"):
        define_external(traces, NAME, flag_when="sideways", now=NOW)  # type: ignore[arg-type]
    assert traces.external.all() == []


scores_of_traces = st.lists(st.tuples(st.sampled_from([f"t{n}" for n in range(8)]), st.sampled_from([0.0, 0.5, 1.0])))


@settings(max_examples=15)
@given(imports=st.lists(scores_of_traces, max_size=4))
def test_the_newest_revision_holds_the_last_import_and_older_ones_never_change(
    imports: list[list[tuple[str, float]]],
) -> None:
    store = open_store("sqlite://")
    records = [Record(n, Trace(f"t{n}", f"answer {n}")) for n in range(8)]
    store.traces.add(records, labels_as=None, now=NOW)
    expected: dict[str, float] = {}
    past: dict[str, dict[str, float | None]] = {}
    for rows in imports:
        first: dict[str, float] = {}
        for trace_id, value in rows:
            first.setdefault(trace_id, value)
        changes = any(trace_id in expected and expected[trace_id] != value for trace_id, value in first.items())
        before = store.external.find(NAME)
        taken = take_scores(store, NAME, [StatedScore(*row) for row in rows], now=NOW)
        if changes and before is not None:
            past[before.revision] = dict(expected)
        assert (before is not None and taken.revision != before.revision) == changes
        expected |= first
        assert held(store, taken.revision) == expected
        assert all(held(store, revision) == values for revision, values in past.items())
        assert taken.new + taken.same + taken.changed + taken.differing == len(rows)
    store.close()
    workspace.use(workspace.Workspace())


def test_an_external_detector_cannot_run_on_other_traces(traces: Store) -> None:
    """`import` says how many detectors can run on a file: its preview, without a store, counts the same ones."""
    profile = Profile(1, {}, {frozenset({"answer"}): 1})
    before = usable(profile)
    define_external(traces, NAME, flag_when="below", now=NOW)
    assert NAME in registry.names()
    assert usable(profile) == before
