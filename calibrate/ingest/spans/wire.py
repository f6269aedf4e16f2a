"""Walk the fields of a protobuf message without parsing it, so that a large one is parsed piece by piece."""

from __future__ import annotations

from collections.abc import Iterator

from calibrate.errors import BadInput

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


def message_fields(body: bytes, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Yield number, start and end of every field that is a message, text or bytes. Others are skipped.

    Raises BadInput where the bytes from `start` to `end` are no protobuf message.
    """
    at = start
    while at < end:
        key, at = _read_varint(body, at, end)
        kind = key & 7
        if kind == _BYTES:
            length, at = _read_varint(body, at, end)
            if length > end - at:
                raise _broken(at)
            yield key >> 3, at, at + length
            at += length
        elif kind == _VARINT:
            _, at = _read_varint(body, at, end)
        elif kind == _FIXED64:
            at += 8
        elif kind == _FIXED32:
            at += 4
        else:
            raise _broken(at)
        if at > end or not key >> 3:
            raise _broken(at)


def _read_varint(body: bytes, at: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while at < end and shift < 64:
        byte = body[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise _broken(at)


def _broken(at: int) -> BadInput:
    return BadInput(f"this is no OTLP protobuf: damaged or cut off at byte {at:,}; send it as the SDK wrote it")
