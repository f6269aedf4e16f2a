"""The example notebook runs as it is committed, from an empty folder to a released file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
NOTEBOOK = ROOT / "examples/notebook/calibrate.ipynb"


def test_the_example_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import nbformat
    from nbclient import NotebookClient

    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    assert all(not cell.get("outputs") and cell.get("execution_count") is None for cell in notebook.cells)
    NotebookClient(notebook, timeout=90, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert "stderr" not in [output.get("name") for output in outputs]
    file = json.loads((tmp_path / "thresholds.json").read_text())
    assert (file["version"], list(file["detectors"])) == (1, ["token_overlap"])
    assert outputs[-1].data["text/plain"] in ("'REVIEW'", "'ACCEPT'")
    chosen = next(cell for cell in notebook.cells if "bench.choose" in cell.source).outputs[0].data["text/plain"]
    assert str(file["detectors"]["token_overlap"]["threshold"]) in chosen
