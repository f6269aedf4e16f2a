"""What the README and docs/ say is true: the reference is the parser's, links lead somewhere, the examples work."""

from __future__ import annotations

import importlib.util
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from calibrate.cli.parser import build

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
PAGES = [README, ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
COMMAND = re.compile(r"^(?:\.venv/bin/)?python -m calibrate\b(.*)$", re.MULTILINE)


@pytest.fixture(scope="module")
def maker() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_cli_reference", ROOT / "docs" / "make_cli_reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def blocks(*languages: str) -> list[str]:
    return [text for language, text in FENCE.findall(README.read_text(encoding="utf-8")) if language in languages]


def commands() -> list[str]:
    return [found.strip() for block in blocks("sh", "bash", "console") for found in COMMAND.findall(block)]


def links() -> list[tuple[Path, str]]:
    found = []
    for page in PAGES:
        prose = FENCE.sub("", page.read_text(encoding="utf-8"))
        targets = [target for target in LINK.findall(prose) if not re.match(r"[a-z]+:", target)]
        found += [(page, target) for target in targets]
    return found


def test_the_reference_is_what_the_parser_says(maker: ModuleType) -> None:
    readme = README.read_text(encoding="utf-8")
    # Python versions break the lines of a usage differently; the words are the same.
    same = maker.placed(readme, maker.reference()).split() == readme.split()
    assert same, "README.md's command line reference is not what --help says: run `make docs`"


def test_the_reference_has_every_verb(maker: ModuleType) -> None:
    names = list(maker.verbs(build()))
    assert "release" in names
    assert re.findall(r"^### (\w+)$", maker.reference(), re.MULTILINE) == names


def test_the_reference_is_the_same_for_every_reader(maker: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    before = maker.reference()
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert maker.reference() == before
    assert "\x1b" not in before


@pytest.mark.parametrize("readme", ["", "<!-- cli:begin -->", "<!-- cli:end --> <!-- cli:begin -->"])
def test_a_readme_without_the_markers_is_refused(maker: ModuleType, readme: str) -> None:
    with pytest.raises(ValueError, match="cli:begin"):
        maker.placed(readme, "x")


@pytest.mark.parametrize(("page", "target"), links(), ids=lambda it: it.name if isinstance(it, Path) else it)
def test_links_lead_somewhere(page: Path, target: str) -> None:
    path, _, anchor = target.partition("#")
    there = (page.parent / path).resolve() if path else page
    if there.suffix == ".png" and not (ROOT / "docs" / "images").is_dir():
        pytest.skip("docs/images is not there yet")
    assert there.exists(), f"{page.relative_to(ROOT)} links to {target}, which is not there"
    assert there.is_relative_to(ROOT)
    if anchor:
        assert anchor in anchors(there), f"{page.relative_to(ROOT)} links to {target}, a heading that is not there"


def anchors(page: Path) -> set[str]:
    """The headings of a page as GitHub names them."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_readme_shows_every_step_of_the_loop() -> None:
    shown = {command.split()[0] for command in commands()}
    assert {"import", "sample", "labels", "detect", "sweep", "choose", "release", "verify", "decide"} <= shown


@pytest.mark.parametrize("command", commands())
def test_the_command_lines_of_the_readme_parse(command: str) -> None:
    assert build().parse_args(shlex.split(command, comments=True)).function


def test_the_json_of_the_readme_is_json() -> None:
    assert [json.loads(block) for block in blocks("json")]


def test_the_trace_of_the_readme_imports(tmp_path: Path) -> None:
    from calibrate.ingest import Record, read

    record = next(json.loads(block) for block in blocks("json") if "answer" in json.loads(block))
    path = tmp_path / "traces.jsonl"
    path.write_text(json.dumps(record) + "\n", encoding="utf-8")
    (found,) = read(path)
    assert isinstance(found, Record)
    assert found.trace.answer == record["answer"]
    assert [source.text for source in found.trace.sources] == [source["text"] for source in record["sources"].values()]


def test_the_runtime_snippet_of_the_readme_runs(tmp_path: Path) -> None:
    (snippet,) = blocks("python")
    assert len(snippet.strip().splitlines()) <= 6
    example = next(
        text
        for language, text in FENCE.findall((ROOT / "docs" / "thresholds-file.md").read_text(encoding="utf-8"))
        if language == "json"
    )
    (tmp_path / "thresholds.json").write_text(example, encoding="utf-8")
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{snippet}"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["REVIEW page", "citation_grounding 0.41 ≤ 0.52"]


@pytest.mark.parametrize("file", ["requirements.txt", "tests/requirements.txt"])
def test_every_direct_dependency_is_accounted_for(file: str) -> None:
    table = (ROOT / "docs" / "adr" / "dependencies.md").read_text(encoding="utf-8")
    pinned = re.findall(r"^([\w.-]+)(?:\[\w+\])?==(\S+)", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE)
    missing = [f"{name} {version}" for name, version in pinned if f"| {name} {version} " not in table]
    assert not missing, f"docs/adr/dependencies.md has no line for {', '.join(missing)}"
