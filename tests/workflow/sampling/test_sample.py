"""Samples by every design: who is drawn how likely, from what, and what the figures make of it."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import chisquare

from calibrate.cli import main
from calibrate.errors import BadInput
from calibrate.report.sentences.labelling import labels
from calibrate.stats.sampling.designs import Cut
from calibrate.types import Label, Member, Record, Sample, Trace, TraceFilter
from calibrate.workflow.evidence import evidence, loading
from calibrate.workflow.evidence.prevalence import estimate_prevalence
from calibrate.workflow.sampling import sample as step
from calibrate.workflow.sampling.sizing import plan
from db import Store, open_store
from db.scores import Config
from tests.workflow.making import ABOVE, DETECTOR, NOW, fill, give_scores, keep_sample

ALL = TraceFilter()


def scored(store: Store, n: int = 300, *, seed: int = 3) -> tuple[Config, Config, list[bool]]:
    """`n` traces, 12% hallucinated and not labelled; one detector scores 9 of 10, another half of them."""
    rng = np.random.default_rng(seed)
    bad = (rng.random(n) < 0.12).astype(float)
    first = [None if i % 10 == 9 else round(float(rng.normal(-bad[i], 0.7)), 2) for i in range(n)]
    second = [round(float(rng.normal(bad[i], 0.7)), 2) if i % 2 else None for i in range(n)]
    config = fill(store, [None] * n, first)
    traces = store.traces.load([pk for chunk in store.traces.keys(ALL) for pk, _ in chunk])
    return config, give_scores(store, traces, second, name=ABOVE), [bool(one) for one in bad]


def take(store: Store, name: str = "w", **given: object) -> Sample:
    usual: dict[str, object] = {"size": 60, "design": "octave", "where": ALL, "seed": 1, "now": NOW}
    return step.draw(store, name, **{**usual, **given})  # type: ignore[arg-type]


@pytest.mark.parametrize("design", ["octave", "uncertain", "fresh-flagged"])
def test_a_sample_says_how_its_strata_were_told_apart_and_how_likely_each_member_was(store: Store, design: str) -> None:
    config, _, _ = scored(store)
    cut = None if design == "octave" else Cut(config.id, -0.4)
    drawn = take(store, design=design, cut=cut, size=40)
    members = store.samples.members(drawn.id)
    assert len({member.trace_pk for member in members}) == drawn.size == 40
    for stratum, (population, n) in drawn.strata.items():
        inside = [member for member in members if member.stratum == stratum]
        assert len(inside) == n
        assert all(member.inclusion_probability == n / population for member in inside)
    assert sum(population for population, _ in drawn.strata.values()) == drawn.pool
    assert drawn.options.at.trace == 300
    if design == "fresh-flagged":
        assert list(drawn.strata) == ["flagged"]
        values = [row.value for row in store.scores.members(config.id, drawn.id)]
        assert all(value is not None and value <= -0.4 for value in values)
    else:
        # One trace in ten has no score here, of which the other detector scored all or none.
        assert ("no score" in drawn.strata) == (design == "uncertain")
        assert {"rest", *drawn.options.bands} <= set(drawn.strata)


def test_the_highest_stratum_holds_the_most_suspicious(store: Store) -> None:
    """Against the mean z-score worked out here, by hand and without arrays."""
    config, other, _ = scored(store)
    drawn = take(store)
    values: dict[int, list[float]] = {}
    for one, sign in ((config, -1.0), (other, 1.0)):
        rows = store.scores.members(one.id, take(store, f"all {one.id}", design="random", size=300).id)
        known = {row.pk: row.value for row in rows if row.value is not None}
        mean = math.fsum(known.values()) / len(known)
        sd = math.sqrt(math.fsum((value - mean) ** 2 for value in known.values()) / len(known))
        for pk, value in known.items():
            values.setdefault(pk, []).append(sign * (value - mean) / sd)
    ranking = {pk: sum(each) / len(each) for pk, each in values.items()}
    least: dict[str, float] = {}
    most: dict[str, float] = {}
    for member in store.samples.members(drawn.id):
        z = ranking[member.trace_pk]
        least[member.stratum] = min(z, least.get(member.stratum, z))
        most[member.stratum] = max(z, most.get(member.stratum, z))
    names = [name for name in drawn.strata if name != "no score"]
    assert all(least[tight] > most[loose] for tight, loose in pairwise(names))
    top, (low, _) = next(iter(drawn.options.bands.items()))
    assert sum(z >= low - 1e-9 for z in ranking.values()) == drawn.strata[top][0]


@pytest.mark.parametrize("design", ["octave", "uncertain"])
def test_every_trace_is_drawn_as_often_as_its_inclusion_probability_says(design: str) -> None:
    light = open_store("sqlite://")
    config, _, _ = scored(light, 120)
    cut = Cut(config.id, -0.3) if design == "uncertain" else None
    rounds, hits = 60, Counter[int]()
    for seed in range(rounds):
        drawn = take(light, f"{seed}", design=design, cut=cut, size=40, seed=seed)
        hits.update(member.trace_pk for member in light.samples.members(drawn.id))
    evenly_drawn(light, take(light, "all", design=design, cut=cut, size=120), drawn, hits, rounds)


def evenly_drawn(store: Store, everything: Sample, drawn: Sample, hits: Counter[int], rounds: int) -> None:
    """Whether every trace of a stratum came up as often as its fellows, in `rounds` draws like `drawn`."""
    frame: dict[str, list[int]] = {}
    for member in store.samples.members(everything.id):
        frame.setdefault(member.stratum, []).append(hits[member.trace_pk])
    assert set(frame) == set(drawn.strata)
    for stratum, (population, n) in drawn.strata.items():
        counts = np.array(frame[stratum])
        assert counts.sum() == n * rounds
        if n < population:
            # Draws without replacement vary less than the multinomial by (N - n) / (N - 1); bring them to its scale.
            scaled = counts.mean() + (counts - counts.mean()) * np.sqrt((population - 1) / (population - n))
            assert chisquare(scaled, np.full(population, counts.mean())).pvalue > 1e-4


def test_the_weighted_prevalence_is_unbiased_though_detectors_abstain() -> None:
    light = open_store("sqlite://")
    _, _, bad = scored(light, 400)
    for pk, is_bad in enumerate(bad, 1):
        light.labels.add(pk, Label("", "ann", "hallucinated" if is_bad else "clean"), sample_id=None, now=NOW)
    found, raw = [], []
    for seed in range(50):
        drawn = take(light, f"{seed}", seed=seed, size=80)
        share = estimate_prevalence(light, drawn).share.value
        assert share is not None
        found.append(share)
        gold = light.labels.gold_counts(drawn.id)
        raw.append(gold["hallucinated"] / drawn.size)
    truth = sum(bad) / len(bad)
    error = np.std(found) / math.sqrt(len(found))
    assert abs(np.mean(found) - truth) < 4 * error
    # The plain share of an octave sample is far too high: the weights are needed.
    assert np.mean(raw) - truth > 4 * error


@pytest.mark.parametrize("design", ["random", "stratified", "octave", "uncertain", "fresh-flagged"])
def test_the_same_seed_draws_the_same_sample_from_either_database(
    sqlite_url: str, postgres_url: str, design: str
) -> None:
    drawn = []
    for url in (sqlite_url, postgres_url):
        found = open_store(url)
        config, _, _ = scored(found)
        cut = Cut(config.id, -0.3) if design in ("uncertain", "fresh-flagged") else None
        by = "model" if design == "stratified" else None
        sample = take(found, design=design, cut=cut, by=by, size=30, seed=11)
        drawn.append((found.samples.members(sample.id), sample.strata, sample.options))
        found.close()
    assert drawn[0] == drawn[1]


def test_traces_that_are_all_in_a_sample_are_not_fresh(store: Store) -> None:
    config, _, _ = scored(store)
    cut = Cut(config.id, -0.3)
    everything = step.flagged_pool(store, cut, ALL, fresh=False)
    every = take(store, "every", design="random", size=300)
    flagged = {
        row.pk for row in store.scores.members(config.id, every.id) if row.value is not None and row.value <= -0.3
    }
    assert everything == len(flagged)
    assert step.flagged_pool(store, cut, ALL) == 0
    with pytest.raises(BadInput, match="has a label or is in a sample already"):
        take(store, "none", design="fresh-flagged", cut=cut, fresh=True)
    assert take(store, "known", design="fresh-flagged", cut=cut, size=5).pool == len(flagged)


def test_fresh_counts_leave_out_labelled_and_drawn_traces(store: Store) -> None:
    config, _, _ = scored(store)
    cut = Cut(config.id, -0.3)
    first = take(store, "first", size=50)
    rows = store.scores.members(config.id, first.id)
    inside = sum(row.value is not None and row.value <= -0.3 for row in rows)
    assert inside
    everything = step.flagged_pool(store, cut, ALL, fresh=False)
    assert step.flagged_pool(store, cut, ALL) == everything - inside
    pool = step.flagged_pool(store, cut, ALL)
    fresh = take(store, "fresh", design="fresh-flagged", cut=cut, fresh=True, size=1_000)
    assert fresh.size == pool
    members = {member.trace_pk for member in store.samples.members(fresh.id)}
    assert not members & {row.pk for row in rows}


def test_the_usual_design_is_octave_once_half_of_the_window_is_scored(store: Store) -> None:
    assert step.usual_design(store, ALL) == "random"
    fill(store, [None] * 20, [0.5] * 9 + [None] * 11)
    assert step.usual_design(store, ALL) == "random"
    traces = store.traces.load([10])
    give_scores(store, traces, [1.0], name=ABOVE)
    assert step.scored(store, ALL) == 10
    assert step.usual_design(store, ALL) == "octave"


def test_a_window_is_ranked_by_itself(store: Store) -> None:
    """Traces outside the window are in no stratum and move no mean."""
    scored(store)
    where = TraceFilter(since=NOW - timedelta(hours=99), undated=False)
    drawn = take(store, where=where, size=30)
    assert drawn.pool == 100
    assert all(member.trace_pk <= 100 for member in store.samples.members(drawn.id))


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({}, "score the window first"),
        ({"design": "uncertain"}, "needs a threshold of one detector"),
        ({"design": "uncertain", "cut": Cut(99, 0.5)}, "no detector configuration 99"),
        ({"design": "octave", "cut": Cut(1, 0.5)}, "a sample by octave has none"),
        ({"design": "octave", "by": "model"}, "is for --design stratified"),
        ({"design": "sorted"}, "there is no design 'sorted'"),
    ],
)
def test_what_cannot_be_drawn_is_a_sentence(store: Store, given: dict[str, object], says: str) -> None:
    fill(store, [None] * 5, [None] * 5)
    with pytest.raises(BadInput, match=says):
        take(store, **given)


def test_thresholds_that_flag_nothing_or_are_no_number(store: Store) -> None:
    config, _, _ = scored(store)
    for threshold in (math.nan, math.inf):
        with pytest.raises(BadInput, match="no finite number"):
            take(store, design="uncertain", cut=Cut(config.id, threshold))
        with pytest.raises(BadInput, match="no finite number"):
            step.flagged_pool(store, Cut(config.id, threshold), ALL)
    with pytest.raises(BadInput, match="flags no trace of the window at -50"):
        take(store, design="fresh-flagged", cut=Cut(config.id, -50.0))
    with pytest.raises(BadInput, match="strata need at least"):
        take(store, size=3)
    assert store.samples.list() == []


def test_equal_scores_rank_nothing(store: Store) -> None:
    fill(store, [None] * 20, [0.5] * 20)
    with pytest.raises(BadInput, match="all scores of the window are equal"):
        take(store)


def test_a_sample_of_an_unknown_design_gives_no_figures(store: Store) -> None:
    fill(store, [True, False, False], [0.1, 0.5, 0.9])
    sample = keep_sample(store, ["a", "a", "a"], {"a": 3})
    data = loading.load_evidence(store, DETECTOR, sample="w47")
    assert data.sweep.n == 3
    with pytest.raises(BadInput, match="by the design 'quota'"):
        evidence.design_of(replace(sample, design="quota"), data.rows, ())


def test_a_plan_reckons_with_the_scores_and_labels_at_hand() -> None:
    light = open_store("sqlite://")
    _, _, bad = scored(light, 400)
    assumed = plan(light, ALL, wish=0.2, prevalence=0.1)
    assert (assumed.flag_rate, assumed.sample) == (pytest.approx(0.1), None)
    assert set(assumed.labels) == {"octave", "random"}
    drawn = take(light, size=200)
    for member in light.samples.members(drawn.id):
        verdict = "hallucinated" if bad[member.trace_pk - 1] else "clean"
        light.labels.add(member.trace_pk, Label("", "ann", verdict), sample_id=drawn.id, now=NOW)  # type: ignore[arg-type]
    known = plan(light, ALL, wish=0.2, precision=0.3, prevalence=0.1, by="model")
    assert known.sample == drawn.name
    assert set(known.labels) == {"octave", "random", "stratified"}
    with pytest.raises(BadInput, match="0 is no half width"):
        plan(light, ALL, wish=0.0, prevalence=0.1)


def test_the_command_line_draws_tops_up_and_plans(sqlite_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = open_store(sqlite_url)
    scored(found)
    found.close()
    for words in (
        "w --size 40",
        "w --more 10",
        "--plan 0.2",
        "near --design uncertain --cut token_overlap=-0.3 --size 20",
    ):
        assert main(["sample", *words.split(), "--since", "all", "--store", sqlite_url, "--json"]) == 0
    drawn, topped, planned, near = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert (drawn["design"], drawn["size"], topped["size"], topped["added"]) == ("octave", 40, 50, 10)
    assert set(planned["labels"]) == {"octave", "random"}
    assert near["design"] == "uncertain"
    for words in (
        "--more 5",
        "x --more 5",
        "y --design uncertain --cut token_overlap",
        "y --plan 2",
        "w --list --more 5",
    ):
        assert main(["sample", *words.split(), "--store", sqlite_url, "--json"]) == 2


def test_the_usual_design_falls_back_to_random_with_a_sentence(
    sqlite_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found = open_store(sqlite_url)
    scored(found)
    at = ("--since", "all", "--store", sqlite_url)
    assert main(["sample", "three", "--size", "3", *at]) == 0
    assert (
        "drawn at random, because octave cannot draw these traces: 7 strata need at least 7 labels"
        in capsys.readouterr().out
    )
    assert main(["sample", "three-2", "--size", "3", "--design", "octave", *at]) == 2
    assert [(one.name, one.design, one.size) for one in found.samples.list()] == [("three", "random", 3)]
    capsys.readouterr()


def test_equal_scores_are_drawn_at_random_by_the_usual_design(
    sqlite_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(open_store(sqlite_url), [None] * 20, [0.5] * 20)
    assert main(["sample", "w", "--size", "9", "--since", "all", "--store", sqlite_url, "--json"]) == 0
    drawn = json.loads(capsys.readouterr().out)
    assert (drawn["design"], "all scores of the window are equal" in drawn["why_random"]) == ("random", True)


@pytest.mark.both_databases
def test_a_sample_is_listed_in_labelling_order(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    fill(store, [True, None, False], [0.1, 0.5, 0.9])
    keep_sample(store, ["b", "a", "a"], {"a": 4, "b": 1})
    assert [(one.trace_id, one.stratum, one.inclusion_probability, one.gold) for one in store.samples.lines(1)] == [
        ("t0", "b", 1.0, "hallucinated"), ("t1", "a", 0.5, None), ("t2", "a", 0.5, "clean")
    ]  # fmt: skip
    assert main(["--json", "sample", "w47", "--list", "--store", store.url]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [one["trace_id"] for one in listed["members"]] == ["t0", "t1", "t2"]
    assert main(["sample", "w47", "--list", "--store", store.url]) == 0
    assert capsys.readouterr().out.splitlines()[2].split() == ["t1", "a", "0.5", "–"]
    assert main(["sample", "--list", "--store", store.url]) == 2


def test_a_plan_asks_the_newest_labels_even_where_older_ones_promise_more() -> None:
    light = open_store("sqlite://")
    fill(light, [None] * 200, [0.1 if place % 100 < 30 else 0.9 for place in range(200)])
    for name, places in (("older", range(100)), ("newer", range(100, 200))):
        keys = [light.traces.find(f"t{place}") or 0 for place in places]
        light.samples.add(
            name, design="random", by=None, seed=1, pool=200, undated=0, where=ALL, strata={"all": (200, 100)},
            members=[Member(key, 0.5, "all") for key in keys], now=NOW,
        )  # fmt: skip
        for place, key in zip(places, keys, strict=True):
            bad = place % 100 < 30 if name == "older" else place % 2
            label = Label("", "ann", "hallucinated" if bad else "clean")
            light.labels.add(key, label, sample_id=light.samples.list()[0].id, now=NOW)
        known = plan(light, ALL, wish=0.1, precision=0.9, prevalence=0.1)
        assert known.sample == (name if name == "older" else None)
    assert "newer no threshold is known to reach a precision of 0.9" in str(labels.doubt(known.doubt))


def test_a_plan_takes_thresholds_that_there_are_and_says_where_labels_know_of_none() -> None:
    light = open_store("sqlite://")
    # A score that most traces share cannot flag a tenth of them: it flags 3 of 10, or all.
    fill(light, [None] * 100, [0.1 if place < 30 else 0.9 for place in range(100)])
    assert plan(light, ALL, wish=0.2, prevalence=0.1).flag_rate == pytest.approx(0.3)
    drawn = take(light, size=100)
    for place, member in enumerate(light.samples.members(drawn.id)):
        said = "hallucinated" if place % 2 else "clean"
        light.labels.add(member.trace_pk, Label("", "ann", said), sample_id=drawn.id, now=NOW)  # type: ignore[arg-type]
    assert "no threshold is known to reach a precision of 0.95" in str(
        labels.doubt(plan(light, ALL, wish=0.1, precision=0.95, prevalence=0.1).doubt)
    )
    assert "flagging everything has a precision of 0.5" in str(
        labels.doubt(plan(light, ALL, wish=0.1, precision=0.1, prevalence=0.1).doubt)
    )
    assert plan(light, ALL, wish=0.1, precision=0.45, prevalence=0.1).doubt is None


def test_a_sample_is_drawn_from_the_traces_that_a_condition_names(
    store: Store, store_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    traces = [
        Trace(
            f"c{n}",
            answer=f"answer {n}",
            model="a" if n % 2 else "b",
            attributes={"deployment": "canary"} if n < 20 else {},
        )
        for n in range(40)
    ]
    store.traces.add([Record(n + 1, trace) for n, trace in enumerate(traces)], labels_as=None, now=NOW)
    call = ["sample", "canary", "--size", "30", "--since", "all", "--store", store_url]
    assert main([*call, "--where", "deployment=canary", "--where", "model=a"]) == 0
    sample = store.samples.get("canary")
    assert sample is not None
    assert {line.trace_id for line in store.samples.lines(sample.id)} == {f"c{n}" for n in range(1, 20, 2)}
    assert main([*call, "--where", "model=a", "--where", "model=b"]) == 2
    assert "twice" in capsys.readouterr().err
