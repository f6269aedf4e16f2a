"""Ensemble: several detectors as one decision, what it finds beside the best single detector, and its two tiers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np

from calibrate.errors import BadInput
from calibrate.stats.choosing.bounded import NotBounded, bounded
from calibrate.stats.ensembles import budget_cuts, combine, members, nested_cv
from calibrate.stats.ensembles.cascade import Frontier, frontier
from calibrate.stats.ensembles.combine import Recipe
from calibrate.stats.ensembles.joint import Correlation, Joint, correlation, joint_false_positives
from calibrate.stats.ensembles.performance import (
    Judged,
    Performance,
    auroc_within_folds,
    measure_performance,
    recall_difference,
)
from calibrate.stats.ensembles.rules import Fixed, Logistic, Rule, to_json
from calibrate.stats.ensembles.training_data import TrainingData
from calibrate.stats.fitting.ridge import expit
from calibrate.stats.intervals.prevalence_interval import prevalence_interval
from calibrate.stats.sweep.design import Floats
from calibrate.stats.sweep.sweep import enough_to_rank, sweep
from calibrate.thresholds.model import label_set_digest
from calibrate.types import (
    BestSingle,
    Ensemble,
    EnsembleCut,
    EnsembleCuts,
    EnsembleData,
    EnsembleFigures,
    EnsembleMember,
    Interval,
    SavedEnsemble,
    Shares,
    Strength,
)
from calibrate.workflow.detection import configurations
from calibrate.workflow.tuning.ensemble_data import Gathered, candidate_names, costliest, gather, prices, worth_a_filter
from calibrate.workflow.tuning.ensemble_judging import Compared, Judging
from calibrate.workflow.tuning.operating_points import require_reason
from calibrate.workflow.tuning.point_state import judge_ensemble
from db import Store

BUDGET = 0.05
TARGET = 0.7
DEFAULT = 4  # detectors, when none is named


@dataclass(frozen=True)
class Cut:
    """From which score on the ensemble flags, and which `share` of the traffic that is; None: nothing. `unmet` says why
    no precision could be bounded, where that is the reason."""

    threshold: float | None
    share: float
    strength: Strength
    target: float | None = None
    bound: float | None = None
    unmet: NotBounded | None = None


@dataclass(frozen=True)
class Report:
    """An ensemble and all that is known of it. Figures are out of fold: no label judges a rule it helped to make.

    `picks`: in how many of the `dealt` training folds each detector was picked, where nobody named the members: the
    figures are of the picking too, and the rule is of those picked on all labels. None where all were taken.

    `best` names the detector that ranks best on all labels, of those that can flag so little; `best_figures` are those
    of choosing it inside the folds. `flagged` labels are flagged on average over the dealings, `hits` of them
    hallucinated. `each` are the thresholds at which every detector alone flags the budget's share of
    the traffic, `joint` is of those that can.
    """

    recipe: Recipe
    rule: Rule
    budget: float
    gathered: Gathered
    signal: Cut
    page: Cut
    figures: Performance
    flagged: float
    hits: float
    auroc: Interval
    best: str
    best_figures: Performance
    apart: Interval
    compared: tuple[Compared, ...]
    each: Mapping[str, float | None]
    joint: tuple[Joint, ...]
    correlation: Correlation
    frontier: Frontier | None
    picks: Mapping[str, int] | None = None

    @property
    def able(self) -> tuple[str, ...]:
        """The detectors that can flag as little as the budget."""
        return tuple(sorted(name for name, at in self.each.items() if at is not None))

    @property
    def dealt(self) -> int:
        return nested_cv.REPEATS * nested_cv.FOLDS

    @property
    def n(self) -> int:
        return len(self.gathered.training.labels)

    @property
    def positives(self) -> int:
        return self.gathered.training.positives

    @property
    def prevalence(self) -> Interval:
        """The estimated share of the traffic that is hallucinated."""
        training = self.gathered.training
        return prevalence_interval(training.labels, design=training.design, groups=training.groups)

    @property
    def coverage(self) -> Mapping[str, float]:
        """The estimated share of the traffic that each detector can score, 0 to 1."""
        training = self.gathered.training
        scored = {name: np.isfinite(scores) for name, scores in training.scores.items()}
        return {name: float(np.average(has_score, weights=training.weights)) for name, has_score in scored.items()}


def build(
    store: Store,
    recipe: Recipe,
    names: Sequence[str] = (),
    *,
    sample: str | None = None,
    budget: float | None = BUDGET,
    target: float = TARGET,
    saved_thresholds: bool = False,
    seed: int = 0,
) -> Report:
    """Make the ensemble and judge it. The same seed, the same report.

    `names`: its detectors; none for those that rank best, picked anew in every training fold. `saved_thresholds`: a
    k_of_n flags at the detectors' saved operating points (of all that have one, when none is named), all else is then
    compared at the share of traffic that this flags. `budget`: the share of traffic to flag, None for `usual_budget` of
    these labels. Raises BadInput where it cannot be made.
    """
    if budget is not None and not 0 < budget < 1:
        raise BadInput(f"a budget of {budget:g}: give the share of traffic to flag, like 0.05 for 5%")
    at_saved_points = saved_thresholds and recipe.kind == "k_of_n"
    if not names and at_saved_points:
        names = _names_with_points(store)
    candidates = gather(store, names or candidate_names(store, sample=sample, also=recipe.expensive), sample=sample)
    gathered, picking = candidates, None
    if not names and len(candidates.training.names) > DEFAULT:
        always = [name for name in candidates.training.names if name == recipe.expensive]
        picking = members.Picking(DEFAULT, tuple(always))
        gathered = gather(store, members.pick_members(candidates.training, picking), sample=sample)
    training = gathered.training
    budget = usual_budget(_share_hallucinated(training)) if budget is None else budget
    if at_saved_points:
        recipe = replace(recipe, thresholds=_load_saved_thresholds(store, gathered))
    priced = prices(store, candidates.data.configs)
    judging = Judging.of(candidates.training, picking, priced, recipe.expensive, seed=seed)
    recipe = judging.recipe_of(recipe, training.names)
    rule = combine.build_rule(recipe, training)
    if isinstance(rule, Fixed):
        budget = max(_flagged_share(rule.score(training.traffic), rule.k, training), 1e-6)
    best = nested_cv.judge_best_single(judging.training, judging.folds, budget=budget)
    mine = judging.judge(recipe, budget=budget)
    each = budget_cuts.thresholds_at_budget(training, budget)
    threshold = nested_cv.budget_cut(rule, training, budget=budget)
    signal = Cut(threshold, _flagged_share(rule.score(training.traffic), threshold, training), "measured")
    of_members = {name: priced[name] for name in training.names}
    return Report(
        recipe=recipe,
        rule=rule,
        budget=budget,
        gathered=gathered,
        signal=signal,
        page=_find_page_cut(rule, judging.training, training, mine, signal, target=target),
        figures=measure_performance(judging.training, mine),
        flagged=float(mine.flags.sum(axis=1).mean()),
        hits=float(mine.flags[:, judging.training.labels].sum(axis=1).mean()),
        auroc=_rank(judging, mine),
        best=nested_cv.best_single(judging.training, budget=budget),
        best_figures=measure_performance(judging.training, best),
        apart=recall_difference(judging.training, mine, best, judging.drawn),
        compared=judging.compare(recipe, best, len(training.names), budget=budget),
        each=each,
        joint=joint_false_positives(
            training,
            budget_cuts.flags_at_thresholds(training, {name: at for name, at in each.items() if at is not None}),
        ),
        correlation=correlation(training),
        frontier=frontier(training, costliest(of_members), budget=budget) if worth_a_filter(of_members) else None,
        picks=members.count_picks(judging.picked) if judging.picked else None,
    )


def _rank(judging: Judging, mine: Judged) -> Interval:
    """How well the ensemble ranks what it has not seen; unknown where the labels are too few to rank."""
    labels = judging.training.labels
    if not enough_to_rank(int(labels.sum()), int((~labels).sum())):
        return Interval(None)
    return auroc_within_folds(judging.training, mine, judging.drawn)


def usual_budget(prevalence: float | None) -> float:
    """The share of traffic to flag where nobody says: BUDGET, or half of what is hallucinated, in whole percent, where
    that is more. A budget far below the prevalence finds next to nothing, whatever is combined."""
    return max(BUDGET, min(0.5, round((prevalence or 0.0) / 2, 2)))


def _share_hallucinated(training: TrainingData) -> float:
    return float(np.average(training.labels, weights=training.weights))


def _names_with_points(store: Store) -> list[str]:
    """The detectors with a saved operating point for the configuration that is meant."""
    names = [name for name in store.points.latest() if has_saved_thresholds(store, [name])]
    if len(names) < 2:
        raise BadInput(
            "fewer than two detectors have a saved operating point for these scores: "
            "choose them (`choose … --save`, or the Tune page), or let each flag an equal share of traffic"
        )
    return names


def document_of(report: Report) -> Ensemble:
    """Record what a runtime needs, and the figures at the time the ensemble was built."""
    data = report.gathered.data
    members = {name: EnsembleMember(c.version, dict(c.params), c.revision) for name, c in sorted(data.configs.items())}
    return Ensemble(
        kind=report.recipe.kind,
        rule=to_json(report.rule),
        detectors=members,
        budget=report.budget,
        cuts=EnsembleCuts(_saved_cut(report.page), _saved_cut(report.signal)),
        figures=EnsembleFigures(**vars(report.figures), auroc=report.auroc),
        best_single=BestSingle(report.best, Shares(**vars(report.best_figures))),
        difference=report.apart,
        data=EnsembleData(
            sample=data.sample.name if data.sample else None,
            samples=tuple(data.sample.names) if data.sample else (),
            n=report.n,
            positives=report.positives,
            traffic=None if report.gathered.from_labels else report.gathered.traffic.n,
            label_set_digest=label_set_digest((row.content_hash, str(row.gold)) for row in data.rows),
            flagged=report.flagged,
            hits=report.hits,
        ),
    )


def _saved_cut(cut: Cut) -> EnsembleCut:
    return EnsembleCut(cut.threshold, cut.share, cut.strength, cut.target, cut.bound)


def save(store: Store, name: str, ensemble: Ensemble, *, reason: str = "", by: str, now: datetime) -> None:
    """Keep an ensemble under a name; the latest of a name counts.

    Raises BadInput for a name it cannot have, and for one that is known to be bad, without a `reason` to save it.
    """
    clean = name.strip()
    if not clean or len(clean) > 100 or not clean.isprintable():
        raise BadInput("an ensemble needs a name of 1 to 100 printable characters, like grounding")
    state = judge_ensemble(ensemble)
    require_reason(clean, state, reason)
    kept_reason = reason.strip() if state.known_bad else ""
    store.ensembles.save(clean, replace(ensemble, reason=kept_reason), by=by, now=now)


def saved(store: Store) -> list[SavedEnsemble]:
    """The newest of each name, by name."""
    return list(store.ensembles.latest().values())


def has_saved_thresholds(store: Store, names: Sequence[str]) -> bool:
    """Whether each of these detectors has a saved operating point for the configuration that is meant."""
    points = store.points.latest()
    return all(
        name in points and points[name].config_id == configurations.resolve_config(store, name).id for name in names
    )


def _load_saved_thresholds(store: Store, gathered: Gathered) -> dict[str, float]:
    names = list(gathered.data.configs)
    points = store.points.latest()
    lacking = [name for name in names if not has_saved_thresholds(store, [name])]
    if lacking:
        raise BadInput(
            f"no saved operating point for these scores of {', '.join(lacking)}: "
            "choose one (`choose … --save`, or the Tune page), or let each flag an equal share of traffic"
        )
    return {name: points[name].point.threshold for name in names}


def _flagged_share(scores: Floats, threshold: float | None, training: TrainingData) -> float:
    """The share of the traffic that is flagged."""
    return float(np.average(budget_cuts.flags_at_cut(scores, threshold), weights=training.traffic_weights))


def _find_page_cut(
    rule: Rule, judged_on: TrainingData, training: TrainingData, mine: Judged, signal: Cut, *, target: float
) -> Cut:
    """The loosest cut whose out-of-fold precision is at least the target by its lower bound, no looser than `signal`.

    Never certified: that takes labels drawn among what the ensemble flags, after it was made.
    """
    # A refitted rule has one score a repeat, as log odds; the rule itself gives their probability.
    scores = expit(mine.scores) if isinstance(rule, Logistic) else mine.scores
    averaged = np.asarray(scores.mean(axis=0))
    curve = sweep(judged_on.labels, averaged, design=judged_on.design, groups=judged_on.groups)
    bound = bounded(curve, target)
    if isinstance(bound, NotBounded):
        return Cut(None, 0.0, "measured", target, unmet=bound)
    if signal.threshold is None:
        return Cut(None, 0.0, "measured", target)
    at = max(bound.threshold, signal.threshold)
    return Cut(at, _flagged_share(rule.score(training.traffic), at, training), "bounded", target, bound.bound)
