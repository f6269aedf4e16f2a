"""What production installs: a wheel beside its few dependencies, and nothing else on the path."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from calibrate.thresholds import write
from tests.thresholds.make import entry, release

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
BELOW = {"attrs", "jsonschema-specifications", "referencing", "rpds-py", "typing-extensions"}  # what jsonschema needs


def copied(one: Distribution, to: Path) -> None:
    """The distribution's own files, as pip would lay them."""
    for file in one.files or ():
        source, place = Path(str(one.locate_file(file))), to / str(file)
        if ".." not in str(file) and "__pycache__" not in str(file):
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, place)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and its dependencies: all that the programs below can import beside Python's own."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"  # a copy: building leaves files in the folder it is built from
    leave = shutil.ignore_patterns("__pycache__", "demo")
    shutil.copytree(ROOT / "calibrate", source / "calibrate", ignore=leave)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-cache-dir", "-q"]
    build = [*pip, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder), str(source)]
    subprocess.run(build, check=True, capture_output=True, text=True, timeout=120)
    (wheel,) = folder.glob("touchstone-*.whl")
    site = folder / "site"
    command = [*pip, "install", "--no-deps", "--no-index", "--no-compile", "--target", str(site), str(wheel)]
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    for wanted in PROJECT["dependencies"]:
        copied(distribution(wanted.split(">")[0]), site)
    for name in BELOW:
        copied(distribution(name), site)
    return site


def run(site: Path, code: str, *arguments: str) -> dict[str, object]:
    """What the code prints, in a Python that sees the folder and its own library only."""
    code = f"import sys; sys.path.append({str(site)!r}); import json\n{code}"
    command = [sys.executable, "-I", "-S", "-c", code, *arguments]
    done = subprocess.run(command, cwd=site.parent, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    answer: dict[str, object] = json.loads(done.stdout)
    return answer


def test_a_program_with_the_wheel_alone_decides_and_guards(installed: Path, tmp_path: Path) -> None:
    write(release({"token_overlap": entry(0.5, params={})}), tmp_path / "thresholds.json")
    found = run(
        installed,
        "from calibrate.runtime import Guard, decide, load\n"
        "from calibrate.types import Source, Trace\n"
        "thresholds = load(sys.argv[1])\n"
        "loaded = sorted({name.split('.')[0] for name in sys.modules})\n"
        "guard = Guard(thresholds)\n"
        "trace = Trace('t', 'The bridge is red.', question='What?', sources=(Source('1', 'Cows eat grass.'),))\n"
        "print(json.dumps({'decided': decide(thresholds, {'token_overlap': 0.4}).verdict,\n"
        "    'guarded': guard.check(trace).flags, 'loaded': loaded, 'where': sys.modules['calibrate'].__file__}))",
        str(tmp_path / "thresholds.json"),
    )
    assert (found["decided"], found["guarded"]) == ("REVIEW", ["token_overlap"])
    assert str(found["where"]).startswith(str(installed))
    loaded = set(found["loaded"])  # type: ignore[call-overload]
    others = {name for name in loaded if name not in sys.stdlib_module_names and not name.startswith("_")}
    # regex, urllib's parts and every detector stay away until they are used.
    assert others <= {"calibrate", "attr", "attrs", "jsonschema", "jsonschema_specifications", "referencing", "rfc8785",
                      "rpds", "typing_extensions"}  # fmt: skip
    assert not loaded & {"asyncio", "ssl", "http"}


def test_a_detector_whose_package_is_not_there_says_what_to_install(installed: Path, tmp_path: Path) -> None:
    write(release({"rouge_l": entry(0.5, params={}), "token_overlap": entry(0.5, params={})}), tmp_path / "t.json")
    found = run(
        installed,
        "import logging\n"
        "from calibrate.runtime import Guard, load\n"
        "from calibrate.types import Source, Trace\n"
        "said = []\n"
        "handler = logging.Handler()\n"
        "handler.emit = lambda record: said.append(record.getMessage())\n"
        "logging.getLogger('touchstone').addHandler(handler)\n"
        "guard = Guard(load(sys.argv[1]))\n"
        "trace = Trace('t', 'The bridge is red.', question='What?', sources=(Source('1', 'Cows eat grass.'),))\n"
        "missing = [guard.check(trace).missing for _ in range(3)]\n"
        "print(json.dumps({'said': said, 'missing': missing, 'flags': guard.check(trace).flags}))",
        str(tmp_path / "t.json"),
    )
    (said,) = found["said"]  # type: ignore[misc]
    assert said.startswith("rouge_l gives no score: ")
    assert "pip install touchstone[lexical]" in said
    assert (found["missing"], found["flags"]) == ([["rouge_l"]] * 3, ["token_overlap"])


def test_the_readme_counts_what_comes_with_the_wheel() -> None:
    """Under the oldest Python that it is for; newer ones need fewer."""
    oldest = {"python_version": "3.11", "extra": ""}
    wanted = [Requirement(one) for one in PROJECT["dependencies"]]
    found: set[str] = set()
    while wanted:
        one = wanted.pop()
        if one.name not in found and (one.marker is None or one.marker.evaluate(oldest)):
            found.add(one.name)
            wanted += map(Requirement, distribution(one.name).requires or ())
    names = {Requirement(one).name for one in PROJECT["dependencies"]}
    assert {one.replace("_", "-") for one in found - names} == BELOW
    assert len(found) == 8
    assert "eight small packages come with it" in (ROOT / "README.md").read_text()


def test_every_text_that_detectors_and_readers_need_is_in_the_wheel(installed: Path) -> None:
    texts = {".json", ".txt", ".csv"}
    ours = {str(path.relative_to(ROOT)) for path in (ROOT / "calibrate").rglob("*") if path.suffix in texts}
    theirs = {str(path.relative_to(installed)) for path in (installed / "calibrate").rglob("*") if path.suffix in texts}
    assert theirs == {name for name in ours if not name.startswith("calibrate/demo/")}


def test_a_url_that_needs_fsspec_says_so(installed: Path) -> None:
    found = run(
        installed,
        "from calibrate.runtime import load\n"
        "from calibrate.errors import BadInput\n"
        "try: load('s3://bucket/thresholds.json')\n"
        "except BadInput as error: print(json.dumps({'said': str(error)}))",
    )
    assert "pip install fsspec" in str(found["said"])


def test_what_production_installs_is_what_the_workbench_is_tested_with() -> None:
    pinned = dict(line.split("==") for line in (ROOT / "requirements.txt").read_text().split() if "==" in line)
    for extra in [PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()]:
        for wanted in extra:
            name = wanted.split(">")[0].split("=")[0]
            assert name in pinned or name == "opentelemetry-sdk"  # the tests' own requirements have that one
