"""What groundedness models are: named by a setting, of the task that is wanted, and of an architecture that
`transformers` has itself: code that a repository brings is never run here."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from calibrate.backends import catalogue

HHEM = "HHEMv2Config"  # the model_type of HHEM-2.1, whose architecture `hhem` has

PAIR_VARIABLE = "TOUCHSTONE_GROUNDED_MODEL"
SPAN_VARIABLE = "TOUCHSTONE_SPANS_MODEL"


def explain_missing(model: str, kind: str, variable: str, example: str) -> str:
    """Say that no model is set, or that the one that is set is not here, and the remedy."""
    if not model:
        return (
            f"no {kind} is set; set the parameter `model` or {variable} to {example}: a name of "
            "`python -m calibrate models catalogue`, a hub id fetched with `models pull`, or a directory"
        )
    if (listed := catalogue.entry(model)) is not None and not listed.is_pullable:
        return (
            f"the catalogue's {model!r} is asked by the detector {listed.adapter}, and is no {kind} that is loaded here"
        )
    return (
        f"no {kind} {model!r} here; fetch it with `python -m calibrate models pull {model}`, or name a directory that "
        "holds one (config.json, tokenizer.json, and model.safetensors or model.onnx)"
    )


def explain_task(folder: Path, config: Mapping[str, Any], suffixes: Sequence[str], wanted: str) -> str | None:
    """Say that a network is of another task, which would load all the same and mean nothing; None if it is of this one.

    `suffixes` end the names of the classes that are of this task; a configuration without classes passes.
    """
    classes = config.get("architectures")
    names = [str(name) for name in classes] if isinstance(classes, list) else []
    if not names or any(name.endswith(tuple(suffixes)) for name in names):
        return None
    return f"the model in {folder} is a {names[0]}, and {wanted} is wanted here; take one that was trained as such"


def explain_code(folder: Path, config: Mapping[str, Any]) -> str | None:
    """Say that a model brings code of its own, and the remedy; None if it needs none."""
    kind = str(config.get("model_type") or "")
    if kind == HHEM or _is_of_transformers(kind):
        return None
    if config.get("auto_map") or _reads_code(folder / "tokenizer_config.json"):
        return (
            f"the model in {folder} is of the type {kind!r} and brings code of its own, which is never run here; take "
            "a model whose architecture is part of transformers, or serve it and attach it by HTTP"
        )
    return f"{folder / 'config.json'} gives the model_type {kind!r}, which this version of transformers does not have"


def _reads_code(path: Path) -> bool:
    try:
        return bool(json.loads(path.read_text(encoding="utf-8")).get("auto_map"))
    except (OSError, ValueError, AttributeError):
        return False


def _is_of_transformers(kind: str) -> bool:
    """Tell whether `transformers` has this architecture, without importing it."""
    spec = importlib.util.find_spec("transformers")
    if spec is None or spec.origin is None or not kind.replace("-", "_").isidentifier():
        return spec is None  # a missing package is reported as such
    return (Path(spec.origin).parent / "models" / kind.replace("-", "_")).is_dir()
