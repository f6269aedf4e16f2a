"""Thresholds files on disk and on fsspec's file systems. No other module of this folder does input or output,
but for `signing`, which reads keys."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from calibrate.errors import BadInput, BadThresholds, TouchstoneError
from calibrate.targets import Kind, check_target, remove_abandoned
from calibrate.thresholds.checks import check
from calibrate.thresholds.model import ThresholdsFile, from_json, to_json
from calibrate.thresholds.signing import signature_problem
from calibrate.urls import redact

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

MAX_BYTES = 16 * 2**20
MAX_EXACT_INTEGER = 2**53 - 1
THRESHOLDS = Kind(
    "a thresholds file",
    lambda content: content.lstrip().startswith(b"{") and b'"touchstone_thresholds"' in content,
    MAX_BYTES,
)


def read(
    source: str | os.PathLike[str] | bytes, *, name: str | None = None, keys: Sequence[Ed25519PublicKey] = ()
) -> ThresholdsFile:
    """Read a release from a file, or from its bytes.

    Raises BadThresholds, naming the file (or `name`), unless it is complete and unchanged and, where there are `keys`,
    signed by one of them.
    """
    name = name or name_of(source)
    document = parse(read_bytes(source, name), name)
    with refuse_deep_nesting(name):
        file = from_json(document, name)
        problem = signature_problem(document, keys) if keys else None
    if problem:
        raise BadThresholds(f"{name}: {problem}")
    return file


def render(file: ThresholdsFile) -> str:
    """Render the file's text, the same for the same content. Raises BadThresholds for what no reader would accept."""
    with refuse_deep_nesting("thresholds file"):
        document = to_json(file)
        check(document)
        text = json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"
    size = len(text.encode())
    if size > MAX_BYTES:
        raise BadThresholds(f"thresholds file: {size:,} bytes; readers take at most {MAX_BYTES:,}")
    return text


def encode(file: ThresholdsFile) -> bytes:
    """Encode the file as the bytes that `write` writes."""
    return render(file).encode()


def write(file: ThresholdsFile, path: str | os.PathLike[str]) -> None:
    """Write the file, replacing an older one atomically. On any error the older one is unchanged."""
    with stage(file, path) as pending:
        pending.commit()


@dataclass
class Staged:
    """A file that is written and synced under a temporary name in its folder, waiting for `commit`.

    `sha256` is of the whole file, as `sha256sum` shows it.
    """

    path: str
    temporary: str
    sha256: str
    committed: bool = False

    def commit(self) -> None:
        """Move the file to its place. Readers get the old file or the new one, never a part."""
        with _translate_errors(self.path):
            os.replace(self.temporary, self.path)
        self.committed = True
        # The new file is in place; this only protects it against a power cut within the next second.
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
    """Do everything that can fail before a release is recorded, and leave only the rename for afterwards.

    with stage(file, path) as pending:
        session.commit()
        pending.commit()

    Leaving the block without `commit` removes the temporary file.
    """
    return stage_bytes(encode(file), path)


def deliver(content: bytes, url: str) -> None:
    """Deliver the bytes of a thresholds file to a path, a file:// URL, or any URL that fsspec can write ("s3://…").

    Readers get the old file or the new one: on disk by a rename, elsewhere by the file system's own transaction (one
    atomic upload to an object store; over SFTP a temporary file that is moved when complete). Raises BadInput for a URL
    that cannot be written to and TouchstoneError if writing fails; the old file is unchanged then.
    """
    if scheme_of(url) is None or scheme_of(url) == "file":
        with stage_bytes(content, local_path(url)) as pending:
            pending.commit()
        return
    if scheme_of(url) in ("http", "https"):
        raise BadInput(f"{redact(url)}: over HTTP a thresholds file is read, not written; give a path or an s3:// URL")
    system, path = filesystem(url, alone=True)  # a transaction belongs to an instance
    try:
        with system.transaction, system.open(path, "wb") as stream:
            stream.write(content)
    except Exception as error:  # file systems raise errors of their own
        raise TouchstoneError(
            f"{redact(url)}: the thresholds file could not be written: {describe_error(error)}"
        ) from None


def check_place(place: str, *, store: Path | None) -> str:
    """Check where a thresholds file is to go: a path, or a URL that fsspec can write.

    Returns it, a file:// URL as a path. Raises BadInput for a place that cannot be written, for the store, and for a
    file that is no thresholds file.
    """
    scheme = scheme_of(place)
    if scheme in (None, "file"):
        return str(check_target(local_path(place), THRESHOLDS, store=store))
    if scheme in ("http", "https"):
        raise BadInput(f"{redact(place)}: over HTTP a thresholds file is read, not written; give a path or s3:// URL")
    system, path = filesystem(place)
    if "local" in system.protocol:  # fsspec has other names for a path
        check_target(path, THRESHOLDS, store=store)
    elif not _is_replaceable(system, path):
        raise BadInput(f"{redact(place)}: it exists and is not {THRESHOLDS.name}; name another place")
    return place


def _is_replaceable(system: Any, path: str) -> bool:
    """Tell whether nothing, or a thresholds file, is at a path of fsspec's. If that cannot be read, the writer says."""
    try:
        if not system.isfile(path):
            return True
        with system.open(path, "rb") as stream:
            content = stream.read(THRESHOLDS.most)
    except Exception:  # file systems raise errors of their own
        return True
    return not content or THRESHOLDS.matches(content)


def scheme_of(url: str) -> str | None:
    """The scheme of a URL, `s3` for "s3://…"; None for a path."""
    match = re.match(r"([A-Za-z][A-Za-z0-9+.-]+):(?://|:)", url)
    return match[1].lower() if match else None


def local_path(url: str) -> str:
    """The path of a file:// URL. A path is returned unchanged."""
    if scheme_of(url) != "file":
        return url
    path = os.fsencode(re.sub("^file://[^/]*", "", url, flags=re.IGNORECASE))
    return os.fsdecode(re.sub(rb"%([0-9A-Fa-f]{2})", lambda match: bytes.fromhex(match[1].decode()), path))


def filesystem(url: str, *, alone: bool = False) -> tuple[Any, str]:
    """fsspec's file system for the URL, and the path in it. `alone` asks for an instance that nothing else shares.

    Raises BadInput for an unknown scheme, or if a package is missing, and names it.
    """
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise BadInput(f"{redact(url)}: `pip install fsspec`, and what it needs for {scheme_of(url)}://") from None
    try:
        system, path = url_to_fs(url, **({"skip_instance_cache": True} if alone else {}))
    except (ImportError, ValueError) as error:  # "Install s3fs to access S3", "Protocol not known: …"
        raise BadInput(f"{redact(url)}: {describe_error(error)}") from None
    return system, path


def describe_error(error: Exception) -> str:
    """The first line of another library's error, cut short."""
    words = (getattr(error, "strerror", None) or str(error)).strip().split("\n")[0][:200]
    return words or type(error).__name__


def stage_bytes(content: bytes, path: str | os.PathLike[str], *, mode: int | None = None) -> Staged:
    """Do for any bytes what `stage` does for a release. The file gets the `mode`, else that of the older one."""
    with _translate_errors(path):
        place = os.path.realpath(path)  # a link stays, and the file that it points to is replaced
        if os.path.isdir(place):
            raise IsADirectoryError(errno.EISDIR, "it is a directory; name a file in it")
        if os.path.exists(place) and not os.path.isfile(place):
            raise OSError(errno.EINVAL, "it is a device or pipe, which must not be replaced; name a file")
    remove_abandoned(os.path.dirname(place))
    temporary = os.path.join(os.path.dirname(place), f".touchstone-{os.urandom(8).hex()}.tmp")
    pending = Staged(place, temporary, hashlib.sha256(content).hexdigest())
    try:
        with _translate_errors(path):
            _write_synced(temporary, content, like=place, mode=mode)
    except BaseException:
        pending.discard()
        raise
    return pending


def name_of(source: str | os.PathLike[str] | bytes) -> str:
    return "thresholds file" if isinstance(source, bytes) else str(os.fspath(source))


def read_bytes(source: str | os.PathLike[str] | bytes, name: str) -> bytes:
    """Read a file's bytes. Raises BadThresholds, naming it, if it cannot be read or is too large."""
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


def parse(content: bytes, name: str) -> Any:
    def refuse(problem: str) -> NoReturn:
        raise BadThresholds(f"{name}: {problem}")

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        # Readers differ in which of two equal keys counts, so the same file would decide differently.
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
        # Every number is a double, as in JavaScript and RFC 8785; a long literal means the nearest double.
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
def refuse_deep_nesting(name: str) -> Iterator[None]:
    try:
        yield
    except RecursionError:
        raise BadThresholds(f"{name}: nested too deeply") from None


@contextlib.contextmanager
def _translate_errors(path: str | os.PathLike[str]) -> Iterator[None]:
    """Raise the operating system's errors as TouchstoneError."""
    try:
        yield
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise TouchstoneError(
            f"{os.fspath(path)}: the thresholds file could not be written: {why}. An older file there is unchanged"
        ) from None


def _write_synced(path: str, content: bytes, *, like: str, mode: int | None) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, flags, 0o666 if mode is None else mode)
    with open(descriptor, "wb", buffering=0) as stream:
        with contextlib.suppress(OSError):  # no older file, or no permission to change the mode: the umask decides
            os.chmod(path, os.stat(like).st_mode & 0o777 if mode is None else mode)
        view = memoryview(content)
        while view:  # a nearly full disk accepts a part before it reports an error
            view = view[stream.write(view) :]
        os.fsync(descriptor)


def _sync_directory(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
