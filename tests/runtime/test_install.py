"""What production installs: a wheel beside its few dependencies, and nothing else on the path."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from calibrate.detectors.token_overlap import TokenOverlap
from calibrate.thresholds import write
from tests.runtime.serving import serving
from tests.thresholds.make import entry, release

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
BELOW = {"attrs", "jsonschema-specifications", "referencing", "rpds-py", "typing-extensions"}  # what jsonschema needs


PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]


def copied(package: Distribution, to: Path) -> None:
    """The distribution's own files, as pip would lay them."""
    for file in package.files or ():
        source, place = Path(str(package.locate_file(file))), to / str(file)
        if ".." not in str(file) and "__pycache__" not in str(file):
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, place)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel as `pip wheel` builds it."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"  # a copy: building leaves files in the folder it is built from
    leave = shutil.ignore_patterns("__pycache__", "demo")
    shutil.copytree(ROOT / "calibrate", source / "calibrate", ignore=leave)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    build = [*PIP, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder), str(source)]
    subprocess.run(build, check=True, capture_output=True, text=True, timeout=120)
    (built,) = folder.glob("touchstone-*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path) -> Path:
    """A folder with the wheel and its dependencies: all that the programs below can import beside Python's own."""
    site = wheel.parent / "site"
    command = [*PIP, "install", "--no-deps", "--no-index", "--no-compile", "--target", str(site), str(wheel)]
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
    write(release({"token_overlap": entry(0.5, params={}, version=TokenOverlap.version)}), tmp_path / "thresholds.json")
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
    write(
        release(
            {"rouge_l": entry(0.5, params={}), "token_overlap": entry(0.5, params={}, version=TokenOverlap.version)}
        ),
        tmp_path / "t.json",
    )
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


def environment(folder: Path, *requirements: str) -> Path:
    """The `bin` of a new virtual environment that holds these requirements and nothing else."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, capture_output=True, timeout=120)
    command = [str(folder / "bin/python"), *PIP[1:], "install", *requirements]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        if os.environ.get("CI") == "true" or "ResolutionImpossible" in done.stderr:
            pytest.fail(done.stderr)
        pytest.skip(f"pip could not fetch {requirements}: {done.stderr.strip().splitlines()[-1]}")
    return folder / "bin"


@pytest.fixture(scope="module")
def empty(wheel: Path) -> Path:
    """The `bin` of an environment into which pip installed the wheel, with what the wheel asks for."""
    return environment(wheel.parent / "empty", str(wheel))


def touchstone(bin: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(bin / "touchstone"), *arguments]
    return subprocess.run(command, cwd=bin.parent, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.network
def test_the_console_script_verifies_and_decides_without_the_workbench(empty: Path, tmp_path: Path) -> None:
    entries = {"token_overlap": entry(0.5, params={}, version=TokenOverlap.version), "rouge_l": entry(0.3, params={})}
    file = str(tmp_path / "thresholds.json")
    write(release(entries), file)
    verified = touchstone(empty, "verify", file, "--json")
    assert (verified.returncode, verified.stderr) == (0, "")
    assert sorted(json.loads(verified.stdout)["detectors"]) == sorted(entries)
    (tmp_path / "scores.json").write_text('{"token_overlap": 0.4, "rouge_l": null}')
    decided = touchstone(empty, "decide", file, "--scores", str(tmp_path / "scores.json"), "--json")
    assert (decided.returncode, decided.stderr) == (0, "")
    assert json.loads(decided.stdout)["flags"] == ["token_overlap"]
    assert json.loads(decided.stdout)["missing"] == ["rouge_l"]
    damaged = tmp_path / "damaged.json"
    damaged.write_text((tmp_path / "thresholds.json").read_text().replace("0.5", "0.6"))
    assert touchstone(empty, "verify", str(damaged)).returncode == 2

    whole = touchstone(empty, "--help")
    assert whole.returncode == 0
    assert whole.stdout.startswith("usage: touchstone ")
    for verb in ("traces", "verify"):
        assert touchstone(empty, verb, "--help").stdout.startswith(f"usage: touchstone {verb} ")


@pytest.mark.network
@pytest.mark.parametrize(
    "arguments", [["traces"], ["detect", "all"], ["release", "--out", "x"], ["simulate"], ["models"], ["serve"]]
)
def test_another_verb_says_that_the_workbench_is_not_installed(empty: Path, arguments: list[str]) -> None:
    done = touchstone(empty, *arguments, "--json")
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert f"`{arguments[0]}` needs the workbench, which is not installed here" in line
    assert f"python -m calibrate {arguments[0]}" in line
    assert json.loads(done.stdout)["error"] in line


CONSUMER = """\
from calibrate.runtime import Decision, Guard, Live, ThresholdsFile, decide, load
from calibrate.types import Source, Trace


def flags(thresholds: ThresholdsFile | Live, answer: str) -> tuple[str, ...]:
    decision: Decision = Guard(thresholds).check(Trace("t", answer, sources=(Source("1", "Cows eat grass."),)))
    return decision.flags


reveal_type(decide(load("thresholds.json"), {"rouge_l": None}, on_missing="reject").verdict)
reveal_type(decide(load("thresholds.json"), {}, skipped=["rouge_l"]).unscored)
"""


@pytest.mark.network
@pytest.mark.parametrize(
    ("more", "mistakes"), [("", 0), ("decide(load('thresholds.json'), {'rouge_l': 'high'}).verdict.flags", 2)]
)
def test_a_program_that_uses_the_wheel_is_type_checked(empty: Path, tmp_path: Path, more: str, mistakes: int) -> None:
    (tmp_path / "consumer.py").write_text(CONSUMER + more)
    mypy = [sys.executable, "-m", "mypy", "--strict", "--python-executable", str(empty / "python"), "--no-color-output"]
    command = [*mypy, "--cache-dir", str(empty.parent / "mypy"), "consumer.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300)
    assert done.stdout.count(": error:") == mistakes, done.stdout + done.stderr
    assert "Revealed type is" in done.stdout
    assert '"Any"' not in done.stdout


OBSERVED = """\
import json, sys
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from calibrate.runtime.otel import TouchstoneSpanProcessor

spans, logs = InMemorySpanExporter(), InMemoryLogExporter()
provider, loggers = TracerProvider(), LoggerProvider()
loggers.add_log_record_processor(SimpleLogRecordProcessor(logs))
ours = TouchstoneSpanProcessor(sys.argv[1], tracer_provider=provider, logger_provider=loggers)
provider.add_span_processor(ours)
provider.add_span_processor(SimpleSpanProcessor(spans))
with provider.get_tracer("program").start_as_current_span("chat") as span:
    span.set_attributes(json.loads(sys.argv[2]))
provider.force_flush()
(result,) = [span for span in spans.get_finished_spans() if span.name == "touchstone.detector.result"]
(record,) = [data.log_record for data in logs.get_finished_logs()]
print(json.dumps({"flags": result.attributes["touchstone.flags"], "log": dict(record.attributes),
    "child": record.span_id == result.parent.span_id == span.get_span_context().span_id,
    "counts": str(ours.counts())}))
"""


@pytest.mark.network
def test_the_span_processor_runs_in_the_oldest_opentelemetry_that_the_wheel_allows(wheel: Path, tmp_path: Path) -> None:
    (extra,) = PROJECT["optional-dependencies"]["otel"]
    oldest = next(part.version for part in Requirement(extra).specifier if part.operator == ">=")
    bin = environment(wheel.parent / "otel", f"{wheel}[otel]", f"opentelemetry-sdk=={oldest}")
    write(release({"word_overlap": entry(0.5, "below", params={})}), tmp_path / "thresholds.json")
    message = [{"role": "assistant", "parts": [{"type": "text", "content": "Curie sold helium balloons."}]}]
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.output.messages": json.dumps(message),
        "gen_ai.retrieval.documents": json.dumps([{"id": "1", "content": "Priestley discovered oxygen."}]),
    }
    command = [str(bin / "python"), "-c", OBSERVED, str(tmp_path / "thresholds.json"), json.dumps(attributes)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    sent = json.loads(done.stdout)
    assert (sent["flags"], sent["child"]) == (["word_overlap"], True)
    assert sent["log"]["event.name"] == "gen_ai.evaluation.result"
    assert sent["log"]["gen_ai.evaluation.score.label"] == "flagged"


ANSWERED = """\
import json
from calibrate.backends.chat import Request, chat
(reply,) = chat().ask([Request((("user", "What is the capital of France?"),))])
import openai
print(json.dumps({"text": reply.text, "tokens": reply.usage.prompt_tokens, "openai": openai.__version__}))
"""


@pytest.mark.network
def test_judges_ask_through_the_oldest_openai_that_the_wheel_allows(wheel: Path) -> None:
    (extra,) = PROJECT["optional-dependencies"]["judge"]
    oldest = next(part.version for part in Requirement(extra).specifier if part.operator == ">=")
    bin = environment(wheel.parent / "judge", f"{wheel}[judge]", f"openai=={oldest}.0")
    message = {"role": "assistant", "content": "Paris"}
    document = {
        "id": "c", "object": "chat.completion", "created": 1, "model": "stub",
        "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
        "usage": {"prompt_tokens": 8, "completion_tokens": 1, "total_tokens": 9},
    }  # fmt: skip
    answer = (200, {"Content-Type": "application/json"}, json.dumps(document).encode())
    with serving(lambda _: answer) as server:
        variables = {**os.environ, "TOUCHSTONE_CHAT_URL": f"{server.url}/v1", "TOUCHSTONE_CHAT_MODEL": "stub"}
        command = [str(bin / "python"), "-c", ANSWERED]
        done = subprocess.run(command, cwd=bin, env=variables, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"text": "Paris", "tokens": 8, "openai": f"{oldest}.0"}


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
    guide = ROOT / "docs" / "how-to" / "production.md"
    assert "eight small packages come with it" in guide.read_text(encoding="utf-8")


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
            # The tests' own requirements have the first; the second brings a language model, and is only tried absent.
            assert name in pinned or name in ("opentelemetry-sdk", "presidio-analyzer")
