"""Watch: score the traces that the active release has not decided, decide them, store that, and raise alerts.

For teams whose program does not decide by itself. What is scored already is not scored again, and what is decided not
decided again, so watching may be stopped and started at any time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from calibrate.errors import BadInput
from calibrate.runtime import Decision, OnMissing, Scored, Scorer
from calibrate.thresholds.model import ThresholdsFile
from calibrate.types import Score, Tier, Trace, TraceFilter
from calibrate.workflow.detection.team_workspace import workspace_of
from calibrate.workflow.releasing.history import read_release
from calibrate.workflow.watching.annotating import choose_targets, may_annotate
from calibrate.workspace import using
from db import Store
from db.decisions import FLAGGED, StoredDecision
from db.engine import Transaction
from db.exchange.annotations import queue

BATCH = 64  # traces scored and decided together: what a kill may lose
WAIT = timedelta(days=1)
"""How long a trace without a flag waits for a score that is computed elsewhere, from its import on: a nightly batch."""
PATIENCE = 3  # batches in which all that was tried went wrong, with none decided between, before a look ends

Offer = Callable[[Trace, Decision], None]


@dataclass(slots=True)
class Look:
    """What one look at the store did. `tiers` counts the decided traces, `unscored` those of them of which nothing
    could be scored; `computed` and `reused` count scores; `failed`, by detector, those that should have been there.
    `undecided` traces stay for the next look, `problems` says why; `waiting` ones stay too, as scores of them are to be
    imported yet."""

    version: int
    tiers: Counter[Tier] = field(default_factory=Counter)
    unscored: int = 0
    computed: int = 0
    reused: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    undecided: int = 0
    waiting: int = 0
    problems: Counter[str] = field(default_factory=Counter)

    @property
    def decided(self) -> int:
        return self.tiers.total()

    @property
    def troubles(self) -> int:
        return self.problems.total() + self.failed.total()


@dataclass(frozen=True, slots=True)
class _Scored:
    """A scored trace. `owed` says, by detector, why a score is missing that could be made another time: it failed, or
    its model is not here."""

    scored: Scored
    owed: dict[str, str]


class Watcher:
    """Looks, again and again, for traces that a release has not decided: the `pinned` one, else always the newest.

    where        which traces it is about, asked at every look, because a window moves
    offer        hears of every trace that is flagged for the first time, or more severely than by an earlier release,
                 once that is in the outbox; without it, nothing is put there
    targets      systems that are to have the decisions on answers of theirs, see `choose_targets`; `annotated` is
                 called when one was put into an outbox
    on_missing   the verdict on a trace of which nothing can be scored, at this look or a later one
    """

    _file: ThresholdsFile
    _scorer: Scorer
    _seen: int  # every trace up to this key is decided, or outside of what is watched
    _trouble: set[int]  # traces that could not be decided; the others come first
    _configs: dict[str, int]
    _waiting: dict[int, datetime]  # traces that lack an imported score, and until when they wait for it
    _imported: datetime | None  # when the newest imported score came that was looked at

    def __init__(
        self,
        store: Store,
        *,
        where: Callable[[], TraceFilter],
        now: Callable[[], datetime],
        pinned: ThresholdsFile | None = None,
        offer: Offer | None = None,
        on_missing: OnMissing = "review",
        targets: Sequence[str] = (),
        annotated: Callable[[], None] = lambda: None,
    ) -> None:
        self._store, self._where, self._now = store, where, now
        self._targets, self._annotated = targets, annotated
        self._offer, self._on_missing = offer, on_missing
        if pinned is not None:
            _check_belongs(store, pinned)
        self._pinned = pinned is not None
        self._workspace = workspace_of(store)
        self._take(pinned or newest(store))

    def look(self, on_progress: Callable[[int, int], None] = lambda done, total: None) -> Look:
        """Decide the traces that lack a decision, newest first.

        A trace that makes trouble is reported, left undecided and tried again at the next look, after the others. A
        release that comes meanwhile is taken at once, and the look begins anew. `on_progress` is called after every
        batch with the traces looked at and those to look at. Raises what the database raises where it cannot answer.
        """
        self._follow()
        if (team := workspace_of(self._store)) != self._workspace:
            self._workspace, self._scorer = team, Scorer(self._file, on_missing=self._on_missing)
            self._waiting = {}
        look = Look(self._file.version)
        last = self._store.decisions.newest_trace()
        if last == self._seen:
            return look
        lacking = self._store.decisions.lacking(self._file.version, self._where(), after=self._seen)
        todo = sorted(self._leave_waiting(lacking), key=self._trouble.__contains__)
        look.waiting = len(lacking) - len(todo)
        in_vain = 0
        for start in range(0, len(todo), BATCH):
            batch = todo[start : start + BATCH]
            decided, troubles = look.decided, look.troubles
            self._survive(batch, look)
            if look.decided > decided:
                in_vain = 0
            elif look.troubles > troubles:  # a batch that merely waits says nothing of the next
                in_vain += 1
            on_progress(start + len(batch), len(todo))
            if in_vain == PATIENCE:
                break
            if self._follow():
                return self.look()
        look.waiting = len(self._waiting)
        look.undecided = len(lacking) - look.waiting - look.decided
        if not look.undecided and not look.waiting:
            self._seen = last
        return look

    def _leave_waiting(self, pks: Sequence[int]) -> Sequence[int]:
        """Those of the traces that do not wait: they are new, waited long enough, or a score of them came."""
        configs = [self._config(name) for name, entry in self._file.detectors.items() if entry.is_external]
        imported, before = self._store.external.newest(configs), self._imported
        self._imported, now = imported, self._now()
        came = self._store.external.scored_since(configs, before) if imported != before and self._waiting else set()
        waiting = self._waiting
        self._waiting = {pk: waiting[pk] for pk in pks if pk in waiting and pk not in came and waiting[pk] > now}
        return [pk for pk in pks if pk not in self._waiting]

    def _waits(self, row: _Scored, decision: Decision, imported_at: datetime) -> bool:
        """Whether a trace is decided later, because an external detector owes its score. What is flagged already is
        not, nor what waited long enough, nor where scores of another revision come in."""
        entries = {name: self._file.detectors[name] for name in row.owed}
        current = self._workspace.external
        owed = [
            name
            for name, entry in entries.items()
            if entry.is_external and name in current and current[name].revision == entry.revision
        ]
        return bool(owed) and decision.tier not in FLAGGED and self._now() < imported_at + WAIT

    def _follow(self) -> bool:
        """Switch to a newer release, if there is one. Returns True if it did."""
        if self._pinned or (file := newest(self._store)).version == self._file.version:
            return False
        self._take(file)
        return True

    def _take(self, file: ThresholdsFile) -> None:
        self._file, self._scorer = file, Scorer(file, on_missing=self._on_missing)
        self._seen, self._trouble, self._configs = 0, set(), {}
        self._waiting, self._imported = {}, None

    def _survive(self, pks: Sequence[int], look: Look) -> None:
        """Decide the batch. If that raises, decide its traces one by one, so that only the faulty one is left."""
        try:
            self._decide(pks, look)
        except Exception as error:
            if len(pks) > 1:
                for pk in pks:
                    self._survive([pk], look)
            else:
                self._trouble.update(pks)
                look.problems[f"{type(error).__name__}: {str(error)[:200]}"] += 1

    def _decide(self, pks: Sequence[int], look: Look) -> None:
        contents = dict(pair for chunk in self._store.traces.hashes(pks) for pair in chunk)
        traces = dict(zip(pks, self._store.traces.load(pks), strict=True))
        for batch in _split_twins(pks, contents):
            hashes = {traces[pk].id: contents[pk] for pk in batch}
            scored = self._score([traces[pk] for pk in batch], hashes, look)
            self._keep(dict(zip(batch, scored, strict=True)), look)

    def _score(self, traces: Sequence[Trace], contents: dict[str, str], look: Look) -> list[_Scored]:
        """The scores of these traces ({id: content hash}); what the store has is taken, what it has not is kept."""
        stored: set[tuple[str, str]] = set()

        def look_up(name: str, batch: Sequence[Trace]) -> list[Score | None]:
            scores_of = self._store.scores.reusable(self._config(name), [contents[trace.id] for trace in batch])
            rows = [(trace.id, scores_of.get(contents[trace.id])) for trace in batch]
            stored.update((name, trace_id) for trace_id, score in rows if score)
            return [replace(score, trace_id=trace_id) if score else None for trace_id, score in rows]

        with using(self._workspace):
            scored = self._scorer.score(traces, cached=look_up)
        fresh: dict[str, list[tuple[str, Score]]] = {}
        for trace_scores in scored:
            for name in trace_scores.seconds:  # of those that ran; what could not run here is no score to keep
                fresh.setdefault(name, []).append((contents[trace_scores.trace.id], trace_scores.scores[name]))
        for name, pairs in fresh.items():
            self._store.scores.save(self._config(name), pairs, now=self._now())
        look.reused += len(stored)
        look.computed += sum(map(len, fresh.values()))
        return [_Scored(trace_scores, _find_owed(trace_scores, stored)) for trace_scores in scored]

    def _config(self, name: str) -> int:
        """The key of the scores that the release was made from."""
        if name not in self._configs:
            entry = self._file.detectors[name]
            config = self._store.scores.config(name, entry.version, entry.params, entry.revision, now=self._now())
            self._configs[name] = config.id
        return self._configs[name]

    def _keep(self, scored: dict[int, _Scored], look: Look) -> None:
        decisions = {}
        imported_at = self._store.external.imported_at([pk for pk, row in scored.items() if row.owed])
        for pk, row in scored.items():
            decision = row.scored.decision
            failed = {name: why for name, why in row.owed.items() if not self._file.detectors[name].is_external}
            look.failed.update(failed.keys())
            if pk in imported_at and self._waits(row, decision, imported_at[pk]):
                self._waiting[pk] = imported_at[pk] + WAIT
                continue
            if failed and not decision.scored:
                # While an endpoint is down or a model missing, everything would pass: it can be judged later.
                self._trouble.add(pk)
                look.problems.update(f"{name}: {reason}" for name, reason in failed.items())
            else:
                decisions[pk] = decision
        now = self._now()
        news = {pk for pk, decision in decisions.items() if self._offer and self._is_news(pk, decision)}
        new = self._store.decisions.keep(
            [_make_decision(pk, scored[pk].scored, row, now) for pk, row in decisions.items()],
            tell=news,
            annotate=self._queue([pk for pk in decisions if may_annotate(scored[pk].scored.trace.id)]),
        )
        if self._targets and new:
            self._annotated()
        for pk, decision in decisions.items():
            look.tiers[decision.tier] += 1
            look.unscored += decision.unscored
            if self._offer and pk in new and pk in news:
                self._offer(scored[pk].scored.trace, decision)

    def _queue(self, pks: Sequence[int]) -> Callable[[Transaction, Sequence[StoredDecision]], None] | None:
        """Puts the new decisions on these traces into the outboxes of the targets that are to have them."""
        if not self._targets or not pks:
            return None
        targets = choose_targets(self._targets, pks, self._store.origins.systems(pks))
        return lambda connection, decisions: queue(connection, decisions, targets)

    def _is_news(self, pk: int, decision: Decision) -> bool:
        """Check whether a flag is news: no earlier release flagged the trace in this tier or a more severe one.

        After a release the whole window is decided again, and nobody should be alerted twice.
        """
        if decision.tier not in FLAGGED:
            return False
        loud = FLAGGED[: FLAGGED.index(decision.tier) + 1]
        return not any(
            earlier.tier in loud for earlier in self._store.decisions.of(pk) if earlier.version != decision.version
        )


def newest(store: Store) -> ThresholdsFile:
    """The active release. Raises BadInput where there is none."""
    rows = store.releases.list(limit=1)
    if not rows:
        raise BadInput(
            "nothing to watch by: nothing was released yet; `python -m calibrate release`, or the Release page, makes "
            "the first release"
        )
    return read_release(rows[0])


def _check_belongs(store: Store, file: ThresholdsFile) -> None:
    """Refuse a file that is not the stored release of its number, because decisions are stored under that number."""
    row = store.releases.get(file.version)
    if row is None or read_release(row) != file:
        raise BadInput(
            f"this file is not release {file.version} of this store, under which its decisions would be kept: take the "
            "file from the Release page or from `release --again`, or leave --file out to watch by the newest release"
        )


def _split_twins(pks: Sequence[int], contents: dict[int, str]) -> Iterable[Sequence[int]]:
    """Put the first trace of every content before the others, which then find its scores stored."""
    first = {content: pk for pk, content in reversed([(pk, contents[pk]) for pk in pks])}
    leaders = [pk for pk in pks if first[contents[pk]] == pk]
    others = [pk for pk in pks if first[contents[pk]] != pk]
    return filter(None, (leaders, others))


def _find_owed(scored: Scored, stored: Container[tuple[str, str]]) -> dict[str, str]:
    """Say by detector why a score is missing that another look could make.

    `stored`: the (detector, trace id) pairs whose score came from the store, which this machine did not have to
    compute.
    """
    return {
        name: score.reason or "no reason given"
        for name, score in scored.scores.items()
        if score.status == "failed" or (name not in scored.seconds and (name, scored.trace.id) not in stored)
    }


def _make_decision(pk: int, scored: Scored, decision: Decision, now: datetime) -> StoredDecision:
    scores = {name: score.value for name, score in scored.scores.items()}
    return StoredDecision(
        pk, decision.version, decision.verdict, decision.tier, decision.flags, decision.reasons, scores, now
    )
