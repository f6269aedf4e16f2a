"""The reference of detectors is what the code says, and the detector of the guide works as it stands."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from calibrate import registry
from tests.detectors.examples import trace

ROOT = Path(__file__).resolve().parents[1]
GUIDE = ROOT / "docs" / "how-to" / "write-a-detector.md"


def load(path: Path, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def test_the_page_is_what_the_code_says() -> None:
    page = load(ROOT / "docs" / "make_detectors_reference.py", "make_detectors_reference").reference()
    assert (ROOT / "docs" / "reference" / "detectors.md").read_text(encoding="utf-8") == page, "run `make docs`"
    for name in registry.names():
        assert f"## {name}\n" in page


@pytest.fixture
def guide(tmp_path: Path) -> ModuleType:
    (code,) = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    assert len([line for line in code.splitlines() if line.strip()]) <= 40
    path = tmp_path / "new_figures.py"
    path.write_text(code, encoding="utf-8")
    return load(path, "new_figures")


def test_the_guides_detector_works(guide: ModuleType) -> None:
    detector = guide.NewFigures(digits=2)
    traces = [
        trace("It lasts 24 months and costs 1999 dollars.", "It lasts 24 months.", id="a"),
        trace("It lasts 24 months.", "It lasts 24 months.", id="b"),
        trace("It lasts for 3 years.", "It lasts 24 months.", id="c"),
    ]
    new, old, without = detector.score(traces)
    assert (new.value, old.value, without.value, without.status) == (1, 0, None, "abstained")
    (evidence,) = new.evidence
    assert traces[0].answer[evidence.start : evidence.end] == "1999"


def test_an_entry_point_brings_it_into_the_registry(guide: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    class Entry:
        name, value = "new_figures", "new_figures:NewFigures"

        def load(self) -> type:
            return guide.NewFigures  # type: ignore[no-any-return]

    monkeypatch.setattr(registry, "entry_points", lambda group: [Entry()] if group == registry.GROUP else [])
    registry._load_classes.cache_clear()
    try:
        assert registry.make("new_figures", {"digits": "3"}).digits == 3  # type: ignore[attr-defined]
    finally:
        monkeypatch.undo()
        registry._load_classes.cache_clear()
