"""Unpack and check the body of a request, within limits of memory."""

from __future__ import annotations

import json
import zlib
from collections import Counter
from typing import Final, NamedTuple

from calibrate.errors import BadInput
from calibrate.ingest.spans.otlp import Refused, check_protobuf, spans_of_json

MOST_BYTES: Final = 64 * 1024 * 1024
"""Of a body, as it comes and unpacked."""
MOST_JSON_BYTES: Final = 16 * 1024 * 1024
"""JSON takes ten times its size in memory and more while it is read."""
_GZIP: Final = 31  # zlib's name for it
_MOST_REASONS: Final = 3


class Refusal(Exception):
    """Why a request is refused: a status of HTTP and a sentence."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status, self.sentence = status, sentence


class Checked(NamedTuple):
    """How many spans a body has, how many of these cannot be used, and why; and its size when it is not packed."""

    spans: int
    refused: int
    reasons: str
    unpacked: int


def most_bytes(*, is_json: bool) -> int:
    """The most bytes that a body may have."""
    return MOST_JSON_BYTES if is_json else MOST_BYTES


def unpack(body: bytes, *, most: int) -> bytes:
    """Unpack gzip, no further than so many bytes. Raises Refusal."""
    parts: list[bytes] = []
    left = most
    while body:
        packed = zlib.decompressobj(_GZIP)
        try:
            part = packed.decompress(body, left + 1)
        except zlib.error as error:
            raise Refusal(400, f"the body is no gzip, which Content-Encoding says it is: {error}") from None
        left -= len(part)
        if left < 0:
            raise Refusal(413, f"the body is more than {most / 2**20:.0f} MiB when unpacked: {_REMEDY}")
        if not packed.eof:
            raise Refusal(400, "the body is gzip that breaks off before its end; send it again, whole")
        parts.append(part)
        body = packed.unused_data
    return b"".join(parts)


def check(body: bytes, *, is_json: bool, is_packed: bool) -> Checked:
    """Count the spans of a body and those that cannot be used. Raises Refusal."""
    plain = unpack(body, most=most_bytes(is_json=is_json)) if is_packed else body
    try:
        count, refused = _check_json(plain) if is_json else check_protobuf(plain)
    except BadInput as error:
        raise Refusal(400, str(error)) from None
    return Checked(count, len(refused), _summarise(refused), len(plain))


def read_json(body: bytes) -> dict[str, object]:
    """Decode an OTLP document. Raises BadInput."""
    try:
        document = json.loads(body)
    except RecursionError:
        raise BadInput("this is no OTLP JSON: it is nested too deeply") from None
    except ValueError as error:  # bytes that are no UTF-8 too, and numbers of thousands of digits
        raise BadInput(f"this is no JSON: {error}") from None
    if not isinstance(document, dict):
        raise BadInput("this is no OTLP JSON: it is no object with `resourceSpans`")
    return document


def too_large(*, is_json: bool) -> Refusal:
    """The refusal of a body with too many bytes."""
    return Refusal(413, f"the body is more than {most_bytes(is_json=is_json) / 2**20:.0f} MiB: {_REMEDY}")


def _check_json(body: bytes) -> tuple[int, list[Refused]]:
    count, refused = 0, []
    for span in spans_of_json(read_json(body)):
        count += 1
        if isinstance(span, Refused):
            refused.append(span)
    return count, refused


def _summarise(refused: list[Refused]) -> str:
    reasons = Counter(span.reason for span in refused).most_common(_MOST_REASONS)
    return "; ".join(f"{reason} ({n:,} times)" if n > 1 else reason for reason, n in reasons)


_REMEDY: Final = "send smaller batches (OTEL_BSP_MAX_EXPORT_BATCH_SIZE, or the Collector's send_batch_max_size)"
