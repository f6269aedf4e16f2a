"""List the models behind the detectors, download missing ones, and verify the files of installed ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from calibrate import registry
from calibrate.backends import hub, weights
from calibrate.backends.chat import chat
from calibrate.backends.embedding.model import PACKAGED, PACKAGED_SHA256, Embedder, embedder
from calibrate.backends.nli import network
from calibrate.backends.nli.model import Nli, nli
from calibrate.detectors.base import Detector
from calibrate.errors import BadInput, TouchstoneError

Kind = Literal["embedder", "nli", "chat"]
Status = Literal["ready", "missing"]
KINDS: tuple[Kind, ...] = ("embedder", "nli", "chat")


@dataclass(frozen=True, slots=True)
class Model:
    """A model that detectors use with their default parameters.

    `how` says how to get a missing model; `pullable`: `models pull` can download it. `size` is that of the weights, in
    bytes. `used_by` are detectors by name.
    """

    kind: Kind
    name: str
    status: Status
    how: str | None
    size: int | None
    revision: str | None
    directory: Path | None
    used_by: tuple[str, ...]
    pullable: bool = False


@dataclass(frozen=True, slots=True)
class Check:
    """One file of a model with its SHA-256. `intact`: whether that is the expected one; None if none is known."""

    model: str
    file: Path
    sha256: str
    intact: bool | None


class _Backend(Protocol):
    model: str

    def unavailable(self) -> str | None: ...

    def revision(self) -> str: ...


def list_models() -> list[Model]:
    """List one model of each kind: the one that detectors use by default. Loads and downloads nothing."""
    detectors = [registry.make(name) for name in registry.names()]
    return [_describe_model(kind, detectors) for kind in KINDS]


def _backend_of(kind: Kind) -> _Backend:
    return embedder() if kind == "embedder" else nli() if kind == "nli" else chat()


def _describe_model(kind: Kind, detectors: Sequence[Detector]) -> Model:
    backend = _backend_of(kind)
    why = backend.unavailable()
    folder = backend.directory() if isinstance(backend, (Embedder, Nli)) else None
    status: Status = "ready" if why is None else "missing"
    pullable = why is not None and folder is None and kind == "nli" and hub.is_id(backend.model)
    revision = backend.revision()
    used_by = tuple(detector.name for detector in detectors if revision in detector.revision().split("+"))
    size = sum(path.stat().st_size for path in _weights(folder)) if folder else None
    name = backend.model or "(none set)"
    return Model(kind, name, status, why, size, revision if why is None else None, folder, used_by, pullable)


def _weights(folder: Path | None) -> list[Path]:
    return network.weights(folder) if folder else []


def verify() -> list[Check]:
    """Read the files of every installed model and check their digests.

    The packaged model has a published digest, and the hub's cache names every file by its digest. Files in a directory
    of the team's own have no expected digest.
    """
    checks: list[Check] = []
    for kind in KINDS:
        backend = _backend_of(kind)
        if not isinstance(backend, (Embedder, Nli)) or (folder := backend.directory()) is None:
            continue
        for path in sorted({*_weights(folder), *(path for path in folder.glob("*.json"))}):
            digest = weights.digest(path.resolve())
            intact = hub.is_intact(path)
            if backend.model == PACKAGED and path.name == "model.safetensors":
                intact = digest == PACKAGED_SHA256
            checks.append(Check(backend.model, path, digest, intact))
    return checks


def pull(name: str) -> Model | Path:
    """Download a model: `nli` and `embedder` mean the ones that detectors use, anything else is a hub id.

    Raises BadInput, with the remedy, for what cannot be downloaded, and TouchstoneError if the download fails.
    """
    if name in KINDS:
        kind = next(model for model in KINDS if model == name)
        before = next(model for model in list_models() if model.kind == kind)
        if before.status == "ready":
            return before
        if not before.pullable:
            raise BadInput(before.how or f"{name} cannot be fetched")
        hub.fetch(before.name)
        after = next(model for model in list_models() if model.kind == kind)
        if after.status != "ready":
            raise TouchstoneError(f"{before.name} was fetched and still cannot be used: {after.how}")
        return after
    if not hub.is_id(name):
        raise BadInput(f"no model {name!r}; there are nli, embedder, and hub ids like organisation/name")
    return hub.fetch(name)
