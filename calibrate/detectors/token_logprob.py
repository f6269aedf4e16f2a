"""Token log-probability: how likely the model found its own words."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from calibrate.backends.logprobs import LEAST, NoLogprobs, NotLogprobs, are_of, logprobs, places
from calibrate.detectors.base import abstained, failed, scored
from calibrate.detectors.shared.scoring import score_each
from calibrate.sanitize import visible
from calibrate.types import Evidence, FlagWhen, Score, Trace

SHOWN = 10  # tokens


@dataclass(frozen=True)
class TokenLogprob:
    """Measures how unlikely the model found the words of its own answer. A high value means that it was not sure of
    them; a model that is wrong and sure gives a low one.

    Needs an answer whose tokens were logged with their log-probability; the most likely ones beside it are not needed.
    Value: mean of -ln p over the tokens (the logarithm of the answer's perplexity), or -ln p of the least likely token;
    "Avg(-log p)" and "Max(-log p)" of Manakul et al. (2023).
    """

    name: ClassVar[str] = "token_logprob"
    version: ClassVar[str] = "2"
    title: ClassVar[str] = "Token log-probability"
    unit: ClassVar[str] = "negative log-probability of the answer's tokens, in nats"
    needs: ClassVar[frozenset[str]] = frozenset({"answer", "tokens"})
    flag_when: ClassVar[FlagWhen] = "above"
    bounds: ClassVar[tuple[float, float]] = (0.0, -LEAST)
    usual_threshold: ClassVar[float] = 1.0

    variant: Literal["default", "plain"] = field(
        default="default",
        metadata={
            "help": "`plain` averages whatever was logged: unnormalised logits, -9999 for “very unlikely”. Here to "
            "compare."
        },
    )
    aggregate: Literal["mean", "min"] = field(
        default="mean",
        metadata={"help": "The mean over the tokens, or the token with the minimum log-probability."},
    )

    def revision(self) -> str:
        return ""

    def unavailable(self) -> str | None:
        return None

    def score(self, traces: Sequence[Trace]) -> Iterator[Score]:
        return score_each(self.needs, traces, self._plain if self.variant == "plain" else self._default)

    def _default(self, trace: Trace) -> Score:
        assert trace.tokens is not None
        try:
            values = logprobs(trace.tokens)
        except NotLogprobs as error:
            return failed(trace, str(error))
        except NoLogprobs as error:
            return abstained(trace, str(error))
        if not are_of(trace.answer, trace.tokens):
            return abstained(trace, "the log-probabilities are not of this answer: its text is not what the tokens say")
        present = [value for value in values if value is not None]
        value = -min(present) if self.aggregate == "min" else -math.fsum(present) / len(present)
        return scored(trace, value + 0.0, _token_evidence(trace, values))

    def _plain(self, trace: Trace) -> Score:
        assert trace.tokens is not None
        logged = [token.logprob for token in trace.tokens]
        return scored(trace, -min(logged) if self.aggregate == "min" else -sum(logged) / len(logged))


def _token_evidence(trace: Trace, values: Sequence[float | None]) -> list[Evidence]:
    """The least likely tokens, as evidence, the least likely first."""
    tokens = trace.tokens or ()
    parts = places(trace.answer, tokens)
    ranked = sorted((value, at) for at, value in enumerate(values) if value is not None)
    pieces = []
    for value, at in ranked[:SHOWN]:
        text = f"p = {math.exp(value):.2g}: {-value:.2f} nats"
        start, end = parts[at] or (None, None)
        words = text if start is not None else f"“{visible(tokens[at].text, 30)}”: {text}"
        pieces.append(Evidence(words, -value + 0.0, start, end))
    return pieces
