"""One byte sequence per document, and its digest, by RFC 8785: any language can recompute it."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

from calibrate.errors import BadInput, BadThresholds
from calibrate.types import VERDICTS


def canonical(document: Mapping[str, Any]) -> bytes:
    """The RFC 8785 (JCS) bytes of a document: no white space, keys in UTF-16 order, numbers as ECMAScript has them."""
    import rfc8785

    try:
        return rfc8785.dumps(dict(document))
    except RecursionError:
        raise BadThresholds("nested too deeply") from None
    except ValueError as error:  # lone surrogates, NaN, integers that a double cannot hold
        raise BadThresholds(f"not JSON that every reader understands: {error}") from None


def digest_of(document: Mapping[str, Any]) -> str:
    """`sha256:` and 64 hex digits over everything in the document but its own `digest`."""
    content = {key: value for key, value in document.items() if key != "digest"}
    return "sha256:" + hashlib.sha256(canonical(content)).hexdigest()


def label_set_digest(pairs: Iterable[tuple[str, str]]) -> str:
    """Digest of a set of gold labels: (trace content hash, verdict) pairs in any order, with repeats.

    SHA-256 over the sorted lines `HASH<tab>VERDICT<newline>`, so that `sort | sha256sum` computes it too.
    """
    lines = []
    for content_hash, verdict in pairs:
        if not re.fullmatch("[0-9a-f]+", content_hash) or verdict not in VERDICTS:
            raise BadInput(f"not a content hash and a verdict: {content_hash!r}, {verdict!r}")
        lines.append(f"{content_hash}\t{verdict}\n")
    return "sha256:" + hashlib.sha256("".join(sorted(lines)).encode()).hexdigest()


def copy_json(value: Any, where: str) -> Any:
    """Copy a value as JSON types: tuples become lists. Raises BadThresholds for what JSON cannot represent exactly."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise BadThresholds(f"{where} is {value}: a thresholds file holds finite numbers only")
        return float(value) + 0.0  # -0.0 becomes 0.0: the digest does not distinguish them
    if isinstance(value, list | tuple):
        return [copy_json(item, f"{where}[{index}]") for index, item in enumerate(value)]
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {key: copy_json(item, f"{where}.{key}") for key, item in value.items()}
    raise BadThresholds(f"{where} is a {type(value).__name__}: use text, numbers, lists and objects, as JSON does")
