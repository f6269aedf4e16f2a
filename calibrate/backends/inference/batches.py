"""Batches of encoded texts: which go together, and the arrays that a network takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from calibrate.backends import device
from calibrate.backends.weights import threads

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BATCH_TOKENS = 1024


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
