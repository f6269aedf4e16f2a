"""Which labels a prompt takes out of calibration, and what is left."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from calibrate import registry
from calibrate.backends.chat import prompts
from calibrate.backends.chat.guided import keys_of
from calibrate.errors import BadInput
from calibrate.types import Chosen, Evidence, Label, Record, Score, Source, Trace, TraceFilter
from calibrate.workflow.aligning.judges import FOLDS, load_judge
from calibrate.workflow.aligning.proposal import propose
from calibrate.workflow.aligning.saving import save
from calibrate.workflow.aligning.side_by_side import side_by_side
from calibrate.workflow.detection import team_files
from calibrate.workflow.detection.detect import config_id
from calibrate.workflow.evidence.label_counts import label_counts
from calibrate.workflow.evidence.loading import load_evidence
from calibrate.workflow.evidence.prevalence import estimate_prevalence
from calibrate.workflow.sampling.sample import draw
from calibrate.workflow.upkeep.purge import purge
from db import Store
from tests.workflow.making import NOW

FILE = "prompts/judge_yes_no.txt"
JUDGE = "judge_yes_no"
WHY = "we try it on a week"


@pytest.fixture
def judged(store: Store, no_chat: None) -> Store:
    """100 answers, two to a source, a third hallucinated, with a judge's scores, all of a random sample."""
    rng = np.random.default_rng(5)
    records, scores = [], []
    for number in range(100):
        bad = bool(rng.random() < 1 / 3)
        trace = Trace(
            f"t{number}",
            answer=f"The {number}th ferry leaves at noon and takes {rng.integers(9, 99)} minutes.",
            question=f"When does ferry {number} leave?",
            sources=(Source("1", f"Timetable {number // 2}: ferries leave at noon."),),
            group=f"timetable {number // 2}",
        )
        label = Label(trace.id, "", "hallucinated" if bad else "clean", note="no such minutes" if bad else None)
        records.append(Record(number + 1, trace, (label,)))
        scores.append(
            Score(
                trace.id,
                float(np.clip(rng.normal(0.7 if bad else 0.3, 0.2), 0, 1)),
                evidence=(Evidence("NO: because", 0.5),),
            )
        )
    store.traces.add(records, labels_as="ann", now=NOW)
    config = config_id(store, registry.make(JUDGE))
    keys = [pair for chunk in store.traces.keys(TraceFilter()) for pair in chunk]
    by_id = {score.trace_id: score for score in scores}
    traces = store.traces.load([pk for pk, _ in keys])
    pairs = [(content, by_id[trace.id]) for (_, content), trace in zip(keys, traces, strict=True)]
    store.scores.save(config, pairs, now=NOW)
    draw(store, "week", size=100, design="random", where=TraceFilter(), seed=1, now=NOW)
    return store


def test_examples_of_a_fold_are_of_other_sources(judged: Store) -> None:
    judge = load_judge(judged, JUDGE, sample="week")
    group = {row.pk: row.group for row in judge.data.rows}
    for fold in range(FOLDS):
        mine = {row.group for row, at in zip(judge.data.rows, judge.folds, strict=True) if at == fold}
        proposal = propose(judged, judge, examples=6, fold=fold)
        assert not mine & {group[pk] for pk in proposal.pool}
        sources = [group[example.pk] for example in proposal.examples]
        assert len(set(sources)) == len(sources) == 6
        assert sum(example.gold == "hallucinated" for example in proposal.examples) == 3


def test_saving_takes_the_labels_out_of_every_figure(judged: Store) -> None:
    judge = load_judge(judged, JUDGE, sample="week")
    sample = judged.samples.get("week")
    before = label_counts(judged, sample)
    proposal = propose(judged, judge)
    assert save(judged, proposal, reason=WHY, by="ann", now=NOW)
    assert team_files.get(judged, FILE).version == proposal.after
    assert not save(judged, proposal, reason=WHY, by="ann", now=NOW)
    assert proposal.newly == len(proposal.pool) == before.labelled // FOLDS
    after = label_counts(judged, sample)
    assert (after.labelled, after.in_prompts) == (before.labelled - proposal.newly, proposal.newly)
    assert after.waiting == 0
    left = load_evidence(judged, JUDGE, sample="week", config=judge.data.config)
    assert not {row.pk for row in left.rows} & set(proposal.pool)
    assert {row.pk for row in load_evidence(judged, JUDGE, config=judge.data.config).rows} == {
        row.pk for row in left.rows
    }
    # What is left stands for all of the traffic, as before.
    assert left.design is not None
    assert left.design.weights.sum() == pytest.approx(100)
    [version] = judged.prompt_examples.versions(FILE)
    assert (version.version, version.quoted, version.set_aside) == (proposal.after, 6, proposal.newly)


def test_the_labels_that_leave_are_a_random_part(judged: Store) -> None:
    """Over many seeds the labels that stay have the prevalence of all, although examples are half hallucinated."""
    every = load_judge(judged, JUDGE, sample="week")
    shares = []
    for seed in range(60):
        judge = load_judge(judged, JUDGE, sample="week", seed=seed)
        pool = {row.pk for row in judge.pool(-1, examples=6)}
        shares.append(np.mean([row.gold == "hallucinated" for row in judge.data.rows if row.pk not in pool]))
    error = np.std(shares) / np.sqrt(len(shares))
    assert np.mean(shares) == pytest.approx(every.data.labels.mean(), abs=4 * error + 1e-3)


def test_a_second_prompt_takes_its_examples_from_what_left(judged: Store) -> None:
    first = propose(judged, load_judge(judged, JUDGE, sample="week"), examples=4)
    save(judged, first, reason=WHY, by="ann", now=NOW)
    counted = label_counts(judged, judged.samples.get("week")).labelled
    second = propose(judged, load_judge(judged, JUDGE, sample="week"), examples=2)
    assert set(second.pool) == set(first.pool)
    assert second.newly == 0
    save(judged, second, reason=WHY, by="ann", now=NOW)
    assert label_counts(judged, judged.samples.get("week")).labelled == counted


def test_a_label_of_the_same_source_that_comes_later_leaves_too(judged: Store) -> None:
    proposal = propose(judged, load_judge(judged, JUDGE, sample="week"))
    save(judged, proposal, reason=WHY, by="ann", now=NOW)
    [trace] = judged.traces.load([proposal.pool[0]])
    twin = Trace("late", answer="It leaves at one.", question=trace.question, sources=trace.sources, group=trace.group)
    judged.traces.add([Record(1, twin, (Label("late", "", "clean"),))], labels_as="ann", now=NOW)
    [late] = judged.traces.labelled(["late"])
    assert late.pk in judged.prompt_examples.set_aside()


def test_a_prompt_that_somebody_edits_keeps_its_cases_out(judged: Store) -> None:
    """Pasted by hand into another judge's prompt, a case takes its label along."""
    proposal = propose(judged, load_judge(judged, JUDGE, sample="week"), examples=2)
    team_files.save(judged, FILE, proposal.text + "\nBe brief.", by="bob", now=NOW)
    assert {example.pk for example in proposal.examples} <= judged.prompt_examples.set_aside()


def test_side_by_side_begins_where_they_differ_most(judged: Store) -> None:
    both = side_by_side(judged, JUDGE, limit=8)
    rows = [row for row in judged.scores.labelled(config_id(judged, registry.make(JUDGE))) if row.value is not None]
    apart = sorted((abs((row.gold == "hallucinated") - (row.value or 0)) for row in rows), reverse=True)
    assert [each.off for each in both.differences] == pytest.approx(apart[:8])
    assert both.wrong == sum(off > 0.5 for off in apart)
    worst = both.differences[0]
    assert worst.reasons[0].text == "NO: because"
    assert all(each.note == "no such minutes" for each in both.differences if each.gold == "hallucinated")


def test_an_example_without_a_score_is_off_by_nothing_known(judged: Store) -> None:
    judge = load_judge(judged, JUDGE, sample="week")
    unscored = tuple(replace(row, value=None) for row in judge.data.rows)
    proposal = propose(judged, replace(judge, data=replace(judge.data, rows=unscored)), examples=4)
    assert [example.off for example in proposal.examples] == [None] * 4


def test_what_cannot_be_aligned(judged: Store) -> None:
    with pytest.raises(BadInput, match="align one of judge_score, judge_verdict, judge_yes_no"):
        load_judge(judged, "rouge_l")
    with pytest.raises(BadInput, match="0 to 40"):
        propose(judged, load_judge(judged, JUDGE), examples=41)


def test_the_prevalence_keeps_its_bounds(judged: Store) -> None:
    """Labels that left are not undecided: they widen no bound."""
    save(judged, propose(judged, load_judge(judged, JUDGE, sample="week")), reason=WHY, by="ann", now=NOW)
    assert estimate_prevalence(judged, judged.samples.get("week")).settled is None


def test_a_purge_takes_the_case_out_of_every_version_and_the_log(judged: Store) -> None:
    proposal = propose(judged, load_judge(judged, JUDGE, sample="week"))
    save(judged, proposal, reason=WHY, by="ann", now=NOW)
    team_files.save(judged, FILE, proposal.text + "\nBe brief.", by="bob", now=NOW)
    gone, *left = proposal.examples
    [trace] = judged.traces.load([gone.pk])
    purged = purge(judged, Chosen(trace_ids=(gone.trace_id,)), by="ann", now=NOW)
    assert purged.prompts == (FILE,)
    history = team_files.get(judged, FILE).history
    for text in [saved.text or "" for saved in history] + [str(entry) for entry in judged.audit.entries()]:
        assert trace.answer not in text
        assert f"case {gone.pk} " not in text
    assert keys_of(history[0].text or "") == tuple(example.pk for example in left)
    assert prompts.problem(FILE, history[0].text) is None
    assert gone.pk in judged.prompt_examples.set_aside()
