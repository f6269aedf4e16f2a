"""Who may import whom, and what must stay light. Read from the source, so an import inside a function counts too."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
HEAVY = {"torch", "transformers", "sentence_transformers", "onnxruntime", "ray"}
# What the store may know of the product: its words, its errors, the rule for gold, and what an import hands over.
DB_MAY_IMPORT = {"calibrate.types", "calibrate.errors", "calibrate.gold", "calibrate.ingest.base"}


def modules(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


def imports(path: Path, *, top_level: bool = False) -> Iterator[str]:
    tree = ast.parse(path.read_text())
    for node in tree.body if top_level else ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def roots(path: Path, *, top_level: bool = False) -> set[str]:
    return {name.split(".")[0] for name in imports(path, top_level=top_level)}


@pytest.mark.parametrize("path", modules("calibrate"), ids=lambda p: str(p.relative_to(ROOT)))
def test_calibrate_knows_no_ui_and_only_steps_and_cli_know_the_store(path: Path) -> None:
    used = roots(path)
    assert not used & {"pages", "streamlit", "app"}
    if path.parent.name not in ("steps", "cli"):
        assert "db" not in used


@pytest.mark.parametrize("path", modules("db"), ids=lambda p: str(p.relative_to(ROOT)))
def test_db_knows_only_the_words(path: Path) -> None:
    used = {name for name in imports(path) if name.split(".")[0] in ("calibrate", "pages", "streamlit")}
    assert {name for name in used if not any(name == ok or name.startswith(ok + ".") for ok in DB_MAY_IMPORT)} == set()


@pytest.mark.parametrize("folder", ["stats", "thresholds"])
def test_statistics_and_the_file_model_touch_no_clock_network_or_store(folder: str) -> None:
    for path in modules(f"calibrate/{folder}"):
        banned = {"time", "socket", "urllib", "requests", "httpx", "random", "db", "pandas"}
        if path.name != "files.py":
            banned |= {"os", "pathlib", "tempfile", "shutil"}
        assert not roots(path) & banned, path


def test_heavy_imports_live_in_backends_and_engines_inside_functions() -> None:
    for folder in ("calibrate", "db", "pages"):
        for path in modules(folder):
            assert not roots(path, top_level=True) & HEAVY, path
            if path.parent.name not in ("backends", "engines"):
                assert not roots(path) & HEAVY, path


def test_streamlit_serves_nothing_past_the_gate() -> None:
    assert [path.name for path in (ROOT / "pages").glob("*.py")] == ["__init__.py"]


@pytest.mark.parametrize(
    ("module", "banned"),
    [
        ("calibrate.runtime", {"pandas", "torch", "streamlit", "sqlalchemy", "numpy", "sklearn", "scipy"}),
        ("calibrate.cli", {"pandas", "torch", "streamlit", "sqlalchemy", "numpy", "sklearn", "scipy"}),
        ("calibrate.registry", {"torch", "sentence_transformers", "transformers", "pandas", "sklearn"}),
    ],
)
def test_light_modules_stay_light(module: str, banned: set[str]) -> None:
    code = f"import sys, {module}; print(*sorted({{name.split('.')[0] for name in sys.modules}}))"
    loaded = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert not set(loaded.stdout.split()) & banned


def test_help_loads_nothing_of_the_product() -> None:
    code = (
        "import sys, calibrate.cli as c\n"
        "try: c.main(['--help'])\n"
        "except SystemExit: pass\n"
        "print('LOADED', *sorted({name.split('.')[0] for name in sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = set(done.stdout.rpartition("LOADED")[2].split())
    assert not loaded & {"numpy", "sqlalchemy", "pandas", "torch", "streamlit", "db"}
