"""HTTP: a scorer that the team runs gets each trace and replies with a score, spans and a reason."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, cast

from calibrate.backends.http_scorer import Problem, http_scorer
from calibrate.detectors.base import abstained, failed, missing, scored
from calibrate.detectors.shared.scoring import limit_evidence
from calibrate.errors import BadInput
from calibrate.types import Evidence, FlagWhen, Score, Trace

SENDABLE = ("question", "context", "sources", "answer", "model", "operation")


@dataclass(frozen=True)
class HttpScore:
    """Asks a scorer that the team runs itself: any model, in any language, at an address that takes a trace as JSON. A
    high value means that the scorer finds the answer unsupported.

    Needs an answer, sources (or a context) and an endpoint in TOUCHSTONE_HTTP_URL. Value: the endpoint's score, as the
    share of its range and turned around where a high score means supported. Its spans are the evidence.
    """

    name: ClassVar[str] = "http"
    version: ClassVar[str] = "1"
    title: ClassVar[str] = "HTTP: your own scorer"
    unit: ClassVar[str] = "score of the team's own endpoint, 0 supported to 1 unsupported"
    needs: ClassVar[frozenset[str]] = frozenset({"answer", "context"})
    flag_when: ClassVar[FlagWhen] = "above"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    usual_threshold: ClassVar[float] = 0.5
    batch: ClassVar[int] = 256

    send: str = field(
        default="question,context,answer",
        metadata={
            "help": "What of a trace is sent, separated by commas: question, context (its texts), sources (with their "
            "numbers), answer, model, operation. Nothing else leaves."
        },
    )
    high_means: Literal["unsupported", "supported"] = field(
        default="unsupported", metadata={"help": "What a high score of the endpoint means."}
    )
    lowest: float = field(default=0.0, metadata={"help": "The lowest score that the endpoint gives."})
    highest: float = field(default=1.0, metadata={"help": "The highest score that the endpoint gives."})
    served: str = field(
        default="",
        metadata={
            "help": "The version that the endpoint names in its replies. Scores are kept under it, and a reply of "
            "another version fails; empty: any version, named in the evidence."
        },
    )

    def __post_init__(self) -> None:
        if unknown := sorted(self._sent - set(SENDABLE)):
            raise ValueError(f"send cannot hold {unknown[0]!r}; it may hold {', '.join(SENDABLE)}")
        if "answer" not in self._sent:
            raise ValueError("send has to hold answer: there is nothing to judge without one")
        if not (math.isfinite(self.lowest) and math.isfinite(self.highest) and self.lowest < self.highest):
            raise ValueError(f"lowest ({self.lowest:g}) has to be below highest ({self.highest:g})")

    @property
    def _sent(self) -> set[str]:
        return {name.strip() for name in self.send.split(",") if name.strip()}

    def revision(self) -> str:
        """The endpoint's host and path, which hold no secret, and the version that it is to name."""
        return f"{http_scorer().place or 'http@missing'}{f'@{self.served}' if self.served else ''}"

    def unavailable(self) -> str | None:
        return http_scorer().unavailable()

    def score(self, traces: Sequence[Trace]) -> Iterator[Score]:
        reasons = [missing(self.needs, trace) for trace in traces]
        bodies = [self._body(trace) for trace, reason in zip(traces, reasons, strict=True) if not reason]
        with closing(cast("Generator[dict[str, Any] | Problem]", http_scorer().ask(bodies))) as replies:
            for trace, reason in zip(traces, reasons, strict=True):
                began = time.perf_counter()
                score = abstained(trace, reason) if reason else self._score(trace, next(replies))
                yield replace(score, seconds=time.perf_counter() - began)

    def _body(self, trace: Trace) -> dict[str, Any]:
        fields = {
            "question": trace.question,
            "context": list(trace.context_texts),
            "sources": [{"number": source.number, "text": source.text} for source in trace.sources],
            "answer": trace.answer,
            "model": trace.model,
            "operation": trace.operation,
        }
        return {name: value for name, value in fields.items() if name in self._sent}

    def _score(self, trace: Trace, reply: dict[str, Any] | Problem) -> Score:
        if isinstance(reply, Problem):
            return failed(trace, reply.reason)
        try:
            return scored(trace, self._value(reply), self._evidence(trace, reply))
        except BadInput as error:
            return failed(trace, str(error))

    def _value(self, reply: Mapping[str, Any]) -> float:
        score, version = reply.get("score"), str(reply.get("version") or "")
        if self.served and version != self.served:
            raise BadInput(
                f"the HTTP scorer answers as version {version[:60]!r}, and {self.served!r} is expected (parameter "
                "`served`)"
            )
        if isinstance(score, bool) or not isinstance(score, (int, float)):
            given = "has no score" if score is None else f"gives the score {json.dumps(score)[:60]}, which is no number"
            raise BadInput(f'the HTTP scorer\'s reply {given}; it should hold a number as "score"')
        if not self.lowest <= score <= self.highest:  # NaN too
            raise BadInput(
                f"the HTTP scorer's score {score:g} is not from {self.lowest:g} to {self.highest:g} (parameters "
                "`lowest` and `highest`)"
            )
        share = (score - self.lowest) / (self.highest - self.lowest)
        return share if self.high_means == "unsupported" else 1.0 - share

    def _evidence(self, trace: Trace, reply: Mapping[str, Any]) -> tuple[Evidence, ...]:
        spans = reply.get("spans") or []
        if not isinstance(spans, list):
            raise BadInput("the HTTP scorer's spans are no list")
        pieces = sorted((_span(trace, span) for span in spans), key=lambda piece: -(piece.value or 0.0))
        reason, version = reply.get("reason"), reply.get("version")
        if isinstance(reason, str) and reason.strip():
            pieces.append(Evidence(reason.strip()[:600]))
        if version and not self.served:
            pieces.append(Evidence(f"answered by version {str(version)[:60]}"))
        return limit_evidence(pieces or [Evidence("the endpoint gave a score and no reason")])


def _span(trace: Trace, span: object) -> Evidence:
    """Read a span of the answer. One that lies outside would be drawn at the wrong place, so its reply fails."""
    fields = span if isinstance(span, dict) else {}
    start, end, probability = fields.get("start"), fields.get("end"), fields.get("probability")
    if type(start) is not int or type(end) is not int or not 0 <= start < end <= len(trace.answer):
        raise BadInput(
            f"the HTTP scorer marks {start!r:.20} to {end!r:.20} of an answer of {len(trace.answer):,} characters; "
            "offsets count characters from 0, the end excluded"
        )
    if probability is not None and (
        isinstance(probability, bool) or not isinstance(probability, (int, float)) or not 0 <= probability <= 1
    ):
        raise BadInput(f"the HTTP scorer gives a span the probability {probability!r:.20}, which is not from 0 to 1")
    return Evidence(trace.answer[start:end][:200], None if probability is None else float(probability), start, end)
