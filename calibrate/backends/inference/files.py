"""Read a model's directory: its weights, configuration, the most tokens that it reads, and its tokenizer."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from calibrate.backends import hub
from calibrate.errors import Unavailable

SINGLE, INDEX = "model.safetensors", "model.safetensors.index.json"
MAX_TOKENS = 1024  # tokens; attention over more costs more than two windows, and a verdict over pages says little
DEFAULT_LIMIT = 512
# Position embeddings of these start behind the padding's: two of 514 are not for tokens.
_OFFSET_POSITIONS = frozenset(("camembert", "data2vec-text", "longformer", "mpnet", "roberta", "xlm-roberta"))


def weights(folder: Path) -> list[Path]:
    """List the files with the model's weights: safetensors if there are any, else ONNX."""
    for pattern in ("*.safetensors", "model.onnx*", "onnx/model.onnx*"):
        if paths := sorted(folder.glob(pattern)):
            return paths
    return []


def digest(folder: Path) -> str:
    """Compute the start of a digest of weights, configuration and tokenizer.

    Weights are read once, and not at all in the hub's cache, which names them by digest.
    """
    names = ("config.json", INDEX, "tokenizer*", "*.txt", "*.model")
    paths = sorted({*weights(folder), *(path for name in names for path in folder.glob(name))})
    digests = "".join(f"{path.name}:{hub.digest(path)};" for path in paths if path.is_file())
    return hashlib.sha256(digests.encode()).hexdigest()[:12]


def is_onnx(files: list[Path]) -> bool:
    """Tell whether these weights come as an ONNX graph."""
    return any(path.suffix == ".onnx" for path in files)


def configuration(folder: Path) -> dict[str, Any]:
    """Read the model's config.json. Raises Unavailable if that fails."""
    path = folder / "config.json"
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise Unavailable(f"{path} cannot be read: {error}; every model has one beside its weights") from error
    if not isinstance(document, dict):
        raise Unavailable(f"{path} is not a JSON object; every model has one beside its weights")
    return document


def limit(config: Mapping[str, Any], tokenizer_limit: int, *, most: int = MAX_TOKENS) -> int:
    """The most tokens that the model reads at once, special ones included; never more than `most`."""
    positions = config.get("max_position_embeddings")
    read = int(positions) if isinstance(positions, int) and positions > 0 else DEFAULT_LIMIT
    if config.get("model_type") in _OFFSET_POSITIONS:
        read -= int(config.get("pad_token_id") or 0) + 1
    return min(read, tokenizer_limit, most)


def load_tokenizer(folder: Path) -> Any:
    """Load the model's tokenizer. Raises Unavailable if that fails, or if it has no character offsets."""
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
    except Exception as error:
        raise Unavailable(f"the tokenizer in {folder} cannot be loaded: {shorten(error)}") from error
    if len(tokenizer) <= len(tokenizer.all_special_ids):  # transformers makes one up where files are missing
        raise Unavailable(
            f"the tokenizer in {folder} knows no word; copy the one that the model was trained with there"
        )
    if not tokenizer.is_fast:
        raise Unavailable(f"the tokenizer in {folder} gives no character offsets; it needs a tokenizer.json")
    return tokenizer


def shorten(error: Exception) -> str:
    """Shorten another library's error to a line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
