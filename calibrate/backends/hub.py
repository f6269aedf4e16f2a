"""Download models from the Hugging Face hub, only on request, and check files in its cache."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

from calibrate.backends import weights
from calibrate.errors import BadInput, TouchstoneError

# The files that a model needs. Other formats of the same weights (a repository often has five) are not downloaded.
FILES = ("*.json", "*.txt", "*.model", "*.safetensors")
ONNX = ("*.onnx", "*.onnx_data")  # for repositories that have no safetensors
MAIN = "main"
_REPOSITORY = re.compile(r"(?!\.)[\w.-]{1,96}/(?!\.)[\w.-]{1,96}", re.ASCII)
_BLOB = re.compile(r"[0-9a-f]{64}|[0-9a-f]{40}")


def digest(path: Path) -> str:
    """SHA-256 of a file. For a large file in the hub's cache this trusts its name; `models verify` reads the file."""
    expected = named_digest(path)
    return expected if expected is not None and len(expected) == 64 else weights.digest(path)


def is_id(model: str) -> bool:
    """Tell whether this could be the id of a model at the hub: organisation/name."""
    return _REPOSITORY.fullmatch(model) is not None


def named_digest(path: Path) -> str | None:
    """The digest in the name of a file in the hub's cache: SHA-256, or for small files git's SHA-1 of a blob."""
    real = path.resolve()
    return real.name if real.parent.name == "blobs" and _BLOB.fullmatch(real.name) else None


def is_intact(path: Path) -> bool | None:
    """Check a cached file against the digest in its name. Returns None if it is not in the cache."""
    expected = named_digest(path)
    if expected is None:
        return None
    if len(expected) == 64:
        return weights.digest(path.resolve()) == expected
    content = path.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest() == expected


def fetch(model: str, revision: str = MAIN) -> Path:
    """Download a model into the hub's cache, safetensors or else ONNX, and read its files against their digests.

    Returns its directory. Raises BadInput for what is not a hub id, and TouchstoneError with the remedy if the hub
    cannot be reached, does not have the model, has its weights only as a pickle, or sent something else than it names.
    """
    folder = _download(model, revision)
    if not any(folder.rglob("*.safetensors")) and not any(folder.rglob("*.onnx")):
        raise TouchstoneError(
            f"{model} has its weights only as a pickle, which runs code when it is read and is not fetched; save them "
            "as model.safetensors elsewhere (`save_pretrained` of transformers does) and name that directory"
        )
    differing = [path.name for path in sorted(folder.rglob("*")) if path.is_file() and is_intact(path) is False]
    if differing:
        raise TouchstoneError(
            f"{model} did not arrive whole: {', '.join(differing[:5])} in {folder} differ from what the hub names; "
            "delete that directory and fetch the model again"
        )
    return folder


def _download(model: str, revision: str) -> Path:
    if not is_id(model):
        raise BadInput(f"{model!r} is not a hub id; one looks like organisation/name")
    os.environ["HF_HUB_OFFLINE"] = "0"  # only for this download
    os.environ.pop("TRANSFORMERS_OFFLINE", None)
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    from huggingface_hub import constants, snapshot_download

    offline, constants.HF_HUB_OFFLINE = constants.HF_HUB_OFFLINE, False  # it may have been imported before
    try:
        folder = Path(snapshot_download(model, revision=revision, allow_patterns=list(FILES)))
        if not any(folder.glob("*.safetensors")):
            folder = Path(snapshot_download(model, revision=revision, allow_patterns=[*FILES, *ONNX]))
    except Exception as error:
        raise TouchstoneError(f"{model} could not be fetched: {_describe_failure(error)}") from error
    finally:
        constants.HF_HUB_OFFLINE = offline
        os.environ["HF_HUB_OFFLINE"] = "1"
    return folder


def _describe_failure(error: Exception) -> str:
    kinds = {cls.__name__ for cls in type(error).__mro__}
    if kinds & {"GatedRepoError"}:
        return "its owners want you to accept their terms at the hub first, and HF_TOKEN to say who you are"
    if kinds & {"RepositoryNotFoundError", "RevisionNotFoundError"}:
        return "the hub has no such model, or not for everybody (HF_TOKEN says who you are)"
    if isinstance(error, OSError) and error.errno is not None:
        return f"{error.strerror} ({error.filename})" if error.filename else str(error.strerror)
    return (
        f"the model hub does not answer ({type(error).__name__}); fetch it on a machine with a network and copy the "
        "directory here, or name a directory that holds a model"
    )
