"""Where models compute, the processor or a GPU, and in which precision; imports torch only where a GPU may be used."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from calibrate import settings
from calibrate.backends import weights
from calibrate.errors import BadInput, TouchstoneError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

GPU_BATCH_TOKENS = 16_384
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Device:
    """A device by torch's name. `is_half`: models compute in float16 there, else in float32."""

    name: str
    is_gpu: bool = False
    is_half: bool = False

    def place(self, network: Any) -> Any:
        """Move a torch network here, in this device's precision."""
        network = network.to(self.name)
        return (network.half() if self.is_half else network.float()).eval()

    def move(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Move the tensors among a network's inputs here."""
        # Not to mps, where torch reads a source that was freed meanwhile (pytorch issue 189690).
        without_waiting = self.name == "cuda"
        return {
            name: value.to(self.name, non_blocking=without_waiting) if hasattr(value, "to") else value
            for name, value in inputs.items()
        }


def resolve() -> Device:
    """Choose the device: that of TOUCHSTONE_DEVICE, else CUDA, else mps, else the processor. Imports torch.

    Raises BadInput for a device that torch does not see, and for half precision without a GPU.
    """
    configured = settings.devices()
    if configured.device == "cpu":
        return Device("cpu")
    import torch

    is_there: dict[str, Callable[[], bool]] = {"cuda": torch.cuda.is_available, "mps": torch.backends.mps.is_available}
    if configured.device != "auto" and not is_there[configured.device]():
        raise BadInput(
            f"TOUCHSTONE_DEVICE is {configured.device!r}, and torch {torch.__version__} sees no such device; "
            f"{_REMEDIES[configured.device]}, or unset the variable to compute on what is there"
        )
    name = next((name for name in _candidates(configured.device) if is_there[name]()), "cpu")
    if name == "cpu" and configured.is_half:
        raise BadInput(
            f"TOUCHSTONE_PRECISION is 'half', which needs a GPU, and torch {torch.__version__} sees none; unset it to "
            "compute in full precision on the processor"
        )
    return Device(name, is_gpu=name != "cpu", is_half=configured.is_half)


_REMEDIES = {
    "cuda": "install NVIDIA's driver and a CUDA build of torch",
    "mps": "it takes a Mac with Apple silicon",
}


def _candidates(device: str) -> tuple[str, ...]:
    return ("cuda", "mps") if device == "auto" else (device,)


def problem(*, uses_torch: bool = True) -> str | None:
    """Say why models cannot run where the settings want them; None if they can.

    Imports torch only where the settings insist on a GPU, which the start of a program need not wait for otherwise.
    """
    try:
        configured = settings.devices()
        if uses_torch and (configured.device in ("cuda", "mps") or configured.is_half):
            # torch then counts GPUs without opening one, which would leave those without that this process forks.
            os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")
            resolve()
    except BadInput as error:
        return str(error)
    return None


def revision_suffix() -> str:
    """What precision adds to the revision of a model: nothing in full, whose scores are equal on every device.

    Imports nothing, and never raises: `problem` reports what is wrong with the settings.
    """
    try:
        return "-fp16" if settings.devices().is_half else ""
    except BadInput:
        return ""


def run_batches(
    forward: Callable[[list[int]], Result], batches: Sequence[list[int]], *, on_gpu: bool
) -> Iterator[tuple[list[int], Result]]:
    """Run batches of positions: yields each with its result.

    A GPU takes one batch at a time, in halves where its memory is too small. On processors several run at once on one
    thread each: several threads inside one small batch would wait for each other at every layer, and on a busy machine
    for most of the time.
    """
    if on_gpu:
        for batch in batches:
            yield from _run_in_parts(forward, batch)
        return
    with ThreadPoolExecutor(max_workers=max(1, min(weights.threads(), len(batches)))) as pool:
        yield from zip(batches, pool.map(forward, batches), strict=True)


_OUT_OF_MEMORY = ("out of memory", "Failed to allocate memory")  # torch's words, and those of ONNX Runtime


def _run_in_parts(forward: Callable[[list[int]], Result], batch: list[int]) -> Iterator[tuple[list[int], Result]]:
    try:
        result = forward(batch)
    except Exception as error:
        if len(batch) == 1 or not any(words in str(error) for words in _OUT_OF_MEMORY):
            raise
    else:
        yield batch, result
        return
    middle = len(batch) // 2
    for part in (batch[:middle], batch[middle:]):
        yield from _run_in_parts(forward, part)


def require_finite(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return a network's output. Raises TouchstoneError where it overflowed, as it may in half precision."""
    import numpy as np

    if not np.isfinite(rows).all():
        raise TouchstoneError(
            "the model's output is not finite: where TOUCHSTONE_PRECISION is 'half', unset it for this model; else its "
            "weights are broken"
        )
    return rows
