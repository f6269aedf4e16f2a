"""The rule that chooses a threshold, and what is said of the choice."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.metrics import fbeta_score

from calibrate.errors import BadInput
from calibrate.stats.choosing.bounded import Bounded, bounded
from calibrate.stats.choosing.choose import NotEnoughLabels, choose, choose_bounded
from calibrate.stats.choosing.policy import Policy, parse
from calibrate.stats.choosing.pool import Pool
from calibrate.stats.fitting import smoothed_curve
from calibrate.stats.fitting.smoothed_curve import smooth_sweep
from calibrate.stats.intervals.sweep_intervals import figures
from calibrate.stats.sweep.sweep import Sweep, sweep
from calibrate.types import FlagWhen, Unmet, UnmetReason


def made_up(seed: int, n: int = 300, *, prevalence: float = 0.15, shift: float = 1.5) -> Sweep:
    rng = np.random.default_rng(seed)
    labels = rng.random(n) < prevalence
    labels[:2] = [True, False]
    return sweep(labels, (rng.normal(size=n) + shift * labels).round(2))


@pytest.mark.parametrize(
    ("text", "policy", "canonical"),
    [
        ("precision>=0.7", Policy("precision", 0.7), "precision>=0.7"),
        (" Precision >= .70 ", Policy("precision", 0.7), "precision>=0.7"),
        ("precision>=1", Policy("precision", 1.0), "precision>=1"),
        ("elbow", Policy("elbow"), "elbow"),
        ("manual", Policy("manual"), "manual"),
        ("manual:-2.5e-1", Policy("manual", -0.25), "manual:-0.25"),
        ("manual:0.12345678901234568", Policy("manual", 0.12345678901234568), "manual:0.12345678901234568"),
        ("recall>=.9", Policy("recall", 0.9), "recall>=0.9"),
        ("F1", Policy("f-beta", 1.0), "f-beta:1"),
        ("f0.5", Policy("f-beta", 0.5), "f-beta:0.5"),
        ("f-beta:2", Policy("f-beta", 2.0), "f-beta:2"),
        ("cost: miss=20, fa=1.5", Policy("cost", 1.5, 20.0), "cost:fa=1.5,miss=20"),
        ("alerts <= 20 / day", Policy("alerts", 20.0), "alerts<=20/day"),
    ],
)
def test_policies_are_read_and_written(text: str, policy: Policy, canonical: str) -> None:
    assert parse(text) == policy
    assert str(policy) == canonical
    assert parse(str(policy)) == policy


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "write one of"),
        ("recall>=70", "write recall>=0.7 for 70%"),
        ("foo", "write one of"),
        ("f-beta:x", "'x' is no number; write f-beta:1"),
        ("f0", "beta is 0 and must be above 0"),
        ("cost:fa=1", "price of a false alarm and of a miss"),
        ("cost:fa=1,miss=much", "'much' is no number"),
        ("cost:fa=1,miss=-2", "price miss is -2 and must be above 0"),
        ("alerts<=20", "write one of"),
        ("alerts<=0/day", "number a day is 0 and must be above 0"),
        ("precision>0.7", "write one of"),
        ("precision>=", "is no number"),
        ("precision>=high", "is no number"),
        ("precision>=nan", "is no number"),
        ("precision>=0", "above 0 and at most 1"),
        ("precision>=-0.2", "above 0 and at most 1"),
        ("precision>=70", "write precision>=0.7 for 70%"),
        ("precision>=1.7", "write a share, like precision>=0.7"),
        ("manual:inf", "is no number"),
    ],
)
def test_other_policies_are_a_sentence(text: str, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        parse(text)


@pytest.mark.parametrize("target", [0.3, 0.5, 0.7, 0.9])
@pytest.mark.parametrize("seed", range(4))
def test_precision_takes_most_recall_by_brute_force(seed: int, target: float) -> None:
    ours = made_up(seed)
    point = choose(ours, Policy("precision", target), detector="d")
    reach = [i for i in range(len(ours)) if ours.tp_count[i] / (ours.tp_count[i] + ours.fp_count[i]) >= target]
    assert point.feasible == bool(reach)
    if reach:
        # Most recall; of equals the strictest, which is the first.
        best = max(reach, key=lambda i: (ours.tp_count[i], -i))
        assert point.threshold == ours.thresholds[best]
        assert point.precision.value >= target - 1e-12  # type: ignore[operator]
    assert point.true_positives + point.false_negatives == ours.positives
    assert point.detector == "d"


def test_a_target_met_exactly_is_met_in_weights_too() -> None:
    point = choose(
        sweep([1] * 7 + [0] * 13, [1.0] * 7 + [1.0] * 3 + [0.0] * 10, weights=[0.1] * 20), Policy("precision", 0.7)
    )
    assert point.feasible
    assert point.threshold == 1.0


def test_ties_of_recall_take_the_stricter_threshold() -> None:
    assert choose(sweep([1, 1, 0, 0], [4.0, 3.0, 2.0, 1.0]), Policy("precision", 0.4)).threshold == 3.0
    below = sweep([1, 1, 0, 0], [1.0, 2.0, 3.0, 4.0], flag_when="below")
    assert choose(below, Policy("precision", 0.4)).threshold == 2.0


def test_a_target_that_nothing_reaches_gives_the_nearest_and_says_so() -> None:
    # 11 of 19 flagged is the best there is.
    labels = np.repeat([1, 0, 1, 0], [11, 8, 4, 77])
    scores = np.repeat([0.31, 0.31, 0.1, 0.1], [11, 8, 4, 77])
    point = choose(sweep(labels, scores), parse("precision>=0.7"), detector="d")
    assert (point.feasible, point.threshold) == (False, 0.31)
    assert point.why == Unmet(UnmetReason.PRECISION)
    assert (point.true_positives, point.false_positives) == (11, 8)
    assert point.precision.low is not None


@settings(max_examples=60)
@given(st.integers(0, 10_000), st.floats(0.05, 1), st.floats(0.05, 1))
def test_the_threshold_is_monotone_in_the_target(seed: int, one: float, other: float) -> None:
    ours = made_up(seed, 80, shift=0.7)
    loose, strict = (choose(ours, Policy("precision", target)) for target in sorted((one, other)))
    assert strict.threshold >= loose.threshold
    assert loose.feasible >= strict.feasible


@pytest.mark.parametrize("policy", ["precision>=0.7", "elbow", "recall>=0.5", "f1", "cost:fa=1,miss=1"])
@pytest.mark.parametrize(
    ("labels", "scores", "says"),
    [
        ([], [], "of 0 labels 0 are hallucinated"),
        ([0, 0, 0], [1.0, 2.0, 3.0], "d: a threshold needs .* of 3 labels 0 are hallucinated, and 3 have a score"),
        ([1, 1], [1.0, 2.0], "of 2 labels 2 are hallucinated"),
        ([1, 0], [np.nan, np.nan], "0 have a score, 0 of them hallucinated. Label more traces, or see why"),
    ],
)
def test_labels_that_cannot_choose_are_refused_with_a_remedy(
    policy: str, labels: list[int], scores: list[float], says: str
) -> None:
    with pytest.raises(NotEnoughLabels, match=says):
        choose(sweep(np.array(labels, dtype=int), np.array(scores)), parse(policy), detector="d")


def test_manual_takes_any_threshold_and_measures_it() -> None:
    ours = sweep([1, 0, 1, 0], [4.0, 3.0, 2.0, 1.0])
    point = choose(ours, parse("manual:2.5"))
    assert (point.threshold, point.true_positives, point.false_positives) == (2.5, 1, 1)
    assert point.policy == "manual:2.5"
    assert choose(ours, parse("manual"), threshold=2.5) == point
    assert choose(ours, parse("manual:9")).precision.value is None
    with pytest.raises(BadInput, match=r"write manual:0\.42"):
        choose(ours, parse("manual"))


def test_manual_on_one_class_says_what_is_not_known() -> None:
    point = choose(sweep([0, 0], [1.0, 2.0]), parse("manual:1.5"))
    assert (point.recall.value, point.why, point.feasible) == (None, None, True)


def test_fitting_cells_is_fitting_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(9)
    labels = rng.random(30_000) < 0.1
    ours = sweep(labels, rng.normal(size=30_000) + labels, weights=rng.uniform(1, 5, 30_000))
    assert len(ours) > smoothed_curve.CELLS
    cells = smooth_sweep(ours)
    monkeypatch.setattr(smoothed_curve, "CELLS", 10**9)
    assert_allclose(cells.probability, smooth_sweep(ours).probability, rtol=2e-3)


def test_the_logistic_survives_separation_and_wild_scores() -> None:
    separated = smooth_sweep(sweep([0] * 50 + [1] * 5, np.arange(55.0)))
    assert np.all(np.isfinite(separated.f1))
    assert choose(sweep([0] * 50 + [1] * 5, np.arange(55.0)), Policy("elbow")).threshold == pytest.approx(50, abs=2)
    outlier = np.append(np.random.default_rng(0).normal(size=400), 1e6)
    assert np.all(np.isfinite(smooth_sweep(sweep(np.arange(401) % 5 == 0, outlier)).f1))
    assert len(smooth_sweep(sweep([0, 1, 1], [2.0, 2.0, 2.0])).f1) == 1


def test_the_elbow_is_near_the_true_maximum_and_steadier_than_raw_f1() -> None:
    # Two normal scores 1.5 apart at 15%: the best F1 of the true curve, on a fine grid.
    from scipy.stats import norm

    grid = np.linspace(-3, 5, 4_001)
    tp, fp = 0.15 * norm.sf(grid - 1.5), 0.85 * norm.sf(grid)
    best = grid[np.argmax(2 * tp / (tp + fp + 0.15))]
    elbows, raw = [], []
    for seed in range(60):
        ours = made_up(seed)
        elbows.append(choose(ours, Policy("elbow")).threshold)
        raw.append(ours.thresholds[np.argmax(2 * ours.tp / (ours.tp + ours.fp + ours.positives))])
    assert np.mean(elbows) == pytest.approx(best, abs=0.1)
    assert np.std(elbows) < 0.6 * np.std(raw)


POOL = np.random.default_rng(2).normal(size=1000) + 0.3
EVERY = ["precision>=0.5", "recall>=0.6", "f1", "f0.5", "cost:fa=1,miss=5", "alerts<=40/day", "elbow", "manual:0.5"]


def traces(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Labels, scores (ties among them, some missing) and weights of 120 traces."""
    rng = np.random.default_rng(seed)
    labels = rng.random(120) < 0.25
    labels[:2] = [True, False]
    scores = (rng.normal(size=120) + 1.2 * labels).round(2)
    scores[rng.random(120) < 0.1] = np.nan
    scores[:2] = [1.0, 0.0]
    return labels, scores, rng.choice([0.5, 1.0, 4.0], 120)


def chosen(text: str, ours: Sweep, *, sign: float = 1.0) -> dict[str, object]:
    """What a policy says of a sweep, but for the number of labels and the intervals' width."""
    policy = parse(text.replace("manual:", f"manual:{'-' if sign < 0 else ''}"))
    point = choose(ours, policy, pool=Pool(sign * POOL, per_day=200.0))
    return {
        "threshold": sign * point.threshold,
        "feasible": point.feasible,
        "shares": [round(f.value or 0, 9) for f in (point.precision, point.recall, point.fpr, point.flag_rate)],
        "coverage": round(point.coverage, 9),
    }


@pytest.mark.parametrize("text", EVERY)
@settings(max_examples=8)
@given(seed=st.integers(0, 10_000))
def test_what_must_not_matter_does_not(text: str, seed: int) -> None:
    labels, scores, weights = traces(seed)
    here = chosen(text, sweep(labels, scores, weights=weights))
    order = np.random.default_rng(seed + 1).permutation(120)
    assert chosen(text, sweep(labels[order], scores[order], weights=weights[order])) == here
    assert chosen(text, sweep(labels, -scores, weights=weights, flag_when="below"), sign=-1.0) == here
    if text != "elbow":  # whose penalty is felt per label: twice as many labels bend the curve more
        twice = sweep(np.tile(labels, 2), np.tile(scores, 2), weights=np.tile(weights, 2) / 2)
        assert chosen(text, twice) == here


@pytest.mark.parametrize("text", EVERY)
@pytest.mark.parametrize("verdict", [True, False])
def test_an_abstaining_trace_moves_coverage_and_what_is_end_to_end_only(text: str, verdict: bool) -> None:
    """Not for `recall`, whose target is end to end, nor for F, which a miss lowers everywhere but not equally."""
    if text.startswith("recall") or (verdict and text in ("f1", "f0.5", "elbow")):
        return
    labels, scores, weights = traces(3)
    pool = Pool(POOL, per_day=200.0)
    one = choose(sweep(labels, scores, weights=weights), parse(text), pool=pool)
    more = sweep(np.append(labels, verdict), np.append(scores, np.nan), weights=np.append(weights, 2.0))
    other = choose(more, parse(text), pool=pool)
    assert (other.threshold, other.precision) == (one.threshold, one.precision)
    assert other.coverage < one.coverage
    assert (other.recall.value < one.recall.value) == verdict  # type: ignore[operator]


def by_hand(ours: Sweep, i: int) -> tuple[int, int]:
    return int(ours.tp_count[i]), int(ours.fp_count[i])


@pytest.mark.parametrize("seed", range(5))
def test_every_rule_by_brute_force(seed: int) -> None:
    ours = made_up(seed)
    every = range(len(ours))
    share = {i: ours.tp_count[i] / sum(by_hand(ours, i)) for i in every}

    deep = [i for i in every if ours.tp_count[i] / ours.positives >= 0.6]
    most = max(deep, key=lambda i: (round(share[i], 12), ours.tp_count[i], -i))
    assert choose(ours, parse("recall>=0.6")).threshold == ours.thresholds[most]

    def price(i: int) -> float:
        tp, fp = by_hand(ours, i)
        return fp * 2 + (ours.positives - tp) * 9

    assert choose(ours, parse("cost:fa=2,miss=9")).threshold == ours.thresholds[min(every, key=price)]

    # Not only labelled scores: the loosest score of the traffic that flags few enough of it.
    few = [cut for cut in POOL if np.mean(cut <= POOL) * 500 <= 60]
    point = choose(ours, parse("alerts<=60/day"), pool=Pool(POOL, per_day=500.0))
    assert point.threshold == min(few)
    flagged = ours.thresholds >= point.threshold
    assert point.true_positives == max(ours.tp_count[flagged], default=0)


@pytest.mark.parametrize("flag_when", ["above", "below"])
def test_flags_a_day_come_close_to_what_is_asked_for_whatever_was_labelled(flag_when: FlagWhen) -> None:
    sign = 1.0 if flag_when == "above" else -1.0
    rng = np.random.default_rng(3)
    scores = rng.normal(size=7 * 2000)
    labelled = rng.choice(len(scores), 300, replace=False)
    verdicts = rng.random(300) < 1 / (1 + np.exp(2 - 2 * scores[labelled]))
    ours = sweep(verdicts, sign * scores[labelled], flag_when=flag_when)
    for daily in (5, 20, 60):
        pool = Pool(sign * scores, per_day=2000.0)
        point = choose(ours, Policy("alerts", daily), pool=pool)
        assert pool.flags_a_day(point.threshold, flag_when) == pytest.approx(daily)
        assert figures(ours, point.threshold).recall == point.recall


@pytest.mark.parametrize("beta", [0.5, 1.0, 2.0])
def test_f_beta_is_scikit_learns(beta: float) -> None:
    rng = np.random.default_rng(8)
    labels = rng.random(150) < 0.3
    scores = rng.normal(size=150).round(1) + labels
    weights = rng.uniform(0.5, 3, 150)
    point = choose(sweep(labels, scores, weights=weights), Policy("f-beta", beta))
    theirs = {t: fbeta_score(labels, scores >= t, beta=beta, sample_weight=weights) for t in np.unique(scores)}
    assert theirs[point.threshold] == pytest.approx(max(theirs.values()), abs=1e-12)


@settings(max_examples=30)
@given(st.integers(0, 10_000), st.floats(0.05, 1), st.floats(0.05, 1))
def test_every_threshold_is_monotone_in_what_is_asked(seed: int, one: float, other: float) -> None:
    ours, pool = made_up(seed, 80, shift=0.7), Pool(POOL, per_day=100.0)
    for asked in (
        lambda x: Policy("recall", x),
        lambda x: Policy("f-beta", 4 * x),
        lambda x: Policy("cost", 1.0, 20 * x),
        lambda x: Policy("alerts", 100 * x),
    ):
        less, more = (choose(ours, asked(x), pool=pool) for x in sorted((one, other)))
        assert more.threshold <= less.threshold


def test_what_cannot_be_met_gives_the_nearest_and_says_so() -> None:
    # 2 of 4 hallucinated have a score; the top label is clean, and false alarms are dear.
    ours = sweep([0, 1, 0, 1, 1, 1], [9.0, 8.0, 7.0, 6.0, np.nan, np.nan])
    found = choose(ours, parse("recall>=0.9"))
    assert (found.feasible, found.threshold) == (False, 6.0)
    assert found.why == Unmet(UnmetReason.RECALL)
    dear = choose(ours, parse("cost:fa=60,miss=3"))
    assert (dear.feasible, dear.threshold) == (False, 8.0)  # by hand: 69 for the six traces, 72 at 9, 126 at 6
    assert dear.why is not None
    assert (dear.why.reason, dear.why.instead) == (UnmetReason.COST, pytest.approx(2.0))
    assert dear.why.best is not None
    assert dear.why.best > 2
    busy = choose(ours, parse("alerts<=5/day"), pool=Pool(np.array([10.0, 9.5, 1.0, np.nan]), per_day=40.0))
    assert (busy.feasible, busy.threshold) == (False, 10.0)
    assert busy.why == Unmet(UnmetReason.ALERTS, best=10.0)
    assert busy.precision.value is None  # no label is as suspicious


@pytest.mark.parametrize(
    ("pool", "says"),
    [
        (None, "kept to 20 a day: the traffic has no scores; run the detector over it"),
        (Pool(np.array([np.nan]), 10.0), "the traffic has no scores"),
        (Pool(POOL, None), "flags cannot be kept to 20 a day: the traces carry no time"),
    ],
)
def test_flags_a_day_need_dated_and_scored_traffic(pool: Pool | None, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        choose(made_up(1), parse("alerts<=20/day"), pool=pool)


def test_a_pool_counts_missing_scores_as_not_flagged() -> None:
    pool = Pool(np.array([1.0, 2.0, 3.0, np.nan]), per_day=10.0)
    assert_allclose(pool.flag_rate(np.array([3.0, 2.5, 1.0, 9.0]), "above"), [0.25, 0.25, 0.75, 0.0])
    assert_allclose(pool.flag_rate(np.array([3.0, 2.5, 1.0, 0.0]), "below"), [0.75, 0.5, 0.25, 0.0])
    assert pool.flags_a_day(2.0, "above") == 5.0
    assert Pool(pool.scores, None).flags_a_day(2.0, "above") is None
    with pytest.raises(BadInput, match="1 scores are infinite"):
        Pool(np.array([1.0, np.inf]), None)


def test_a_bounded_point_carries_what_the_walk_found() -> None:
    rng = np.random.default_rng(4)
    labels = np.arange(400) < 120
    ours = sweep(labels, rng.normal(size=400) + 2.5 * labels)
    point, walk = choose_bounded(ours, parse("precision>=0.7"), detector="d"), bounded(ours, 0.7)
    assert isinstance(walk, Bounded)
    assert point.guarantee is not None
    assert (point.threshold, point.guarantee.bound, point.guarantee.labels) == (walk.threshold, walk.bound, walk.labels)
    assert (point.strength, point.feasible, point.guarantee.sample) == ("bounded", True, None)
    assert (point.guarantee.target, point.guarantee.confidence) == (0.7, 0.95)
    flagged = point.true_positives + point.false_positives
    assert (point.guarantee.hallucinated, point.guarantee.labels) == (point.true_positives, flagged)
    assert point.threshold > choose(ours, parse("precision>=0.7")).threshold


def test_what_is_not_bounded_says_so_and_passes_nothing() -> None:
    weak = choose_bounded(made_up(1, shift=0.2), parse("precision>=0.9"))
    assert (weak.feasible, weak.guarantee, weak.strength) == (False, None, "measured")
    assert weak.why is not None
    assert weak.why.reason == UnmetReason.BOUND
    assert weak.why.best is not None
    assert weak.why.best < (weak.precision.value or 0.0)
    small = choose_bounded(sweep([1, 0, 1], [3.0, 2.0, 1.0]), parse("precision>=0.5"))
    assert (small.feasible, small.threshold) == (False, 1.0)
    assert small.why == Unmet(UnmetReason.FEW_FLAGGED)
    with pytest.raises(BadInput, match="a precision of 1: the target must lie between 0 and 1"):
        choose_bounded(made_up(1), parse("precision>=1"))
    with pytest.raises(BadInput, match=r"only a precision can: write precision>=0\.7"):
        choose_bounded(made_up(1), parse("elbow"))
    with pytest.raises(NotEnoughLabels, match="d: a threshold needs"):
        choose_bounded(sweep([0, 0], [1.0, 2.0]), parse("precision>=0.7"), detector="d")


@pytest.mark.parametrize("text", EVERY)
def test_equal_scores_flag_all_or_nothing(text: str) -> None:
    point = choose(sweep([1, 1, 0, 0], [0.5] * 4), parse(text), pool=Pool(np.array([0.5, 0.1]), 60.0))
    assert (point.threshold, point.precision.value, point.recall.value) == (0.5, 0.5, 1.0)


def test_a_rule_without_its_number_says_what_to_write() -> None:
    with pytest.raises(BadInput, match=r"needs a number: write precision>=0\.7"):
        choose(made_up(1), Policy("precision"))
