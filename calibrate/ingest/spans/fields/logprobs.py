"""Read the log-probabilities of an answer's tokens, wherever instrumentations leave them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from calibrate.ingest.spans.fields.values import is_list, parse_json
from calibrate.types import Token


def parse_tokens(value: Any) -> tuple[Token, ...] | None:
    """Read `[{token, logprob, top_logprobs}]` as the OpenAI API returns it, bare or under `content`.

    Parameters
    ----------
    value : object
        JSON text or decoded.

    Returns
    -------
    tuple of Token or None
        None if one token is broken: half an answer's tokens would pass for all of them.
    """
    decoded = parse_json(value)
    decoded = decoded.get("content") if isinstance(decoded, Mapping) else decoded
    if not is_list(decoded) or not decoded:
        return None
    try:
        return tuple(
            [
                Token(*_parse_logprob(entry), tuple([_parse_logprob(top) for top in entry.get("top_logprobs") or ()]))
                for entry in decoded
            ]
        )
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        return None


def tokens_of_reply(value: Any, answer: str | None) -> tuple[Token, ...] | None:
    """Read the tokens of an answer from what a client returned as a whole.

    Parameters
    ----------
    value : object
        A chat completion or response of the OpenAI API, or a LangChain result; JSON text or decoded.
    answer : str or None
        The answer. Of several choices, that with this text counts.

    Returns
    -------
    tuple of Token or None
    """
    if isinstance(value, str) and "logprob" not in value:
        return None
    decoded = parse_json(value)
    if not isinstance(decoded, Mapping):
        return None
    candidates = [(text, tokens) for text, value in _choices(decoded) if (tokens := parse_tokens(value))]
    matching = (tokens for text, tokens in candidates if text is not None and text == answer)
    return next(matching, candidates[0][1] if candidates else None)


def spells(tokens: tuple[Token, ...], text: str) -> bool:
    """Tell whether the tokens are those of a text. Blanks do not count."""
    return "".join("".join(token.text for token in tokens).split()) == "".join(text.split())


def _choices(reply: Mapping[str, Any]) -> Iterator[tuple[str | None, Any]]:
    """Yield the text of each choice, with what may hold its log-probabilities."""
    for choice in _mappings(reply.get("choices")):
        message = _mapping(choice.get("message"))
        yield _text(message.get("content", choice.get("text"))), choice.get("logprobs")
    for row in reply.get("generations") or () if is_list(reply.get("generations")) else ():
        for generation in _mappings(row if is_list(row) else [row]):
            message = _mapping(generation.get("message"))
            response = _mapping(_mapping(message.get("kwargs", message)).get("response_metadata"))
            content = _mapping(generation.get("generation_info")).get("logprobs") or response.get("logprobs")
            yield _text(generation.get("text")), content
    for item in _mappings(reply.get("output")):
        for part in _mappings(item.get("content")):
            yield _text(part.get("text")), part.get("logprobs")


def _parse_logprob(entry: Any) -> tuple[str, float]:
    logprob = float(entry["logprob"])
    if not isinstance(entry["token"], str) or not math.isfinite(logprob):
        raise ValueError
    return entry["token"], logprob


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _mappings(value: Any) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, Mapping)] if is_list(value) else []
