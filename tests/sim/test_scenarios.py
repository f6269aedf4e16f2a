"""The simulator's traffic is what it says, and the statistics keep their promises on it: few replications, wide bounds.

The full table takes minutes: `python -m calibrate simulate --replications 1000`. A rate of 5% may show up to the 0.1%
tail of its binomial here.
"""

from __future__ import annotations

from argparse import Namespace
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.metrics import roc_auc_score

from calibrate.cli.simulate import run, targets
from calibrate.errors import BadInput
from calibrate.simulate.cells import Cell, against_truth, cell, reachable
from calibrate.simulate.intervals import coverage, labels_like, misses
from calibrate.simulate.scenarios import BUSY, FRESH, SIZE, TARGET, Traffic, grid, stress
from calibrate.simulate.targets import measure
from calibrate.simulate.trials import Labelled, certification, draw, fresh_flagged, walked
from calibrate.stats.certification.ladder import build_ladder
from calibrate.stats.certification.walks import Walk
from calibrate.stats.sampling.designs import allocate

pytestmark = pytest.mark.timeout(400)
REPLICATIONS = 60
MOST = int(binom.isf(0.001, REPLICATIONS, 0.05))
CELLS = (
    "10%, AUROC 0.95, spread 1.0",
    "20%, AUROC 0.85, spread 1.0",
    "2%, AUROC 0.85, spread 1.5",
    "5%, AUROC 0.75, spread 1.5",
    "10%, AUROC 0.85, spread 1.5",
    "5%, AUROC 0.85, spread 2.0",
)


def rng(number: int = 0) -> np.random.Generator:
    return np.random.default_rng([20261116, number])


@pytest.fixture(scope="module")
def gridded() -> dict[str, Traffic]:
    return {each.name: each for each in grid()}


@pytest.fixture(scope="module")
def stressed() -> dict[str, Traffic]:
    return {each.name: each for each in stress()}


@pytest.fixture(scope="module")
def cells(gridded: dict[str, Traffic], stressed: dict[str, Traffic]) -> list[Cell]:
    chosen = [gridded[name] for name in CELLS] + list(stressed.values())
    return [cell(each, replications=REPLICATIONS, labels=300, rng=rng(i)) for i, each in enumerate(chosen)]


def test_the_grid_has_the_prevalence_and_auroc_in_its_names(gridded: dict[str, Traffic]) -> None:
    assert len(gridded) == 36
    for name, each in gridded.items():
        prevalence, auroc, _ = name.split(", ")
        assert each.truth.mean() == pytest.approx(float(prevalence.rstrip("%")) / 100, rel=0.05)
        assert roc_auc_score(each.truth, each.scores) == pytest.approx(float(auroc.split()[1]), abs=0.01)


def test_every_scenario_of_the_method_is_there(stressed: dict[str, Traffic]) -> None:
    kinds = {each.kind for each in stressed.values()}
    assert kinds == {"plateau", "dip", "two detectors", "abstentions", "clusters", "busy sources", "label noise"}


def test_strata_are_octaves_of_the_ranking(gridded: dict[str, Traffic], stressed: dict[str, Traffic]) -> None:
    for each in (gridded[CELLS[0]], *stressed.values()):
        sizes = [len(members) for members in each.strata]
        assert sizes == [SIZE // 256, *(SIZE // 2**k for k in range(8, 0, -1))]


def test_the_oracle_is_the_deepest_cut_at_the_target(gridded: dict[str, Traffic]) -> None:
    each = gridded["10%, AUROC 0.85, spread 1.5"]
    cut = each.oracle()
    flagged = each.scores >= each.scores[cut - 1]
    assert each.truth[flagged].mean() >= TARGET
    assert (each.precision[cut:] < TARGET).all()
    assert each.recall[cut - 1] == pytest.approx(each.truth[flagged].sum() / each.truth.sum())


def test_the_top_of_a_dip_is_bad_and_a_plateau_is_just_short(stressed: dict[str, Traffic]) -> None:
    for each in stressed.values():
        if each.kind == "dip":
            assert each.precision[SIZE // 1000] < 0.4
            assert each.precision.max() > 0.75
        if each.name.startswith("plateau: 0.69"):
            assert each.precision[SIZE // 20] == pytest.approx(0.69, abs=0.01)
            assert each.precision[SIZE // 20] < TARGET


def test_conditions_are_as_described(stressed: dict[str, Traffic]) -> None:
    assert np.isnan(stressed["abstains on 30%"].scores).mean() == pytest.approx(0.3, abs=0.01)
    noisy = stressed["label noise, 20%"]
    sample = draw(noisy, 2_000, design="random", replications=20, rng=rng())
    truth = noisy.truth[sample.rows]
    assert sample.verdicts[truth].mean() == pytest.approx(0.9, abs=0.015)
    assert sample.verdicts[~truth].mean() == pytest.approx(0.02, abs=0.005)
    clustered = stressed["answers share sources in eights"]
    assert clustered.groups is not None
    means = np.bincount(clustered.groups, weights=clustered.truth) / 8
    assert means.var() > 3 * 0.1 * 0.9 / 8
    assert roc_auc_score(clustered.truth, clustered.scores) > 0.8


def test_octave_weights_stand_for_the_traffic_and_estimate_without_bias(gridded: dict[str, Traffic]) -> None:
    each = gridded["5%, AUROC 0.85, spread 2.0"]
    sample = draw(each, 300, design="octave", replications=2_000, rng=rng())
    assert sample.weights.sum(-1) == pytest.approx(FRESH, rel=1e-3)
    prevalence = (sample.weights * sample.verdicts).sum(-1) / sample.weights.sum(-1)
    assert prevalence.mean() == pytest.approx(each.truth.mean(), abs=4 * prevalence.std() / np.sqrt(2_000))
    sizes = {str(h): round(FRESH * len(rows) / SIZE) for h, rows in enumerate(each.strata)}
    drawn = np.bincount(each.stratum[sample.rows[0]])
    assert drawn.tolist() == [allocate(sizes, 300)[str(h)] for h in range(9)]


def test_stage_b_is_drawn_uniformly_from_what_is_flagged(gridded: dict[str, Traffic]) -> None:
    each = gridded[CELLS[0]]
    rungs = build_ladder(each.scores)
    deep = np.full(500, 40)
    walk = Walk(start=deep - 5, deepest=deep, labels=np.full(500, 60), chance=np.ones(500))
    rows = fresh_flagged(each, rungs, walk, rng()).rows
    flagged = round(rungs.shares[40] * SIZE)
    assert rows.max() < flagged
    assert rows.mean() == pytest.approx(flagged / 2, rel=0.01)


def test_of_a_group_one_label_counts_in_the_test_by_sources(stressed: dict[str, Traffic]) -> None:
    each = stressed["answers share sources in eights"]
    assert each.groups is not None
    rungs = build_ladder(each.scores)
    deep = np.full(20, 40)
    sample = fresh_flagged(each, rungs, Walk(deep, deep, np.full(20, 100), np.ones(20)), rng())
    assert sample.first is not None
    for row, weights, first in zip(sample.rows, sample.weights, sample.first, strict=True):
        drawn, counted = each.groups[row[weights > 0]], each.groups[row[first]]
        assert not (first & (weights == 0)).any()
        assert len(counted) == len(set(counted.tolist())) == len(set(drawn.tolist()))
        assert 20 < len(counted) < len(drawn) <= 100


def test_busy_sources_stand_for_much_of_what_is_flagged_and_hide_from_a_test_by_sources(
    stressed: dict[str, Traffic],
) -> None:
    for each in stressed.values():
        if each.kind == "busy sources":
            top = SIZE // 10
            assert each.groups is not None
            busy = each.groups[:top] < BUSY
            assert 0.67 < each.truth[:top].mean() < TARGET < each.truth[:top][~busy].mean()
            sample = draw_flagged(each)
            by_sources = replace(sample, weights=sample.first.astype(float), first=None)  # type: ignore[union-attr]
            rungs = build_ladder(each.scores)
            tested = np.arange(len(rungs.shares)) == np.searchsorted(rungs.shares, 0.099)
            tested = np.broadcast_to(tested, (REPLICATIONS, len(tested)))
            wrong = {
                name: int((walked(each, rungs, tested, labels, target=TARGET, level=0.04) > 0).sum())
                for name, labels in (("sources", by_sources), ("both", sample))
            }
            assert wrong["sources"] > 3 * MOST
            assert wrong["both"] <= MOST


def draw_flagged(traffic: Traffic) -> Labelled:
    rungs = build_ladder(traffic.scores)
    deepest = np.full(REPLICATIONS, np.searchsorted(rungs.shares, 0.099))
    return fresh_flagged(traffic, rungs, Walk(deepest, deepest, np.full(REPLICATIONS, 180), deepest / 1), rng())


def test_certificates_are_wrong_at_most_one_time_in_twenty(cells: list[Cell]) -> None:
    assert {one.name: one.violations for one in cells if one.violations * REPLICATIONS > MOST} == {}


def test_on_a_plateau_just_short_of_the_target_the_error_is_spent_not_exceeded(cells: list[Cell]) -> None:
    rates = [one.violations for one in cells if one.name.startswith("plateau: 0.69")]
    assert 0 < max(rates) <= MOST / REPLICATIONS


def test_certified_recall_beats_the_published_method(cells: list[Cell], gridded: dict[str, Traffic]) -> None:
    ours = {one.name: one.recall_share for one in cells if one.kind == "grid"}
    theirs = {
        name: cell(gridded[name], replications=REPLICATIONS, labels=300, rng=rng(i), method="published").recall_share
        for i, name in enumerate(CELLS)
    }
    gains = [ours[name] - theirs[name] for name in CELLS]  # type: ignore[operator]
    assert np.mean(gains) > 0.03
    assert min(gains) > -0.02


def test_certified_recall_on_the_dip_shapes(cells: list[Cell], stressed: dict[str, Traffic]) -> None:
    dips = [one.recall_share for one in cells if one.kind == "dip"]
    assert np.mean(dips) > 0.45  # type: ignore[arg-type]
    first = next(each for each in stressed.values() if each.kind == "dip")
    published = cell(first, replications=REPLICATIONS, labels=300, rng=rng(), method="published")
    assert published.recall_share is not None
    assert published.recall_share < 0.1


def test_the_number_of_labels_it_asks_for_is_about_right(gridded: dict[str, Traffic]) -> None:
    names = ("20%, AUROC 0.85, spread 1.0", "10%, AUROC 0.85, spread 1.0", "5%, AUROC 0.75, spread 1.5")
    found = [
        cell(gridded[name], replications=REPLICATIONS, labels=150, rng=rng(i), follow=True)
        for i, name in enumerate(names)
    ]
    asked, followed = sum(one.requests for one in found), sum(one.followed for one in found)
    assert asked > 30
    assert 0.6 < followed / asked < 0.95
    assert max(one.violations for one in found) * REPLICATIONS <= MOST


def test_the_same_seed_gives_the_same_outcome(gridded: dict[str, Traffic]) -> None:
    each = gridded[CELLS[2]]
    first, second, other = (certification(each, labels=300, replications=50, rng=rng(seed)) for seed in (1, 1, 2))
    assert first.flagged.tolist() == second.flagged.tolist()
    assert first.flagged.tolist() != other.flagged.tolist()


def test_wrong_certificates_and_none_count_for_nothing(gridded: dict[str, Traffic]) -> None:
    each = gridded[CELLS[0]]
    oracle = each.oracle()
    wrong, kept = against_truth(each, np.array([0, oracle, oracle + 5_000, oracle // 2]))
    assert wrong == 0.25
    assert kept[:3].tolist() == [0.0, 1.0, 0.0]
    assert 0.4 < kept[3] < 1


def test_intervals_and_strengths(gridded: dict[str, Traffic]) -> None:
    each = gridded["10%, AUROC 0.85, spread 1.5"]
    octave = coverage(each, n=300, design="octave", replications=REPLICATIONS, rng=rng(1))
    drawn = coverage(each, n=300, design="random", replications=REPLICATIONS, rng=rng(2))
    for share in (*octave.held.values(), *drawn.held.values()):
        assert 0.9 <= share <= 1
    assert octave.width < 0.8 * drawn.width
    chosen = misses(each, n=300, design="octave", replications=REPLICATIONS, rng=rng(3))
    assert chosen.bounded * REPLICATIONS <= MOST
    assert chosen.measured > 0.2


def test_labels_like_reads_off_the_sample_size_of_a_width() -> None:
    sizes = np.array([100.0, 400.0, 1600.0])
    assert labels_like(1 / np.sqrt(sizes), sizes, 1 / np.sqrt(900)) == pytest.approx(900)


def test_the_table_holds_every_target_it_can_and_says_whether_it_is_met(
    gridded: dict[str, Traffic], stressed: dict[str, Traffic]
) -> None:
    dip = next(each for each in stressed.values() if each.kind == "dip")
    traffic = [gridded["2%, AUROC 0.85, spread 2.0"], gridded["20%, AUROC 0.85, spread 1.0"], dip]
    assert all(reachable(each) for each in traffic)
    report = measure(50, traffic=traffic)
    names = " / ".join(row.name for row in report.rows)
    for part in ("violations of a certified", "grid", "dips", "published", "both attempts", "coverage", "bounded"):
        assert part in names
    text = targets(report.rows)
    assert len(text.splitlines()) == len(report.rows) + 1
    for row in report.rows:
        assert row.low <= row.measured <= row.high
        assert (row.met is None) == (row.target == "")


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"replications": 5}, "5 replications measure nothing"),
        ({"labels": 30}, "30 labels are too few"),
        ({"seed": -1}, "--seed -1"),
    ],
)
def test_the_verb_refuses_what_measures_nothing(given: dict[str, int], says: str) -> None:
    with pytest.raises(BadInput, match=says):
        run(
            Namespace(
                **{
                    "replications": 100,
                    "labels": 300,
                    "seed": None,
                    "drift": False,
                    "gate": False,
                    "json": False,
                    **given,
                }
            )
        )
