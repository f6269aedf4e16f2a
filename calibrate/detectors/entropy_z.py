"""Token entropy: how unsure the model was of its words, measured against its own clean answers."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from calibrate import workspace
from calibrate.backends.logprobs import Aggregate, Entropies, NoLogprobs, NotLogprobs, entropies, places, pool
from calibrate.detectors.base import abstained, failed, scored
from calibrate.detectors.shared.scoring import score_each
from calibrate.sanitize import visible
from calibrate.types import Baseline, Evidence, FlagWhen, Score, Token, Trace

SHOWN = 10  # tokens
PUBLISHED = (1.42, 0.38)  # centre and spread that the published recipe uses for every model


@dataclass(frozen=True)
class EntropyZ:
    """Measures how unsure the model was of its words, compared with its own answers that were labelled clean. A high
    value means that it hesitated more than it does when it is right.

    Needs an answer whose tokens were logged with the k most likely ones at each place, and a baseline of its model:
    label clean traces, then `python -m calibrate baselines fit`. Value: (entropy - median) / (1.4826 MAD) over clean
    answers of the same model and the same k. Entropy is in nats, over the k most likely tokens with their probabilities
    divided by their sum, and so at most ln k (1.609 for k = 5): a baseline near that ceiling leaves no room above it.
    """

    name: ClassVar[str] = "entropy_z"
    version: ClassVar[str] = "1"
    title: ClassVar[str] = "Token entropy"
    unit: ClassVar[str] = "robust standard deviations from the token entropy of the model's clean answers"
    needs: ClassVar[frozenset[str]] = frozenset({"answer", "tokens"})
    flag_when: ClassVar[FlagWhen] = "above"
    bounds: ClassVar[tuple[float, float]] = (-math.inf, math.inf)
    usual_threshold: ClassVar[float] = 2.5

    variant: Literal["default", "plain"] = field(
        default="default",
        metadata={
            "help": "`plain` is the published recipe: |z| of the mean top-5 entropy against 1.42 ± 0.38 for every "
            "model. No answer can be 0.51 above that, so it fires on confident ones only. Here to compare."
        },
    )
    side: Literal["high", "low", "abs"] = field(
        default="high",
        metadata={"help": "`high`: less sure than usual; `low`: surer than usual; `abs`: either, which mixes the two."},
    )
    aggregate: Aggregate = field(
        default="top_decile",
        metadata={
            "help": "One number from the tokens' entropies: their mean, the highest, or the highest tenth's mean."
        },
    )

    def revision(self) -> str:
        """The digest of the baselines that it would use."""
        if self.variant == "plain":
            return ""
        baselines = workspace.current().baselines
        family = f"entropy/{self.aggregate}/"
        used = sorted(
            (*key, baseline.centre, baseline.spread) for key, baseline in baselines.items() if key[0].startswith(family)
        )
        return hashlib.sha256(json.dumps(used).encode()).hexdigest()[:12] if used else ""

    def unavailable(self) -> str | None:
        return None

    def score(self, traces: Sequence[Trace]) -> Iterator[Score]:
        return score_each(self.needs, traces, self._plain if self.variant == "plain" else self._default)

    def _default(self, trace: Trace) -> Score:
        assert trace.tokens is not None
        try:
            entropies_logged = entropies(trace.tokens)
        except NotLogprobs as error:
            return failed(trace, str(error))
        except NoLogprobs as error:
            return abstained(trace, str(error))
        if trace.model is None:
            return abstained(trace, "the trace does not say which model answered, and a baseline belongs to one")
        baseline = workspace.current().baselines.get((statistic(self.aggregate, entropies_logged.k), trace.model))
        if baseline is None:
            return abstained(trace, _explain_no_baseline(trace.model, entropies_logged.k))
        value = pool(entropies_logged.values, self.aggregate)
        z = (value - baseline.centre) / baseline.spread
        pieces = [
            self._compare_with_baseline(value, entropies_logged, baseline),
            *_token_evidence(trace, entropies_logged, surest=self._surest(z)),
        ]
        return scored(trace, {"high": z, "low": -z, "abs": abs(z)}[self.side], pieces)

    def _surest(self, z: float) -> bool:
        """Tell whether the tokens to show are those with the least entropy."""
        return self.side == "low" or (self.side == "abs" and z < 0)

    def _compare_with_baseline(self, value: float, logged: Entropies, baseline: Baseline) -> Evidence:
        words = {"mean": "mean", "max": "highest", "top_decile": "mean of the top tenth"}
        usual = f"{baseline.centre:.2f} ± {baseline.spread:.2f} in {baseline.n} clean answers"
        text = f"entropy, {words[self.aggregate]}: {value:.2f} of at most {logged.ceiling:.2f} nats; usual: {usual}"
        return Evidence(text, value)

    def _plain(self, trace: Trace) -> Score:
        """The common recipe: probabilities as logged, whatever they are; no most likely tokens is no entropy."""
        assert trace.tokens is not None
        mean = math.fsum(_entropy_as_logged(token) for token in trace.tokens) / len(trace.tokens)
        centre, spread = PUBLISHED
        return scored(trace, abs(mean - centre) / spread, [Evidence(f"mean entropy: {mean:.2f} nats", mean)])


def statistic(aggregate: Aggregate, k: int) -> str:
    """Name the baseline of this entropy. Entropies over five and over twenty tokens do not compare."""
    return f"entropy/{aggregate}/top{k}"


def _explain_no_baseline(model: str, k: int) -> str:
    from calibrate.stats.fitting.baselines import ENOUGH

    return (
        f"no entropy baseline for model {visible(model, 100)} with {k} most likely tokens: label about {ENOUGH} clean "
        "traces of it that have log-probabilities, then `python -m calibrate baselines fit`"
    )


def _token_evidence(trace: Trace, logged: Entropies, *, surest: bool) -> list[Evidence]:
    """The tokens with the highest (or lowest) entropy, as evidence."""
    tokens = trace.tokens or ()
    parts = places(trace.answer, tokens)
    ranked = [(value, at) for at, value in enumerate(logged.values) if value is not None]
    ranked.sort(key=lambda pair: pair[0] if surest else -pair[0])
    pieces = []
    for value, at in ranked[:SHOWN]:
        text = f"{value:.2f} nats over the {logged.k} most likely tokens"
        start, end = parts[at] or (None, None)
        pieces.append(
            Evidence(text if start is not None else f"“{_show_token(tokens[at])}”: {text}", value, start, end)
        )
    return pieces


def _show_token(token: Token) -> str:
    return visible(token.text, 30)


def _entropy_as_logged(token: Token) -> float:
    # Clamped only so far that exp does not overflow.
    logged = [min(max(logprob, -600.0), 600.0) for _, logprob in token.top if not math.isnan(logprob)]
    return -math.fsum(math.exp(logprob) * logprob for logprob in logged)
