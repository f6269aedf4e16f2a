"""The model hub: fetching from it, which happens only when asked for, and what its cache says about its files."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

from calibrate.backends import weights
from calibrate.errors import BadInput, TouchstoneError

# What a model is run from. Other formats of the same weights (a hub repository often has five) stay where they are.
FILES = ("*.json", "*.txt", "*.model", "*.safetensors")
PICKLED = ("pytorch_model*.bin",)  # for repositories that have no safetensors
_REPOSITORY = re.compile(r"(?!\.)[\w.-]{1,96}/(?!\.)[\w.-]{1,96}", re.ASCII)
_BLOB = re.compile(r"[0-9a-f]{64}|[0-9a-f]{40}")


def digest(path: Path) -> str:
    """SHA-256 of a file. A large file in the hub's cache is named by it, which is taken at its word: `models verify`
    reads the file."""
    expected = named_digest(path)
    return expected if expected is not None and len(expected) == 64 else weights.digest(path)


def is_id(model: str) -> bool:
    """Whether it could be the name of a model at the hub: organisation/name."""
    return _REPOSITORY.fullmatch(model) is not None


def named_digest(path: Path) -> str | None:
    """The digest that the hub's cache gives a file as its name: SHA-256, or for small files git's SHA-1 of a blob."""
    real = path.resolve()
    return real.name if real.parent.name == "blobs" and _BLOB.fullmatch(real.name) else None


def is_intact(path: Path) -> bool | None:
    """Whether a file in the hub's cache is what its name says; None for a file that is not in the cache."""
    expected = named_digest(path)
    if expected is None:
        return None
    if len(expected) == 64:
        return weights.digest(path.resolve()) == expected
    content = path.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest() == expected


def fetch(model: str) -> Path:
    """Downloads a model into the hub's cache and returns its directory. Raises BadInput for what is no hub id, and
    TouchstoneError, with what to do instead, when the hub cannot be reached or does not have it."""
    if not is_id(model):
        raise BadInput(f"{model!r} is no hub id; one looks like organisation/name")
    os.environ["HF_HUB_OFFLINE"] = "0"  # this one time we were asked to
    os.environ.pop("TRANSFORMERS_OFFLINE", None)
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    from huggingface_hub import constants, snapshot_download

    offline, constants.HF_HUB_OFFLINE = constants.HF_HUB_OFFLINE, False  # it may have been imported before
    try:
        folder = Path(snapshot_download(model, allow_patterns=list(FILES)))
        if not any(folder.glob("*.safetensors")):
            folder = Path(snapshot_download(model, allow_patterns=[*FILES, *PICKLED]))
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
