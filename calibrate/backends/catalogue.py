"""The catalogue of groundedness models: how each is fetched, read and served, so that its name is the only setting."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from calibrate.backends import weights

FILE = Path(__file__).parent / "files" / "catalogue.toml"
UNPINNED = "main"

Adapter = Literal["grounded", "grounded_spans", "judge_template", "http"]


@dataclass(frozen=True, slots=True)
class CatalogueEntry:
    """A model, as its authors publish it.

    `adapter` is the detector that asks it. `hub` is its id at the model hub ("" for none) and `revision` what is
    fetched there. `parameters` are millions, `window` tokens. `template` is the layout of its input, or the file of a
    judge's messages. `labels` says which of its labels mean supported ("" where the labels' names or the layout do).
    `threshold` is the usual one, in the adapter's units. `published` is its figure in percent, or the lowest and
    highest of several, by `metric`; `source` says where. `commercial` is False where the licence, or that of a
    published copy, forbids commercial use.
    """

    name: str
    adapter: Adapter
    licence: str
    parameters: int
    window: int
    threshold: float
    metric: str
    published: tuple[float, ...]
    source: str
    hub: str = ""
    revision: str = UNPINNED
    template: str = ""
    labels: str = ""
    commercial: bool = True

    @property
    def is_pinned(self) -> bool:
        """Whether the same files are fetched every time."""
        return self.revision != UNPINNED

    @property
    def is_pullable(self) -> bool:
        """Whether its files are loaded here; other models are served elsewhere and asked."""
        return bool(self.hub) and self.adapter in ("grounded", "grounded_spans")

    def directory(self) -> Path | None:
        """Where its files are, None if they are not here or not loaded here."""
        return weights.directory(self.hub, self.revision) if self.is_pullable else None


def entry(name: str) -> CatalogueEntry | None:
    """Get a model by its name in the catalogue; None for another name."""
    return _read().get(name.strip().lower())


def entries() -> list[CatalogueEntry]:
    """List all models in the catalogue's order."""
    return list(_read().values())


@cache
def _read() -> Mapping[str, CatalogueEntry]:
    document: dict[str, dict[str, Any]] = tomllib.loads(FILE.read_text(encoding="utf-8"))
    models = {
        name: CatalogueEntry(name=name, **(fields | {"published": tuple(fields["published"])}))
        for name, fields in document.items()
    }
    return MappingProxyType(models)
