"""docs/compare_aggregates.py measures `nli` both ways, on a tiny model whose verdicts are known."""

from __future__ import annotations

import gzip
import importlib.util
import json
import sys
from pathlib import Path

import pytest

from tests.tiny_nli import known_model

SCRIPT = Path(__file__).parents[1] / "docs" / "compare_aggregates.py"


@pytest.mark.model
def test_both_measures_are_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A contradiction ranks below silence by the difference, and ties with it by P(entailment) alone."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    spec = importlib.util.spec_from_file_location("compare_aggregates", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    answers = [("The lie is it.", "hallucinated"), ("The moon is it.", "clean")] * 4
    with gzip.open(tmp_path / "tiny.jsonl.gz", "wt", encoding="utf-8") as file:
        for number, (answer, label) in enumerate(answers):
            source = {"1": f"Filler of the ocean {number}."}
            record = {"trace_id": str(number), "answer": answer, "label": label, "sources": source,
                      "question": f"question {number}", "context": None, "extra": {}}  # fmt: skip
            file.write(json.dumps(record) + "\n")
    monkeypatch.setattr(script, "DATA", tmp_path)
    params = {"model": str(known_model(tmp_path / "model")), "windows": "all", "evidence": "all"}
    assert script._areas("nli", "tiny", params)["min"][0] == 1.0
    alone = script._areas("nli", "tiny", {**params, "variant": "entailment"})
    assert set(alone) == {"min", "lowest_two", "lowest tenth", "mean"}
    assert alone["min"][0] < 1.0
