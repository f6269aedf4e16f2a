"""ONNX files of models, in the cache folder: exported once from torch, or quantised, and compared before use.

A file is kept under the digest of the weights that it was made from. It is made in a folder of its own, which is
renamed when it is whole; one that is damaged later is made again.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibrate.backends import cache, hub, weights
from calibrate.backends.inference import files
from calibrate.backends.inference.network import Compute, Inputs, run_onnx
from calibrate.errors import Unavailable
from calibrate.settings import Inference

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

VERSION = 1  # of the recipe, in every revision: raise it when the same weights come out with other scores
OPSET = 18
TOLERANCE = 2e-4  # most that a logit in float32 may differ from torch's; a probability then differs by 1e-4 at most
ROUNDING = 1e-5  # of the largest logit, which float32 may be off besides
INT8_LARGEST, INT8_MEAN = 0.15, 0.05  # most that a probability may move in 8-bit integers, and on average
_FLOAT = "set TOUCHSTONE_INFERENCE to onnx, which keeps float32"
MODEL = "model.onnx"
MANIFEST = "export.json"


@dataclass(frozen=True, slots=True)
class Difference:
    """How far the probabilities of an export are from those in float32 on sample inputs: at most, and on average."""

    largest: float
    mean: float


@dataclass(frozen=True, slots=True)
class Export:
    """The ONNX file of one model's weights, where it is or will be. `graph` names what computes the logits."""

    source: Path
    graph: str
    is_int8: bool

    @property
    def folder(self) -> Path:
        """The folder of the file, named by the digest of all that it is made from."""
        paths = [*files.weights(self.source), self.source / "config.json"]
        made_from = "".join(f"{path.name}:{hub.digest(path)};" for path in paths) + self.graph
        kind = "int8" if self.is_int8 else "fp32"
        return cache.folder() / "onnx" / f"{hashlib.sha256(made_from.encode()).hexdigest()[:16]}-{kind}-{VERSION}"

    @property
    def path(self) -> Path:
        return self.folder / MODEL

    @property
    def exists(self) -> bool:
        """Whether it is there; it may be damaged."""
        return (self.folder / MANIFEST).is_file()

    def digests(self) -> dict[Path, str]:
        """The digests that its files had when they were made; none where it is not there, or its list is damaged."""
        try:
            document = json.loads((self.folder / MANIFEST).read_text(encoding="utf-8"))
            return {self.folder / str(name): str(digest) for name, digest in document["files"].items()}
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return {}

    def difference(self) -> Difference | None:
        """How far it was from float32 when it was made; None where it is not there, or nobody compared it."""
        try:
            document = json.loads((self.folder / MANIFEST).read_text(encoding="utf-8"))["probability"]
            return Difference(float(document["largest"]), float(document["mean"]))
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def is_intact(self) -> bool:
        """Whether its files are those that were made, and were compared."""
        digests = self.digests()
        return (
            bool(digests)
            and self.difference() is not None
            and all(path.is_file() and weights.digest(path) == sha for path, sha in digests.items())
        )


def backend(source: Path, inference: Inference, graph: str) -> Export | None:
    """The export that this setting asks for; None where the files are used as they are."""
    if inference == "torch" or (inference == "onnx" and files.is_onnx(files.weights(source))):
        return None
    return Export(source, graph, inference == "onnx-int8")


def revision_suffix(export: Export | None) -> str:
    """What an export adds to the revision of a model: its scores are not those of the weights as they are."""
    if export is None:
        return ""
    return f"-onnx{VERSION}-int8" if export.is_int8 else f"-onnx{VERSION}"


def packages(export: Export | None, *, is_onnx: bool) -> tuple[str, ...]:
    """The packages that it takes to run a model: more where it has to be exported first."""
    if export is None:
        return ("transformers", "onnxruntime" if is_onnx else "torch")
    if export.exists:
        return ("transformers", "onnxruntime")
    return ("transformers", "onnxruntime", "onnx") if is_onnx else ("transformers", "torch", "onnxruntime", "onnx")


def prepare(
    export: Export, build: Callable[[], Any], compute: Compute, samples: Callable[[], Sequence[Inputs]]
) -> Path:
    """Make the ONNX file unless it is there and intact. Returns its path.

    `build` loads the torch module, `compute` computes its logits; `samples` are padded inputs, of different shapes, on
    which the file is compared. Raises Unavailable, with the remedy, where the model cannot be exported.
    """
    if export.is_intact():
        return export.path
    try:
        export.folder.parent.mkdir(parents=True, exist_ok=True)
        with _alone(export.folder.parent), tempfile.TemporaryDirectory(dir=export.folder.parent, prefix="tmp-") as name:
            if not export.is_intact():  # another process may have made it meanwhile
                target = Path(name) / "export"
                target.mkdir()
                _make(export, target, build, compute, samples())
                shutil.rmtree(export.folder, ignore_errors=True)
                target.rename(export.folder)
    except Unavailable:
        raise
    except OSError as error:
        raise Unavailable(
            f"the ONNX file of {export.source} cannot be written to {export.folder.parent}: "
            f"{error.strerror or error}; set TOUCHSTONE_CACHE to a folder with room, or unset TOUCHSTONE_INFERENCE to "
            "compute with torch"
        ) from error
    except Exception as error:
        raise Unavailable(
            f"the model in {export.source} cannot be exported to ONNX: {files.shorten(error)}; unset "
            "TOUCHSTONE_INFERENCE to compute with torch"
        ) from error
    return export.path


def _make(export: Export, target: Path, build: Callable[[], Any], compute: Compute, samples: Sequence[Inputs]) -> None:
    """Fill a folder with the ONNX file and its list of digests."""
    *shapes, _ = samples  # the last are many of one shape, for the rounding
    weight_files = files.weights(export.source)
    if not export.is_int8:
        difference = _export(export, target / MODEL, build, compute, shapes)
    else:
        with tempfile.TemporaryDirectory(dir=target.parent) as name:
            full = next((path for path in weight_files if path.suffix == ".onnx"), None)
            if full is None and (single := Export(export.source, export.graph, False)).is_intact():
                full = single.path
            if full is None:
                full = Path(name) / "full.onnx"
                _export(export, full, build, compute, shapes)
            difference = _quantise(export, full, target / MODEL, Path(name), samples)
    digests = {path.name: weights.digest(path) for path in sorted(target.iterdir())}
    manifest = {
        "version": VERSION, "source": str(export.source), "probability": asdict(difference), "files": digests
    }  # fmt: skip
    (target / MANIFEST).write_text(json.dumps(manifest, indent=1), encoding="utf-8")


def _export(
    export: Export, path: Path, build: Callable[[], Any], compute: Compute, samples: Sequence[Inputs]
) -> Difference:
    """Export in float32. Raises Unavailable where a logit differs too much."""
    import numpy as np
    import torch

    module = build().float().cpu().eval()
    names = list(samples[0])

    class Graph(torch.nn.Module):
        """The logits alone, from tensors by position, which is how the exporter names them."""

        def __init__(self) -> None:
            super().__init__()
            self.module = module

        def forward(self, *tensors: Any) -> Any:
            return compute(self.module, dict(zip(names, tensors, strict=True)))

    tensors = [{name: torch.from_numpy(array) for name, array in sample.items()} for sample in samples]
    with warnings.catch_warnings(), torch.inference_mode():
        warnings.simplefilter("ignore")  # what tracing may have fixed is found by the comparison below
        torch.onnx.export(
            Graph().eval(), tuple(tensors[0].values()), str(path), dynamo=False, input_names=names,
            output_names=["logits"], dynamic_axes={name: {0: "rows", 1: "tokens"} for name in names},
            opset_version=OPSET,
        )  # fmt: skip
        expected = [compute(module, inputs).float().numpy() for inputs in tensors]
    actual = _run(path, samples)
    for ours, theirs, sample in zip(actual, expected, samples, strict=True):
        tolerance = TOLERANCE + ROUNDING * float(abs(theirs).max())
        if ours.shape != theirs.shape or not np.allclose(ours, theirs, atol=tolerance, rtol=0):
            raise Unavailable(
                f"the model in {export.source} cannot be exported to ONNX: on an input of "
                f"{sample['input_ids'].shape[1]} tokens its logits differ from torch's by more than {tolerance:.1g}; "
                "unset TOUCHSTONE_INFERENCE to compute with torch"
            )
    return _compare(actual, expected, samples)


def _quantise(export: Export, source: Path, path: Path, scratch: Path, samples: Sequence[Inputs]) -> Difference:
    """Quantise weights to 8-bit integers, activations as they come. Raises Unavailable where probabilities move too
    far.

    Weights take 7 of the 8 bits: processors without VNNI overflow with 8, so one revision would have two scores.
    """
    import numpy as np
    from onnxruntime.quantization import QuantType, quantize_dynamic
    from onnxruntime.quantization.shape_inference import quant_pre_process

    prepared = scratch / "prepared.onnx"
    quant_pre_process(str(source), str(prepared), skip_optimization=True, skip_symbolic_shape=True)
    quantize_dynamic(str(prepared), str(path), weight_type=QuantType.QInt8, reduce_range=True)
    actual = _run(path, samples)
    if not all(np.isfinite(rows).all() for rows in actual):
        raise Unavailable(
            f"the model in {export.source} cannot be quantised: its logits are not finite in 8-bit integers; {_FLOAT}"
        )
    difference = _compare(actual, _run(source, samples), samples)
    if difference.largest > INT8_LARGEST or difference.mean > INT8_MEAN:
        raise Unavailable(
            f"the model in {export.source} does not bear 8-bit integers: on sample inputs its probabilities move by "
            f"up to {difference.largest:.2f}, and by {difference.mean:.2f} on average, and at most {INT8_LARGEST} and "
            f"{INT8_MEAN} are allowed; {_FLOAT}"
        )
    return difference


def _run(path: Path, samples: Sequence[Inputs]) -> list[NDArray[np.float32]]:
    network = run_onnx(path, may_use_gpu=False)
    return [network.infer(sample) for sample in samples]


def _compare(
    actual: Sequence[NDArray[np.float32]], expected: Sequence[NDArray[np.float32]], samples: Sequence[Inputs]
) -> Difference:
    """Compare probabilities: softmax over the last axis, a sigmoid of one logit. What is padding does not count."""
    import numpy as np

    moved = []
    for ours, theirs, sample in zip(actual, expected, samples, strict=True):
        off = np.abs(_probabilities(ours) - _probabilities(theirs)).max(axis=-1)
        moved.append(off[sample["attention_mask"] > 0] if off.ndim > 1 else off)
    all_moved = np.concatenate(moved)
    return Difference(float(all_moved.max()), float(all_moved.mean()))


def _probabilities(logits: NDArray[np.float32]) -> NDArray[np.float32]:
    import numpy as np

    if logits.shape[-1] == 1:
        logits = np.concatenate([logits, np.zeros_like(logits)], axis=-1)
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Wait until no other process exports: a model in memory twice may be once too often."""
    with (folder / "lock").open("w") as lock:
        if sys.platform != "win32":
            import fcntl

            fcntl.flock(lock, fcntl.LOCK_EX)
            for rest in folder.glob("tmp-*"):  # of a process that was killed
                shutil.rmtree(rest, ignore_errors=True)
        yield
