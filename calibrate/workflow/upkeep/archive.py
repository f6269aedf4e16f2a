"""An archive of a store: a zip of Parquet files, one a table, and a manifest with what each must hold.

Members are stored, not deflated: Parquet packs its own pages, so a member is read where it lies in the file.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import struct
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import IO, Any

from calibrate.errors import BadInput
from calibrate.thresholds.canonical import digest_of
from db.upkeep.rows import Column, Kind, Rows, Shape

FORMAT = 1
MANIFEST = "manifest.json"
MOST_MANIFEST = 1 << 20  # bytes; a real one has some ten thousand
ROW_GROUP_BYTES, ROW_GROUP_ROWS = 8 << 20, 10_000  # a row group is written, and read, as a whole
MOST_ROW_GROUP = 1 << 30  # bytes that one may say it unpacks to: a single row may be large
AT_ONCE = 500  # rows that are handed on together


@dataclass(frozen=True, slots=True)
class Member:
    """A table in an archive: its rows, and the size and the SHA-256 of its Parquet file."""

    shape: Shape
    rows: int
    size: int
    sha256: str

    @property
    def file(self) -> str:
        return f"tables/{self.shape.name}.parquet"


@dataclass(frozen=True, slots=True)
class Manifest:
    """What an archive says it holds."""

    schema: str
    written_at: str
    written_by: str
    tables: Sequence[Member]

    def to_json(self) -> dict[str, Any]:
        tables = [
            {
                "table": member.shape.name,
                "file": member.file,
                "rows": member.rows,
                "bytes": member.size,
                "sha256": member.sha256,
                "columns": {column.name: str(column.kind) for column in member.shape.columns},
            }
            for member in self.tables
        ]
        head = {"touchstone_archive": FORMAT, "schema": self.schema, "written_by": self.written_by}
        document = {**head, "written_at": self.written_at, "tables": tables}
        return {**document, "digest": digest_of(document)}


def write(
    path: Path,
    tables: Iterable[tuple[Shape, Iterator[Rows]]],
    *,
    schema: str,
    written_by: str,
    now: datetime,
    on_rows: Callable[[int], None],
) -> Manifest:
    """Write every row into an archive, a few at a time; `on_rows` is told how many each time."""
    members = []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for shape, rows in tables:
            info = zipfile.ZipInfo(f"tables/{shape.name}.parquet", now.timetuple()[:6])
            with archive.open(info, "w", force_zip64=True) as stream:
                member = _Digesting(stream)
                count = _write_table(member, shape, rows, on_rows)
            members.append(Member(shape, count, member.size, member.digest.hexdigest()))
        manifest = Manifest(schema, now.isoformat(), written_by, members)
        text = json.dumps(manifest.to_json(), indent=1, ensure_ascii=False)
        archive.writestr(zipfile.ZipInfo(MANIFEST, now.timetuple()[:6]), text)
    return manifest


class _Digesting(io.RawIOBase):
    """Counts and digests what is written through it."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream, self.size, self.digest = stream, 0, hashlib.sha256()

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.size

    def write(self, content: Any) -> int:
        self._stream.write(content)
        self.digest.update(content)
        self.size += len(content)
        return len(content)


def _write_table(stream: io.RawIOBase, shape: Shape, rows: Iterator[Rows], on_rows: Callable[[int], None]) -> int:
    import pyarrow as pa
    from pyarrow import parquet

    schema, total = _arrow(shape), 0
    with parquet.ParquetWriter(stream, schema, compression="zstd", use_dictionary=False) as writer:
        for group in _row_groups(rows):
            columns = zip(*group, strict=True)
            arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema), row_group_size=len(group))
            total += len(group)
            on_rows(len(group))
    return total


def _row_groups(parts: Iterator[Rows]) -> Iterator[list[tuple[Any, ...]]]:
    """The rows together again, as many as a row group takes. The same rows make the same groups in every store."""
    group: list[tuple[Any, ...]] = []
    size = 0
    for part in parts:
        for row in part:
            group.append(row)
            size += sum(len(value) if isinstance(value, (str, bytes)) else 8 for value in row)
            if size >= ROW_GROUP_BYTES or len(group) >= ROW_GROUP_ROWS:
                yield group
                group, size = [], 0
    if group:
        yield group


def _arrow(shape: Shape) -> Any:
    import pyarrow as pa

    types = {
        Kind.INTEGER: pa.int64(),
        Kind.NUMBER: pa.float64(),
        Kind.TEXT: pa.string(),
        Kind.BOOLEAN: pa.bool_(),
        Kind.BYTES: pa.binary(),
        Kind.TIME: pa.timestamp("us", tz="UTC"),
        Kind.DOCUMENT: pa.string(),
    }
    return pa.schema([pa.field(column.name, types[column.kind]) for column in shape.columns])


class Archive:
    """An archive that was verified to its last byte, open for reading."""

    unpacked = 0  # bytes that its tables take once they are unpacked

    def __init__(self, path: Path, stream: IO[bytes], manifest: Manifest, starts: dict[str, int]) -> None:
        self.path, self.manifest, self._stream, self._starts = path, manifest, stream, starts
        for member in manifest.tables:
            self.unpacked += _check_table(self._part(member), member)

    def rows(self, shape: Shape) -> Iterator[Rows]:
        """Every row of a table, a few at a time. Raises BadInput where they cannot be read."""
        member = next(member for member in self.manifest.tables if member.shape.name == shape.name)
        with _refusing(self.path):
            table = _parquet(self._part(member))
            for group in range(table.num_row_groups):
                for batch in table.read_row_group(group, use_threads=False).to_batches(max_chunksize=AT_ONCE):
                    yield list(zip(*(column.to_pylist() for column in batch.columns), strict=True))

    def _part(self, member: Member) -> io.RawIOBase:
        return _Part(self._stream, self._starts[member.file], member.size)


@contextmanager
def reading(path: Path) -> Iterator[Archive]:
    """Open an archive and verify all of it: its members, their digests, and what their rows unpack to.

    Raises BadInput, naming what is wrong, before a single row is handed out.
    """
    try:
        stream = path.open("rb")
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise BadInput(f"the archive {path} cannot be read: {why}; name another file") from error
    with stream:
        with _refusing(path):
            try:
                members = zipfile.ZipFile(stream).infolist()
            except (zipfile.BadZipFile, NotImplementedError) as error:
                raise BadInput(f"{path} is no archive of a store, or it was cut short: take a whole copy") from error
            manifest = _manifest(stream, members)
            starts = _check_members(stream, members, manifest)
            archive = Archive(path, stream, manifest, starts)
        yield archive


@contextmanager
def _refusing(path: Path) -> Iterator[None]:
    """Every error of the libraries that read an archive, as one sentence about it."""
    try:
        yield
    except _Damaged as error:
        raise BadInput(f"the archive {path} is damaged: {error}; nothing was imported; take a whole copy") from error
    except (OSError, ValueError, KeyError, TypeError, struct.error, OverflowError, MemoryError, EOFError) as error:
        why = " ".join(str(error).split())[:200] or type(error).__name__
        raise BadInput(f"the archive {path} is damaged: {why}; nothing was imported; take a whole copy") from error


class _Damaged(Exception):
    """What is wrong with an archive."""


def _manifest(stream: IO[bytes], members: Sequence[zipfile.ZipInfo]) -> Manifest:
    info = next((member for member in members if member.filename == MANIFEST), None)
    if info is None:
        raise _Damaged(f"it has no {MANIFEST}")
    if info.file_size > MOST_MANIFEST:
        raise _Damaged(f"its {MANIFEST} has {info.file_size:,} bytes")
    start = _start(stream, info)
    stream.seek(start)
    document = json.loads(stream.read(info.file_size))
    if not isinstance(document, dict) or "touchstone_archive" not in document:
        raise _Damaged(f"its {MANIFEST} is no manifest of a store")
    if document["touchstone_archive"] != FORMAT:
        raise _Damaged(f"it is of format {document['touchstone_archive']}, and this Touchstone reads {FORMAT}")
    if document.get("digest") != digest_of(document):
        raise _Damaged(f"its {MANIFEST} was changed")
    tables = [
        Member(
            Shape(
                str(table["table"]),
                tuple(Column(str(name), Kind(kind)) for name, kind in table["columns"].items()),
            ),
            int(table["rows"]),
            int(table["bytes"]),
            str(table["sha256"]),
        )
        for table in document["tables"]
    ]
    return Manifest(str(document["schema"]), str(document["written_at"]), str(document["written_by"]), tables)


def _check_members(stream: IO[bytes], members: Sequence[zipfile.ZipInfo], manifest: Manifest) -> dict[str, int]:
    """Where each table begins in the file. Raises _Damaged unless all are there, nothing else is, and each is whole."""
    expected = {member.file: member for member in manifest.tables}
    names = [info.filename for info in members]
    if len(set(names)) < len(names) or len(expected) < len(manifest.tables):
        raise _Damaged("a member is in it twice")
    for name in sorted({*expected, MANIFEST} ^ set(names)):
        raise _Damaged(f"it lacks {name}" if name in expected else f"it holds {name!r}, which is no table of a store")
    starts = {}
    for info in members:
        if info.filename == MANIFEST:
            continue
        member = expected[info.filename]
        starts[info.filename] = _start(stream, info)
        if info.file_size != member.size:
            raise _Damaged(f"{info.filename} has {info.file_size:,} bytes instead of {member.size:,}")
        if _sha256(_Part(stream, starts[info.filename], member.size)) != member.sha256:
            raise _Damaged(f"{info.filename} was changed: its SHA-256 is another")
    return starts


def _start(stream: IO[bytes], info: zipfile.ZipInfo) -> int:
    """Where the content of a member begins. Raises _Damaged where it is packed or encrypted, so not ours."""
    if info.compress_type != zipfile.ZIP_STORED or info.compress_size != info.file_size or info.flag_bits & 1:
        raise _Damaged(f"{info.filename} is packed, which an archive's members are not")
    stream.seek(info.header_offset)
    mark, name, extra = struct.unpack("<4s22xHH", stream.read(30))
    start = int(info.header_offset + 30 + name + extra)
    if mark != b"PK\x03\x04" or start + info.file_size > os.fstat(stream.fileno()).st_size:
        raise _Damaged(f"{info.filename} is not where the archive says")
    return start


class _Part(io.RawIOBase):
    """A part of a file, read as a file of its own."""

    def __init__(self, stream: IO[bytes], start: int, size: int) -> None:
        self._stream, self._start, self._size, self._at = stream, start, size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(0, base + offset)
        return self._at

    def readinto(self, buffer: Any) -> int:
        self._stream.seek(self._start + self._at)
        content = self._stream.read(max(0, min(len(buffer), self._size - self._at)))
        buffer[: len(content)] = content
        self._at += len(content)
        return len(content)


def _sha256(part: io.RawIOBase) -> str:
    digest = hashlib.sha256()
    while content := part.read(1 << 20):
        digest.update(content)
    return digest.hexdigest()


def _parquet(part: io.RawIOBase) -> Any:
    from pyarrow import parquet

    return parquet.ParquetFile(part)


def _check_table(part: io.RawIOBase, member: Member) -> int:
    """The bytes that a table unpacks to. Raises _Damaged where it is not what the manifest says, or a trap."""
    table = _parquet(part)
    if table.schema_arrow != _arrow(member.shape):
        raise _Damaged(f"{member.file} has other columns than the manifest says")
    if table.metadata.num_rows != member.rows:
        raise _Damaged(f"{member.file} has {table.metadata.num_rows:,} rows instead of {member.rows:,}")
    total = 0
    for group in range(table.num_row_groups):
        columns = [table.metadata.row_group(group).column(place) for place in range(len(member.shape.columns))]
        size = sum(column.total_uncompressed_size for column in columns)
        if size > MOST_ROW_GROUP or size < 0 or any(column.has_dictionary_page for column in columns):
            raise _Damaged(f"{member.file} unpacks to more than an archive's parts do")
        total += size
    return total
