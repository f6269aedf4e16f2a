"""What a receiver answers, in the encoding of the request, as the OTLP specification says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from starlette.responses import Response

PROTOBUF: Final = "application/x-protobuf"
JSON: Final = "application/json"
_CODES: Final = {400: 3, 401: 16, 404: 12, 405: 12, 413: 8, 415: 3, 429: 8, 503: 14}  # of google.rpc.Code
_UNKNOWN: Final = 2


def accept(*, refused: int, reasons: str, is_json: bool) -> Response:
    """Acknowledge, and say how many spans were refused."""
    from starlette.responses import JSONResponse, Response

    sentence = f"{refused:,} of the spans cannot be used: {reasons}" if refused else ""
    if is_json:
        partial = {"partialSuccess": {"rejectedSpans": str(refused), "errorMessage": sentence}}
        return JSONResponse(partial if refused else {})
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

    message = ExportTraceServiceResponse()
    if refused:
        message.partial_success.rejected_spans = refused
        message.partial_success.error_message = sentence
    return Response(message.SerializeToString(), media_type=PROTOBUF)


def refuse(status: int, sentence: str, *, is_json: bool, **headers: str) -> Response:
    """Answer with a google.rpc.Status: a code and a sentence."""
    from starlette.responses import JSONResponse, Response

    code = _CODES.get(status, _UNKNOWN)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    if is_json:
        return JSONResponse({"code": code, "message": sentence}, status, headers=named)
    text = sentence.encode()
    body = bytes([0x08, code, 0x12]) + _varint(len(text)) + text  # fields 1 and 2
    return Response(body, status, media_type=PROTOBUF, headers=named)


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])
