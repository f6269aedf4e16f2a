"""Split a file of OTLP requests in protobuf: one alone, or many, each after its length."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import BinaryIO

from calibrate.errors import BadInput

_SPAN = re.compile(rb"\x0a\x10[\s\S]{16}\x12\x08")  # a trace id of 16 bytes, then a span id of 8
ZSTD = b"\x28\xb5\x2f\xfd"
_RESOURCE_SPANS = 0x0A


def is_protobuf(head: bytes) -> bool:
    """Tell by its beginning whether a file holds OTLP requests in protobuf."""
    if _framing(head) is None:
        return False
    return head[4:8] == ZSTD or _SPAN.search(head) is not None


def requests_of(stream: BinaryIO, head: bytes, longest: int) -> Iterator[bytes | None]:
    """Read the requests of a file one by one.

    Parameters
    ----------
    stream : binary file
    head : bytes
        Its beginning.
    longest : int
        Most bytes of a request.

    Returns
    -------
    iterator of bytes or None
        As they are written: the Collector may have compressed each with zstd. None, and nothing after it, where the
        file is cut off within a request.

    Raises
    ------
    BadInput
        For a request that is too long.
    """
    read_length = _framing(head)
    if read_length is None or read_length is _read_none:
        body = stream.read(longest + 1)
        _check(len(body), longest)
        yield body
        return
    while (length := read_length(stream)) is not None:
        _check(length, longest)
        body = stream.read(length)
        if len(body) < length:
            yield None
            return
        yield body


def _framing(head: bytes) -> Callable[[BinaryIO], int | None] | None:
    """How the length of each request is written, if at all; None where this is no such file."""
    if len(head) < 8:
        return None
    if head[0] == _RESOURCE_SPANS:
        return _read_none
    if head[0] < 4:  # the Collector's file exporter: four bytes, the highest first
        return _read_fixed if head[4] == _RESOURCE_SPANS or head[4:8] == ZSTD else None
    size = next((place for place in range(1, 5) if head[place - 1] < 0x80), 0)
    return _read_varint if size and head[size] == _RESOURCE_SPANS else None


def _read_none(stream: BinaryIO) -> int | None:
    return None


def _read_fixed(stream: BinaryIO) -> int | None:
    length = stream.read(4)
    return int.from_bytes(length, "big") if len(length) == 4 else None


def _read_varint(stream: BinaryIO) -> int | None:
    length = 0
    for place in range(5):
        byte = stream.read(1)
        if not byte:
            return None
        length |= (byte[0] & 0x7F) << (7 * place)
        if byte[0] < 0x80:
            return length
    return length


def _check(length: int, longest: int) -> None:
    if length > longest:
        raise BadInput(
            f"a request of more than {longest / 1024**2:.0f} MB: export fewer spans at once, each request after its "
            "length, as the Collector's file exporter does"
        )
