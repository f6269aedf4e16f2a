"""What the README and docs/ say is true: the references are the code's, links lead somewhere, the examples work."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from calibrate.cli.grammar import build

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
README = ROOT / "README.md"
SITE = sorted(DOCS.rglob("*.md"))
PAGES = [README, ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", *SITE, *sorted((ROOT / "examples").rglob("*.md"))]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
COMMAND = re.compile(r"^(?:\.venv/bin/)?python -m calibrate\b(.*)$", re.MULTILINE)
TRACES, PRODUCTION = DOCS / "how-to" / "traces.md", DOCS / "how-to" / "production.md"


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def maker() -> ModuleType:
    return script("make_cli_reference")


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks(page: Path, *languages: str) -> list[str]:
    return [text for language, text in FENCE.findall(text_of(page)) if language in languages]


def commands(page: Path) -> list[str]:
    return [line.strip() for block in blocks(page, "sh", "bash", "console") for line in COMMAND.findall(block)]


def links() -> list[tuple[Path, str]]:
    targets = [(page, target) for page in PAGES for target in LINK.findall(FENCE.sub("", text_of(page)))]
    return [(page, target) for page, target in targets if not re.match(r"[a-z]+:", target)]


def test_the_reference_is_what_the_parser_says(maker: ModuleType) -> None:
    # Python versions break the lines of a usage differently; the words are the same.
    same = maker.reference().split() == text_of(DOCS / "reference" / "cli.md").split()
    assert same, "docs/reference/cli.md is not what --help says: run `make docs`"


def test_the_reference_has_every_verb(maker: ModuleType) -> None:
    names = list(maker.verbs(build()))
    assert "release" in names
    assert re.findall(r"^## (\w+)$", maker.reference(), re.MULTILINE) == names


def test_the_reference_is_the_same_for_every_reader(maker: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    before = maker.reference()
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert maker.reference() == before
    assert "\x1b" not in before


@pytest.mark.parametrize(("page", "target"), links(), ids=lambda it: name_of(it) if isinstance(it, Path) else it)
def test_links_lead_somewhere(page: Path, target: str) -> None:
    path, _, anchor = target.partition("#")
    file = (page.parent / path).resolve() if path else page
    assert file.exists(), f"{name_of(page)} links to {target}, which does not exist"
    assert file.is_relative_to(ROOT)
    if anchor:
        assert anchor in anchors(file), f"{name_of(page)} links to {target}, a heading that does not exist"


def test_the_pages_that_the_code_names_exist() -> None:
    code = [path for folder in ("calibrate", "db", "pages", "examples") for path in (ROOT / folder).rglob("*.py")]
    named = {(path, name) for path in code for name in re.findall(r"(?<![\w/])docs/[\w/-]+(?:\.\w+)?", text_of(path))}
    assert len(named) > 3
    assert sorted((name_of(path), name) for path, name in named if not list(ROOT.glob(f"{name}*"))) == []


def anchors(page: Path) -> set[str]:
    """The headings of a page as GitHub names them."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", text_of(page)), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def navigated(part: Any) -> Iterator[str]:
    """The pages of the site's navigation, at any depth."""
    if isinstance(part, str):
        yield part
    for child in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        yield from navigated(child)


def test_the_navigation_has_every_page_once() -> None:
    config = tomllib.loads(text_of(ROOT / "zensical.toml"))
    assert sorted(navigated(config["project"]["nav"])) == sorted(str(page.relative_to(DOCS)) for page in SITE)


def test_the_readme_is_short() -> None:
    assert README.stat().st_size <= 8_000


def test_the_readme_shows_every_step_of_the_loop() -> None:
    verbs = {command.split()[0] for command in commands(README)}
    assert {"import", "sample", "labels", "detect", "sweep", "choose", "release", "verify", "decide"} <= verbs


def test_the_guides_show_every_verb_that_a_person_calls() -> None:
    verbs = {command.split()[0] for page in PAGES for command in commands(page)}
    text = " ".join(text_of(page) for page in PAGES if page.name != "cli.md")
    verbs |= set(re.findall(r"`python -m calibrate (\w+)", text)) | set(re.findall(r"`(\w+)(?: [^`]*)?`", text))
    assert set(script("make_cli_reference").verbs(build())) <= verbs


@pytest.mark.parametrize(
    ("page", "command"),
    [(page, command) for page in PAGES for command in commands(page)],
    ids=lambda it: name_of(it) if isinstance(it, Path) else it,
)
def test_the_command_lines_parse(page: Path, command: str) -> None:
    assert build().parse_args(shlex.split(command, comments=True)).verb


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "json")], ids=name_of)
def test_the_json_of_the_pages_is_json(page: Path) -> None:
    assert [json.loads(block) for block in blocks(page, "json")]


def test_the_trace_of_the_guide_imports(tmp_path: Path) -> None:
    from calibrate.ingest import Record, read

    fields = next(json.loads(block) for block in blocks(TRACES, "json") if "answer" in json.loads(block))
    path = tmp_path / "traces.jsonl"
    path.write_text(json.dumps(fields) + "\n", encoding="utf-8")
    (record,) = read(path)
    assert isinstance(record, Record)
    assert record.trace.answer == fields["answer"]
    assert [source.text for source in record.trace.sources] == [source["text"] for source in fields["sources"].values()]


def test_the_guide_names_every_field_of_a_record() -> None:
    from calibrate.ingest.record import RECORD_FIELDS

    synonyms = {"samples", "extra"}  # of alternatives and attributes, for files of other programs
    assert [field for field in sorted(RECORD_FIELDS - synonyms) if f"`{field}`" not in text_of(TRACES)] == []


@pytest.mark.parametrize("page", [README, PRODUCTION], ids=name_of)
def test_the_runtime_snippet_runs(page: Path, tmp_path: Path) -> None:
    (snippet,) = blocks(page, "python")
    assert len(snippet.strip().splitlines()) <= 6
    example = blocks(DOCS / "reference" / "thresholds-file.md", "json")[0]
    (tmp_path / "thresholds.json").write_text(example, encoding="utf-8")
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{snippet}"
    process = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
    assert process.stdout.splitlines() == ["REVIEW page", "citation_grounding 0.41 ≤ 0.52"]


@pytest.mark.model
def test_the_first_hour_works_as_written(tmp_path: Path) -> None:
    """Every command of the tutorial, in order, in an empty folder."""
    blocks_of_calibrate = [block for block in blocks(DOCS / "tutorial.md", "sh") if "calibrate" in block]
    own = {name: value for name, value in os.environ.items() if not name.startswith("TOUCHSTONE_")}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    script_text = "set -e\n" + "\n".join(blocks_of_calibrate)
    process = subprocess.run(
        ["sh", "-c", script_text],
        cwd=tmp_path,
        env=own | {"PYTHONPATH": str(ROOT), "PATH": path},
        capture_output=True,
        text=True,
    )
    assert process.returncode == 0, process.stderr
    assert "REVIEW" in process.stdout.splitlines()[-2]
    assert "rouge_l" in process.stdout.splitlines()[-1]


def test_the_configuration_page_has_every_variable() -> None:
    page = text_of(DOCS / "reference" / "configuration.md")
    code = "".join(text_of(path) for folder in ("calibrate", "db", "pages") for path in (ROOT / folder).rglob("*.py"))
    names = set(re.findall(r"TOUCHSTONE_[A-Z_]*[A-Z]\b(?!_)", code))
    assert len(names) > 10
    assert sorted(name for name in names if f"`{name}`" not in page) == []


@pytest.mark.parametrize("file", ["requirements.txt", "tests/requirements.txt", "docs/requirements.txt"])
def test_every_direct_dependency_is_accounted_for(file: str) -> None:
    table = text_of(DOCS / "adr" / "dependencies.md")
    pinned = re.findall(r"^([\w.-]+)(?:\[\w+\])?==(\S+)", text_of(ROOT / file), re.MULTILINE)
    missing = [f"{name} {version}" for name, version in pinned if f"| {name} {version} " not in table]
    assert not missing, f"docs/adr/dependencies.md has no line for {', '.join(missing)}"


def tree_of(page: Path) -> set[str]:
    """The paths of the indented tree on the architecture page."""
    block = text_of(page).partition("## The tree\n")[2].partition("\n## ")[0]
    stack: list[str] = []
    paths = set()
    for line in block.splitlines():
        if match := re.match(r"    ( *)([\w.]+/?)", line):
            del stack[len(match[1]) // 2 :]
            stack.append(match[2])
            paths.add("".join(stack))
    return paths


def test_every_path_of_the_architecture_exists() -> None:
    page = DOCS / "architecture.md"
    roots = r"`((?:app|calibrate|pages|db|tests|docs|examples)(?:/[\w./]*|\.py))`"
    paths = tree_of(page) | set(re.findall(roots, text_of(page)))
    assert len(paths) > 80
    assert sorted(path for path in paths if not (ROOT / path).exists()) == []


def test_the_architecture_lists_every_decision_once() -> None:
    page = (DOCS / "architecture.md").read_text(encoding="utf-8")
    listed = re.findall(r"^- \[\d{4} [^\]]+\]\(adr/(\S+)\)$", page, re.MULTILINE)
    assert listed == sorted(path.name for path in (DOCS / "adr").glob("0*.md"))


def test_the_tree_of_the_architecture_has_every_room() -> None:
    paths = {path.rstrip("/") for path in tree_of(DOCS / "architecture.md")}
    rooms = [ROOT / "db", *(path for room in ("calibrate", "pages") for path in (ROOT / room).iterdir())]
    rooms += [path for room in ("stats", "workflow") for path in (ROOT / "calibrate" / room).iterdir()]
    folders = {name_of(path) for path in rooms if (path / "__init__.py").is_file()}
    modules = {name_of(path) for path in (ROOT / "calibrate").glob("*.py") if not path.name.startswith("__")}
    assert len(folders) > 30
    assert sorted((folders | modules) - paths) == []


def test_the_picture_of_the_rooms_is_of_the_code() -> None:
    drawing = script("make_rooms_picture")
    assert drawing.picture() == text_of(drawing.PICTURE), "run `make docs`"


def test_the_screenshots_have_every_page() -> None:
    from pages.shell import navigation

    assert list(script("make_screenshots").ADDRESSES) == list(navigation._PAGES)


def site(folder: Path, **pages: str) -> Path:
    for name, body in pages.items():
        (folder / f"{name}.html").write_text(body, encoding="utf-8")
    return folder


def test_the_check_of_the_site_takes_what_is_whole(tmp_path: Path) -> None:
    folder = site(tmp_path, index='<a href="b.html#there">b</a> <a href="https://x.y">x</a>', b='<h1 id="there">b</h1>')
    assert script("check_site").problems(folder) == []


@pytest.mark.parametrize(
    "body",
    [
        '<a href="gone.html">x</a>',
        '<a href="b.html#gone">x</a>',
        '<a href="#gone">x</a>',
        '<img src="gone.png">',
        '<script src="https://cdn.example/x.js"></script>',
        '<link rel="stylesheet" href="//fonts.example/x.css">',
    ],
)
def test_the_check_of_the_site_sees_what_is_broken(tmp_path: Path, body: str) -> None:
    (sentence,) = script("check_site").problems(site(tmp_path, index=body, b="<h1>b</h1>"))
    assert sentence.startswith("index.html ")
