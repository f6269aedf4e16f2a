"""Thresholds files on disk, and where fsspec reaches. The only module of this folder that touches either."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

from calibrate.errors import BadInput, BadThresholds, TouchstoneError
from calibrate.thresholds.checks import check, digest_problem, format_problem, schema_problem
from calibrate.thresholds.model import ThresholdsFile, from_json, to_json

MAX_BYTES = 16 * 2**20
MAX_EXACT_INTEGER = 2**53 - 1


def read(source: str | os.PathLike[str] | bytes, *, name: str | None = None) -> ThresholdsFile:
    """The release in a file (or in the bytes of one). Raises BadThresholds, naming the file (or `name`), unless it is
    whole and unchanged."""
    name = name or _name(source)
    document = _parse(content_of(source, name), name)
    with _deep(name):
        return from_json(document, name)


def render(file: ThresholdsFile) -> str:
    """The text of the file: the same for the same content. Raises BadThresholds for what no reader would take."""
    with _deep("thresholds file"):
        document = to_json(file)
        check(document)
        text = json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"
    size = len(text.encode())
    if size > MAX_BYTES:
        raise BadThresholds(f"thresholds file: {size:,} bytes; readers take at most {MAX_BYTES:,}")
    return text


def encode(file: ThresholdsFile) -> bytes:
    """The bytes of the file, as `write` writes them."""
    return render(file).encode()


def write(file: ThresholdsFile, path: str | os.PathLike[str]) -> None:
    """Write the file, replacing an older one in one step. On any error the older one is as it was."""
    with stage(file, path) as pending:
        pending.commit()


@dataclass
class Staged:
    """A file that is written and synced under a temporary name beside its place, waiting for `commit`.

    `sha256` is of the whole file, as `sha256sum` shows it.
    """

    path: str
    temporary: str
    sha256: str
    committed: bool = False

    def commit(self) -> None:
        """Move the file to its place: whoever opens the path gets the old file or the new one, never a part."""
        with _sentences(self.path):
            os.replace(self.temporary, self.path)
        self.committed = True
        # The new file is in place and readable; only its surviving a power cut in this second is still open.
        with contextlib.suppress(OSError):
            _sync_directory(os.path.dirname(self.path))

    def discard(self) -> None:
        """Remove the temporary file, unless it was committed. The file at `path` is untouched."""
        with contextlib.suppress(OSError):
            os.unlink(self.temporary)

    def __enter__(self) -> Staged:
        return self

    def __exit__(self, *_: object) -> None:
        self.discard()


def stage(file: ThresholdsFile, path: str | os.PathLike[str]) -> Staged:
    """Do all that can fail before a release is recorded, and leave only the rename for after.

    with stage(file, path) as pending:
        session.commit()
        pending.commit()

    Leaving the block without `commit` removes the temporary file.
    """
    return _stage(encode(file), path)


def put(content: bytes, url: str) -> None:
    """Deliver the bytes of a thresholds file to a path, a file:// URL, or any URL that fsspec can write ("s3://…").

    Whoever reads gets the old file or the new one: on disk by a rename, elsewhere by the file system's own transaction
    (to an object store one upload, which is atomic; over SFTP a temporary file, moved when it is whole). Raises
    BadInput for a URL that cannot be written and TouchstoneError where writing fails; the old file then is as it was.
    """
    if scheme_of(url) is None or scheme_of(url) == "file":
        with _stage(content, local_path(url)) as pending:
            pending.commit()
        return
    if scheme_of(url) in ("http", "https"):
        raise BadInput(f"{shown(url)}: over HTTP a thresholds file is read, not written; give a path or an s3:// URL")
    system, path = filesystem(url, alone=True)  # a transaction belongs to an instance
    try:
        with system.transaction, system.open(path, "wb") as stream:
            stream.write(content)
    except Exception as error:  # each file system has errors of its own
        raise TouchstoneError(f"{shown(url)}: the thresholds file could not be written: {said_by(error)}") from None


def scheme_of(url: str) -> str | None:
    """`s3` of "s3://…"; None for a path."""
    found = re.match(r"([A-Za-z][A-Za-z0-9+.-]+):(?://|:)", url)
    return found[1].lower() if found else None


def local_path(url: str) -> str:
    """The path in a file:// URL; a path as it is."""
    if scheme_of(url) != "file":
        return url
    path = os.fsencode(re.sub("^file://[^/]*", "", url, flags=re.IGNORECASE))
    return os.fsdecode(re.sub(rb"%([0-9A-Fa-f]{2})", lambda found: bytes.fromhex(found[1].decode()), path))


def shown(url: str) -> str:
    """The URL as it may stand in a log: without a password, or a query that may sign it."""
    return re.sub(r"(?<=://)[^/?#]*@", "", url).split("?")[0]


def filesystem(url: str, *, alone: bool = False) -> tuple[Any, str]:
    """fsspec's file system for the URL, and the path in it. `alone`: an instance that nobody shares. Raises BadInput
    where a package is missing, and says which, or where nobody knows the scheme."""
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise BadInput(f"{shown(url)}: `pip install fsspec`, and what it wants for {scheme_of(url)}://") from None
    try:
        system, path = url_to_fs(url, **({"skip_instance_cache": True} if alone else {}))
    except (ImportError, ValueError) as error:  # "Install s3fs to access S3", "Protocol not known: …"
        raise BadInput(f"{shown(url)}: {said_by(error)}") from None
    return system, path


def said_by(error: Exception) -> str:
    """The first line of an error of somebody else's, cut short."""
    words = (getattr(error, "strerror", None) or str(error)).strip().split("\n")[0][:200]
    return words or type(error).__name__


def _stage(content: bytes, path: str | os.PathLike[str]) -> Staged:
    with _sentences(path):
        place = os.path.realpath(path)  # a link keeps pointing to the file, which is replaced
        if os.path.isdir(place):
            raise IsADirectoryError(errno.EISDIR, "it is a directory; name a file in it")
        if os.path.exists(place) and not os.path.isfile(place):
            raise OSError(errno.EINVAL, "it is a device or pipe, which must not be replaced; name a file")
    temporary = os.path.join(os.path.dirname(place), f".touchstone-{os.urandom(8).hex()}.tmp")
    pending = Staged(place, temporary, hashlib.sha256(content).hexdigest())
    try:
        with _sentences(path):
            _write_synced(temporary, content, like=place)
    except BaseException:
        pending.discard()
        raise
    return pending


@dataclass(frozen=True)
class Verification:
    """What `python -m calibrate verify` shows. None: could not be looked at, because of the problem."""

    path: str
    ok: bool
    problem: str | None
    sha256: str | None = None
    format: int | None = None
    schema_ok: bool | None = None
    digest_ok: bool | None = None
    digest: str | None = None
    version: int | None = None
    released_at: str | None = None
    released_by: str | None = None
    detectors: tuple[str, ...] = ()
    ensembles: tuple[str, ...] = ()


def verify(path: str | os.PathLike[str]) -> Verification:
    """Look at a file without using it. Never raises for a bad file: the report says what is wrong."""
    name = _name(path)
    found: dict[str, Any] = {}
    try:
        content = content_of(path, name)
        found["sha256"] = hashlib.sha256(content).hexdigest()
        document = _parse(content, name)
        with _deep(name):
            _inspect(document, found)
    except BadThresholds as error:
        return Verification(name, ok=False, problem=str(error).removeprefix(f"{name}: "), **found)
    return Verification(name, ok=found.get("problem") is None, **{"problem": None, **found})


def _inspect(document: Any, found: dict[str, Any]) -> None:
    found["problem"] = format_problem(document)
    if found["problem"]:
        return
    found["format"] = int(document["touchstone_thresholds"])
    found["problem"] = schema_problem(document)
    found["schema_ok"] = found["problem"] is None
    if not found["schema_ok"]:
        return
    found["problem"] = digest_problem(document)
    found["digest_ok"] = found["problem"] is None
    found |= {key: document[key] for key in ("digest", "version", "released_at", "released_by")}
    found |= {key: tuple(sorted(document.get(key, ()))) for key in ("detectors", "ensembles")}


def _name(source: str | os.PathLike[str] | bytes) -> str:
    return "thresholds file" if isinstance(source, bytes) else str(os.fspath(source))


def content_of(source: str | os.PathLike[str] | bytes, name: str) -> bytes:
    """What a file holds, unread. Raises BadThresholds, naming it, where it cannot be had or is too large."""
    try:
        if isinstance(source, bytes):
            content = source
        else:
            with open(source, "rb") as stream:
                content = stream.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise BadThresholds(f"{name}: no such file; take one from the release page") from None
    except IsADirectoryError:
        raise BadThresholds(f"{name}: this is a directory; name the thresholds file in it") from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise BadThresholds(f"{name}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if len(content) > MAX_BYTES:
        raise BadThresholds(f"{name}: larger than {MAX_BYTES // 2**20} MB, so it is no thresholds file")
    return content


def _parse(content: bytes, name: str) -> Any:
    def refuse(what: str) -> NoReturn:
        raise BadThresholds(f"{name}: {what}")

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        # Readers differ in which of two equal keys counts: then the same file would decide differently.
        mapping = dict(pairs)
        if len(mapping) < len(pairs):
            keys = [key for key, _ in pairs]
            refuse(f"the key {json.dumps(next(key for key in keys if keys.count(key) > 1))} is there twice")
        return mapping

    def number(text: str) -> float:
        value = float(text)
        if value in (float("inf"), float("-inf")):
            refuse(f"the number {text[:20]} is too large")
        return value

    def integer(text: str) -> int | float:
        # Every number is a double, as in JavaScript and RFC 8785; a long literal means the nearest one.
        value = number(text)
        return int(value) if abs(value) <= MAX_EXACT_INTEGER else value

    if not content.strip():
        refuse("it is empty; take it again from the release page")
    try:
        return json.loads(
            content.decode("utf-8"),
            object_pairs_hook=unique,
            parse_float=number,
            parse_int=integer,
            parse_constant=lambda text: refuse(f"{text} is not JSON; a thresholds file holds finite numbers only"),
        )
    except UnicodeDecodeError as error:
        refuse(f"not UTF-8 text (at byte {error.start})")
    except json.JSONDecodeError as error:
        refuse(f"not JSON: {error.msg} (line {error.lineno}, column {error.colno})")
    except RecursionError:
        refuse("nested too deeply")


@contextlib.contextmanager
def _deep(name: str) -> Iterator[None]:
    try:
        yield
    except RecursionError:
        raise BadThresholds(f"{name}: nested too deeply") from None


@contextlib.contextmanager
def _sentences(path: str | os.PathLike[str]) -> Iterator[None]:
    """The system's errors as ours."""
    try:
        yield
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise TouchstoneError(
            f"{os.fspath(path)}: the thresholds file could not be written: {why}. What was there before is untouched"
        ) from None


def _write_synced(path: str, content: bytes, *, like: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
    with open(descriptor, "wb", buffering=0) as stream:
        with contextlib.suppress(OSError):  # no older file, or not ours to change: the umask decides
            os.chmod(path, os.stat(like).st_mode & 0o777)
        view = memoryview(content)
        while view:  # a nearly full disk takes a part and only then says so
            view = view[stream.write(view) :]
        os.fsync(descriptor)


def _sync_directory(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
