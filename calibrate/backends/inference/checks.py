"""Check a model's directory before anything is loaded: weights that run no code and are whole, and a tokenizer.

A pickle runs code when it is read, whatever its name; so only files that read as safetensors, and ONNX, are loaded.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from calibrate.backends.inference import files

VOCABULARIES = ("tokenizer.json", "*.model", "vocab.txt", "vocab.json", "*.tiktoken")
_REMEDY = "save them as model.safetensors (`save_pretrained` of transformers does)"
_MOST_HEADER = 100_000_000  # bytes, as the safetensors library has it


def explain_weights(folder: Path, config: Mapping[str, Any]) -> str | None:
    """Say why the weights of this directory are not loaded, and the remedy; None if they can be."""
    if named := config.get("transformers_weights"):
        return f"{folder / 'config.json'} names {named!r} as its weights; name them {files.SINGLE} and leave that out"
    if not (folder / files.SINGLE).is_file() and (why := explain_lacking(folder)) is not None:
        return why
    return next((why for path in files.weights(folder) if (why := _explain_header(path)) is not None), None)


def explain_tokenizer(folder: Path) -> str | None:
    """Say that a directory has no vocabulary: a tokenizer would be made up that knows no word."""
    if any(path.is_file() for pattern in VOCABULARIES for path in folder.glob(pattern)):
        return None
    return f"{folder} has no tokenizer.json; copy the tokenizer that the model was trained with there"


def explain_lacking(folder: Path) -> str | None:
    """Say why a directory without safetensors of the usual name is refused; None if it has ONNX instead."""
    if files.is_onnx(files.weights(folder)):
        return None
    if (index := folder / files.INDEX).is_file():
        return _explain_index(index)
    pickles = sorted(path.name for pattern in ("*.bin", "*.pt", "*.pth", "*.ckpt") for path in folder.glob(pattern))
    if pickles:
        return (
            f"{folder} has its weights in {pickles[0]}, a pickle, which runs code when it is read; {_REMEDY}, or put a "
            "model.onnx there"
        )
    return f"{folder} holds no weights: model.safetensors or model.onnx should be there"


def _explain_index(index: Path) -> str | None:
    """Say why the list of a model's shards is refused: each is a safetensors file beside it, and there."""
    try:
        shards = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return f"{index} cannot be read as a list of weights; copy the model there anew"
    for shard in sorted(map(str, shards)):
        if Path(shard).name != shard or not shard.endswith(".safetensors"):
            return (
                f"{index} names {shard!r}, which is no safetensors file beside it; weights in other files may run code "
                f"when they are read: {_REMEDY}"
            )
        if not (index.parent / shard).is_file():
            return f"{index} names {shard}, which is not there; copy the whole model"
    return None if shards else f"{index} names no weights; copy the model there anew"


def _explain_header(path: Path) -> str | None:
    if path.suffix != ".safetensors":
        return None
    status = path.stat()
    wrong = _find_damage(str(path), status.st_size, status.st_mtime_ns)
    return f"{path} {wrong}" if wrong else None


@lru_cache(maxsize=64)
def _find_damage(path: str, size: int, modified_ns: int) -> str | None:
    """Find out from its header whether a file is safetensors, and as long as the header says."""
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        header: Any = None
        if 0 < length <= min(size, _MOST_HEADER):
            try:
                header = json.loads(file.read(length))
            except ValueError:
                header = None
    if not isinstance(header, dict):
        return f"does not hold safetensors, whatever its name says; {_REMEDY}, or copy the model there anew"
    try:
        ends = [_end(tensor) for name, tensor in header.items() if name != "__metadata__"]
    except (TypeError, ValueError, KeyError, IndexError):
        return "has a damaged list of weights; copy the model there anew"
    if 8 + length + max(ends, default=0) != size:
        return f"is damaged: {size:,} bytes, and its list names {8 + length + max(ends, default=0):,}; copy it anew"
    return None


def _end(tensor: Mapping[str, Any]) -> int:
    return int(tensor["data_offsets"][1])
