"""For production processes: load a thresholds file, turn scores into a decision. Light to import.

>>> thresholds = load("thresholds.json")  # doctest: +SKIP
>>> decide(thresholds, {"citation_grounding": 0.41, "rouge_l": None}).verdict  # doctest: +SKIP
'REVIEW'
"""

from __future__ import annotations

import os

from calibrate.runtime.decision import Decision, Outcome, decide, probability
from calibrate.thresholds.files import read
from calibrate.thresholds.model import ThresholdsFile

__all__ = ["Decision", "Outcome", "ThresholdsFile", "decide", "load", "probability"]


def load(path: str | os.PathLike[str]) -> ThresholdsFile:
    """The release at `path`. Raises BadThresholds, with a sentence, for a file that must not be used."""
    return read(path)
