"""Check token log-probabilities as services log them, pool them over an answer, and locate tokens in its text.

Entropy here is that of the k most likely tokens with their probabilities divided by their sum, in nats, so at most
ln k: 1.609 for k = 5. Without the division there would be a trap: the flatter a distribution, the less of it the k
tokens hold, so a model that knows nothing would look sure.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from calibrate.backends.text.segments import Part
from calibrate.types import Token

Aggregate = Literal["mean", "max", "top_decile"]
LEAST = -100.0  # lower values count as this: some services write -9999 for "very unlikely"
SLACK = 1e-4  # values above 0 by no more than this are rounding errors
NEAR = 60  # code points within which the next token is searched
_SPECIAL = re.compile(r"<\|[^|>]*\|>|</?(?:s|bos|eos|pad|unk|end_of_turn|start_of_turn)>|\[(?:EOS|BOS|PAD|UNK)\]")
_SPLIT = re.compile("\ufffd|<0x[0-9A-Fa-f]{2}>|\\\\x[0-9a-f]{2}")  # a byte that is not a character by itself
_BYTES = re.compile("[\u0100-\u0143]")  # the letters that byte-level vocabularies write bytes with
_MARKS = str.maketrans({"▁": " ", "Ġ": " ", "Ċ": "\n", "ĉ": "\t"})  # how vocabularies write blanks


class NotLogprobs(ValueError):
    """The numbers cannot be log-probabilities; the message says why."""


class NoLogprobs(ValueError):
    """There are too few log-probabilities; the message says which are missing and how to log them."""


@dataclass(frozen=True, slots=True)
class Entropies:
    """Token entropies in nats, each from 0 to ln `k`; None where the log lacks them, of `k` tokens per place."""

    values: tuple[float | None, ...]
    k: int

    @property
    def ceiling(self) -> float:
        return math.log(self.k)


def logprobs(tokens: Sequence[Token]) -> tuple[float | None, ...]:
    """Check the tokens' log-probabilities: in nats, from -100 to 0; None where one is missing (NaN).

    Raises NotLogprobs for values above 0, and NoLogprobs if most are missing, all are 0, or all are at most -100.
    """
    values = tuple(_check_logprob(token.logprob, at) for at, token in enumerate(tokens))
    present = _require_most(values, "a log-probability")
    # A short answer may be that certain, but not five tokens in a row.
    if len(present) >= 5 and not any(present):
        raise NoLogprobs(
            "every log-probability is 0: they were taken after sampling had left one token to choose from; "
            "log the model's own"
        )
    if max(present) <= LEAST:
        raise NoLogprobs(
            "every log-probability is at most -100, which services write where they have none; log the model's own"
        )
    return values


def entropies(tokens: Sequence[Token]) -> Entropies:
    """Compute the entropy at each token.

    Raises NotLogprobs for values above 0 or probabilities that sum to more than 1, and NoLogprobs if most tokens have
    no k most likely ones, or k is 1.
    """
    for at, token in enumerate(tokens):
        _check_logprob(token.logprob, at)
    tops = [_sorted_top(token, at) for at, token in enumerate(tokens)]
    # Some services add the drawn token to the k most likely ones, so k is the commonest number.
    sizes = Counter(len(top) for top in tops if top)
    k = min(sizes, key=lambda size: (-sizes[size], size)) if sizes else 0
    if k < 2:
        raise NoLogprobs(
            f"{'only one most likely token' if k else 'no most likely tokens'} a place: log at least two of them "
            "(`top_logprobs`, usually 5)"
        )
    values = tuple(entropy(top[:k]) if len(top) >= 2 else None for top in tops)
    _require_most(values, f"the {k} most likely tokens")
    return Entropies(values, k)


def entropy(top: Sequence[float]) -> float:
    """Compute the entropy, 0 to ln len(top) nats, of probabilities passed as logarithms and divided by their sum."""
    highest = max(top)
    weights = [math.exp(logprob - highest) for logprob in top]
    total = math.fsum(weights)
    mean = math.fsum(weight * (logprob - highest) for weight, logprob in zip(weights, top, strict=True)) / total
    return max(0.0, math.log(total) - mean)


def pool(values: Sequence[float | None], aggregate: Aggregate) -> float:
    """Reduce the tokens' values to one. `top_decile` is the mean of the highest tenth, at least one token."""
    present = [value for value in values if value is not None]
    if aggregate == "max":
        return max(present)
    if aggregate == "top_decile":
        present = sorted(present)[-math.ceil(len(present) / 10) :]
    return math.fsum(present) / len(present)


def places(answer: str, tokens: Sequence[Token]) -> list[Part | None]:
    """Locate each token in the answer, without blanks around it; None for a token that is not found in order."""
    parts: list[Part | None] = []
    at = 0
    for token in tokens:
        start = -1
        for text in (token.text, token.text.translate(_MARKS)):
            if bare := text.strip():
                start = answer.find(bare, at, at + len(bare) + NEAR)
            if start >= 0:
                break
        if start < 0:
            parts.append(None)
            continue
        at = start + len(bare)
        parts.append(Part(start, at))
    return parts


def are_of(answer: str, tokens: Sequence[Token]) -> bool:
    """Tell whether these may be the answer's tokens.

    At least half of their text must stand in the answer, in order, and be at least half of it: an answer may have been
    trimmed or extended by a line. Blanks and special tokens do not count. True if characters are split over tokens,
    which makes a comparison impossible.
    """
    texts = [_SPECIAL.sub("", token.text).translate(_MARKS) for token in tokens]
    whole = "".join(texts)
    if _SPLIT.search(whole) or set(_BYTES.findall(whole)) - set(answer):
        return True
    token_size = len("".join(whole.split()))
    matched_size = sum(
        len("".join(answer[part.start : part.end].split()))
        for text, part in zip(texts, places(answer, tokens), strict=True)
        if part and text
    )
    return 2 * matched_size >= max(token_size, len("".join(answer.split())))


def _sorted_top(token: Token, at: int) -> list[float]:
    """Check the log-probabilities of the most likely tokens and sort them, highest first."""
    values = [value for _, logprob in token.top if (value := _check_logprob(logprob, at)) is not None]
    total = math.fsum(map(math.exp, values))
    if total > 1.01:
        raise NotLogprobs(
            f"the probabilities at token {at + 1} sum to {total:.3g}, more than 1: these are not log-probabilities "
            "(unnormalised logits?)"
        )
    return sorted(values, reverse=True)


def _check_logprob(value: float, at: int) -> float | None:
    if math.isnan(value):
        return None
    if value > SLACK:
        raise NotLogprobs(
            f"token {at + 1} has {value:.6g}, and a log-probability is at most 0: these are unnormalised logits; "
            "log their log-softmax"
        )
    return min(max(value, LEAST), 0.0)


def _require_most(values: Sequence[float | None], name: str) -> list[float]:
    present = [value for value in values if value is not None]
    if not present or len(present) < len(values) / 2:
        raise NoLogprobs(f"only {len(present)} of {len(values)} tokens have {name}; at least half are needed")
    return present
