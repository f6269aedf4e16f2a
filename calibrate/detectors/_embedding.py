"""How embedding detectors score a batch: gather every text, encode once, then judge trace by trace."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from calibrate.backends.embedder import Embedder
from calibrate.detectors._scoring import guarded
from calibrate.detectors.base import abstained, failed, missing
from calibrate.types import Score, Trace

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Question:
    """What a trace needs embedded, and how its score follows. `judge` gets one row a text, in the texts' order."""

    texts: list[str]
    judge: Callable[[NDArray[np.float32]], Score]


Prepare = Callable[[Trace], Question | Score]


def together(needs: frozenset[str], traces: Sequence[Trace], prepare: Prepare, embedder: Embedder) -> Iterator[Score]:
    """One score a trace, in order. All distinct texts of the batch are encoded in one call."""
    if (why := embedder.unavailable()) is not None:
        yield from (failed(trace, why) for trace in traces)
        return
    prepared: list[Question | Score] = []
    spent: list[float] = []
    for trace in traces:
        began = time.perf_counter()
        prepared.append(_prepared(needs, trace, prepare))
        spent.append(time.perf_counter() - began)
    began = time.perf_counter()
    rows = {text: row for row, text in enumerate(_distinct(prepared))}
    try:
        vectors = embedder.encode(list(rows))
    except Exception as error:
        yield from (_failed(trace, one, error) for trace, one in zip(traces, prepared, strict=True))
        return
    per_text = (time.perf_counter() - began) / max(
        1, sum(len(one.texts) for one in prepared if isinstance(one, Question))
    )
    for trace, one, before in zip(traces, prepared, spent, strict=True):
        began = time.perf_counter()
        if isinstance(one, Question):
            picked = vectors[[rows[text] for text in one.texts]]
            score = guarded(trace, partial(_judge, one, picked))
            before += per_text * len(one.texts)
        else:
            score = one
        yield replace(score, seconds=before + time.perf_counter() - began)


def _prepared(needs: frozenset[str], trace: Trace, prepare: Prepare) -> Question | Score:
    if reason := missing(needs, trace):
        return abstained(trace, reason)
    try:
        return prepare(trace)
    except Exception as error:
        return failed(trace, f"{type(error).__name__}: {str(error)[:200]}")


def _judge(question: Question, vectors: NDArray[np.float32], trace: Trace) -> Score:
    return question.judge(vectors)


def _distinct(prepared: Sequence[Question | Score]) -> dict[str, None]:
    return dict.fromkeys(text for one in prepared if isinstance(one, Question) for text in one.texts)


def _failed(trace: Trace, one: Question | Score, error: Exception) -> Score:
    if isinstance(one, Score):
        return one
    return failed(trace, f"the texts could not be embedded: {type(error).__name__}: {str(error)[:200]}")
