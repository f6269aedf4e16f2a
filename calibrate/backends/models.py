"""List the models behind the detectors, download missing ones, and verify the files of installed ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, get_args

from calibrate import registry
from calibrate.backends import catalogue, hub, weights
from calibrate.backends.chat import chat
from calibrate.backends.embedding.model import PACKAGED, PACKAGED_SHA256, Embedder, embedder
from calibrate.backends.grounding.choice import Wanted, grounder, span_finder
from calibrate.backends.inference import Classifier, files
from calibrate.backends.inference.export import Difference
from calibrate.backends.nli.model import nli
from calibrate.detectors.base import Detector
from calibrate.errors import BadInput, TouchstoneError

Kind = Literal["embedder", "nli", "grounded", "grounded_spans", "chat"]
Status = Literal["ready", "missing"]
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True, slots=True)
class Model:
    """A model that detectors use with their default parameters.

    `how` says how to get a missing model; `pullable`: `models pull` can download it. `size` is that of the weights, in
    bytes. `used_by` are detectors by name. `onnx` is the ONNX file that TOUCHSTONE_INFERENCE has it run on, which is
    made on first use; None where its own files are used. `moved` is how far its probabilities are from float32.
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
    onnx: Path | None = None
    moved: Difference | None = None


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
    of_kind: Mapping[Kind, Callable[[], _Backend]] = {
        "embedder": embedder,
        "nli": nli,
        "grounded": lambda: grounder(Wanted()),
        "grounded_spans": lambda: span_finder(Wanted(), "en"),
        "chat": chat,
    }
    return of_kind[kind]()


def _describe_model(kind: Kind, detectors: Sequence[Detector]) -> Model:
    backend = _backend_of(kind)
    why = backend.unavailable()
    folder = backend.directory() if isinstance(backend, (Embedder, Classifier)) else None
    status: Status = "ready" if why is None else "missing"
    pullable = why is not None and folder is None and kind == "nli" and hub.is_id(backend.model)
    revision = backend.revision()
    used_by = tuple(detector.name for detector in detectors if revision in detector.revision().split("+"))
    size = sum(path.stat().st_size for path in _weights(folder)) if folder else None
    name = backend.model or "(none set)"
    exported = backend.exported() if isinstance(backend, Classifier) else None
    return Model(
        kind, name, status, why, size, revision if why is None else None, folder, used_by, pullable,
        exported.path if exported else None, exported.difference() if exported else None,
    )  # fmt: skip


def _weights(folder: Path | None) -> list[Path]:
    return files.weights(folder) if folder else []


def verify() -> list[Check]:
    """Read the files of every installed model and check their digests.

    The packaged model has a published digest, the hub's cache names every file by its digest, and an exported ONNX file
    is listed with the digest that it was made with. Files in a directory of the team's own have no expected digest.
    """
    checks: list[Check] = []
    for kind in KINDS:
        backend = _backend_of(kind)
        if not isinstance(backend, (Embedder, Classifier)) or (folder := backend.directory()) is None:
            continue
        for path in sorted({*_weights(folder), *(path for path in folder.glob("*.json"))}):
            digest = weights.digest(path.resolve())
            intact = hub.is_intact(path)
            if backend.model == PACKAGED and path.name == "model.safetensors":
                intact = digest == PACKAGED_SHA256
            checks.append(Check(backend.model, path, digest, intact))
        if isinstance(backend, Classifier) and (exported := backend.exported()) is not None:
            checks += [
                Check(backend.model, path, weights.digest(path), weights.digest(path) == expected)
                for path, expected in exported.digests().items()
                if path.is_file()
            ]
    return checks


def pull(name: str) -> Model | Path:
    """Download a model: `nli` and `embedder` mean the ones that detectors use, a name of the catalogue that model, and
    anything else is a hub id.

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
    if (listed := catalogue.entry(name)) is not None:
        if not listed.is_pullable:
            raise BadInput(
                f"{listed.name} is not loaded here but served elsewhere and asked by the detector {listed.adapter}; "
                "`python -m calibrate models catalogue` says how"
            )
        return hub.fetch(listed.hub, listed.revision)
    if name.startswith(("/", ".", "~")):
        folder = (
            "a directory is fetched already" if Path(name).expanduser().is_dir() else f"there is no directory {name}"
        )
        raise BadInput(f"{folder}: a detector takes one as it is, by `--param model=DIRECTORY` or in its setting")
    if not hub.is_id(name):
        raise BadInput(
            f"no model {name!r}; there are nli, embedder, the names of `models catalogue`, and hub ids like "
            "organisation/name"
        )
    return hub.fetch(name)
