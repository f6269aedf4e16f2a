"""Propose a judge's prompt: the guidelines, the kinds of error, and examples chosen from labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from calibrate.backends.chat.guided import Case, guide
from calibrate.backends.embedding import embedder
from calibrate.errors import BadInput
from calibrate.stats.aligning.examples import choose_examples, hardness
from calibrate.types import Guide, Label, Trace
from calibrate.workflow.aligning.judges import Judge
from calibrate.workflow.detection import team_files
from calibrate.workflow.labelling import guides
from db import Store
from db.scores import Row

EXAMPLES = 6
MOST_EXAMPLES = 40
LONGEST = 8_000  # characters of an example: every request carries all of them
NOTE = 300  # characters of a note that a prompt has room for


@dataclass(frozen=True)
class Example:
    """A labelled trace that a prompt quotes; `off` is how far the present judge is from its verdict, 0 to 1, None where
    it has no score."""

    pk: int
    trace_id: str
    gold: str
    off: float | None


@dataclass(frozen=True)
class Proposal:
    """A prompt made from labels, not saved yet.

    `pool` are the traces that it would set aside, whose `examples` it quotes; `newly` of them count in figures so far.
    `too_long` are labels that were left out for their length.
    """

    detector: str
    file: str
    before: str
    after: str
    text: str
    guide: Guide
    examples: tuple[Example, ...]
    pool: tuple[int, ...]
    newly: int
    labels: int
    too_long: int


def propose(store: Store, judge: Judge, *, examples: int = EXAMPLES, fold: int = -1) -> Proposal:
    """Make the prompt for the answers of a fold from labels of others; by default the one that is to be saved.

    Raises BadInput for a number of examples that no prompt can have, and where no label can be an example.
    """
    if not 0 <= examples <= MOST_EXAMPLES:
        raise BadInput(f"a prompt cannot have {examples} examples: ask for 0 to {MOST_EXAMPLES}")
    current = guides.current(store)
    rows = judge.pool(fold, examples=examples) if examples else ()
    purged = store.purges.of_traces(row.pk for row in rows)
    rows = tuple(row for row in rows if row.pk not in purged)
    traces = dict(zip([row.pk for row in rows], store.traces.load([row.pk for row in rows]), strict=True))
    names = {kind.key: kind.name for kind in guides.known_kinds(store)}
    cases = {row.pk: _make_case(store, row, traces[row.pk], names) for row in rows}
    short = [row for row in rows if cases[row.pk].characters <= LONGEST]
    chosen = _choose(short, traces, examples)
    if examples and not chosen:
        raise BadInput(
            f"none of the {len(judge.data.rows)} labels that count can be an example for {judge.detector.name}: label "
            f"more answers of either verdict, or ask for no examples (`align propose {judge.detector.name} "
            "--examples 0`)"
        )
    kinds = [(kind.name, kind.meaning) for kind in current.kinds]
    text = guide(judge.text, current.text, kinds, [cases[example.pk] for example in chosen])
    counted = {row.pk for row in judge.data.rows}
    return Proposal(
        judge.detector.name,
        judge.file,
        judge.version,
        team_files.version_of(text),
        text,
        current,
        tuple(chosen),
        tuple(row.pk for row in rows),
        sum(row.pk in counted for row in rows),
        len(counted),
        len(rows) - len(short),
    )


def _choose(rows: Sequence[Row], traces: Mapping[int, Trace], examples: int) -> list[Example]:
    if not rows or not examples:
        return []
    model = embedder()
    if (why := model.unavailable()) is not None:
        raise BadInput(f"examples are chosen by how unlike they are, and the embedding model is missing: {why}")
    vectors = model.encode([f"{traces[row.pk].question or ''}\n{traces[row.pk].answer}" for row in rows])
    labels = np.array([row.gold == "hallucinated" for row in rows], dtype=bool)
    scores = np.array([np.nan if row.value is None else row.value for row in rows], dtype=float)
    off = hardness(labels, scores)
    chosen = choose_examples(labels, vectors, off, most=examples, groups=[row.group for row in rows])
    return [
        Example(rows[i].pk, rows[i].trace_id, str(rows[i].gold), None if rows[i].value is None else float(off[i]))
        for i in chosen
    ]


def _make_case(store: Store, row: Row, trace: Trace, names: Mapping[str, str]) -> Case:
    label = find_reason(store.labels.of_trace(row.pk), row.gold)
    kinds = () if label is None else tuple(names.get(kind, kind) for kind in kinds_of(label))
    note = "" if label is None else " ".join((label.note or "").split())
    return Case(
        row.pk,
        trace.context_texts,
        trace.question or "",
        trace.answer,
        row.gold == "hallucinated",
        kinds,
        note[:NOTE],
    )


def find_reason(labels: Sequence[Label], gold: str | None) -> Label | None:
    """Of a trace's labels, oldest first, the newest that has the gold verdict and says most of why."""
    agreeing = [label for label in labels if label.verdict == gold]
    return max(
        reversed(agreeing), key=lambda label: (label.adjudicates, bool(label.note), bool(kinds_of(label))), default=None
    )


def kinds_of(label: Label) -> tuple[str, ...]:
    """The kinds of error that a label names, of the answer or of a span of it."""
    return tuple(dict.fromkeys((*label.kinds, *(span.kind for span in label.spans if span.kind))))
