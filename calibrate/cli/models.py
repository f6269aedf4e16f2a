"""`models`: list the models behind detectors and those of the catalogue, fetch them, verify them."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from calibrate.backends import catalogue
from calibrate.backends import models as backend
from calibrate.cli import Answer
from calibrate.cli.output import table
from calibrate.errors import BadInput
from calibrate.report import numbers
from calibrate.report.sentences.detection import catalogue as sentences


@dataclass(frozen=True, slots=True)
class ModelDocument:
    """A model and whether it is here; `how` says how to get a missing one, `bytes` is the size of its weights;
    `onnx` is the ONNX file that TOUCHSTONE_INFERENCE has it run on, which is made on first use; `onnx_largest_move` and
    `onnx_mean_move` are how far its probabilities were from float32 then."""

    kind: str
    model: str
    status: str
    how: str | None
    bytes: int | None
    revision: str | None
    directory: Path | None
    onnx: Path | None
    onnx_largest_move: float | None
    onnx_mean_move: float | None
    used_by: Sequence[str]


@dataclass(frozen=True, slots=True)
class ModelsDocument:
    models: Sequence[ModelDocument]


@dataclass(frozen=True, slots=True)
class CatalogueDocument:
    """A model of the catalogue; `directory` where its files are here, `published` in percent."""

    name: str
    adapter: str
    hub: str
    revision: str
    pinned: bool
    licence: str
    commercial: bool
    parameters: int
    window: int
    labels: str
    template: str
    threshold: float
    metric: str
    published: Sequence[float]
    source: str
    directory: Path | None
    how: str


@dataclass(frozen=True, slots=True)
class CatalogueListDocument:
    models: Sequence[CatalogueDocument]


@dataclass(frozen=True, slots=True)
class CheckedFile:
    """A file with its digest; `intact` is None where nobody published a digest to compare with."""

    model: str
    file: Path
    sha256: str
    intact: bool | None


@dataclass(frozen=True, slots=True)
class VerifyDocument:
    files: Sequence[CheckedFile]
    differing: Sequence[Path]


@dataclass(frozen=True)
class PulledDocument:
    model: str
    directory: Path | None


@dataclass(frozen=True)
class PulledModel(PulledDocument):
    revision: str | None


def run(args: Namespace) -> Answer:
    if args.name is not None and args.action not in ("pull", "catalogue"):
        raise BadInput(f"`models {args.action}` takes no name; it is about all models")
    if args.action == "verify":
        return _verify()
    if args.action == "catalogue":
        return _catalogue() if args.name is None else _catalogue_entry(args.name)
    return _list() if args.action == "list" else _pull(args.name)


def _list() -> Answer:
    models = [
        ModelDocument(
            kind=model.kind,
            model=model.name,
            status=model.status,
            how=model.how,
            bytes=model.size,
            revision=model.revision,
            directory=model.directory,
            onnx=model.onnx,
            onnx_largest_move=model.moved.largest if model.moved else None,
            onnx_mean_move=model.moved.mean if model.moved else None,
            used_by=model.used_by,
        )
        for model in backend.list_models()
    ]
    lines = [table([("for", "model", "status", "MB", "revision", "used by"), *map(_row, models)], right=(3,))]
    lines += [f"{model.kind}: in {model.directory}" for model in models if model.directory]
    lines += [f"{model.kind}: {_describe_onnx(model)}" for model in models if model.onnx]
    lines += [f"{model.kind}: {model.how}" for model in models if model.how]
    return Answer(ModelsDocument(models), "\n".join(lines))


def _document(model: catalogue.CatalogueEntry) -> CatalogueDocument:
    return CatalogueDocument(
        name=model.name,
        adapter=model.adapter,
        hub=model.hub,
        revision=model.revision,
        pinned=model.is_pinned,
        licence=model.licence,
        commercial=model.commercial,
        parameters=model.parameters * 1_000_000,
        window=model.window,
        labels=model.labels,
        template=model.template,
        threshold=model.threshold,
        metric=model.metric,
        published=model.published,
        source=model.source,
        directory=model.directory(),
        how=sentences.how_to_get(model),
    )


def _catalogue() -> Answer:
    models = catalogue.entries()
    lines = []
    for metric, members in sentences.by_metric(models).items():
        rows = [("name", "detector", "size", "window", "flags", "licence", "published", "here")]
        rows += [
            (model.name, model.adapter, f"{numbers.count(model.parameters)} M", numbers.count(model.window),
             sentences.threshold(model), sentences.licence(model), sentences.published(model),
             "yes" if model.directory() else "")
            for model in members
        ]  # fmt: skip
        lines += [metric, table(rows, right=(2, 3, 6)), ""]
    lines.append("figures are in percent, as published, not measured here; those of two metrics are not to be compared")
    lines.append("`models catalogue NAME` shows hub id, revision, layout, labels and source of one")
    lines += sentences.ways()
    if not any(model.is_pinned for model in models):
        lines.append("none is pinned to a commit: `pull` fetches what a model's owners published last")
    return Answer(CatalogueListDocument([_document(model) for model in models]), "\n".join(lines))


def _catalogue_entry(name: str) -> Answer:
    if (model := catalogue.entry(name)) is None:
        offered = ", ".join(each.name for each in catalogue.entries())
        raise BadInput(f"no model {name!r} in the catalogue; there are: {offered}")
    rows = [("name", model.name), *sentences.details(model).items(), ("here", str(model.directory() or "no"))]
    return Answer(CatalogueListDocument([_document(model)]), table(rows))


def _describe_onnx(model: ModelDocument) -> str:
    if model.onnx is None or not model.onnx.is_file():
        return f"will be exported to {model.onnx} on first use"
    if model.onnx_largest_move is None or model.onnx_mean_move is None:
        return f"runs on {model.onnx}"
    largest, mean = (numbers.number(move, 2) for move in (model.onnx_largest_move, model.onnx_mean_move))
    return f"runs on {model.onnx}: on sample inputs, probabilities moved by up to {largest}, {mean} on average"


def _row(model: ModelDocument) -> tuple[str, ...]:
    megabytes = "" if model.bytes is None else numbers.count(round(model.bytes / 1e6))
    return model.kind, model.model, model.status, megabytes, model.revision or "", ", ".join(model.used_by)


def _verify() -> Answer:
    files = [CheckedFile(check.model, check.file, check.sha256, check.intact) for check in backend.verify()]
    verdicts = {True: "intact", False: "DIFFERS", None: "nothing to compare with"}
    rows = [("model", "file", "sha256", "")]
    rows += [(check.model, check.file.name, check.sha256, verdicts[check.intact]) for check in files]
    differing = [check.file for check in files if check.intact is False]
    text = table(rows) if files else "no model is here"
    if differing:
        text += f"\n{len(differing)} of {len(files)} files are damaged: fetch that model again"
        text += "; an exported ONNX file is made again when it is used next"
    return Answer(VerifyDocument(files, differing), text, 1 if differing else 0)


def _pull(name: str | None) -> Answer:
    if name is None:
        raise BadInput("say which model: `models pull nli`, a name of `models catalogue`, or a hub id")
    pulled = backend.pull(name)
    if isinstance(pulled, Path):
        listed = catalogue.entry(name)
        following = "" if listed is None else f"\nscore with it: {sentences.run_command(listed)}"
        return Answer(PulledDocument(name, pulled), f"{name} is in {pulled}{following}")
    place = f" in {pulled.directory}" if pulled.directory else ""
    return Answer(PulledModel(pulled.name, pulled.directory, pulled.revision), f"{pulled.name} is ready{place}")
