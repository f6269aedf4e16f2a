"""Files of spans: OTLP as JSON, JSON lines and protobuf, and spans as SDKs print them.

One trace for each answer of a model. The spans of a trace may be far apart: so many are held, the trace that was silent
longest goes first, and what comes for it later is reported.
"""

from __future__ import annotations

import json
import math
import re
import zlib
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Any

from calibrate import settings
from calibrate.errors import BadInput
from calibrate.ingest.base import Format, Rejected, Row
from calibrate.ingest.files import BadLine, InputFile, Lines
from calibrate.ingest.spans.answers import row_of
from calibrate.ingest.spans.dumps import spans_of_dump
from calibrate.ingest.spans.framing import ZSTD, is_protobuf, requests_of
from calibrate.ingest.spans.gather import Gather
from calibrate.ingest.spans.otlp import Refused, spans_of_json, spans_of_protobuf
from calibrate.ingest.spans.reader import Reader
from calibrate.ingest.spans.record import SpanRecord
from calibrate.sanitize import visible

MAX_DOCUMENT_BYTES = 64 * 1024 * 1024
"""Of one request, and of a file that is one JSON document: decoded, it takes several times as much memory."""

MAX_HELD_SPANS = 50_000
MAX_HELD_CHARACTERS = 50_000_000
"""What waits for the other spans of its trace."""

_MAX_REMEMBERED = 100_000  # traces that had to go before the file ended

_OTLP = re.compile(rb'[\s\xef\xbb\xbf]*\[?\s*\{\s*"(?:resourceSpans|resource_spans|batches)"\s*:')
_DUMP = re.compile(rb'"(?:spanContext|context)"\s*:\s*\{\s*"(?:traceId|trace_id)"')
_JSON = re.compile(rb"[\s\xef\xbb\xbf]*[\[{]")

Numbered = tuple[int, SpanRecord | Refused]


def otlp_rows(file: InputFile, columns: Mapping[str, str] | None = None) -> Iterator[Row | Rejected]:
    """Read the answers of an OTLP file. `columns` maps fields to the attributes that hold them."""
    spans = _protobuf_spans(file) if is_protobuf(file.head) else _json_spans(file)
    return _rows(file, spans, columns or {})


def dump_rows(file: InputFile, columns: Mapping[str, str] | None = None) -> Iterator[Row | Rejected]:
    """Read the answers of a file of spans as an SDK prints them. `columns` as for `otlp_rows`."""
    return _rows(file, _dumped_spans(file), columns or {})


def _rows(
    file: InputFile, spans: Iterator[Numbered | Rejected], columns: Mapping[str, str]
) -> Iterator[Row | Rejected]:
    """Join spans and make a row of each answer. Raises BadInput where there was none, saying what there was."""
    try:
        names = {field: name for field, name in columns.items() if field != name}
        reader = Reader(names=names, tool_results=settings.imports().tool_results)
    except ValueError as error:
        raise BadInput(f"--column: {error}") from None
    gather = Gather(seconds=math.inf, most=MAX_HELD_SPANS, most_characters=MAX_HELD_CHARACTERS, at_root=False)
    cut: OrderedDict[str, None] = OrderedDict()
    count = silent = reported = 0
    for item in spans:
        if isinstance(item, Rejected):
            reported += 1
            yield item
            continue
        line, span = item
        count += 1
        if isinstance(span, Refused):
            reported += 1
            yield Rejected(line, span.reason)
            continue
        holds = reader.holds(span)
        if holds is None and not span.is_root:
            continue
        content = reader.read(span)
        silent += holds == "answer" and not content.answers
        if holds and span.trace_id in cut and not gather.has(span.trace_id):
            reported += 1
            yield Rejected(line, _describe_cut(span.trace_id))
        ready = gather.add(span, content, answer=holds == "answer" and bool(content.answers), now=0.0, origin=line)
        for trace_id in gather.evicted():
            cut[trace_id] = None
        while len(cut) > _MAX_REMEMBERED:
            cut.popitem(last=False)
        for answer in ready:
            reported += 1
            yield row_of(answer, int(str(answer.origin)))
    for answer in gather.drain():
        reported += 1
        yield row_of(answer, int(str(answer.origin)))
    if not reported:
        raise BadInput(_describe_nothing(file.name, count, silent))


def _json_spans(file: InputFile) -> Iterator[Numbered | Rejected]:
    """Read one request a line, or one JSON document."""
    by_line = False
    for line, value, by_line in _json_values(file):
        if isinstance(value, Rejected):
            yield value
            continue
        for document in value if isinstance(value, list) else [value]:
            if not isinstance(document, Mapping) or {"resourceLogs", "resourceMetrics"} & document.keys():
                continue
            try:
                for place, span in enumerate(spans_of_json(document), 1):
                    yield line if by_line else place, span
            except BadInput as error:
                yield Rejected(line, str(error))


def _dumped_spans(file: InputFile) -> Iterator[Numbered | Rejected]:
    place = 0
    for line, value, by_line in _json_values(file):
        if isinstance(value, Rejected):
            yield value
            continue
        for span in spans_of_dump(value):
            place += 1
            yield line if by_line else place, span


def _protobuf_spans(file: InputFile) -> Iterator[Numbered | Rejected]:
    number = 0
    try:
        for body in requests_of(file.stream, file.head, MAX_DOCUMENT_BYTES):
            number += 1
            if body is None:
                yield Rejected(number, "the file is cut off within this request; those before it were read", last=True)
                return
            try:
                for span in spans_of_protobuf(_decompress(body) if body.startswith(ZSTD) else body):
                    yield number, span
            except BadInput as error:
                if "pip install" in str(error):
                    raise
                yield Rejected(number, str(error))
    except BadInput as error:
        if not number:
            raise
        yield Rejected(number + 1, str(error), last=True)
    except (EOFError, zlib.error, OSError) as error:
        yield Rejected(number + 1, f"the compressed file is damaged or cut off ({error})", last=True)


def _json_values(file: InputFile) -> Iterator[tuple[int, Any, bool]]:
    """Read the JSON values of a file, one a line or one or several over many lines: line, value, and which it is."""
    file.refuse_unless_text()
    lines = Lines(file.stream, "request", MAX_DOCUMENT_BYTES)
    first = True
    while True:
        try:
            line = next(lines)
        except StopIteration:
            return
        except BadLine as problem:
            if first and not problem.last:
                raise BadInput(_describe_huge(file.name)) from None
            yield problem.line, Rejected(problem.line, problem.reason, problem.last), True
            continue
        if not line.strip():
            continue
        value = _decode(line, lines.number)
        if first and isinstance(value, Rejected):
            yield from _whole_values(file, line, value)
            return
        first = False
        yield lines.number, value, True


def _whole_values(file: InputFile, beginning: bytes, problem: Rejected) -> Iterator[tuple[int, Any, bool]]:
    """Read values that go over many lines, as they are printed for people."""
    try:
        content = beginning + file.stream.read(MAX_DOCUMENT_BYTES + 1 - len(beginning))
    except (EOFError, zlib.error, OSError) as error:
        raise BadInput(f"{file.name} is cut off or damaged amid its JSON ({error}): fetch it again, whole") from None
    if len(content) > MAX_DOCUMENT_BYTES:
        raise BadInput(_describe_huge(file.name))
    try:
        text = content.decode("utf-8-sig").strip()
    except UnicodeDecodeError as error:
        raise BadInput(f"{file.name} is not UTF-8 text (byte {error.start + 1}); save the file as UTF-8") from None
    place, number = 0, 0
    while place < len(text):
        try:
            value, place = json.JSONDecoder(strict=False).raw_decode(text, place)
        except (ValueError, RecursionError):
            line = text.count("\n", 0, place) + 1
            reason = problem.reason if place == 0 else "what follows is not JSON"
            yield line, Rejected(line, reason, last=True), False
            return
        number += 1
        yield number, value, False
        while place < len(text) and text[place] in " \t\r\n,":
            place += 1


def _decode(line: bytes, number: int) -> Any:
    try:
        return json.loads(line)
    except UnicodeDecodeError as error:
        return Rejected(number, f"not UTF-8 text (byte {error.start + 1} of the line); save the file as UTF-8")
    except json.JSONDecodeError as error:
        return Rejected(number, f"not JSON: {error.msg} at column {error.pos + 1}")
    except RecursionError:
        return Rejected(number, "not usable JSON: it is nested too deeply")
    except ValueError:
        return Rejected(number, "not usable JSON: it holds a number with thousands of digits")


def _decompress(body: bytes) -> bytes:
    """Decompress a request that the Collector wrote with zstd."""
    import pyarrow as pa

    try:
        with pa.CompressedInputStream(pa.BufferReader(body), "zstd") as stream:
            content = bytes(stream.read(MAX_DOCUMENT_BYTES + 1))
    except OSError as error:
        raise BadInput(f"a request cannot be decompressed: {error}") from None
    if len(content) > MAX_DOCUMENT_BYTES:
        raise BadInput(f"a request of more than {_megabytes()} MB, decompressed: export fewer spans at once")
    return content


def _describe_huge(name: str) -> str:
    return (
        f"{name} is one JSON document of more than {_megabytes()} MB, which would take several times as much memory: "
        "write one request a line, as the Collector's file exporter does"
    )


def _describe_nothing(name: str, count: int, silent: int) -> str:
    spans = "1 span" if count == 1 else f"{count:,} spans"
    if silent:
        calls = "1 is a call of a model" if silent == 1 else f"{silent:,} are calls of a model"
        return (
            f"{name}: {spans}, of which {calls}, without the text of the answer. Have the instrumentation capture "
            "content, as with OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY; "
            "docs/how-to/opentelemetry.md says how"
        )
    return (
        f"{name}: {spans}, none holds an answer. The span of a model's call has it, in `gen_ai.output.messages` or as "
        "docs/how-to/opentelemetry.md says, where the instrumentation captures content; name an attribute of your own "
        "with --column answer=NAME"
    )


def _describe_cut(trace_id: str) -> str:
    return (
        f"the trace {visible(trace_id[:64])} is cut in two: it goes on after {MAX_HELD_SPANS:,} other spans, or "
        f"{MAX_HELD_CHARACTERS / 1e6:.0f} million characters of them; its answers from here on may lack sources; sort "
        "the file by trace"
    )


def _megabytes() -> int:
    return MAX_DOCUMENT_BYTES // 1024**2


def _is_otlp(head: bytes) -> bool:
    return _OTLP.match(head) is not None or is_protobuf(head)


def _is_dump(head: bytes) -> bool:
    return _JSON.match(head) is not None and _DUMP.search(head) is not None


FORMATS = (
    Format("otlp", (), _is_otlp, otlp_rows, otlp_rows, "OTLP traces"),
    Format("spans", (), _is_dump, dump_rows, dump_rows, "exported spans"),
)
