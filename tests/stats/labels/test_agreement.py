"""Agreement and what labellers' errors do, against published tables, other packages, closed forms and simulation."""

from __future__ import annotations

from itertools import permutations

import krippendorff
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.metrics import cohen_kappa_score, f1_score

from calibrate.errors import BadInput
from calibrate.stats.labels.agreement import Agreement, ac1, alpha, count_verdicts, measure_agreement
from calibrate.stats.labels.confident_learning import rank_doubts
from calibrate.stats.labels.sensitivity import Errors, Impossible, measure_errors, rogan_gladen, what_if
from tests.stats.wilson import mended

# Gwet, Handbook of Inter-Rater Reliability, 4th ed. (2014), p. 120: 12 subjects, 4 raters, 5 categories; 0 is missing.
GWET = np.array(
    [
        [1, 1, 0, 1], [2, 2, 3, 2], [3, 3, 3, 3], [3, 3, 3, 3], [2, 2, 2, 2], [1, 2, 3, 4],
        [4, 4, 4, 4], [1, 1, 2, 1], [2, 2, 2, 2], [0, 5, 5, 5], [0, 0, 1, 1], [0, 0, 3, 0],
    ]
)  # fmt: skip


def seeded(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def figures(codes: np.ndarray, groups: list | None = None, seed: int = 0) -> Agreement:
    names = [f"labeller {j}" for j in range(codes.shape[1])]
    return measure_agreement(names, codes, groups=groups or [None] * len(codes), rng=seeded(seed))


def two(rng: np.random.Generator, n: int, prevalence: float, misses: float = 0.1, false: float = 0.02) -> np.ndarray:
    """What two labellers who err alike and apart say of n traces."""
    truth = rng.random(n) < prevalence
    chance = np.where(truth, 1 - misses, false)
    return (rng.random((n, 2)) < chance[:, None]).astype(int)


def test_the_published_example_of_alpha_and_ac1() -> None:
    counts = count_verdicts(GWET - 1, 5)
    assert alpha(counts)[0] == pytest.approx(0.743, abs=5e-4)
    assert ac1(counts)[0] == pytest.approx(0.77544, abs=5e-6)


matrices = st.integers(2, 5).flatmap(
    lambda people: st.lists(
        st.lists(st.integers(-1, 3), min_size=people, max_size=people), min_size=2, max_size=25
    ).map(np.array)
)


@settings(max_examples=150)
@given(codes=matrices)
def test_alpha_is_that_of_the_krippendorff_package(codes: np.ndarray) -> None:
    ours = alpha(count_verdicts(codes, 4))[0]
    pairable = codes[(codes >= 0).sum(axis=1) > 1]
    if len(set(pairable[pairable >= 0].tolist())) < 2:
        assert np.isnan(ours)
        return
    data = np.where(codes < 0, np.nan, codes.astype(float)).T
    domain = list(range(4))
    theirs = krippendorff.alpha(reliability_data=data, value_domain=domain, level_of_measurement="nominal")
    assert ours == pytest.approx(theirs, abs=1e-10)


@settings(max_examples=60)
@given(table=st.tuples(*[st.integers(1, 40)] * 4))
def test_two_labellers_against_scikit_learn_and_closed_forms(table: tuple[int, int, int, int]) -> None:
    both, first, second, neither = table
    codes = np.repeat([[1, 1], [1, 0], [0, 1], [0, 0]], table, axis=0)
    found, n = figures(codes), sum(table)
    assert found.raw.value == pytest.approx((both + neither) / n)
    assert_allclose((found.raw.low, found.raw.high), mended(both + neither, n), atol=1e-9)
    assert found.positive.value == pytest.approx(f1_score(codes[:, 0], codes[:, 1]))
    assert found.negative.value == pytest.approx(f1_score(1 - codes[:, 0], 1 - codes[:, 1]))
    share = (2 * both + first + second) / (2 * n)
    by_chance = 2 * share * (1 - share)
    assert found.ac1.value == pytest.approx((found.raw.value - by_chance) / (1 - by_chance))
    # Scott's pi is Cohen's kappa of a table made symmetric; alpha is pi with a correction for few traces.
    pi = cohen_kappa_score(codes.T.ravel(), codes[:, ::-1].T.ravel())
    assert found.alpha.value == pytest.approx(1 - (1 - pi) * (2 * n - 1) / (2 * n))
    assert (found.traces, found.differ, found.both_hallucinated, found.both_clean) == (n, first + second, both, neither)


def test_the_order_of_traces_and_of_labellers_changes_nothing() -> None:
    codes = two(seeded(1), 80, 0.4)
    groups = [f"g{row // 3}" for row in range(80)]
    found = figures(codes, groups)
    order = seeded(2).permutation(80)
    assert figures(codes[order], [groups[row] for row in order]) == found
    assert figures(codes[:, ::-1], groups) == found


def test_unsure_is_no_verdict_and_is_counted() -> None:
    codes = two(seeded(3), 60, 0.4)
    unsure = np.concatenate([codes, [[2, 1], [0, 2], [2, 2], [2, -1], [1, -1]]])
    found = figures(unsure)
    assert found.unsure == 3
    assert found.alpha == figures(codes).alpha
    assert found.traces == 60


def test_what_cannot_be_known_is_none() -> None:
    nothing = figures(np.zeros((0, 2), dtype=int))
    assert nothing.raw.value is nothing.alpha.value is nothing.ac1.value is nothing.hallucinated is None
    all_clean = figures(np.zeros((50, 2), dtype=int))
    assert all_clean.alpha.value is None
    assert all_clean.positive.value is None
    assert all_clean.ac1.value == 1


def test_one_trace_tells_no_interval_and_few_that_are_all_alike_a_wide_one() -> None:
    one = figures(np.array([[0, 1]]))
    assert one.alpha.value is one.ac1.value is None
    assert (one.raw.value, one.raw.low) == (0, 0)
    disputed = figures(np.array([[0, 1]] * 6))
    assert disputed.ac1.value == pytest.approx(-1)
    assert disputed.ac1.low == -1
    assert disputed.ac1.high is not None
    assert -0.5 < disputed.ac1.high < 0.5


def test_without_a_disagreement_the_intervals_still_reach_below_one() -> None:
    codes = np.repeat([[1, 1], [0, 0]], [4, 6], axis=0)
    found = figures(codes)
    assert found.alpha.value == found.ac1.value == 1
    for one in (found.raw, found.positive, found.negative, found.alpha, found.ac1):
        assert one.low is not None
        assert one.low < 0.8


def test_copies_of_a_trace_in_one_group_teach_nothing_new() -> None:
    codes = two(seeded(4), 100, 0.4)
    alone = figures(codes)
    copied = figures(np.repeat(codes, 5, axis=0), [f"g{row // 5}" for row in range(500)])
    free = figures(np.repeat(codes, 5, axis=0))

    def width(one: Agreement, name: str) -> float:
        return getattr(one, name).high - getattr(one, name).low

    for name in ("raw", "positive", "alpha", "ac1"):
        assert width(copied, name) == pytest.approx(width(alone, name), rel=0.12)
        assert width(free, name) < 0.6 * width(alone, name)


@pytest.mark.parametrize(("n", "prevalence", "expected", "half"), [(100, 0.4, 0.79, 0.12), (300, 0.02, 0.42, 0.25)])
def test_an_enriched_set_pins_alpha_down_and_a_random_one_does_not(
    n: int, prevalence: float, expected: float, half: float
) -> None:
    rng = seeded(5)
    counts = [count_verdicts(two(rng, n, prevalence), 2) for _ in range(400)]
    alphas = np.array([alpha(one)[0] for one in counts])
    assert np.nanmean(alphas) == pytest.approx(expected, abs=0.02)
    assert 1.96 * np.nanstd(alphas) == pytest.approx(half, abs=0.02)
    if prevalence < 0.1:
        assert np.mean([ac1(one)[0] for one in counts]) == pytest.approx(0.95, abs=0.01)


@pytest.mark.parametrize(
    ("n", "names"), [(120, ("raw", "positive", "negative", "alpha", "ac1")), (30, ("alpha", "ac1"))]
)
def test_the_intervals_cover(n: int, names: tuple[str, ...]) -> None:
    """Labellers whose true agreement is known: an error of 2.5 points is 2.5 standard deviations."""
    prevalence, misses, false = 0.4, 0.15, 0.05
    said = prevalence * (1 - misses) + (1 - prevalence) * false
    differ = 2 * (prevalence * misses * (1 - misses) + (1 - prevalence) * false * (1 - false))
    by_chance = 2 * said * (1 - said)
    truth = {
        "raw": 1 - differ,
        "positive": 1 - differ / (2 * said),
        "negative": 1 - differ / (2 * (1 - said)),
        "alpha": 1 - differ / by_chance,
        "ac1": (1 - differ - by_chance) / (1 - by_chance),
    }
    rng = seeded(6)
    found = [figures(two(rng, n, prevalence, misses, false), seed=k) for k in range(400)]
    for name in names:
        covered = np.mean([getattr(one, name).low <= truth[name] <= getattr(one, name).high for one in found])
        assert 0.925 <= covered <= 0.985, name


def test_ten_percent_misses_and_two_percent_false_calls_make_recall_60_look_like_29() -> None:
    rates = Errors(0.1, 0.02)
    prevalence, recall, false_positive_rate = 0.02, 0.6, 0.0
    called = prevalence * 0.9 + (1 - prevalence) * 0.02
    flagged = prevalence * recall + (1 - prevalence) * false_positive_rate
    flagged_and_called = prevalence * recall * 0.9 + (1 - prevalence) * false_positive_rate * 0.02
    found = what_if(prevalence=called, precision=flagged_and_called / flagged, flag_rate=flagged, errors=rates)
    assert found.recall.apparent == pytest.approx(0.287, abs=5e-4)
    assert found.recall.value == pytest.approx(0.6)
    assert found.prevalence.value == pytest.approx(0.02)
    assert found.precision.value == pytest.approx(1)


@given(
    prevalence=st.floats(0.01, 0.9), recall=st.floats(0.05, 1), fpr=st.floats(0, 0.9),
    misses=st.floats(0, 0.45), false=st.floats(0, 0.45),
)  # fmt: skip
def test_errors_put_in_are_taken_out(prevalence: float, recall: float, fpr: float, misses: float, false: float) -> None:
    hit, wrong = prevalence * recall, (1 - prevalence) * fpr
    called = prevalence * (1 - misses) + (1 - prevalence) * false
    precision = (hit * (1 - misses) + wrong * false) / (hit + wrong)
    found = what_if(prevalence=called, precision=precision, flag_rate=hit + wrong, errors=Errors(misses, false))
    assert_allclose(
        (found.prevalence.value, found.precision.value, found.recall.value),
        (prevalence, hit / (hit + wrong), recall),
        atol=1e-6,
    )
    assert rogan_gladen(called, Errors(0, 0)).value == called


def test_impossible_error_rates_are_said() -> None:
    assert rogan_gladen(0.01, Errors(0, 0.05)).value == 0
    assert rogan_gladen(0.01, Errors(0, 0.05)).why == Impossible.FALSE_CALLS
    assert (rogan_gladen(0.95, Errors(0.1, 0)).value, rogan_gladen(0.95, Errors(0.1, 0)).why) == (1, Impossible.MISSES)
    useless = rogan_gladen(0.5, Errors(0.6, 0.4))
    assert (useless.value, useless.why) == (None, Impossible.UNINFORMATIVE)
    none_left = what_if(prevalence=0.01, precision=0.5, flag_rate=0.01, errors=Errors(0, 0.05))
    assert none_left.recall.value is None
    assert none_left.recall.why == Impossible.NOTHING_LEFT
    too_many = what_if(prevalence=0.1, precision=0.9, flag_rate=0.5, errors=Errors(0, 0))
    assert (too_many.recall.value, too_many.recall.why) == (1, Impossible.MORE_FLAGGED)
    with pytest.raises(BadInput, match="miss rate"):
        Errors(-0.1, 0)


def test_error_rates_need_twenty_of_each_and_the_weights_of_the_draw() -> None:
    rng = seeded(7)
    truth = rng.random(20_000) < 0.1
    said = rng.random(20_000) < np.where(truth, 0.85, 0.03)
    drawn = np.concatenate([rng.choice(np.flatnonzero(said == one), 1500, replace=False) for one in (True, False)])
    weights = np.where(said, said.sum() / 1500, (~said).sum() / 1500)
    found = measure_errors("ann", said[drawn], truth[drawn], weights[drawn]).errors
    assert found is not None
    assert_allclose((found.misses, found.false_calls), (0.15, 0.03), atol=0.03)
    unweighted = measure_errors("ann", said[drawn], truth[drawn], np.ones(len(drawn))).errors
    assert unweighted is not None
    assert unweighted.misses < 0.06  # the draw favours what she called hallucinated
    assert measure_errors("ann", [True] * 40, [True] * 21 + [False] * 19, np.ones(40)).errors is None


def test_flipped_labels_are_found_and_the_detectors_that_doubt_them_are_named() -> None:
    rng = seeded(8)
    truth = rng.random(400) < 0.3
    scores = {
        "sharp": rng.normal(2.2 * truth, 1.0),
        "below": -rng.normal(1.5 * truth, 1.0),
        "noise": rng.normal(size=400),
        "same": np.ones(400),
        "gaps": np.where(rng.random(400) < 0.5, np.nan, rng.normal(truth, 1.0)),
    }
    flipped = np.concatenate(
        [np.argsort(-(scores["sharp"] - scores["below"]) * sign)[:5] for sign in (1, -1)]
    )  # the clearest of both kinds
    labels = truth.copy()
    labels[flipped] = ~labels[flipped]
    flags = {name: "below" if name == "below" else "above" for name in scores}
    found = rank_doubts(labels, scores, flag_when=flags, groups=[None] * 400, rng=seeded())  # type: ignore[arg-type]
    assert {one.row for one in found.ranked[:20]} >= set(flipped[:5].tolist())
    assert np.mean([one.row in flipped for one in found.ranked[:10]]) >= 0.7
    assert found.detectors == ("sharp", "below", "noise", "gaps")
    top = found.ranked[0]
    assert top.reasons[0].detector in ("sharp", "below")
    assert top.surprise == pytest.approx(-np.log(top.probability if labels[top.row] else 1 - top.probability))
    for reason in top.reasons:
        flag = -1 if reason.detector == "below" else 1
        same = flag * scores[reason.detector][labels == labels[top.row]] * (-1 if labels[top.row] else 1)
        same = same[~np.isnan(same)]
        own = flag * reason.value * (-1 if labels[top.row] else 1)
        assert reason.beyond == pytest.approx(np.mean(same < own), abs=0.02)


def test_a_trace_is_never_judged_by_a_fit_that_saw_its_group() -> None:
    """Labels are noise, but each group of four shares a label and a score of its own: leaking would look like skill."""
    rng = seeded(9)
    labels = np.repeat(rng.random(100) < 0.5, 4)
    marks = {f"d{j}": np.repeat(rng.normal(size=100), 4) for j in range(30)}
    flags = dict.fromkeys(marks, "above")
    groups = [f"g{row // 4}" for row in range(400)]
    kept = rank_doubts(labels, marks, flag_when=flags, groups=groups, rng=seeded())  # type: ignore[arg-type]
    split = rank_doubts(labels, marks, flag_when=flags, groups=[None] * 400, rng=seeded())  # type: ignore[arg-type]
    assert kept.auroc < 0.62 < split.auroc


def test_too_few_or_useless_scores_are_refused_in_a_sentence() -> None:
    labels = np.arange(40) < 9
    with pytest.raises(BadInput, match="at least 10 hallucinated"):
        rank_doubts(labels, {"a": np.arange(40.0)}, flag_when={"a": "above"}, groups=[None] * 40, rng=seeded())
    labels = np.arange(40) < 20
    with pytest.raises(BadInput, match="no detector tells"):
        rank_doubts(labels, {"a": np.full(40, np.nan)}, flag_when={"a": "above"}, groups=[None] * 40, rng=seeded())


def test_infinite_scores_only_count_as_extreme() -> None:
    labels = np.arange(60) < 20
    scores = np.where(labels, 1.0, 0.0) + seeded().normal(size=60)
    scores[[0, 59]] = np.inf, -np.inf
    found = rank_doubts(labels, {"a": scores}, flag_when={"a": "above"}, groups=[None] * 60, rng=seeded())
    assert np.isfinite([one.surprise for one in found.ranked]).all()


def test_three_labellers_count_every_pair() -> None:
    codes = np.array([[1, 1, 0], [0, 0, 0], [1, 1, 1], [0, -1, 0]])
    pairs = [(row[i], row[j]) for row in codes.tolist() for i, j in permutations(range(3), 2)]
    said = [(a, b) for a, b in pairs if a == 1 and b >= 0]
    # Each labeller of a trace is the second one for as many firsts as looked at it.
    assert figures(codes).positive.value == pytest.approx(sum(b for _, b in said) / len(said))
    assert figures(codes).differ == 1
