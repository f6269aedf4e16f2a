"""The models behind the detectors: which there are, whether each is here, how to get it, whether it is what it was."""

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
    """A model as detectors would use it with their default parameters.

    `how` says how to get one that is missing; `pullable`, that `models pull` does. `size` is in bytes, of the weights.
    `used_by` are detectors by name.
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
    """One file of a model: its SHA-256, the one it should have (None where nobody published one), and whether they are
    the same (None where that cannot be told)."""

    model: str
    file: Path
    sha256: str
    intact: bool | None


class _Backend(Protocol):
    model: str

    def unavailable(self) -> str | None: ...

    def revision(self) -> str: ...


def list_models() -> list[Model]:
    """One model of each kind: what detectors use unless they are told otherwise. Loads and fetches nothing."""
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
    """Reads the files of every model that is here. The packaged model has a published digest; in the hub's cache every
    file is named by its digest; a directory of yours has none, and only says what it is."""
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
    """Fetches a model: `nli` and `embedder` mean the ones detectors use, anything else is a hub id. Raises BadInput for
    what cannot be fetched, saying how to get it, and TouchstoneError when fetching fails."""
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
