"""Import the traces of received spans: read the requests that wait, join the spans of a trace, store its answers."""

from __future__ import annotations

import logging
import secrets
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from calibrate.errors import BadInput
from calibrate.ingest.base import Rejected
from calibrate.ingest.record import build
from calibrate.ingest.spans.answers import answers_of, row_of
from calibrate.ingest.spans.otlp import spans_of_json, spans_of_protobuf
from calibrate.ingest.spans.reader import Reader
from calibrate.ingest.spans.record import SpanRecord
from calibrate.receiving.bodies import most_bytes, read_json, unpack
from calibrate.receiving.open_traces import OpenTrace, OpenTraces
from calibrate.redaction import Redactor
from calibrate.settings import ImportSettings
from calibrate.types import Arrival, Record, StoredArrival, Trace
from calibrate.workflow.traces.external_scores import Intakes
from db import Store

log = logging.getLogger("touchstone")

LEASE: Final = timedelta(seconds=30)
HOLD_EVERY: Final = timedelta(seconds=5)
SETTLE_EVERY: Final = timedelta(seconds=1)
READ_BYTES: Final = 4 * 1024 * 1024
BATCH: Final = 1000
BATCH_BYTES: Final = 8 * 1024 * 1024
LATE: Final = timedelta(minutes=10)
LATE_BYTES: Final = 128 * 1024 * 1024
"""Requests are kept for so long, and so many bytes of them, after their traces were imported: spans that come late are
joined with those that came before."""
LOG_EVERY: Final = timedelta(minutes=1)


@dataclass(slots=True)
class Joined:
    """What a joiner has done. `too_late` answers would have changed a trace that somebody uses, or take something away;
    `unanswered` traces had sources or a root and no answer, and held `silent` calls of a model, without content or of
    tools alone; `scores` came with spans and are new in the store, and of `scores_left_out` another stands already, it
    is no number, or no detector can have the name."""

    spans: int = 0
    imported: int = 0
    duplicates: int = 0
    updated: int = 0
    too_late: int = 0
    rejected: int = 0
    purged: int = 0
    unanswered: int = 0
    silent: int = 0
    scores: int = 0
    scores_left_out: int = 0


@dataclass(slots=True)
class _Request:
    came_at: datetime
    size: int


@dataclass
class Joiner:
    """Joins the spans of the requests that wait in the store. Many may run: one at a time works.

    Parameters
    ----------
    store : Store
    open_traces : callable
        Makes the collection of traces that wait for spans.
    redactor : Redactor, optional
        Replaces personal data and secrets before a trace is stored.
    limits : ImportSettings
    clock : callable
        The time.
    name : str
        Of the joiner: a dead one's takes over its work at once. By default a new one.
    """

    store: Store
    open_traces: Callable[[], OpenTraces] = OpenTraces
    redactor: Redactor | None = None
    limits: ImportSettings = field(default_factory=ImportSettings)
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    name: str = ""
    joined: Joined = field(default_factory=Joined)

    def __post_init__(self) -> None:
        self.name = self.name or secrets.token_hex(16)
        self._reader = Reader(tool_results=self.limits.tool_results)
        self._reasons: Counter[str] = Counter()
        self._example = ""  # a rejected answer
        self._refused: dict[str, str] = {}  # why the scores of a name are left out
        self._logged_at, self._logged = self.clock(), Joined()
        self._begin(None)

    def _begin(self, settled: int | None) -> None:
        """Forget everything: the store has what waits. `settled` is None while somebody else is the joiner."""
        self._open = self.open_traces()
        self._ready: list[OpenTrace] = []
        self._requests: OrderedDict[int, _Request] = OrderedDict()
        self._bytes = 0
        self._last = self._settled = settled or 0
        self._is_mine = settled is not None
        self._held_at = self._settled_at = self.clock() if self._is_mine else datetime.min.replace(tzinfo=UTC)

    def step(self) -> bool:
        """Read and import what there is to. Returns whether there was something. Raises StoreError; call it again."""
        now = self.clock()
        if now - self._held_at >= HOLD_EVERY and not self._hold(now):
            return False
        arrivals: list[StoredArrival] = []
        if not self._ready:
            arrivals = self.store.received.after(self._last, most_bytes=READ_BYTES)
            for stored in arrivals:
                self._take(stored)
            # In arrears, time is when the requests came: else no trace would wait for spans that wait themselves.
            moment = arrivals[-1].arrival.at if arrivals else now
            self._ready += self._open.ready(moment.timestamp())
        busy = bool(arrivals or self._ready)
        if self._ready:  # one transaction, then the lease is looked after again
            self._import(now)
        self._settle(now)
        self._log(now)
        return busy

    def leave(self) -> None:
        """Let another joiner begin at once. What is not imported waits in the store."""
        if self._is_mine:
            self._settle(self.clock(), at_once=True)
            self._log(self.clock(), at_once=True)
            self.store.received.leave(self.name, now=self.clock())

    def _hold(self, now: datetime) -> bool:
        settled = self.store.received.hold(self.name, now=now, until=now + LEASE)
        if settled is None or not self._is_mine:
            self._begin(settled)
            if settled is not None:
                self._recall(settled)
        self._held_at = now
        return self._is_mine

    def _recall(self, settled: int) -> None:
        """Learn which traces the imported requests hold that are still here."""
        key = 0
        while arrivals := self.store.received.after(key, most_bytes=READ_BYTES):
            for stored in arrivals:
                key = stored.key
                if key > settled:
                    return
                self._note(stored)
                for span in self._decode(stored.arrival):
                    self._open.remember(span.trace_id, key)

    def _note(self, stored: StoredArrival) -> None:
        size = len(stored.arrival.body)
        self._requests[stored.key] = _Request(stored.arrival.at, size)
        self._bytes += size

    def _take(self, stored: StoredArrival) -> None:
        arrival = stored.arrival
        self._note(stored)
        size = arrival.unpacked // max(1, arrival.spans)
        now = arrival.at.timestamp()
        self.joined.spans += arrival.spans
        for span in self._decode(arrival):
            before_it = self._open.add(span, request=stored.key, size=size, now=now)
            for earlier in self.store.received.load(before_it) if before_it else ():
                each = earlier.arrival.unpacked // max(1, earlier.arrival.spans)
                for before in self._decode(earlier.arrival):
                    if before.trace_id == span.trace_id:
                        self._open.restore(before, request=earlier.key, size=each)
        self._last = stored.key

    def _decode(self, arrival: Arrival) -> Iterator[SpanRecord]:
        """The spans of a request that matter: those that hold something, and roots."""
        is_json = arrival.kind.startswith("json")
        body = arrival.body
        try:
            if arrival.kind.endswith("gzip"):
                body = unpack(body, most=most_bytes(is_json=is_json))
            for span in spans_of_json(read_json(body)) if is_json else spans_of_protobuf(body):
                if isinstance(span, SpanRecord) and (span.is_root or self._reader.holds(span) is not None):
                    yield span
        except BadInput as error:  # it was checked when it came; nothing is gained by trying again
            log.warning("a received request cannot be read and is passed over: %s", error)

    def _import(self, now: datetime) -> None:
        """Import the first of the traces that are ready, in one transaction."""
        traces: list[OpenTrace] = []
        records: list[Record] = []
        size = 0
        for trace in self._ready:
            if traces and (len(records) >= BATCH or size >= BATCH_BYTES):
                break
            traces.append(trace)
            for record in self._records(trace):
                records.append(record)
                size += record.size
        if records:
            added = self.store.traces.add(records, labels_as=None, now=now)
            self.joined.imported += added.imported
            self.joined.duplicates += added.duplicates
            self.joined.purged += len(added.purged)
            changed = {trace_id for _, trace_id in added.conflicts}
            standing = self._update([record for record in records if record.trace.id in changed], now)
            refused = changed - standing | {trace_id for _, trace_id in added.purged}
            self._take_scores([record for record in records if record.trace.id not in refused], now)
        del self._ready[: len(traces)]
        self._open.settle(traces)

    def _records(self, trace: OpenTrace) -> Iterator[Record]:
        line = 0
        try:
            answers = list(answers_of(trace.spans.values(), self._reader))
        except Exception as error:  # spans hold anything: one trace must not stop all others, today and for ever
            log.warning("trace %s cannot be read and is passed over: %r", trace.trace_id, error)
            self.joined.rejected += 1
            return
        for line, answer in enumerate(answers, start=1):
            record = build(row_of(answer, line), format_name="otlp", limits=self.limits, redactor=self.redactor)
            if isinstance(record, Rejected):
                self.joined.rejected += 1
                self._reasons[record.reason] += 1
                self._example = self._example or f"{trace.trace_id}:{answer.span_id}"
            else:
                yield record
        if not line:
            self.joined.unanswered += 1
            self.joined.silent += sum(self._reader.holds(span) == "answer" for span in trace.spans.values())

    def _take_scores(self, records: Sequence[Record], now: datetime) -> None:
        """Store what evaluators said on the spans of answers, as scores of external detectors. A replay finds them
        there; the first of two counts."""
        scores = [pair for record in records for pair in record.scores]
        self.joined.scores_left_out += sum(name.startswith("scores") for each in records for name in each.left_out)
        if not scores:
            return
        intakes = Intakes(self.store, first_counts=True, now=now)
        intakes.add(scores)
        self.joined.scores += sum(taken.new for taken in intakes.taken)
        left_out = sum(taken.left_out for taken in intakes.taken) + sum(name in intakes.refused for name, _ in scores)
        self.joined.scores_left_out += left_out
        self._refused |= intakes.refused

    def _update(self, records: Sequence[Record], now: datetime) -> frozenset[str]:
        """Replace the content of traces that nobody uses yet, where what came late only adds to it. Returns the ids of
        those that have their record's content now."""
        if not records:
            return frozenset()
        same: set[str] = set()
        stored = self.store.late.load([record.trace.id for record in records])
        changes: list[tuple[str, Record]] = []
        for record in records:
            before = stored.get(record.trace.id)
            if before is not None and before.content_hash() == record.trace.content_hash():
                self.joined.duplicates += 1  # the second of two in one batch
                same.add(record.trace.id)
            elif before is not None and adds_to(record.trace, before):
                changes.append((before.content_hash(), record))
            else:
                self.joined.too_late += 1
        replaced = self.store.late.replace(changes, now=now) if changes else frozenset()
        self.joined.updated += len(replaced)
        self.joined.too_late += len(changes) - len(replaced)
        return replaced | same

    def _settle(self, now: datetime, *, at_once: bool = False) -> None:
        """Record how far everything is imported, and let go of what was imported long ago."""
        if now - self._settled_at < SETTLE_EVERY and not at_once:
            return
        self._settled_at = now
        oldest = self._open.oldest_request()
        settled = self._last if oldest is None else min(oldest - 1, self._last)
        settled = max(settled, self._settled)
        gone, left = [], self._bytes
        for key, request in self._requests.items():
            if key > settled or (now - request.came_at < LATE and left <= LATE_BYTES):
                break
            gone.append(key)
            left -= request.size
        if settled == self._settled and not gone:
            return
        if not self.store.received.settle(self.name, settled, gone=gone):
            self._begin(None)
            return
        for key in gone:
            self._bytes -= self._requests.pop(key).size
        self._settled = settled

    def _log(self, now: datetime, *, at_once: bool = False) -> None:
        """Say at most once a minute what was not imported since the last time."""
        if now - self._logged_at < LOG_EVERY and not at_once:
            return
        new = {name: getattr(self.joined, name) - getattr(self._logged, name) for name in Joined.__slots__}
        if new["too_late"]:
            log.warning("answers too late: %d; their traces are in use, or hold more", new["too_late"])
        if new["rejected"]:
            reason = next((reason for reason, _ in self._reasons.most_common(1)), "")
            like = f" (like {self._example})" if self._example else ""
            log.warning("answers rejected: %d%s, most of them for: %s", new["rejected"], like, reason)
            self._example = ""
        if new["silent"]:
            log.warning(
                "%d calls of a model came without the text of an answer, and none of their traces has one: have the "
                "instrumentation capture content, as with "
                "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY; docs/how-to/opentelemetry.md says how",
                new["silent"],
            )
        if new["purged"]:
            log.warning("answers that stay out: %d; their traces were purged", new["purged"])
        if left_out := new["scores_left_out"]:
            log.warning(
                "scores left out: %d; another value stands, it is no number, or no detector can have the name", left_out
            )
            for reason in list(self._refused.values())[:3]:
                log.warning("scores were left out: %s", reason)
        self._refused.clear()
        self._reasons.clear()
        self._logged_at = now
        self._logged = Joined(**{name: getattr(self.joined, name) for name in Joined.__slots__})


def adds_to(late: Trace, before: Trace) -> bool:
    """Tell whether a trace has all that it had before, and more."""
    texts = {source.text for source in late.sources}
    pairs = (
        (late.context, before.context),
        (late.model, before.model),
        (late.tokens, before.tokens),
        (late.schema, before.schema),
    )
    question = before.question is None or (late.question is not None and late.question in before.question)
    return (
        late.answer == before.answer
        and question
        and all(old is None or new == old for new, old in pairs)
        and all(source.text in texts for source in before.sources)
        and set(before.alternatives) <= set(late.alternatives)
    )
