"""The words of Touchstone as frozen dataclasses. Standard library only: production runtimes import this."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

_CANONICAL = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":"))

Verdict = Literal["clean", "hallucinated", "unsure"]
VERDICTS: tuple[Verdict, ...] = ("clean", "hallucinated", "unsure")
KINDS = ("fabrication", "contradiction", "extrapolation", "wrong_citation", "broken_contract", "other")
FlagWhen = Literal["above", "below"]
Tier = Literal["page", "signal", "off"]
Strength = Literal["measured", "bounded", "certified"]
STRENGTHS: tuple[Strength, ...] = ("measured", "bounded", "certified")
ScoreStatus = Literal["scored", "abstained", "failed", "refusal"]


@dataclass(frozen=True, slots=True)
class Source:
    """One retrieved passage, numbered as the answer cites it."""

    number: str
    text: str
    title: str | None = None
    retrieval_score: float | None = None


@dataclass(frozen=True, slots=True)
class Token:
    """One token of the answer with its log-probability (natural log, <= 0) and the top alternatives."""

    text: str
    logprob: float
    top: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Span:
    """A part of the answer, in code points: answer[start:end]."""

    start: int
    end: int
    kind: str | None = None


@dataclass(frozen=True, slots=True)
class Trace:
    """One logged question and answer of a production LLM app, with what the app knew.

    `context` is the text the answer was given when it did not come as numbered sources, or as well as them.
    `group` names traces that share their sources (their errors are correlated). `timestamp` is aware, UTC.
    """

    id: str
    answer: str
    question: str | None = None
    context: str | None = None
    sources: tuple[Source, ...] = ()
    tokens: tuple[Token, ...] | None = None
    alternatives: tuple[str, ...] = ()
    schema: Mapping[str, Any] | bool | None = None
    timestamp: datetime | None = None
    model: str | None = None
    operation: str | None = None
    group: str | None = None
    attributes: Mapping[str, str | int | float | bool | None] = field(default_factory=dict)

    @property
    def context_texts(self) -> tuple[str, ...]:
        """What the answer may rely on: the sources' texts, or the context where no numbered sources are given."""
        if self.sources:
            return tuple(source.text for source in self.sources)
        return (self.context,) if self.context else ()

    def content_hash(self) -> str:
        """32 hex digits over everything a detector may read. Same content, same score, whatever the trace's id."""
        content: list[Any] = [
            self.model,
            self.question,
            self.context,
            [[s.number, s.text, s.retrieval_score] for s in self.sources],
            self.answer,
            None if self.tokens is None else [[t.text, t.logprob, t.top] for t in self.tokens],
            self.alternatives,
            self.schema,
        ]
        if "retriever" in self.attributes:  # what the sources' retrieval scores mean
            content.append(self.attributes["retriever"])
        text = _CANONICAL.encode(content)
        return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True)
class Label:
    """One labeller's verdict on one trace. Append-only: the latest of a labeller counts. One that `adjudicates` decides
    gold, whatever others say."""

    trace_id: str
    labeller: str
    verdict: Verdict
    kinds: tuple[str, ...] = ()
    spans: tuple[Span, ...] = ()
    note: str | None = None
    seconds: float | None = None
    created_at: datetime | None = None
    sample: str | None = None
    adjudicates: bool = False


@dataclass(frozen=True, slots=True)
class Evidence:
    """What made a score, to be shown on the trace card.

    `start`/`end` are code-point offsets into the answer (None: not about one place of it). `source` is the number of
    the source compared with, `window` the offsets of the best passage in that source. `value` is in the detector's
    units. `text` is a short plain-language remark ("cites [7], but there are 3 sources").
    """

    text: str
    value: float | None = None
    start: int | None = None
    end: int | None = None
    source: str | None = None
    window: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """What a score cost at a chat endpoint. `cost` is in US dollars, None where the model's price is not known; answers
    taken from the cache are counted in `cached` and cost nothing."""

    requests: int = 0
    cached: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = 0.0

    def __add__(self, other: Usage) -> Usage:
        cost = None if self.cost is None or other.cost is None else self.cost + other.cost
        return Usage(
            self.requests + other.requests,
            self.cached + other.cached,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            cost,
        )


@dataclass(frozen=True, slots=True)
class Score:
    """A detector's raw value on a trace; None with a reason for "could not" (never 0, never NaN).

    `refusal` is the status of an answer that declines to answer: there is nothing in it to be right or wrong.
    """

    trace_id: str
    value: float | None
    reason: str | None = None
    status: ScoreStatus = "scored"
    evidence: tuple[Evidence, ...] = ()
    seconds: float = 0.0
    usage: Usage | None = None


@dataclass(frozen=True, slots=True)
class Baseline:
    """What a detector's statistic looks like on clean answers of one model: a robust centre and spread.

    `spread` is 1.4826 times the median absolute deviation (a standard deviation, for normal data). `n` answers with a
    clean gold label were used.
    """

    statistic: str
    model: str
    centre: float
    spread: float
    n: int
    fitted_at: datetime


@dataclass(frozen=True, slots=True)
class Interval:
    """A figure with its two-sided 95% interval; bounds are None where nothing can be said."""

    value: float | None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Guarantee:
    """What is more than measured about a threshold's precision: it is at least `target`, with this `confidence`.

    `bounded`: a lower bound on the labels that chose the threshold, approximate. `certified`: an exact test on labels
    drawn after the threshold was fixed. `bound` is the lower bound itself, from `labels` flagged, of which
    `hallucinated` hit. `sample` is the one they were drawn in.
    """

    strength: Literal["bounded", "certified"]
    target: float
    confidence: float
    bound: float
    labels: int
    hallucinated: int
    sample: str | None = None


@dataclass(frozen=True, slots=True)
class OperatingPoint:
    """A chosen threshold with its measured figures, and with a guarantee where there is one.

    `feasible` is False when no threshold meets the policy; the point is then the nearest one and `why` says so.
    `n` labels were used, `positives` of them hallucinated; the four counts are unweighted labels at the threshold
    (scored traces only). `flag_rate` is the estimated share of the sampled traffic that is flagged.
    """

    detector: str
    flag_when: FlagWhen
    threshold: float
    policy: str
    feasible: bool
    precision: Interval
    recall: Interval
    fpr: Interval
    flag_rate: Interval
    n: int
    positives: int
    true_positives: int
    false_positives: int
    false_negatives: int
    true_negatives: int
    coverage: float
    why: str | None = None
    guarantee: Guarantee | None = None

    @property
    def strength(self) -> Strength:
        return self.guarantee.strength if self.guarantee else "measured"


LabelState = Literal["any", "unlabelled", "labelled", "clean", "hallucinated", "unsure", "disputed"]
GoldVerdict = Literal["clean", "hallucinated", "unsure", "disputed"]


@dataclass(frozen=True, slots=True)
class TraceFilter:
    """Which traces are meant. Times are aware UTC, `since` inclusive, `until` exclusive.

    Undated traces are outside every time window; they are in only when `undated` is true. Attribute values are
    compared as text. `text` is looked for in question and answer, ignoring case.
    """

    since: datetime | None = None
    until: datetime | None = None
    undated: bool = True
    models: tuple[str, ...] = ()
    operations: tuple[str, ...] = ()
    attributes: Mapping[str, str] = field(default_factory=dict)
    label: LabelState = "any"
    text: str | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "since": self.since.isoformat() if self.since else None,
            "until": self.until.isoformat() if self.until else None,
            "undated": self.undated,
            "models": list(self.models),
            "operations": list(self.operations),
            "attributes": dict(self.attributes),
            "label": self.label,
            "text": self.text,
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> TraceFilter:
        times = {
            key: datetime.fromisoformat(document[key]) if document.get(key) else None for key in ("since", "until")
        }
        return cls(
            since=times["since"],
            until=times["until"],
            undated=bool(document.get("undated", True)),
            models=tuple(document.get("models", ())),
            operations=tuple(document.get("operations", ())),
            attributes=dict(document.get("attributes", {})),
            label=document.get("label", "any"),
            text=document.get("text"),
        )


@dataclass(frozen=True, slots=True)
class Member:
    """One trace of a sample: its place in the labelling order, its stratum and inclusion probability (0, 1]."""

    trace_pk: int
    inclusion_probability: float
    stratum: str


@dataclass(frozen=True, slots=True, order=True)
class Stratum:
    """A stratum of a drawn sample (by its key), and the share of its traces that a label speaks for.

    The share is below 1 where the label of another sample, taken together with this one, speaks for the rest.
    """

    sample: int
    name: str
    share: float = 1.0


@dataclass(frozen=True, slots=True)
class Sample:
    """A set of traces drawn for labelling. `strata` maps a stratum to [population, drawn]; `options` says how its
    design told the strata apart, so that it can be topped up.

    Several samples taken as one are `parts` of a sample that is not stored: its `id` is 0, it has no strata of its own.
    """

    id: int
    name: str
    design: str
    by: str | None
    size: int
    seed: int
    pool: int
    undated: int
    filter: TraceFilter
    strata: Mapping[str, tuple[int, int]]
    created_at: datetime
    options: Mapping[str, Any] = field(default_factory=dict)
    parts: tuple[Sample, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the stored samples that it consists of."""
        return tuple(part.name for part in self.parts) or (self.name,)


def merged_name(names: Sequence[str]) -> str:
    """What people call several samples as one: "W46 + W47". To show, never to be split again."""
    return " + ".join(names)
