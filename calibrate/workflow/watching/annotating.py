"""Write what `watch` decided to the systems that the answers came from: through an outbox in the store, each once.

A decision enters the outbox of each system in the transaction that keeps it, so a kill loses none. It leaves when the
system has it; a kill between the two writes it again, which the system takes for the same. A system that is down keeps
them waiting, with pauses that double; what it will never take is given up, and counted.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta

from calibrate.errors import TouchstoneError
from calibrate.ingest.spans.record import split_answer_id
from calibrate.ingest.systems import ANNOTATED, SYSTEMS
from calibrate.ingest.systems.base import Annotator, Note, NoteScore
from calibrate.thresholds.model import ThresholdsFile
from calibrate.workflow.releasing.history import read_release
from db import Store
from db.decisions import StoredDecision
from db.exchange.annotations import Unsent

MOST = 50  # decisions written at once
LEASE = 300.0  # seconds for which a watcher that died keeps the decisions it was writing
FIRST_PAUSE, LONGEST_PAUSE = 10.0, 3600.0  # seconds before another attempt; doubled every time
PATIENCE = timedelta(days=7)  # how long a system may be down
PULLED_FROM = frozenset(SYSTEMS) & frozenset(ANNOTATED)  # where an answer can go back to
REFUSALS = 5  # attempts before a system that says it does not have the answer is believed: answers come late


def may_annotate(trace_id: str) -> bool:
    """Whether a trace's id names an answer of another system."""
    return split_answer_id(trace_id) is not None


def choose_targets(
    targets: Sequence[str], pks: Sequence[int], origins: Mapping[int, frozenset[str]]
) -> dict[str, set[int]]:
    """Sort out which of the traces each target is to have a decision on.

    An answer that was pulled from a system that can be annotated goes back there and to no other. Whence others came
    nobody knows: every target gets them. A target that is no such system, like `otel`, gets all.

    Parameters
    ----------
    targets : sequence of str
    pks : sequence of int
        Keys of traces whose ids name an answer of another system.
    origins : mapping of int to frozenset of str
        The systems that each was pulled from, where it was.
    """
    homes = {pk: systems & PULLED_FROM for pk, systems in origins.items()}
    return {
        target: {pk for pk in pks if target not in PULLED_FROM or not homes.get(pk) or target in homes[pk]}
        for target in targets
    }


def compose(trace_id: str, decision: StoredDecision, file: ThresholdsFile | None) -> Note | None:
    """Make the note of a decision. `file` is its release; without it, the thresholds are left out.

    Returns
    -------
    Note or None
        None for a trace whose id names no answer of another system.
    """
    ids = split_answer_id(trace_id)
    if ids is None:
        return None
    reasons = dict(zip(decision.flags, decision.reasons, strict=False))
    names = [*decision.scores, *(name for name in decision.flags if name not in decision.scores)]
    scores = {
        name: NoteScore(
            score=decision.scores.get(name),
            threshold=None if file is None else _threshold(file, name),
            flagged=name in decision.flags,
            reason=reasons.get(name),
        )
        for name in names
    }
    return Note(
        key=f"{trace_id}/v{decision.version}",
        trace_id=ids[0],
        span_id=ids[1],
        version=decision.version,
        verdict=decision.verdict,
        tier=decision.tier,
        scores=scores,
        reasons=decision.reasons,
        decided_at=decision.decided_at,
    )


def _threshold(file: ThresholdsFile, name: str) -> float | None:
    """The threshold of a detector; None for an ensemble, and where segments have their own: the reason says which."""
    entry = file.detectors.get(name)
    return None if entry is None or entry.segments is not None else entry.threshold


class Annotating:
    """Writes what waits for one system, from a thread of its own: no decision waits for it.

    target       the system's name
    annotator    the system, open for writing
    on_problem   hears, in the thread, why decisions could not be written; each reason once until another comes
    """

    def __init__(
        self,
        store: Store,
        target: str,
        annotator: Annotator,
        *,
        now: Callable[[], datetime],
        on_problem: Callable[[str, str], None] = lambda target, problem: None,
    ) -> None:
        self._store, self.target, self._annotator = store, target, annotator
        self._now, self._on_problem = now, on_problem
        self._files: dict[int, ThresholdsFile | None] = {}
        self._changed = threading.Condition()
        self._woken, self._closed = True, False
        self._failures = 0
        self.problem: str | None = None
        self.written = self.given_up = 0
        self._thread = threading.Thread(target=self._run, name=f"touchstone-{target}", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Look into the outbox: something was put there."""
        with self._changed:
            self._woken = True
            self._changed.notify_all()

    def close(self, timeout: float) -> None:
        """Write everything that is due, and stop. What is not written within so many seconds stays in the outbox."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._thread.join(timeout)

    def _run(self) -> None:
        while True:
            closing = self._closed
            try:
                pause = self._write_due()
            except TouchstoneError as error:  # the store cannot be read or written now
                pause = self._fail(str(error))
            except Exception as error:  # its text is not repeated: it may hold a key
                pause = self._fail(type(error).__name__)
            if closing:
                return
            with self._changed:
                self._changed.wait_for(lambda: self._woken or self._closed, pause)
                self._woken = False

    def _write_due(self) -> float | None:
        """Write what is due. Returns the seconds until more is; None while nothing waits."""
        while batch := self._store.annotations.claim(self.target, MOST, now=self._now(), until=self._after(LEASE)):
            if not self._write(batch):
                break
        due = self._store.annotations.due(self.target)
        return None if due is None else max(0.1, (due - self._now()).total_seconds())

    def _write(self, batch: Sequence[Unsent]) -> bool:
        """Write a batch. False where the system takes nothing now."""
        notes = {
            unsent.key: compose(unsent.trace_id, unsent.decision, self._file(unsent.decision.version))
            for unsent in batch
        }
        try:
            refused = self._annotator.annotate([note for note in notes.values() if note is not None])
        except TouchstoneError as error:
            self._fail(str(error))
            self._delay(batch, {unsent.key: str(error) for unsent in batch}, refused=False)
            return False
        reasons = {key: refused[note.key] for key, note in notes.items() if note is not None and note.key in refused}
        reasons |= {key: "" for key, note in notes.items() if note is None}
        done = [key for key in notes if key not in reasons]
        self._store.annotations.mark_told(done, now=self._now())
        self.written += len(done)
        self._delay([unsent for unsent in batch if unsent.key in reasons], reasons, refused=True)
        self.problem, self._failures = None, 0
        return True

    def _delay(self, batch: Sequence[Unsent], reasons: Mapping[int, str], *, refused: bool) -> None:
        """Put off what was not written, or give it up."""
        later: dict[tuple[str, int], list[int]] = defaultdict(list)
        for unsent in batch:
            late = self._now() - unsent.queued_at > PATIENCE
            over = late or (refused and unsent.attempts >= REFUSALS)
            later[reasons[unsent.key], 0 if over else unsent.attempts].append(unsent.key)
        for (reason, attempts), keys in later.items():
            if not attempts:
                self._store.annotations.give_up(keys, error=reason, now=self._now())
                self.given_up += len(keys)
                continue
            self._store.annotations.postpone(keys, error=reason, until=self._after(_pause(attempts)))

    def _file(self, version: int) -> ThresholdsFile | None:
        if version not in self._files:
            row = self._store.releases.get(version)
            self._files[version] = None if row is None else read_release(row)
        return self._files[version]

    def _fail(self, problem: str) -> float:
        """Report a problem that is new. Returns the seconds until the next attempt."""
        if problem != self.problem:
            self._on_problem(self.target, problem)
        self.problem = problem
        self._failures += 1
        return _pause(self._failures)

    def _after(self, seconds: float) -> datetime:
        return self._now() + timedelta(seconds=seconds)


def _pause(attempts: int) -> float:
    return min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(attempts - 1, 12))
