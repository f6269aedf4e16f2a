"""Choose where a run's detectors execute: in this process, in worker processes, or on a Ray cluster."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from calibrate.backends.weights import threads
from calibrate.errors import BadInput

EngineName = Literal["auto", "local", "processes", "ray"]
PAYS_FROM = 4_000  # traces: below, starting worker processes costs more than they save


@dataclass(frozen=True, slots=True)
class EngineChoice:
    """`workers` None: one per processor. `address`: of the Ray cluster, "" for the one that RAY_ADDRESS names."""

    name: EngineName = "auto"
    workers: int | None = None
    address: str = ""

    def to_json(self) -> dict[str, Any]:
        """As a run's options keep it; empty for the default."""
        chosen = {"engine": self.name, "workers": self.workers, "address": self.address}
        return {key: value for key, value in chosen.items() if value not in ("auto", None, "")}

    @classmethod
    def from_json(cls, options: Mapping[str, Any]) -> EngineChoice:
        return cls(options.get("engine", "auto"), options.get("workers"), options.get("address", ""))

    @property
    def n_workers(self) -> int:
        return self.workers or threads()


def choose_engine(
    name: str | None = None,
    workers: int | None = None,
    address: str | None = None,
    *,
    environment: Mapping[str, str] = os.environ,
) -> EngineChoice:
    """Check a choice; what is None comes from TOUCHSTONE_ENGINE, TOUCHSTONE_WORKERS and RAY_ADDRESS.

    Raises BadInput for an engine that does not exist, or options that do not fit it.
    """
    if name is None:
        name = environment.get("TOUCHSTONE_ENGINE", "").strip().lower() or "auto"
    if name not in get_args(EngineName):
        raise BadInput(f"no engine {name!r}; there are: {', '.join(get_args(EngineName))}")
    if workers is None and (setting := environment.get("TOUCHSTONE_WORKERS", "").strip()):
        if not re.fullmatch("[0-9]{1,6}", setting):
            raise BadInput(f"TOUCHSTONE_WORKERS is {setting!r}; it is a whole number of worker processes, 1 or more")
        workers = int(setting)
    if workers is not None and not 1 <= workers <= 1024:
        raise BadInput(f"the workers cannot be {workers}; they are a whole number from 1 to 1024")
    if address and name != "ray":
        raise BadInput(f"an address is for `--engine ray`, and the engine is {name!r}")
    if name == "ray":
        address = address or environment.get("RAY_ADDRESS", "").strip()
        if not address:
            raise BadInput("say where the Ray cluster is: --address HOST:PORT, or RAY_ADDRESS (auto: this machine's)")
    return EngineChoice(name, workers, address or "")  # type: ignore[arg-type]  # checked above
