"""Read an NLI model's files: the meaning of its labels, its tokenizer, and its network by PyTorch or ONNX Runtime."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibrate import settings
from calibrate.backends import device
from calibrate.backends.weights import threads
from calibrate.errors import BadInput, Unavailable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAX_TOKENS = 1024  # tokens; attention over more costs more than two windows, and a verdict over pages says little
DEFAULT_LIMIT = 512
BATCH_TOKENS = 1024
_CUDA = "CUDAExecutionProvider"
# Position embeddings of these start behind the padding's: two of 514 are not for tokens.
_OFFSET_POSITIONS = frozenset(("camembert", "data2vec-text", "longformer", "mpnet", "roberta", "xlm-roberta"))
_MEANINGS = {
    "entailment": "entailment",
    "entail": "entailment",
    "entails": "entailment",
    "neutral": "neutral",
    "contradiction": "contradiction",
    "contradict": "contradiction",
    "contradicts": "contradiction",
    "notentailment": "rest",
    "nonentailment": "rest",
}

Inputs = Mapping[str, "NDArray[np.int64]"]
Forward = Callable[[Inputs], "NDArray[np.float32]"]


@dataclass(frozen=True, slots=True)
class Network:
    """A loaded model: `infer` maps padded inputs to logits. On processors several threads may call it at once."""

    infer: Forward
    is_on_gpu: bool


@dataclass(frozen=True, slots=True)
class Labels:
    """The positions of the labels in the model's output.

    In a model with only entailment and not_entailment, `neutral` is the position of the latter, and `contradiction` is
    None.
    """

    entailment: int
    neutral: int | None
    contradiction: int | None

    @classmethod
    def from_config(cls, config: Mapping[str, Any], where: Path) -> Labels:
        """Read `id2label` of a model's configuration. Raises Unavailable, naming the labels, if they are not NLI's."""
        id2label = config.get("id2label") or {}
        names = {int(place): str(name) for place, name in id2label.items()} if isinstance(id2label, Mapping) else {}
        meanings = [_MEANINGS.get(re.sub(r"[\W_]", "", names[place].lower())) for place in sorted(names)]
        if sorted(names) != list(range(len(names))) or sorted(map(str, meanings)) not in _LABEL_SETS:
            listed = ", ".join(names[place] for place in sorted(names)) or "none"
            raise Unavailable(
                f"the labels of the NLI model in {where} are {listed}; they must be entailment, neutral and "
                "contradiction, or entailment and not_entailment, in any order: name them so under `id2label` in its "
                "config.json if you know which is which"
            )
        places = {meaning: place for place, meaning in enumerate(meanings)}
        return cls(places["entailment"], places.get("neutral", places.get("rest")), places.get("contradiction"))

    def columns(self, probabilities: NDArray[np.float32]) -> NDArray[np.float32]:
        """Reorder columns to entailment, neutral, contradiction. A label that the model lacks gets 0."""
        import numpy as np

        places = (self.entailment, self.neutral, self.contradiction)
        absent = np.zeros(len(probabilities), dtype=np.float32)
        return np.stack([absent if place is None else probabilities[:, place] for place in places], axis=1)


_LABEL_SETS = (["contradiction", "entailment", "neutral"], ["entailment", "rest"], ["contradiction", "entailment"])


def configuration(folder: Path) -> dict[str, Any]:
    """Read the model's config.json. Raises Unavailable if that fails."""
    path = folder / "config.json"
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise Unavailable(f"{path} cannot be read: {error}; every NLI model has one beside its weights") from error
    if not isinstance(document, dict):
        raise Unavailable(f"{path} is not a JSON object; every NLI model has one beside its weights")
    return document


def weights(folder: Path) -> list[Path]:
    """List the files with the model's weights: PyTorch's if there are any, else ONNX."""
    for patterns in (("*.safetensors",), ("pytorch_model*.bin",), ("model.onnx*",), ("onnx/model.onnx*",)):
        if files := sorted(path for pattern in patterns for path in folder.glob(pattern)):
            return files
    return []


def is_onnx(files: list[Path]) -> bool:
    return any(path.suffix == ".onnx" for path in files)


def limit(config: Mapping[str, Any], tokenizer_limit: int) -> int:
    """The most tokens that the model reads at once, special ones included."""
    positions = config.get("max_position_embeddings")
    most = int(positions) if isinstance(positions, int) and positions > 0 else DEFAULT_LIMIT
    if config.get("model_type") in _OFFSET_POSITIONS:
        most -= int(config.get("pad_token_id") or 0) + 1
    return min(most, tokenizer_limit, MAX_TOKENS)


def load_tokenizer(folder: Path) -> Any:
    """Load the model's tokenizer. Raises Unavailable if that fails, or if it has no character offsets."""
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
    except Exception as error:
        raise Unavailable(f"the tokenizer in {folder} cannot be loaded: {_shorten(error)}") from error
    if not tokenizer.is_fast:
        raise Unavailable(f"the tokenizer in {folder} gives no character offsets; it needs a tokenizer.json")
    return tokenizer


def load_network(folder: Path) -> Network:
    """Load the model onto the device. Raises Unavailable if that fails, and BadInput if the device is not there."""
    try:
        return _load_onnx(folder) if is_onnx(weights(folder)) else _load_torch(folder)
    except (Unavailable, BadInput):
        raise
    except Exception as error:
        raise Unavailable(f"the NLI model in {folder} cannot be loaded: {_shorten(error)}") from error


def _load_torch(folder: Path) -> Network:
    import torch
    from transformers import AutoModelForSequenceClassification
    from transformers.utils import logging

    logging.disable_progress_bar()  # type: ignore[no-untyped-call]  # it would be drawn over ours
    torch.set_num_threads(1)  # see device.run_batches
    chosen = device.resolve()
    network, report = AutoModelForSequenceClassification.from_pretrained(
        str(folder), local_files_only=True, dtype=torch.float32, output_loading_info=True
    )
    if missing := sorted(report["missing_keys"]):
        # transformers would fill these with random numbers and score with them.
        raise Unavailable(
            f"the weights in {folder} lack {missing[0]}: this is not a trained classifier; take a model that was "
            "fine-tuned for NLI"
        )
    network = chosen.place(network)

    def forward(inputs: Inputs) -> NDArray[np.float32]:
        with torch.inference_mode():
            tensors = chosen.move({name: torch.from_numpy(array) for name, array in inputs.items()})
            rows: NDArray[np.float32] = network(**tensors).logits.float().cpu().numpy()
        return rows

    return Network(forward, chosen.is_gpu)


def _load_onnx(folder: Path) -> Network:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1  # see device.run_batches
    path = next(path for path in weights(folder) if path.suffix == ".onnx")
    providers: list[Any] = ["CPUExecutionProvider"]
    if settings.devices().device in ("auto", "cuda") and _CUDA in onnxruntime.get_available_providers():
        providers.insert(0, (_CUDA, {"use_tf32": "0"}))  # TF32 would move scores by as much as half precision does
    session = onnxruntime.InferenceSession(str(path), options, providers=providers)
    names = [tensor.name for tensor in session.get_inputs()]

    def forward(inputs: Inputs) -> NDArray[np.float32]:
        import numpy as np

        missing = [name for name in names if name not in inputs]
        if missing:
            raise Unavailable(f"{path} asks for the input {missing[0]!r}, which its tokenizer does not make")
        return np.asarray(session.run(None, {name: inputs[name] for name in names})[0], dtype=np.float32)

    return Network(forward, session.get_providers()[0] == _CUDA)  # it falls back where no GPU can be used


def _shorten(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"


def split_into_batches(order: Sequence[int], lengths: Sequence[int], *, on_gpu: bool) -> list[list[int]]:
    """Split `order`, longest first, into consecutive batches within the token budget; on processors at least one per
    thread."""
    budget = device.GPU_BATCH_TOKENS if on_gpu else min(BATCH_TOKENS, -(-sum(lengths) // threads()))
    runs: list[list[int]] = []
    for i in order:
        if not runs or (len(runs[-1]) + 1) * lengths[runs[-1][0]] > budget:
            runs.append([])
        runs[-1].append(i)
    return runs


def pad_inputs(inputs: Sequence[dict[str, list[int]]], pad: int) -> dict[str, NDArray[np.int64]]:
    """Stack inputs into one array per tensor of the model; shorter inputs are padded where the attention mask is 0."""
    import numpy as np

    longest = max(len(item["input_ids"]) for item in inputs)
    arrays = {}
    for name in inputs[0]:
        rows = np.full((len(inputs), longest), pad if name == "input_ids" else 0, dtype=np.int64)
        for row, item in zip(rows, inputs, strict=True):
            row[: len(item[name])] = item[name]
        arrays[name] = rows
    return arrays
