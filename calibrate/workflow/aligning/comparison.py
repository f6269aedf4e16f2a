"""Compare a proposed prompt with the one in use: every label is scored under a prompt made without its own source."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

import numpy as np

from calibrate.backends.chat import Estimate, Request, chat
from calibrate.backends.text.refusals import find_refusal
from calibrate.engines.run import score_stream
from calibrate.errors import BadInput
from calibrate.stats.aligning.gain import Gain, Gained, PrecisionGain, measure_gain
from calibrate.stats.intervals.ranking_differences import Comparison, Ranking
from calibrate.stats.sweep.design import Floats
from calibrate.stats.sweep.sweep import Missing
from calibrate.types import Interval
from calibrate.workflow.aligning.judges import FOLDS, Judge
from calibrate.workflow.aligning.proposal import Proposal, propose
from calibrate.workflow.detection.team_workspace import workspace_of
from calibrate.workflow.releasing.history import live_release
from calibrate.workspace import using
from db import Store
from db.labelling.prompt_examples import PromptComparison

BATCH = 64  # traces in memory at once
RECALL = 0.7  # where nothing is released
LOOKED_AT = 200  # answers that an estimate is made from


@dataclass(frozen=True)
class Part:
    """Labels that are scored under one prompt: their places among those that count."""

    text: str
    places: tuple[int, ...]


@dataclass(frozen=True)
class Compared:
    """What a prompt gains over the one in use, on `n` labels that count.

    `first_scored` and `second_scored` are the labels that the present and the new prompts could score; figures are of
    those that both did. `released`: the recall is that of the live release. `looks`: comparisons that share the 5%.
    """

    detector: str
    before: str
    after: str
    guide: int
    examples: int
    labels: int
    first_scored: int
    second_scored: int
    released: bool
    looks: int
    gain: Gain
    why: dict[str, int]


def estimate(store: Store, judge: Judge, *, examples: int) -> Estimate:
    """What `compare` would ask of the chat endpoint. Sends nothing."""
    with using(workspace_of(store)):
        endpoint = chat(getattr(judge.detector, "model", ""))
        total = endpoint.estimate(())
    for part in (Part(judge.text, _to_score(store, judge)), *_parts(store, judge, examples=examples)):
        if part.places:
            places = [int(i) for i in np.random.default_rng(0).permutation(part.places)[:LOOKED_AT]]
            with using(_with_prompt(store, judge, part.text)):
                asked_of = endpoint.estimate(_requests(store, judge, places))
            total = _add(total, asked_of, len(part.places) / len(places))
    return total


def compare(
    store: Store,
    judge: Judge,
    *,
    examples: int,
    recall: float | None = None,
    budget: float | None = None,
    seed: int = 0,
    by: str,
    now: datetime,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> Compared:
    """Score the labels under the present prompt and under new ones, and measure what these gain.

    Of every fold the answers are judged by a prompt whose examples come from other folds. Replies are kept as they
    come: after a stop the same call goes on. The comparison is kept in the store.

    Parameters
    ----------
    store
        The store.
    judge
        The judge with its labels in folds.
    examples
        How many a prompt quotes.
    recall
        At which precision is compared; None: that of the live release, else `RECALL`.
    budget
        US dollars that the requests may cost; None for no limit.
    seed
        Of the resamples.
    by, now
        Who compares, and when.
    on_progress
        Hears how many of how many answers are judged.

    Raises
    ------
    BadInput
        Where no label counts, or the judge cannot run here.
    """
    rows = judge.data.rows
    if not rows:
        raise BadInput(f"no label counts yet, so nothing can be compared for {judge.detector.name}: label a sample")
    proposal = propose(store, judge, examples=examples)
    parts, todo = list(_parts(store, judge, examples=examples)), _to_score(store, judge)
    present, scores = judge.data.scores.copy(), np.full(len(rows), np.nan)
    total, done, why = len(todo) + len(rows), 0, dict[str, int]()
    workspace = workspace_of(store, budget=budget)
    on_progress(0, total)
    for part, into in ((Part(judge.text, todo), present), *((part, scores) for part in parts)):
        with using(replace(workspace, files={**workspace.files, judge.file: part.text})):
            if (missing := judge.detector.unavailable()) is not None:
                raise BadInput(f"{judge.detector.name} cannot run here: {missing}")
            for place, value, reason in _score(store, judge, part.places):
                into[place] = np.nan if value is None else value
                if value is None and into is scores:
                    why[reason or "no reason given"] = why.get(reason or "no reason given", 0) + 1
                done += 1
                on_progress(done, total)
    at, released = (recall, False) if recall is not None else _released_recall(store, judge.detector.name)
    looks = _count_looks(store, judge.detector.name, proposal.after)
    result = Compared(
        judge.detector.name,
        judge.version,
        proposal.after,
        proposal.guide.version,
        len(proposal.examples),
        len(rows),
        int(np.isfinite(present).sum()),
        int(np.isfinite(scores).sum()),
        released,
        looks,
        _measure(judge, present, scores, recall=at, looks=looks, seed=seed),
        dict(sorted(why.items(), key=lambda item: -item[1])[:5]),
    )
    store.prompt_examples.keep_comparison(
        result.detector, result.before, result.after, asdict(result), by=by, now=now
    )  # fmt: skip
    return result


def read_comparison(stored: PromptComparison) -> Compared:
    """A comparison as it was kept."""
    document: dict[str, Any] = dict(stored.document)
    gain = document.pop("gain")
    ranking, precision = dict(gain["ranking"]), dict(gain["precision"])
    for name in ("auroc", "average_precision", "auroc_together"):
        ranking[name] = Interval(**ranking[name])
    for name in ("first", "second"):
        ranking[name] = None if ranking[name] is None else Ranking(**ranking[name])
    ranking["missing"] = None if ranking["missing"] is None else Missing(ranking["missing"])
    for name in ("interval", "together"):
        precision[name] = Interval(**precision[name])
    figures = Gain(Comparison(**ranking), PrecisionGain(**precision), Gained(gain["verdict"]))
    return Compared(**document, gain=figures)


def newest_comparison(
    store: Store, detector: str, *, after: str | None = None, before: str | None = None
) -> PromptComparison | None:
    """The newest comparison of a detector's prompts, or that of `after` with `before`; None where there is none."""
    return next(
        (
            each
            for each in store.prompt_examples.compared(detector)
            if after in (None, each.after) and before in (None, each.before)
        ),
        None,
    )


def _measure(judge: Judge, present: Floats, scores: Floats, *, recall: float, looks: int, seed: int) -> Gain:
    both = np.flatnonzero(np.isfinite(present) & np.isfinite(scores))
    design, groups = judge.data.design, judge.data.groups
    return measure_gain(
        judge.data.labels[both],
        present[both],
        scores[both],
        recall=recall,
        rng=np.random.default_rng(seed),
        flag_when=judge.data.flag_when,
        groups=[groups[i] for i in both],
        weights=None if design is None else design.weights[both],
        strata=None if design is None else design.strata[both],
        looks=looks,
    )


def _parts(store: Store, judge: Judge, *, examples: int) -> Iterator[Part]:
    """The labels of every fold, under the prompt made from other folds. Folds with one prompt are one part."""
    places_of: dict[str, list[int]] = {}
    for fold in range(FOLDS):
        places = np.flatnonzero(judge.folds == fold)
        if len(places):
            proposal: Proposal = propose(store, judge, examples=examples, fold=fold)
            places_of.setdefault(proposal.text, []).extend(int(place) for place in places)
    for text, inside in places_of.items():
        yield Part(text, tuple(inside))


def _to_score(store: Store, judge: Judge) -> tuple[int, ...]:
    """The labels without a score of the present prompt, or on which it failed."""
    return tuple(i for i, row in enumerate(judge.data.rows) if row.value is None and row.status in (None, "failed"))


def _with_prompt(store: Store, judge: Judge, text: str) -> Any:
    workspace = workspace_of(store)
    return replace(workspace, files={**workspace.files, judge.file: text})


def _score(store: Store, judge: Judge, places: Sequence[int]) -> Iterator[tuple[int, float | None, str | None]]:
    for start in range(0, len(places), BATCH):
        batch = places[start : start + BATCH]
        traces = store.traces.load([judge.data.rows[i].pk for i in batch])
        for place, score in zip(batch, score_stream(judge.detector, traces), strict=True):
            yield place, score.value, score.reason


def _requests(store: Store, judge: Judge, places: Sequence[int]) -> Iterator[Request]:
    for start in range(0, len(places), BATCH):
        for trace in store.traces.load([judge.data.rows[i].pk for i in places[start : start + BATCH]]):
            if not find_refusal(trace.answer):
                yield from judge.detector.requests(trace)  # type: ignore[attr-defined]


def _add(total: Estimate, other: Estimate, times: float) -> Estimate:
    amounts = {
        name: round(getattr(total, name) + times * getattr(other, name))
        for name in ("requests", "cached", "prompt_tokens", "completion_tokens")
    }
    cost = None if total.cost is None or other.cost is None else total.cost + times * other.cost
    return Estimate(**amounts, cost=cost)


def _released_recall(store: Store, detector: str) -> tuple[float, bool]:
    live = live_release(store)
    entry = live.detectors.get(detector) if live is not None else None
    recall = entry.metrics.recall.value if entry is not None else None
    return (recall, True) if recall else (RECALL, False)


def _count_looks(store: Store, detector: str, after: str) -> int:
    """How many prompts were compared on this detector's labels, with this one: each is a chance to look better."""
    return len({after, *(earlier.after for earlier in store.prompt_examples.compared(detector))})
