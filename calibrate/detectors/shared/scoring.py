"""Score trace by trace, whatever happens; look up sources by number, find what is claimed, limit the evidence."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from calibrate.backends.text.claims import claiming_sentences
from calibrate.backends.text.segments import Part, sentences
from calibrate.detectors.base import abstained, failed, missing
from calibrate.types import Evidence, Score, Source, Trace

EVIDENCE_LIMIT = 40


@dataclass(frozen=True, slots=True)
class Context:
    """One text that the answer may rely on. `number` is None for a trace's plain context."""

    number: str | None
    text: str


def contexts(trace: Trace) -> tuple[Context, ...]:
    """The trace's sources, or its context if it has no sources with a text."""
    if any(source.text for source in trace.sources):
        return tuple(Context(str(source.number), source.text) for source in trace.sources)
    return (Context(None, trace.context),) if trace.context else ()


def canonical(number: object) -> str:
    """Write a source's number as answers do: 1, "01" and "[1]" all become "1"."""
    text = str(number).strip().strip("[]【】［］").strip()
    return str(int(text)) if text.isdecimal() and len(text) <= 80 else text


def by_number(sources: Iterable[Source]) -> dict[str, Context]:
    """Index sources by the number that answers cite; of two with the same number the first counts."""
    sources_by_number: dict[str, Context] = {}
    for source in sources:
        sources_by_number.setdefault(canonical(source.number), Context(str(source.number), source.text))
    return sources_by_number


def claiming(trace: Trace) -> tuple[Part, ...]:
    """Find the sentences of the answer that claim something: those that a detector judges one by one."""
    return claiming_sentences(trace.answer, question=trace.question or "", sources=by_number(trace.sources))


def claiming_or_all(trace: Trace) -> tuple[Part, ...]:
    """The same, or every sentence where none claims anything: "Yes." can be compared with what alternatives say."""
    return claiming(trace) or sentences(trace.answer)


def explain_no_claims(trace: Trace) -> str:
    """Say why there is no sentence to judge."""
    return "no sentence of the answer claims anything" if sentences(trace.answer) else "no sentence in the answer"


Aggregate = Literal["min", "lowest_two", "mean"]
AGGREGATE_HELP = (
    "How the sentences' values become the answer's: the worst sentence decides (min), the mean of the two worst "
    "(lowest_two), or the mean of all (mean). `docs/adr/0010-sentences-that-claim-nothing.md` has the figures."
)


def aggregate(values: Sequence[float], how: Aggregate) -> float:
    """Make one value of the sentences' values, of which low ones are suspicious."""
    counted = sorted(values)[: {"min": 1, "lowest_two": 2, "mean": len(values)}[how]]
    return sum(counted) / len(counted)


def limit_evidence(evidence: Sequence[Evidence]) -> tuple[Evidence, ...]:
    """Keep the first pieces of evidence, and say how many more there are."""
    if len(evidence) <= EVIDENCE_LIMIT:
        return tuple(evidence)
    return (*evidence[:EVIDENCE_LIMIT], Evidence(f"and {len(evidence) - EVIDENCE_LIMIT} more like these"))


def score_each(needs: frozenset[str], traces: Sequence[Trace], judge: Callable[[Trace], Score]) -> Iterator[Score]:
    """Score trace by trace. A trace that lacks a need abstains, and an error fails only its own trace."""
    for trace in traces:
        began = time.perf_counter()
        reason = missing(needs, trace)
        score = abstained(trace, reason) if reason else score_safely(trace, judge)
        yield replace(score, seconds=time.perf_counter() - began)


def score_safely(trace: Trace, judge: Callable[[Trace], Score]) -> Score:
    """Score a trace. An exception becomes a failed score that names it."""
    try:
        return judge(trace)
    except Exception as error:
        return failed(trace, f"{type(error).__name__}: {str(error)[:200]}")
