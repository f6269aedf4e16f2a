"""Recheck: flagged traces are labelled one by one until it is known whether a released threshold still holds.

`begin` draws flagged traces of the traffic since the release (since the first that decides alike, where that was rolled
back to), in random order, and keeps the terms. They are drawn from
all that was flagged, also where a trace has a label already or is in another sample: what those left over would be a
biased rest, as samples by suspicion take the surest flags first. People label them in that order; after each label
`state` looks whether it is decided, which a sequential test (stats.monitoring.eprocess) allows as often as anybody
likes. What keeps the promise of 5%:

- Only the unbroken row of labels from the first trace on counts. Labels after a skipped trace wait until it has one:
  anyone who may leave out a label leaves out one that looks bad.
- `unsure` is a label, and so is a dispute: each counts against whatever is about to be decided, as hallucinated in the
  test for "fell below" and as clean in the one for "holds". The estimate leaves them out.
- Of traces that share their sources the first counts, and repeats are left out.
- The first decision is kept; labels that come or change later do not undo it.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Literal

import numpy as np

from calibrate.errors import BadInput
from calibrate.stats.monitoring.eprocess import Path, Standing, follow_labels, standing
from calibrate.stats.sampling.designs import Cut
from calibrate.stats.sweep.clusters import first_of_each
from calibrate.thresholds.model import DetectorEntry
from calibrate.types import FlagWhen, Sample, TraceFilter
from calibrate.workflow.evidence.counted_labels import take_prefix
from calibrate.workflow.releasing.history import promised_precision, read_release, releases_alike
from calibrate.workflow.sampling import sample as samples
from calibrate.workflow.sampling.topup import top_up
from db import Store
from db.attempts import Recheck
from db.releases import Release
from db.scores import Config, Row

LABELS = 60  # flagged traces drawn at first
AT_LEAST, MOST = 20, 200  # drawn when these do not decide
ALPHA = 0.05
Decision = Literal["holds", "fell below", "go on"]


@dataclass(frozen=True)
class Plan:
    """The terms, fixed before the first label. `target`: the precision to hold, 0 to 1; `alpha`: the chance that each
    decision is wrong, however often one looks; `model`: None for all traffic; `limit` is the threshold in words."""

    target: float
    alpha: float
    threshold: float
    flag_when: FlagWhen
    limit: str
    model: str | None
    where: TraceFilter
    batch: int
    seed: int


@dataclass(frozen=True)
class State:
    """Where a recheck stands.

    `counted` labels are in the unbroken row: `hallucinated`, `clean` and `unsure` (disputed ones among them) ones, and
    `repeats` that share sources with an earlier one and do not count. `waiting` labels lie behind a trace without one.
    `left` drawn traces have no label yet; `pool`: flagged traces there were to draw from, `sample.size` of them drawn.
    `standing` has the e-values, the estimate with its confidence sequence and `more`, the labels that a decision
    is likely to take (None: no number is); `path` is the same after every label, for a chart. `decision` is the kept
    one, or "go on".
    """

    recheck: Recheck
    plan: Plan
    sample: Sample
    decision: Decision
    counted: int
    hallucinated: int
    clean: int
    unsure: int
    repeats: int
    waiting: int
    left: int
    pool: int
    standing: Standing
    path: Path

    @property
    def done(self) -> bool:
        return self.decision != "go on"

    @property
    def exhausted(self) -> bool:
        """Whether every trace there was to draw has a label, and nothing is decided."""
        return not self.done and not self.left and self.sample.size >= self.pool


def begin(
    store: Store,
    detector: str,
    *,
    version: int | None = None,
    target: float | None = None,
    labels: int = LABELS,
    model: str | None = None,
    seed: int | None = None,
    by: str,
    now: datetime,
) -> Recheck:
    """Start a recheck of a released detector, or return the one under way on the same release and model.

    One that ran out of traces without a decision ends so when there are newer ones: the next is a test of its own.

    `target`: default what the release guarantees, or the precision of its policy. Raises BadInput where nothing is
    released, the detector is not in it, no target is known or it is not between 0 and 1, or no scored trace since the
    release is flagged that no recheck has drawn.
    """
    release, entry = _find_entry(store, detector, version)
    if labels < 1:
        raise BadInput(f"--labels {labels} draws nothing: ask for {AT_LEAST} or more")
    if target is not None:
        _choose_target(detector, entry, target)
    under_way = open_one(store, detector, version=release.version, model=model)
    if under_way is not None and not _is_superseded(store, under_way, now):
        return under_way
    models = (model,) if model is not None else ()
    plan = Plan(
        target=_choose_target(detector, entry, target),
        alpha=ALPHA,
        threshold=entry.threshold,
        flag_when=entry.flag_when,
        limit=entry.limit,
        model=model,
        where=TraceFilter(since=releases_alike(store, release)[-1].released_at, undated=False, models=models),
        batch=labels,
        seed=secrets.randbits(31) if seed is None else seed,
    )
    config = store.scores.config(detector, entry.version, entry.params, entry.revision, now=now)
    name = f"{detector}-recheck-v{release.version}-{len(store.rechecks.of(detector, version=release.version)) + 1}"
    apart = _find_drawn(store, detector, release, model)
    # There already after a start that was cut short.
    drawn = store.samples.get(name) or _draw(store, name, plan, config, now, apart=apart)
    return store.rechecks.begin(
        detector,
        version=release.version,
        config_id=config.id,
        sample_id=drawn.id,
        plan={**asdict(plan), "where": plan.where.to_json()},
        by=by,
        now=now,
    )


def open_one(store: Store, detector: str, *, version: int | None = None, model: str | None = None) -> Recheck | None:
    """The recheck of the release (default: the newest) and model that is under way; None where there is none."""
    recheck = newest(store, detector, version=version, model=model)
    return recheck if recheck is not None and recheck.outcome is None else None


def newest(store: Store, detector: str, *, version: int | None = None, model: str | None = None) -> Recheck | None:
    """The newest recheck of the release (default: the newest) and model, done or not; None before the first."""
    if version is None:
        releases = store.releases.list()
        if not releases:
            return None
        version = releases[0].version
    rechecks = store.rechecks.of(detector, version=version)
    return next((recheck for recheck in rechecks if recheck.plan["model"] == model), None)


def fallen(store: Store, version: int) -> tuple[State, ...]:
    """The newest rechecks of a release that found its precision to be below the target."""
    newest_of: dict[tuple[str, str | None], Recheck] = {}
    for recheck in store.rechecks.of(version=version):
        newest_of.setdefault((recheck.detector, recheck.plan["model"]), recheck)
    fell = [
        recheck for recheck in newest_of.values() if recheck.outcome and recheck.outcome["decision"] == "fell below"
    ]
    return tuple(state(store, recheck, now=recheck.started_at) for recheck in fell)


def state(store: Store, recheck: Recheck, *, now: datetime) -> State:
    """Work out where a recheck stands. Once it is decided, the outcome is stored and does not change."""
    plan, sample = plan_of(recheck), _find_sample(store, recheck)
    rows = store.scores.members(recheck.config_id, recheck.sample_id)
    kept_labels = recheck.outcome["labels"] if recheck.outcome else None
    row = _take_unbroken(rows) if kept_labels is None else [_Label(pk, verdict) for pk, verdict in kept_labels]
    verdicts = [_VERDICTS[label.verdict] for label in row if not label.repeat]
    at = standing(verdicts, plan.target, alpha=plan.alpha, rng=np.random.default_rng([plan.seed, len(verdicts)]))
    if recheck.outcome is None and at.decision != "go on":
        counted = [label for label in row if not label.repeat][: at.labels]
        outcome = {"decision": at.decision, "labels": [(label.pk, label.verdict) for label in counted]}
        return state(store, store.rechecks.finish(recheck.id, outcome, now=now), now=now)
    labelled = sum(each.gold is not None for each in rows)
    return State(
        recheck=recheck,
        plan=plan,
        sample=sample,
        decision=at.decision,
        counted=at.labels,
        hallucinated=at.hallucinated,
        clean=verdicts.count(False),
        unsure=verdicts.count(None),
        repeats=sum(label.repeat for label in row),
        waiting=0 if recheck.outcome else labelled - len(row),
        left=len(rows) - labelled,
        pool=sample.pool,
        standing=at,
        path=follow_labels(verdicts, plan.target, alpha=plan.alpha),
    )


def more(store: Store, recheck: Recheck, *, labels: int | None = None, now: datetime) -> Recheck:
    """Draws further traces when all there are have labels and nothing is decided, `labels` or as many as it is likely
    to take; else it changes nothing. Raises BadInput where all flagged traces were drawn."""
    at = state(store, recheck, now=now)
    if at.done or at.left:
        return at.recheck
    if at.exhausted:
        raise BadInput(
            f"all {at.pool:,} traces that were flagged when it began are labelled, and they do not decide it: score "
            f"newer traffic (`detect {recheck.detector} --all`), then `recheck {recheck.detector}` begins anew"
        )
    wanted = labels or min(max(at.standing.more or at.plan.batch, AT_LEAST), MOST)
    seed = [at.plan.seed, at.sample.size]
    drawn = int(np.random.default_rng(seed).integers(2**31))
    top_up(store, at.sample.name, more=min(wanted, at.sample.pool - at.sample.size), seed=drawn, now=now)
    return at.recheck


def plan_of(recheck: Recheck) -> Plan:
    return Plan(**{**recheck.plan, "where": TraceFilter.from_json(recheck.plan["where"])})


@dataclass(frozen=True)
class _Label:
    pk: int
    verdict: str
    repeat: bool = False


_VERDICTS = {"hallucinated": True, "clean": False, "unsure": None, "disputed": None}


def _take_unbroken(rows: Sequence[Row]) -> list[_Label]:
    """The labels from the first member to the first one without."""
    row = take_prefix(rows)
    first = set(first_of_each([each.group for each in row], len(row)))
    return [_Label(each.pk, str(each.gold), repeat=place not in first) for place, each in enumerate(row)]


def _is_superseded(store: Store, recheck: Recheck, now: datetime) -> bool:
    """Whether all traces of a recheck are labelled, nothing is decided, and newer traffic is there; it is then over."""
    at = state(store, recheck, now=now)
    if not at.exhausted:
        return False
    release, _ = _find_entry(store, recheck.detector, recheck.version)
    apart = _find_drawn(store, recheck.detector, release, at.plan.model)
    if not samples.flagged_pool(store, Cut(recheck.config_id, at.plan.threshold, apart), at.plan.where, fresh=False):
        return False
    rows = store.scores.members(recheck.config_id, recheck.sample_id)
    labels = [(each.pk, each.verdict) for each in _take_unbroken(rows) if not each.repeat]
    store.rechecks.finish(recheck.id, {"decision": "go on", "labels": labels}, now=now)
    return True


def _find_drawn(store: Store, detector: str, release: Release, model: str | None) -> tuple[int, ...]:
    """The samples of the rechecks there were on the same terms: a new one is of other traces. What is left after them
    is as random as they were."""
    versions = {recheck.version for recheck in releases_alike(store, release)}
    rechecks = (recheck for recheck in store.rechecks.of(detector) if recheck.version in versions)
    return tuple(recheck.sample_id for recheck in rechecks if recheck.plan["model"] == model)


def _find_entry(store: Store, detector: str, version: int | None) -> tuple[Release, DetectorEntry]:
    releases = store.releases.list()
    release = next((row for row in releases if version in (None, row.version)), None)
    if release is None:
        raise BadInput(
            f"there is no release {version} to recheck" if releases else "nothing was released yet: nothing to recheck"
        )
    file = read_release(release)
    if detector not in file.detectors:
        raise BadInput(f"{detector} is not in release {release.version}, which has {', '.join(sorted(file.detectors))}")
    return release, file.detectors[detector]


def _choose_target(detector: str, entry: DetectorEntry, chosen: float | None) -> float:
    """The precision to hold: the one chosen, else the guaranteed one, else the target of the policy."""
    target = chosen if chosen is not None else promised_precision(entry)
    if target is None:
        raise BadInput(f"{detector} was released by {entry.policy}, which names no precision: say which with --target")
    if not 0 < target < 1:
        raise BadInput(
            f"a precision of {target:g} cannot be rechecked: give --target between 0 and 1, 0.7 for instance"
        )
    return target


def _draw(store: Store, name: str, plan: Plan, config: Config, now: datetime, *, apart: tuple[int, ...]) -> Sample:
    cut = Cut(config.id, plan.threshold, apart)
    flagged = samples.flagged_pool(store, cut, plan.where, fresh=False)
    if not flagged:
        of = f" of {plan.model}" if plan.model is not None else ""
        raise BadInput(
            f"{config.name} has flagged no trace{of} since the release at {plan.limit}"
            + (" that no recheck has drawn" if apart else "")
            + f": score the traffic first (`detect {config.name} --all`, or the Detect page), or wait for traffic"
        )
    return samples.draw(
        store,
        name,
        size=min(plan.batch, flagged),
        design="fresh-flagged",
        where=plan.where,
        seed=plan.seed,
        now=now,
        cut=cut,
    )


def _find_sample(store: Store, recheck: Recheck) -> Sample:
    return next(sample for sample in store.samples.list() if sample.id == recheck.sample_id)
