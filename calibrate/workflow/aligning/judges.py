"""Which judges can be aligned, and what one is aligned on: its prompt in use, its scores, labels in folds by source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from calibrate import registry
from calibrate.backends import files
from calibrate.detectors.base import Detector
from calibrate.detectors.shared.judging import ChatDetector
from calibrate.errors import BadInput
from calibrate.stats.fitting.folds import deal_folds
from calibrate.stats.intervals.bootstrap import Units
from calibrate.stats.sweep.design import Ints
from calibrate.workflow.detection import team_files
from calibrate.workflow.detection.detect import config_id
from calibrate.workflow.detection.detectors import prompt_of
from calibrate.workflow.evidence import loading
from calibrate.workflow.evidence.counted_labels import DEFINITE
from calibrate.workflow.evidence.evidence import Evidence
from db import Store
from db.scores import Row

FOLDS = 5  # one of them is what a prompt's examples come from


@dataclass(frozen=True)
class Judge:
    """A judge and what it is aligned on.

    `text` is its prompt in use, in team file `file`, at `version`. `data` are the labels that count, beside its scores
    under that prompt; `folds` deals them out, whole sources at a time. `aside` are labels that an earlier prompt has
    set aside: they count no more, and examples come from them first.
    """

    detector: Detector
    file: str
    text: str
    version: str
    data: Evidence
    folds: Ints
    aside: tuple[Row, ...]

    def pool(self, fold: int, *, examples: int) -> tuple[Row, ...]:
        """The labels that examples for answers of this fold come from: those set aside before, and where these are too
        few the next fold. What is saved is made for fold -1, as fold 0 is set aside for it."""
        if _are_enough(self.aside, examples):
            return self.aside
        here = (fold + 1) % FOLDS
        return (*self.aside, *(row for row, at in zip(self.data.rows, self.folds, strict=True) if at == here))


def alignable() -> list[str]:
    """The detectors whose prompt is a team file that puts answer and context before a judge."""
    return [name for name in registry.names() if _prompt_with_context(name) is not None]


def load_judge(store: Store, name: str, *, sample: str | Sequence[str] | None = None, seed: int = 0) -> Judge:
    """Load a judge with the labels that count. Raises BadInput for a detector that cannot be aligned."""
    file = file_of(name)
    detector = registry.make(name)
    text = team_files.get(store, file).text
    config = store.scores.get_config(config_id(store, detector))
    data = loading.load_evidence(store, name, sample=sample, config=config)
    units = Units.among(data.groups).of
    rng = np.random.default_rng(seed)
    # Dealt folds differ by a label: which of them is fold 0 is left to chance.
    folds = rng.permutation(FOLDS)[deal_folds(data.labels, units, folds=FOLDS, rng=rng)]
    aside = store.prompt_examples.set_aside()
    left = tuple(
        row for row in store.scores.labelled(config.id) if row.pk in aside and row.gold in DEFINITE
    )  # fmt: skip
    return Judge(detector, file, text, team_files.version_of(text), data, folds, left)


def file_of(name: str) -> str:
    """The prompt file of a judge. Raises BadInput for a detector that cannot be aligned."""
    file = _prompt_with_context(name)
    if file is None:
        raise BadInput(f"{name} has no prompt that labels could be put into: align one of {', '.join(alignable())}")
    return file


def _prompt_with_context(name: str) -> str | None:
    cls = registry.get(name)
    if not issubclass(cls, ChatDetector):
        return None
    file = prompt_of(registry.make(name))
    return file if file is not None and "{context}" in files.packaged(file) else None


def _are_enough(rows: Sequence[Row], examples: int) -> bool:
    """Whether half of the examples can be of either verdict, each of another source."""
    for verdict in DEFINITE:
        sources = {row.group or f"trace {row.pk}" for row in rows if row.gold == verdict}
        if len(sources) < (examples + 1) // 2:
            return False
    return True
