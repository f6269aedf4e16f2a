"""`scoreboard`: every detector on the same labels, beside trivial baselines."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from calibrate.cli import Answer
from calibrate.cli.common import open_store
from calibrate.cli.evidence import labels_lines
from calibrate.cli.output import table
from calibrate.errors import TouchstoneError
from calibrate.report.sentences.tuning import scoreboard as sentences
from calibrate.report.sentences.tuning.compare import nothing_paired
from calibrate.report.tables.column import as_csv, cells, record, right
from calibrate.report.tables.scoreboard import IN_FILES, ON_TERMINAL
from calibrate.stats.intervals.ranking_differences import Ranking
from calibrate.targets import Kind, check_target, replacing
from calibrate.types import Interval
from calibrate.workflow.evidence import basis
from calibrate.workflow.evidence.labels_at_hand import LabelsAtHand, labels_at_hand
from calibrate.workflow.tuning import scoreboard as step

BOARD = Kind("a scoreboard in CSV", lambda content: content.startswith(IN_FILES[0].key.encode()))


@dataclass(frozen=True, slots=True)
class AgainstDocument:
    """The leader against another detector; `beyond` holds also against the pick of the leader, `verdict` says what is
    shown, `missing` why there are no figures."""

    other: str
    beyond: bool
    n: int
    positives: int
    clusters: int
    first: Ranking | None
    second: Ranking | None
    auroc: Interval
    average_precision: Interval
    missing: str | None
    verdict: str


@dataclass(frozen=True, slots=True)
class ScoreboardDocument:
    sample: str | None
    n: int
    positives: int
    refusals: int
    leader: str | None
    ranked: Sequence[str]
    may_be_best: Sequence[str]
    against: Sequence[AgainstDocument]
    sentences: Sequence[str] = field(metadata={"key": "said"})
    detectors: Sequence[Mapping[str, Any]]
    scored_nothing: Mapping[str, str]
    evidence: LabelsAtHand


def run(args: Namespace) -> Answer:
    store = open_store(args)
    target = check_target(args.csv, BOARD, store=store.file, replace=args.force) if args.csv else None
    board = step.scoreboard(store, sample=args.sample)
    at_hand = labels_at_hand(store, basis.resolve_sample(store, args.sample))
    if target is not None:
        try:
            with replacing(target) as temporary:
                temporary.write_text(as_csv(IN_FILES, board.lines), encoding="utf-8", newline="")
        except OSError as error:
            raise TouchstoneError(f"cannot write {args.csv!r}: {error.strerror or error}") from None
    document = ScoreboardDocument(
        sample=board.sample,
        n=board.n,
        positives=board.positives,
        refusals=board.refused,
        leader=board.leader,
        ranked=board.ranked,
        may_be_best=board.may_be_best,
        against=[_against(lead) for lead in board.against],
        sentences=sentences.sentences(board),
        detectors=[record(IN_FILES, line) for line in board.lines],
        scored_nothing=sentences.silent(board),
        evidence=at_hand,
    )
    lines = [
        *document.sentences,
        *labels_lines(at_hand),
        "",
        table(cells(ON_TERMINAL, board.lines), right=right(ON_TERMINAL)),
    ]
    lines += [f"{name} could score nothing: {why}" for name, why in document.scored_nothing.items()]
    return Answer(document, "\n".join([*lines, f"written to {args.csv}"] if target else lines))


def _against(lead: step.Against) -> AgainstDocument:
    result = lead.result
    return AgainstDocument(
        other=lead.other, beyond=lead.beyond, n=result.n, positives=result.positives, clusters=result.clusters,
        first=result.first, second=result.second, auroc=result.auroc, average_precision=result.average_precision,
        missing=nothing_paired(result), verdict=lead.verdict,
    )  # fmt: skip
