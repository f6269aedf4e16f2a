"""Labels come in from files of other tools, compared with the traces here, and go out to them."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from itertools import islice

from calibrate.ingest.base import Rejected
from calibrate.ingest.labels import LeftOut, Written, compare, parse_labels, write_labels
from calibrate.ingest.labels.base import Parsed, Read
from calibrate.types import Label, Sample, Trace
from calibrate.workflow.labelling import guides
from db import Store

SHOW_EVERY = 1000  # labels


def read_file(
    store: Store, path: str | os.PathLike[str], *, format: str = "auto", kinds: Collection[str] | None = None
) -> Iterator[Label | LeftOut | Rejected]:
    """Read the labels of a file, in its order, each compared with the trace that it is about.

    Parameters
    ----------
    store
        The store with the traces.
    path
        The file.
    format
        The format's name, or `auto`.
    kinds
        The kinds of error that a label may have. None lets any through.

    Yields
    ------
    Label, LeftOut or Rejected
        Labels have the id of a trace in the store, and spans in code points of its answer.
    """
    yield from compare_rows(store, parse_labels(path, format=format), kinds=kinds)


def compare_rows(
    store: Store, rows: Iterator[Read], *, kinds: Collection[str] | None = None
) -> Iterator[Label | LeftOut | Rejected]:
    """Compare labels, in their order, each with the trace that it is about; some hundred traces are read at once."""
    newest = guides.current(store).version
    while batch := list(islice(rows, 500)):
        batch = _with_spans(store, batch)
        ids = {trace_id for each in batch if isinstance(each, Parsed) for trace_id in each.trace_ids}
        answers = {trace_id: _answer(trace) for trace_id, trace in _load(store, sorted(ids)).items()}
        for each in batch:
            row = compare(each, answers, kinds=kinds) if isinstance(each, Parsed) else each
            # A version that this store does not have is one of another store: of that nobody here knows what it said.
            yield replace(row, guide=None) if isinstance(row, Label) and (row.guide or 0) > newest else row


def _with_spans(store: Store, batch: Sequence[Read]) -> list[Read]:
    """Let a label of an OpenTelemetry span be one of the trace that is named after that span."""
    spans = {each.ids[-1] for each in batch if isinstance(each, Parsed) and each.ids}
    traces = store.traces.ids_of_spans(spans) if spans else {}
    return [
        replace(each, ids=(*each.ids, traces[each.ids[-1]]))
        if isinstance(each, Parsed) and each.ids and each.ids[-1] in traces
        else each
        for each in batch
    ]


def _answer(trace: Trace) -> str | None:
    return None if trace.purged_at is not None else trace.answer


def _load(store: Store, trace_ids: Sequence[str]) -> dict[str, Trace]:
    return {trace.id: trace for trace in store.traces.load(sorted(store.traces.keys_of(trace_ids).values()))}


def write_file(
    store: Store,
    path: str | os.PathLike[str],
    *,
    format: str = "auto",
    sample: Sample | None = None,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> Written:
    """Write every label to a file, or with a sample those of its members. Returns how many, and what was lost.

    `on_progress` is called now and then with how many labels were read, of how many.
    """
    sample_id = sample.id if sample else None
    total = store.labels.count(sample_id)

    def read() -> Iterator[Label]:
        for done, label in enumerate(store.labels.export(sample_id)):
            if done % SHOW_EVERY == 0:
                on_progress(done, total)
            yield label

    return write_labels(read(), path, format=format, load=lambda ids: _load(store, ids))
