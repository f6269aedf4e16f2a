"""Import a file of scores that were computed elsewhere: find the trace of every row, and take its score."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, islice
from pathlib import Path

from calibrate.errors import BadInput
from calibrate.ingest.base import Rejected
from calibrate.ingest.files import InputFile
from calibrate.ingest.score_reader import Quoted, ScoreRow, digest, digest_all, guess_score, read_scores
from calibrate.types import ExternalDetector, FlagWhen, StatedScore
from calibrate.workflow.detection.external import (
    Bound,
    Fate,
    Intake,
    TakenScores,
    define_external,
    name_of,
    plan_external,
)
from db import Store

MAX_ERRORS = 1000
BATCH = 10_000
SHOWN = 5  # rows that an error quotes, and a preview shows
LOADED = 200  # traces that are compared by their sources at once


@dataclass(frozen=True, slots=True)
class Unmatched:
    """A row of which no one trace is meant: `traces` of different contents are as it quotes. 0: none is, and `trace_id`
    says which it named."""

    line: int
    trace_id: str | None
    traces: int = 0


@dataclass(frozen=True, slots=True)
class Outside:
    """A row with a value that the detector cannot have."""

    line: int
    value: float


Error = Rejected | Unmatched | Outside


@dataclass(frozen=True)
class ImportedScores:
    """What became of the rows of a file. `by_content` traces were found by what the row quotes. `errors` are the first
    thousand of the `rejected` rows. `cut`: the file is damaged, and was not read to its end."""

    detector: ExternalDetector
    taken: TakenScores
    by_content: int
    rejected: int
    errors: Sequence[Error]
    cut: bool


@dataclass(frozen=True, slots=True)
class Look:
    """The columns of a file's first rows, the one that is likely the score, and a name for its detector."""

    columns: Sequence[str]
    score: str | None
    name: str


@dataclass(frozen=True, slots=True)
class PreviewRow:
    line: int
    trace_id: str | None
    value: float
    reason: str | None


@dataclass(frozen=True, slots=True)
class Preview:
    """The first rows of a file as an import would read them, and those among them that it would reject."""

    rows: Sequence[PreviewRow]
    errors: Sequence[Rejected]


def look_at(path: str | os.PathLike[str]) -> Look:
    """Look at the beginning of a file, to ask what its columns are. Raises BadInput for one that cannot be read."""
    with InputFile(path, item="score") as file:
        columns, score = guess_score(file)
    name = re.sub("[^A-Za-z0-9_.]+", "_", score if score not in (None, "score", "value") else Path(path).stem)
    return Look(columns, score, name.strip("_.")[:100])


def preview(path: str | os.PathLike[str], name: str, columns: Mapping[str, str]) -> Preview:
    """The first rows. Raises BadInput for a name that a detector cannot have, and for a file without scores."""
    name = name_of(name)
    with InputFile(path, item="score") as file:
        first = list(islice(read_scores(file, detector=name, columns=columns), SHOWN))
    rows = [PreviewRow(row.line, row.trace_id, row.value, row.reason) for row in first if isinstance(row, ScoreRow)]
    return Preview(rows, [row for row in first if isinstance(row, Rejected)])


def import_scores(
    store: Store,
    path: str | os.PathLike[str],
    name: str,
    *,
    flag_when: FlagWhen | None = None,
    unit: str | None = None,
    low: Bound = None,
    high: Bound = None,
    revision: str | None = None,
    columns: Mapping[str, str] | None = None,
    on_progress: Callable[[int, float], None] = lambda rows, share: None,
    now: datetime,
) -> ImportedScores:
    """Import the scores of a detector. Good rows stay where others are rejected; a new detector of which no row is
    taken is not stored.

    A row is for the trace that it names. Where it names none that is in the store, it is for the traces whose answer is
    the one it quotes, and whose question and sources are, where it quotes them; white space around a text does not
    count. They must all have the same content. Raises BadInput for a file that cannot be read, where the first row
    shows that it holds no scores, and for another direction than the detector has.
    """
    name = name_of(name)
    before = store.external.find(name)
    if before and before.flag_when and flag_when and before.flag_when != flag_when:
        raise BadInput(
            f"{name} flags {before.flag_when} its threshold, and an import does not turn it round: leave --flag-when "
            f"out, or say `scores define {name} --flag-when {flag_when}` first"
        )
    with InputFile(path, item="score") as file:
        rows = read_scores(file, detector=name, columns=columns or {})
        first = list(_until_good(rows, file.name))  # before anything is stored
        settle = define_external if before else plan_external
        planned = settle(store, name, flag_when=flag_when, unit=unit, low=low, high=high, now=now)
        work = _Work(store, Intake(store, name, revision=revision, planned=planned, now=now))
        for place, row in enumerate(chain(first, rows), 1):
            work.take(row)
            if place % BATCH == 0:
                on_progress(place, file.share)
        work.finish()
    detector = store.external.find(name) or planned
    return ImportedScores(
        detector, work.intake.taken, work.by_content, work.rejected, sorted(work.errors, key=lambda error: error.line),
        work.cut,
    )  # fmt: skip


def _until_good(rows: Iterator[ScoreRow | Rejected], name: str) -> Iterator[ScoreRow | Rejected]:
    """The rows up to the first that is a score. Raises BadInput where there is none."""
    bad = []
    for row in rows:
        yield row
        if isinstance(row, ScoreRow):
            return
        bad.append(row)
    listed = "".join(f"\n  line {row.line}: {row.reason}" for row in bad[:SHOWN])
    raise BadInput(
        f"{name} holds no score that can be read: {len(bad):,} {'row is' if len(bad) == 1 else 'rows are'} none{listed}"
    )


class _Work:
    """The rows that wait for their batch or for a look through all traces, and those that were rejected."""

    def __init__(self, store: Store, intake: Intake) -> None:
        self.store, self.intake = store, intake
        self.by_content = self.rejected = 0
        self.errors: list[Error] = []
        self.cut = False
        self._named: list[ScoreRow] = []
        self._quoting: list[ScoreRow] = []

    def take(self, row: ScoreRow | Rejected) -> None:
        if isinstance(row, Rejected):
            self.cut |= row.last
            self._reject(row)
        elif row.trace_id is None:
            self._quoting.append(row)
        else:
            self._named.append(row)
            if len(self._named) == BATCH:
                self._store_named()

    def finish(self) -> None:
        self._store_named()
        matches = _Matches(self.store, self._quoting)
        pairs: list[tuple[ScoreRow, str]] = []
        for row in self._quoting:
            trace_ids, contents = matches.of(row)
            if contents == 1:
                pairs.append((row, trace_ids[0]))
            else:
                self._reject(Unmatched(row.line, row.trace_id, contents))
        for start in range(0, len(pairs), BATCH):
            batch = pairs[start : start + BATCH]
            fates = self.intake.add([StatedScore(trace_id, row.value, row.reason) for row, trace_id in batch])
            for (row, _), fate in zip(batch, fates, strict=True):
                self.by_content += fate != Fate.OUTSIDE
                self._note(row, fate)

    def _store_named(self) -> None:
        rows, self._named = self._named, []
        # A row that quotes its answer may be of a trace that has another id here.
        stored = self.store.external.contents(sorted({row.trace_id for row in rows if row.trace_id and row.quoted}))
        self._quoting += [row for row in rows if row.quoted and row.trace_id not in stored]
        rows = [row for row in rows if row.quoted is None or row.trace_id in stored]
        fates = self.intake.add([StatedScore(row.trace_id or "", row.value, row.reason) for row in rows])
        for row, fate in zip(rows, fates, strict=True):
            self._note(row, fate)

    def _note(self, row: ScoreRow, fate: Fate) -> None:
        if fate == Fate.UNKNOWN:
            self._reject(Unmatched(row.line, row.trace_id))
        elif fate == Fate.OUTSIDE:
            self._reject(Outside(row.line, row.value))

    def _reject(self, error: Error) -> None:
        self.rejected += 1
        if len(self.errors) < MAX_ERRORS:
            self.errors.append(error)


class _Matches:
    """The traces that rows quote, found in one look through the store."""

    def __init__(self, store: Store, rows: Sequence[ScoreRow]) -> None:
        self._traces: dict[bytes, list[tuple[int, str, str, bytes | None]]] = {}  # by the digest of the answer
        self._sources: dict[int, bytes] = {}
        quotes = [row.quoted for row in rows if row.quoted is not None]
        if not quotes:
            return
        wanted = {quoted.answer for quoted in quotes}
        for pk, trace_id, content, question, answer in store.external.texts():
            key = digest(answer)
            if key in wanted:
                asked_for = digest(question) if question else None
                self._traces.setdefault(key, []).append((pk, trace_id, content, asked_for))
        pks = sorted({
            pk for quoted in quotes if quoted.sources is not None for pk, *_ in self._asked_alike(quoted)
        })  # fmt: skip
        for start in range(0, len(pks), LOADED):
            part = pks[start : start + LOADED]
            for pk, trace in zip(part, store.traces.load(part), strict=True):
                self._sources[pk] = digest_all(trace.context_texts)

    def of(self, row: ScoreRow) -> tuple[list[str], int]:
        """The ids of the traces that a row quotes, and how many contents they have."""
        quoted = row.quoted
        if quoted is None:
            return [], 0
        alike = self._asked_alike(quoted)
        if quoted.sources is not None:
            alike = [each for each in alike if self._sources.get(each[0]) == quoted.sources]
        return [trace_id for _, trace_id, _, _ in alike], len({content for _, _, content, _ in alike})

    def _asked_alike(self, quoted: Quoted) -> list[tuple[int, str, str, bytes | None]]:
        traces = self._traces.get(quoted.answer, [])
        return [each for each in traces if quoted.question is None or each[3] == quoted.question]
