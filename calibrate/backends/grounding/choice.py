"""Choose a groundedness model and how it is read: by a name of the catalogue, a hub id, a directory, or a variable."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from calibrate.backends import catalogue, hub, weights
from calibrate.backends.grounding.first_token import FirstTokenGrounder
from calibrate.backends.grounding.grounder import Grounder
from calibrate.backends.grounding.hhem import HhemGrounder
from calibrate.backends.grounding.labels import parse_map
from calibrate.backends.grounding.prompts import Language, Layout, Prompt
from calibrate.backends.grounding.spans import SpanFinder
from calibrate.backends.grounding.templates import TEMPLATES
from calibrate.backends.grounding.weights import HHEM, PAIR_VARIABLE, SPAN_VARIABLE
from calibrate.backends.inference import files
from calibrate.errors import Unavailable

DEFAULT = "default"
AUTO = "auto"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a detector's parameters ask for: a model, the layout of its inputs, a label map, the most tokens to read at
    once (0: as many as the model was made for)."""

    model: str = DEFAULT
    template: str = AUTO
    labels: str = ""
    window: int = 0


def grounder(wanted: Wanted) -> Grounder:
    """Get the process's model that judges pairs; another one once its files have changed."""
    resolved, name, commit = _resolve(wanted, PAIR_VARIABLE, "grounded")
    template = resolved.template if resolved.template != AUTO else _recognise(resolved.model)
    return _grounders(resolved, template, name, commit, _digest(resolved, commit))


def span_finder(wanted: Wanted, language: Language) -> SpanFinder:
    """Get the process's model that marks spans; another one once its files have changed."""
    resolved, name, commit = _resolve(wanted, SPAN_VARIABLE, "grounded_spans")
    layout: Layout = "pair" if resolved.template == "pair" else "lettucedetect"
    return _finders(resolved, layout, language, name, commit, _digest(resolved, commit))


def _digest(wanted: Wanted, commit: str) -> str:
    """The digest of a model's files: one that was loaded is used as long as they are the same."""
    folder = weights.directory(wanted.model, commit) if wanted.model else None
    return files.digest(folder) if folder else ""


def _resolve(wanted: Wanted, variable: str, adapter: catalogue.Adapter) -> tuple[Wanted, str, str]:
    """Fill in what the parameters leave open, and say what the team calls the model and at which commit it is read: a
    name (or a hub id) of the catalogue brings its hub id, layout, labels, window and commit."""
    name = wanted.model if wanted.model not in (DEFAULT, "") else os.environ.get(variable, "").strip()
    listed = catalogue.entry(name) or next((entry for entry in catalogue.entries() if name and entry.hub == name), None)
    if listed is None or listed.adapter != adapter or Path(name).expanduser().is_dir():
        return replace(wanted, model=name), name, hub.MAIN
    return (
        Wanted(
            listed.hub,
            listed.template if wanted.template in (AUTO, "") else wanted.template,
            wanted.labels or listed.labels,
            wanted.window or listed.window,
        ),
        listed.name,
        listed.revision,
    )


def _recognise(model: str) -> str:
    """Tell the layout from the kind of network where nobody named one."""
    folder = weights.directory(model) if model else None
    try:
        config: Mapping[str, object] = files.configuration(folder) if folder else {}
    except Unavailable:  # `unavailable` says so
        config = {}
    if config.get("model_type") == HHEM:
        return "hhem"
    architectures = config.get("architectures")
    names = architectures if isinstance(architectures, list) else []
    return "minicheck-t5" if any(str(name).endswith("ForConditionalGeneration") for name in names) else "pair"


@lru_cache(maxsize=4)
def _grounders(wanted: Wanted, template: str, name: str, commit: str, _digest: str) -> Grounder:
    kinds = {"hhem": HhemGrounder, "minicheck-t5": FirstTokenGrounder}
    kind = kinds.get(template, Grounder)
    return kind(wanted.model, TEMPLATES[template], parse_map(wanted.labels), wanted.window or None, name, commit)


@lru_cache(maxsize=4)
def _finders(wanted: Wanted, layout: Layout, language: Language, name: str, commit: str, _digest: str) -> SpanFinder:
    return SpanFinder(
        wanted.model, Prompt(layout, language), parse_map(wanted.labels), wanted.window or None, name, commit
    )
