"""Open a file that may be compressed, truncated, huge or binary, and read its lines in bounded memory."""

from __future__ import annotations

import gzip
import io
import os
import stat
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Self

from calibrate.errors import BadInput

MAX_LINE_BYTES = 16 * 1024 * 1024
"""Enough for an answer of 1 MB with a hundred sources, too little for a file without line ends."""

HEAD_BYTES = 1 << 16
"""As much of a file's beginning as its format is recognized by."""

_BUFFER = 1 << 18
_TEXT_HEAD = 4096
_ZSTD_STEP = 1 << 14  # a step that meets damage is lost whole
_MOST_SKIPPED = 1 << 30  # bytes of one overlong line; a compressed file may hold terabytes of it
_UTF8_BOM = b"\xef\xbb\xbf"
_UTF16_BOMS = (b"\xff\xfe", b"\xfe\xff")
# Control characters that text files do not have. They may have tab, newline, form feed, return and escape (colours).
_CONTROLS = bytes(set(range(32)) - {9, 10, 12, 13, 27})


class BadLine(Exception):
    """A line that cannot be read. Reading goes on after it, unless it is the `last`."""

    def __init__(self, line: int, reason: str, *, last: bool = False) -> None:
        super().__init__(reason)
        self.line = line
        self.reason = reason
        self.last = last


class Lines:
    """The lines of a stream as bytes, without a byte order mark. `number` is the current line's, from 1."""

    def __init__(self, stream: io.BufferedReader, item: str = "trace", longest: int = MAX_LINE_BYTES) -> None:
        self.number = 0
        self._longest = longest
        self._item = item
        self._stream = stream
        self._ended = False

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        if self._ended:
            raise StopIteration
        self.number += 1
        try:
            line = self._stream.readline(self._longest + 1)
            if len(line) > self._longest and not line.endswith(b"\n"):
                self._ended = not self._skip_rest()
                megabytes = self._longest // 1024**2
                reason = f"the line is longer than {megabytes} MB; write one {self._item} per line"
                raise BadLine(self.number, reason, last=self._ended)
        except (EOFError, zlib.error, OSError) as error:
            self._ended = True
            raise BadLine(self.number, _describe_damage(error, self.number), last=True) from None
        if not line:
            self._ended = True
            raise StopIteration
        return line.removeprefix(_UTF8_BOM) if self.number == 1 else line

    def _skip_rest(self) -> bool:
        """Read on to the end of the line, a megabyte at a time. Returns False where it goes on for too long."""
        skipped = 0
        while (piece := self._stream.readline(1 << 20)) and not piece.endswith(b"\n"):
            skipped += len(piece)
            if skipped > _MOST_SKIPPED:
                return False
        return True


class InputFile:
    """A file of traces (or of another `item`: labels) open for reading, decompressed as it is read.

    `head` is the beginning of its decompressed content; `read_with` names the files beside it that it was read with.
    """

    def __init__(self, path: str | os.PathLike[str], item: str = "trace") -> None:
        self.item = item
        self.path = Path(path)
        self.name = self.path.name
        _refuse_unless_file(self.path)
        try:
            self._raw: BinaryIO = self.path.open("rb", buffering=_BUFFER)
        except FileNotFoundError:
            raise BadInput(f"there is no file {str(path)!r}") from None
        except (OSError, ValueError) as error:
            raise BadInput(f"cannot read {str(path)!r}: {getattr(error, 'strerror', None) or error}") from None
        try:
            self.size = os.fstat(self._raw.fileno()).st_size
            if not self.size:
                raise BadInput(f"{self.name} is empty: it holds no {item}s")
            self.head = self._read_head()
            self.stream = _decompress(self._raw)
        except BaseException:
            self._raw.close()
            raise
        self.lines = Lines(self.stream, item)
        self.read_with: set[str] = set()
        self._share: float | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._raw.close()

    @property
    def share(self) -> float:
        """How much of the file has been read, 0 to 1."""
        return self._share if self._share is not None else min(1.0, self._raw.tell() / self.size)

    @share.setter
    def share(self, value: float) -> None:
        self._share = value

    def refuse_unless_text(self) -> None:
        """Raise BadInput that says what the file is if it is not UTF-8 text, rather than reject each of its lines."""
        head = self.head[:_TEXT_HEAD]
        nuls = head.count(0)
        if head.startswith(_UTF16_BOMS) or nuls * 3 > len(head):
            raise BadInput(f"{self.name} looks like UTF-16 text; save it as UTF-8")
        if head.startswith(b"PK\x03\x04"):
            raise BadInput(
                f"{self.name} is a zip or Excel file; unpack it, or save the sheet as CSV (UTF-8); what `export --all` "
                "wrote is taken by `import --all`"
            )
        controls = len(head) - len(head.translate(None, _CONTROLS))
        if controls * 10 > len(head) or (controls and not _is_utf8(head)):
            raise BadInput(
                f"{self.name} is a binary file that holds no {self.item}s; they come as text (JSON, CSV), Parquet or "
                "protobuf (OTLP)"
            )

    def _read_head(self) -> bytes:
        """Read the beginning through a handle of its own: a decompressor cannot go back."""
        parts: list[bytes] = []
        left = HEAD_BYTES
        try:
            with self.path.open("rb") as raw:
                stream = _decompress(raw)
                while left > 0 and (part := stream.read1(left)):
                    parts.append(part)
                    left -= len(part)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            how = "cut off" if isinstance(error, EOFError) else "damaged"
            if not parts:
                raise BadInput(
                    f"{self.name} is a compressed file that is {how} before its first {self.item} can be read: fetch "
                    "it again, whole"
                ) from None
        except OSError:
            pass  # reading the first line will report it
        return b"".join(parts)


class _Decompressor(io.RawIOBase):
    """A compressed stream that returns everything it could decompress before it reports damage.

    `GzipFile` under a `BufferedReader` would drop the part of the last buffer that it had read.
    """

    def __init__(self, read: Callable[[int], bytes]) -> None:
        self._read = read

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


def _zstd_reader(raw: BinaryIO) -> Callable[[int], bytes]:
    """A function that reads on in a zstd stream, and reports damage as a gzip stream does."""
    import pyarrow as pa

    stream = pa.CompressedInputStream(pa.PythonFile(raw, mode="r"), "zstd")

    def read(size: int) -> bytes:
        try:
            return bytes(stream.read(min(size, _ZSTD_STEP)))
        except OSError as error:
            damage: type[Exception] = EOFError if "runcated" in str(error) else zlib.error
            raise damage(str(error)) from None

    return read


def _refuse_unless_file(path: Path) -> None:
    """Raise BadInput that says what a path is if it is no file: others may never end, or never begin."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return  # opening it says why
    kinds = {stat.S_ISDIR: "a folder", stat.S_ISFIFO: "a pipe", stat.S_ISSOCK: "a socket", stat.S_ISCHR: "a device"}
    for is_kind, kind in {**kinds, stat.S_ISBLK: "a device"}.items():
        if is_kind(mode):
            raise BadInput(f"{str(path)!r} is {kind}, and only files are read: name one, like traces.jsonl")


def _decompress(raw: BinaryIO) -> io.BufferedReader:
    """Decompress gzip and zstd, recognized by content: downloads are often unpacked on the way and keep their `.gz`."""
    magic = raw.read(4)
    raw.seek(0)
    if magic.startswith(b"\x1f\x8b"):
        return io.BufferedReader(_Decompressor(gzip.GzipFile(fileobj=raw, mode="rb").read1), _BUFFER)
    if magic == b"\x28\xb5\x2f\xfd":
        return io.BufferedReader(_Decompressor(_zstd_reader(raw)), _BUFFER)
    assert isinstance(raw, io.BufferedReader)
    return raw


def _describe_damage(error: Exception, line: int) -> str:
    if isinstance(error, EOFError):
        return f"the compressed file is cut off at line {line}; the lines before it were read; fetch the file again"
    if isinstance(error, (zlib.error, gzip.BadGzipFile)):
        return f"the compressed file is damaged at line {line} ({error}); the lines before it were read"
    return f"the file cannot be read beyond line {line}: {error}"


def _is_utf8(head: bytes) -> bool:
    try:
        head.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.start > len(head) - 4 and error.reason == "unexpected end of data"
    return True
