"""Recheck: flagged traces are labelled one by one until it is known whether a released threshold still holds.

`begin` draws flagged traces of a period of traffic since the release, in random order, and keeps the terms
(`recheck_plan`). The period is the last week unless the user names another: what is pooled over many weeks hides what
fell in the last one. They are drawn from all that was flagged in it, also where a trace has a label already or is in
another sample: what those left over would be a biased rest, as samples by suspicion take the surest flags first. People
label them in that order; after each label `state` looks whether it is decided, which a sequential test
(stats.monitoring.eprocess) allows as often as anybody likes. What keeps the promise of 5%:

- Only the unbroken row of labels from the first trace on counts. Labels after a skipped trace wait until it has one:
  anyone who may leave out a label leaves out one that looks bad.
- `unsure` is a label, and so is a dispute: each counts against whatever is about to be decided, as hallucinated in the
  test for "fell below" and as clean in the one for "holds". The estimate leaves them out.
- "Holds" takes two tests: of every trace, as they are the traffic, and of the first of each source, as traces that
  share their sources err together. "Fell below" takes the first one alone.
- The first decision is kept; labels that come or change later do not undo it.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

import numpy as np

from calibrate import registry
from calibrate.errors import BadInput
from calibrate.stats.monitoring.eprocess import Path, Standing, follow_labels, standing
from calibrate.stats.sampling.designs import Cut
from calibrate.stats.sweep.clusters import first_of_each
from calibrate.thresholds.model import DetectorEntry
from calibrate.types import PURGED, Sample, TraceFilter
from calibrate.workflow.evidence.counted_labels import take_prefix, without_set_aside
from calibrate.workflow.releasing.history import promised_precision, releases_alike
from calibrate.workflow.sampling import sample as samples
from calibrate.workflow.sampling.topup import top_up
from calibrate.workflow.watching.recheck_plan import (
    RECENT,
    Plan,
    Since,
    Traffic,
    count_flagged,
    find_entry,
    look,
    plan_of,
    traffic_of,
)
from calibrate.workflow.watching.recheck_segment import in_segment
from db import Store
from db.attempts import Recheck
from db.scores import Row

LABELS = 60  # flagged traces drawn at first
AT_LEAST, MOST = 20, 200  # drawn when these do not decide
ALPHA = 0.05
Decision = Literal["holds", "fell below", "go on"]


@dataclass(frozen=True)
class State:
    """Where a recheck stands.

    `counted` labels are in the unbroken row: `hallucinated`, `clean` and `unsure` (disputed ones among them) ones;
    `repeats` of them share their sources with an earlier one. `waiting` labels lie behind a trace without one.
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
    since: Since = RECENT,
    model: str | None = None,
    segment: str | None = None,
    seed: int | None = None,
    again: bool = False,
    by: str,
    now: datetime,
) -> Recheck:
    """Start a recheck of a released detector, or return the one under way on the same release, model and segment.

    One that ran out of traces without a decision ends so when the period asked for has others, as newer ones or a
    longer period; with `again` any does. The next is a test of its own.

    `since`: a time, or how long before the newest trace, by default a week; None for all since the release, before
    which it never begins.
    `segment`: of a detector with thresholds per segment, the one whose threshold and traffic it is about.
    `target`: default what the release guarantees, or the precision of its policy. Raises BadInput where nothing is
    released, the detector is not in it, no target is known or it is not between 0 and 1, or no scored trace of the
    period is flagged that no recheck of it has drawn.
    """
    release, whole = find_entry(store, detector, version)
    entry = in_segment(detector, whole, segment)
    if labels < 1:
        raise BadInput(f"--labels {labels} draws nothing: ask for {AT_LEAST} or more")
    if target is not None:
        _choose_target(detector, entry, target)
    traffic = look(store, detector, version=version, model=model, segment=segment, since=since, now=now)
    under_way = open_one(store, detector, version=release.version, model=model, segment=segment)
    if under_way is not None and not _is_superseded(store, under_way, traffic.where, now) and not again:
        return under_way
    plan = Plan(
        target=_choose_target(detector, entry, target),
        alpha=ALPHA,
        threshold=entry.threshold,
        flag_when=entry.flag_when,
        limit=entry.limit,
        model=model,
        where=traffic.where,
        batch=labels,
        seed=secrets.randbits(31) if seed is None else seed,
        since_release=traffic.since_release,
        by=whole.segments.by if whole.segments else None,
        segment=segment,
    )
    name = f"{detector}-recheck-v{release.version}-{len(store.rechecks.of(detector, version=release.version)) + 1}"
    _check_flagged(traffic, plan, detector, releases_alike(store, release)[-1].released_at)
    if under_way is not None:
        rows = _members(store, under_way)
        store.rechecks.finish(under_way.id, _keep("go on", _take_labels(rows)), now=now)
    # There already after a start that was cut short.
    drawn = store.samples.get(name) or samples.draw(
        store,
        name,
        size=min(labels, traffic.flagged),
        design="fresh-flagged",
        where=traffic.where,
        seed=plan.seed,
        now=now,
        cut=traffic.cut,
    )
    return store.rechecks.begin(
        detector,
        version=release.version,
        config_id=traffic.cut.config_id,
        sample_id=drawn.id,
        plan=plan.to_json(),
        by=by,
        now=now,
    )


def open_one(
    store: Store, detector: str, *, version: int | None = None, model: str | None = None, segment: str | None = None
) -> Recheck | None:
    """The recheck of the release (default: the newest), model and segment under way; None where there is none."""
    recheck = newest(store, detector, version=version, model=model, segment=segment)
    return recheck if recheck is not None and recheck.outcome is None else None


def newest(
    store: Store, detector: str, *, version: int | None = None, model: str | None = None, segment: str | None = None
) -> Recheck | None:
    """The newest recheck of the release (default: the newest), model and segment, done or not; None before it."""
    if version is None:
        releases = store.releases.list()
        if not releases:
            return None
        version = releases[0].version
    rechecks = store.rechecks.of(detector, version=version)
    return next((recheck for recheck in rechecks if traffic_of(recheck) == (model, segment)), None)


def fallen(store: Store, version: int) -> tuple[State, ...]:
    """The newest rechecks of a release that found its precision to be below the target."""
    newest_of: dict[tuple[str, str | None, str | None], Recheck] = {}
    for recheck in store.rechecks.of(version=version):
        newest_of.setdefault((recheck.detector, *traffic_of(recheck)), recheck)
    fell = [
        recheck for recheck in newest_of.values() if recheck.outcome and recheck.outcome["decision"] == "fell below"
    ]
    return tuple(state(store, recheck, now=recheck.started_at) for recheck in fell)


def state(store: Store, recheck: Recheck, *, now: datetime) -> State:
    """Work out where a recheck stands. Once it is decided, the outcome is stored and does not change."""
    at = peek(store, recheck)
    if recheck.outcome is None and at.done:
        row = _take_labels(_members(store, recheck))
        return peek(store, store.rechecks.finish(recheck.id, _keep(at.decision, row[: at.counted]), now=now))
    return at


def peek(store: Store, recheck: Recheck) -> State:
    """The same without storing an outcome, for those who only look."""
    plan, sample = plan_of(recheck), _find_sample(store, recheck)
    rows = _members(store, recheck)
    kept_labels = recheck.outcome["labels"] if recheck.outcome else None
    # Before repeats counted they were not kept: a label of then has no third part.
    row = _take_labels(rows) if kept_labels is None else [_Label(*label) for label in kept_labels]
    verdicts, repeats = [_VERDICTS[label.verdict] for label in row], [label.repeat for label in row]
    rng = np.random.default_rng([plan.seed, len(verdicts)])
    at = standing(verdicts, plan.target, repeats=repeats, alpha=plan.alpha, rng=rng)
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
        repeats=sum(repeats),
        waiting=0 if recheck.outcome else labelled - len(row),
        left=len(rows) - labelled,
        pool=sample.pool,
        standing=at,
        path=follow_labels(verdicts, plan.target, repeats=repeats, alpha=plan.alpha),
    )


def more(store: Store, recheck: Recheck, *, labels: int | None = None, now: datetime) -> Recheck:
    """Draws further traces when all there are have labels and nothing is decided, `labels` or as many as it is likely
    to take; else it changes nothing. Raises BadInput where all flagged traces were drawn."""
    at = state(store, recheck, now=now)
    if at.done or at.left:
        return at.recheck
    if at.exhausted:
        raise BadInput(
            f"all {at.pool:,} traces that were flagged in its period are labelled, and they do not decide it: name a "
            f"longer period (`recheck {recheck.detector} --since DATE`), or score newer traffic ("
            f"`{registry.how_to_score(recheck.detector)}`)"
        )
    wanted = labels or min(max(at.standing.more or at.plan.batch, AT_LEAST), MOST)
    seed = [at.plan.seed, at.sample.size]
    drawn = int(np.random.default_rng(seed).integers(2**31))
    top_up(store, at.sample.name, more=min(wanted, at.sample.pool - at.sample.size), seed=drawn, now=now)
    return at.recheck


def _members(store: Store, recheck: Recheck) -> list[Row]:
    """The traces drawn, in order, without those that were set aside for a judge's prompt."""
    return without_set_aside(store, store.scores.members(recheck.config_id, recheck.sample_id))


@dataclass(frozen=True)
class _Label:
    pk: int
    verdict: str
    repeat: bool = False


_VERDICTS = {"hallucinated": True, "clean": False, "unsure": None, "disputed": None, PURGED: None}


def _take_labels(rows: Sequence[Row]) -> list[_Label]:
    """The labels that count, each with whether an earlier one is of the same source."""
    prefix = take_prefix(rows)
    first = set(first_of_each([row.group for row in prefix], len(prefix)))
    return [_Label(row.pk, str(row.gold), repeat=place not in first) for place, row in enumerate(prefix)]


def _keep(decision: Decision, labels: Sequence[_Label]) -> dict[str, object]:
    """The outcome as it is stored."""
    return {"decision": decision, "labels": [(label.pk, label.verdict, label.repeat) for label in labels]}


def _is_superseded(store: Store, recheck: Recheck, where: TraceFilter, now: datetime) -> bool:
    """Whether all traces of a recheck are labelled, nothing is decided, and another period has flagged traces that it
    has not."""
    at = state(store, recheck, now=now)
    others = Cut(recheck.config_id, at.plan.threshold, (recheck.sample_id,))
    return at.exhausted and where != at.plan.where and count_flagged(store, others, where) > 0


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


def _check_flagged(traffic: Traffic, plan: Plan, detector: str, released: datetime) -> None:
    """Raise BadInput where there is no flagged trace to draw. No period begins before the release."""
    if traffic.flagged:
        return
    of = "".join(f" of {part}" for part in (plan.part, plan.model) if part is not None)
    start = traffic.where.since
    if start is None or start <= released or not traffic.since_release:
        raise BadInput(
            f"{detector} has flagged no trace{of} since the release of {released.date()} at {plan.limit}"
            + (" that no recheck of that traffic has drawn" if traffic.cut.apart else "")
            + "; the period of a recheck begins at the release at the earliest, so no --since changes this: score the "
            f"traffic first (`{registry.how_to_score(detector)}`, or the Detect page), or wait for traffic after the "
            "release"
        )
    raise BadInput(
        f"{detector} has flagged no trace{of} since {start.date()} at {plan.limit}"
        + (" that no recheck of that traffic has drawn" if traffic.cut.apart else "")
        + f", and {traffic.since_release:,} since the release of {released.date()}: score the traffic first "
        f"(`{registry.how_to_score(detector)}`, or the Detect page), wait for traffic, or take an earlier day "
        "since the release where one was flagged"
    )


def _find_sample(store: Store, recheck: Recheck) -> Sample:
    return next(sample for sample in store.samples.list() if sample.id == recheck.sample_id)
