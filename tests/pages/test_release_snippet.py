"""The Python that the Release page offers decides as the release does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from calibrate.thresholds import write
from calibrate.thresholds.model import ThresholdsFile
from calibrate.types import Interval, Segments, SegmentThreshold
from pages.components.release_history import snippet
from tests.thresholds.make import entry, release

FIGURES = Interval(0.8, 0.6, 0.9), Interval(0.5)


def decide(file: ThresholdsFile, folder: Path) -> Any:
    path = folder / "thresholds.json"
    write(file, path)
    known: dict[str, Any] = {}
    exec(snippet(file, str(path)), known)
    return known["decision"]


def test_with_one_threshold_for_all(tmp_path: Path) -> None:
    assert decide(release({"nli": entry(0.5, "below")}), tmp_path).reasons == ("nli 0.41 ≤ 0.5",)


def test_with_thresholds_per_segment_it_names_one(tmp_path: Path) -> None:
    segments = Segments("operation", {"chat": SegmentThreshold(0.7, 120, 30, *FIGURES)})
    decision = decide(release({"nli": entry(0.3, "below", segments=segments), "off": entry(tier="off")}), tmp_path)
    assert decision.reasons == ("nli 0.41 ≤ 0.7 (operation chat)",)
