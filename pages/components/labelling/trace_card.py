"""The trace card: question, answer and sources side by side, with citations, spans and evidence marked.

Everything of a trace goes to the browser as JSON and is put there as text nodes, never as HTML or Markdown.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import streamlit as st

from calibrate.backends.logprobs import NoLogprobs, NotLogprobs, logprobs, places
from calibrate.backends.text.citations import citations
from calibrate.report.numbers import count, decimals, minute, number
from calibrate.report.sentences.traces.purges import purged_on
from calibrate.sanitize import visible
from calibrate.types import Evidence, Source, Span, Trace
from pages.components.labelling.segments import Mark, segments

HEIGHT = "max(26rem, calc(100dvh - 21rem))"
MOST_SOURCES = 500
MOST_ALTERNATIVES = 50
HEATS = (0.5, 0.2, 0.05, 0.01)  # a token less likely than each of these is a shade darker

_HERE = Path(__file__).parent
_card = st.components.v2.component(
    "touchstone_trace_card",
    css=(_HERE / "trace_card.css").read_text(encoding="utf-8"),
    js=(_HERE / "trace_card.js").read_text(encoding="utf-8"),
)


def show(
    trace: Trace,
    *,
    evidence: Sequence[Evidence] = (),
    spans: Sequence[Span] = (),
    height: str = HEIGHT,
    key: str,
    blind: bool = False,
    heat: bool = False,
    scroll_keys: bool = False,
) -> None:
    """Show a trace at a fixed height (a CSS length); long texts scroll inside it.

    `blind` hides what might sway a labeller: the model, attributes, retrieval scores. `heat` colours the answer's
    tokens by how unlikely they were for the model. `scroll_keys` lets the arrow keys scroll the sources, with Shift the
    answer.
    """
    document = card(trace, evidence=evidence, spans=spans, blind=blind, heat=heat and not blind)
    _card(key=key, data={"items": [document], "height": height, "scrollKeys": scroll_keys})


@dataclass(frozen=True, slots=True)
class Heading:
    """Above a card of a list: a figure, and a word on it in a tone: good, alarm or missed."""

    figure: str
    word: str
    tone: str


@dataclass(frozen=True, slots=True)
class Shown:
    """One card of a list; `blind` as for `show`."""

    trace: Trace
    evidence: Sequence[Evidence]
    heading: Heading
    blind: bool = False


def show_list(items: Sequence[Shown | str], *, height: str, key: str) -> None:
    """Traces below each other with lines of ours between them, as one element: what stays is not redrawn."""
    documents = [
        {"line": item} if isinstance(item, str)
        else {**card(item.trace, evidence=item.evidence, blind=item.blind), "heading": asdict(item.heading)}
        for item in items
    ]  # fmt: skip
    _card(key=key, data={"items": documents, "height": height, "scrollKeys": False})


def card(
    trace: Trace,
    *,
    evidence: Sequence[Evidence] = (),
    spans: Sequence[Span] = (),
    blind: bool = False,
    heat: bool = False,
) -> dict[str, Any]:
    """What the browser needs: plain JSON, every text cut into segments. A purged trace says so instead."""
    if trace.purged_at is not None:
        trace, evidence, spans = replace(trace, answer=purged_on(trace.purged_at)), (), ()
    numbers = frozenset(source.number for source in trace.sources)
    cites = citations(trace.answer, sources=numbers)
    cited = frozenset(number for mark in cites for number in mark.numbers)
    marks = [Mark(mark.start, mark.end, "cite", {"cites": list(mark.numbers)}) for mark in cites]
    marks += [
        Mark(span.start, span.end, "span", {"kinds": [visible(kind_in_words(span.kind or "marked"))]}) for span in spans
    ]
    marks += [
        Mark(piece.start, piece.end, "evidence", {"evidence": [number]})
        for number, piece in enumerate(evidence, 1)
        if piece.start is not None and piece.end is not None
    ]
    hot = heats(trace) if heat else []
    ordered = sorted(trace.sources[:MOST_SOURCES], key=lambda source: source.number not in cited)
    return {
        "id": trace.id,
        "question": segments(trace.question or ""),
        "answer": segments(trace.answer, [*marks, *hot]),
        "code": trace.schema is not None,
        "legend": _legend(
            {mark.kind for mark in marks} | {"evidence" for piece in evidence if piece.window}, heat=bool(hot)
        ),
        "remarks": [_remark(number, piece) for number, piece in enumerate(evidence, 1)],
        "sources": [_source(source, source.number in cited, evidence, blind) for source in ordered],
        "counts": _counts(trace, len(cited & numbers)),
        "context": _context(trace, evidence),
        "more": _more(trace, blind),
        "facts": _facts(trace, blind),
    }


def kind_in_words(kind: str) -> str:
    """A kind of error in words: wrong_citation as "wrong citation"."""
    return kind.replace("_", " ")


def heats(trace: Trace) -> list[Mark]:
    """The tokens less likely than 1 in 2, each with its probability; none without usable log-probabilities."""
    tokens = trace.tokens or ()
    try:
        values = logprobs(tokens)
    except (NotLogprobs, NoLogprobs):
        return []
    marks = []
    for where, value in zip(places(trace.answer, tokens), values, strict=True):
        level = 0 if value is None else sum(math.exp(value) < most for most in HEATS)
        if where is not None and value is not None and level:
            about = {"heat": [f"p = {number(math.exp(value), 2)}, −log p = {decimals(-value, 2)}"]}
            marks.append(Mark(where.start, where.end, f"heat h{level}", about))
    return marks


def _legend(kinds: Iterable[str], *, heat: bool = False) -> list[dict[str, str]]:
    words = {"cite": "citation", "span": "marked by a labeller", "evidence": "evidence"}
    present = [kind for kind in words if kind in set(kinds)]
    if heat:
        levels = [{"kind": f"heat h{level}", "text": f"p < {most:g}"} for level, most in enumerate(HEATS, 1)]
        return [{"kind": kind, "text": words[kind]} for kind in present] + levels
    return [{"kind": kind, "text": words[kind]} for kind in present] if present != ["cite"] else []


def _remark(place: int, piece: Evidence) -> dict[str, Any]:
    value = None if piece.value is None else f"{number(piece.value, 3)}"
    return {"number": place, "text": segments(piece.text), "value": value}


def _windows(evidence: Sequence[Evidence], number: str | None) -> list[Mark]:
    return [
        Mark(piece.window[0], piece.window[1], "evidence", {"evidence": [place]})
        for place, piece in enumerate(evidence, 1)
        if piece.window is not None and piece.source == number
    ]


def _source(source: Source, cited: bool, evidence: Sequence[Evidence], blind: bool) -> dict[str, Any]:
    score = None if blind or source.retrieval_score is None else f"retrieval score {number(source.retrieval_score, 3)}"
    return {
        "number": source.number,
        "shown": visible(source.number),
        "title": segments(source.title or ""),
        "cited": cited,
        "score": score,
        "text": segments(source.text, _windows(evidence, source.number)),
    }


def _counts(trace: Trace, cited: int) -> str:
    if not trace.sources:
        return ""
    many = count(len(trace.sources), "source")
    more = f" · the first {MOST_SOURCES} are shown" if len(trace.sources) > MOST_SOURCES else ""
    return f"{cited} of {many} cited{more}" if cited else f"{many}, none cited{more}"


def _context(trace: Trace, evidence: Sequence[Evidence]) -> list[dict[str, Any]] | None:
    """The context, if it is all that was logged. Beside sources it repeats them: see `_more`."""
    if trace.sources or not trace.context:
        return None
    return segments(trace.context, _windows(evidence, None))


def _more(trace: Trace, blind: bool) -> list[dict[str, Any]]:
    """What is folded away below the texts."""
    folds: list[dict[str, Any]] = []
    if trace.sources and trace.context:
        folds.append({"title": "Context as given", "items": [{"text": segments(trace.context)}]})
    if trace.alternatives:
        items = [{"text": segments(text)} for text in trace.alternatives[:MOST_ALTERNATIVES]]
        folds.append({"title": count(len(trace.alternatives), "alternative answer"), "items": items})
    if trace.schema is not None:
        schema = json.dumps(trace.schema, indent=2, ensure_ascii=False)
        folds.append({"title": "Output schema", "items": [{"text": segments(schema)}], "code": True})
    if trace.attributes and not blind:
        items = [{"name": segments(k), "text": segments(str(v))} for k, v in sorted(trace.attributes.items())]
        folds.append({"title": count(len(items), "attribute"), "items": items})
    return folds


def _facts(trace: Trace, blind: bool) -> list[list[dict[str, Any]]]:
    when = minute(trace.timestamp) if trace.timestamp else None
    model = None if blind else trace.model
    return [segments(fact) for fact in (when, model, None if blind else trace.operation, trace.id) if fact]
