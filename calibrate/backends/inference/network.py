"""Run a model's network, by PyTorch or ONNX Runtime: padded inputs in, logits out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from calibrate import settings
from calibrate.backends import device
from calibrate.errors import Unavailable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Task = Literal["sequence-classification", "token-classification", "first-token"]
"""What a network's logits are about, and their shape: the whole input (rows, labels), each of its tokens (rows, tokens,
labels), or the first token that a sequence-to-sequence model would write (rows, vocabulary)."""

_LOADERS: Mapping[Task, str] = {
    "sequence-classification": "AutoModelForSequenceClassification",
    "token-classification": "AutoModelForTokenClassification",
    "first-token": "AutoModelForSeq2SeqLM",
}
_CUDA = "CUDAExecutionProvider"

Inputs = Mapping[str, "NDArray[np.int64]"]
Forward = Callable[[Inputs], "NDArray[np.float32]"]
Compute = Callable[[Any, Mapping[str, Any]], Any]
"""Computes logits with a torch module from input tensors."""


@dataclass(frozen=True, slots=True)
class Network:
    """A loaded model: `infer` maps padded inputs to logits. On processors several threads may call it at once."""

    infer: Forward
    is_on_gpu: bool


def load_module(folder: Path, task: Task) -> Any:
    """Load the model's torch module, on the processor. Raises Unavailable if weights are missing. Runs no code of the
    model's own."""
    import torch
    import transformers
    from transformers.utils import logging

    logging.disable_progress_bar()  # type: ignore[no-untyped-call]  # it would be drawn over ours
    module, report = getattr(transformers, _LOADERS[task]).from_pretrained(
        str(folder), local_files_only=True, use_safetensors=True, dtype=torch.float32, output_loading_info=True
    )
    if missing := sorted(report["missing_keys"]):
        # transformers would fill these with random numbers and score with them.
        raise Unavailable(
            f"the weights in {folder} lack {missing[0]}: this is not a trained classifier; take a model that was "
            "fine-tuned for the task"
        )
    return module


def compute_logits(task: Task, module: Any, inputs: Mapping[str, Any]) -> Any:
    """Compute a task's logits with a module of `transformers`."""
    if task != "first-token":
        return module(**inputs).logits
    import torch

    first = torch.full_like(inputs["input_ids"][:, :1], module.config.decoder_start_token_id)
    return module(**inputs, decoder_input_ids=first).logits[:, 0]


def run_torch(module: Any, compute: Compute) -> Network:
    """Make a network of a torch module, on the device. Raises BadInput if the device is not there."""
    import torch

    torch.set_num_threads(1)  # see device.run_batches
    chosen = device.resolve()
    placed = chosen.place(module)

    def forward(inputs: Inputs) -> NDArray[np.float32]:
        with torch.inference_mode():
            tensors = chosen.move({name: torch.from_numpy(array) for name, array in inputs.items()})
            rows: NDArray[np.float32] = compute(placed, tensors).float().cpu().numpy()
        return rows

    return Network(forward, chosen.is_gpu)


def run_onnx(path: Path, *, may_use_gpu: bool = True) -> Network:
    """Make a network of an ONNX file, on the processor, or on CUDA where ONNX Runtime offers it."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1  # see device.run_batches
    providers: list[Any] = ["CPUExecutionProvider"]
    if may_use_gpu and settings.devices().device in ("auto", "cuda") and _CUDA in onnxruntime.get_available_providers():
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
