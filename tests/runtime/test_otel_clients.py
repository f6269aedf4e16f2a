"""What is read from the spans of real instrumentations: the table of docs/how-to/opentelemetry.md."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.otel_clients import ANSWER, PASSAGE, QUESTION, SCHEMA

ROOT = Path(__file__).parents[2]
REQUIREMENTS = (
    "openai==3.52.0",
    "opentelemetry-sdk==1.45.2",
    "openinference-instrumentation-langchain==0.1.80",
    "langchain-core==1.7.2",
    "langchain-openai==1.7.3",
    "opentelemetry-instrumentation-openai==0.62.4",
    "opentelemetry-instrumentation-langchain==0.62.4",
    "jsonschema",
    "rfc8785",
    "regex",
)
RETRIEVED, RESULT = [[PASSAGE, "Warranty", 0.83]], [[PASSAGE, "search", None]]
TOKENS = ["24", " months."]

EXPECTED: dict[str, dict[str, dict[str, Any]]] = {
    "genai": {
        "chat": {},
        "stream": {},
        "n=3": {"alternatives": 2},
        "responses": {},
        "schema": {},
        "tools": {"sources": RESULT},
        "retrieval": {"sources": [["", "w.md", 0.83]]},
    },
    "openinference": {
        "chat": {"tokens": TOKENS},
        "stream": {"tokens": TOKENS},
        "n=3": {"alternatives": 2},
        "responses": {"tokens": TOKENS},
        "schema": {"schema": SCHEMA},
        "tools": {"sources": RESULT},
    },
    "openinference-langchain": {
        "chain": {"sources": RETRIEVED, "tokens": TOKENS},
        "stream": {"sources": RETRIEVED, "tokens": TOKENS, "model": "stub"},
        "schema": {"sources": RETRIEVED, "schema": SCHEMA},
        "tools": {"sources": RESULT},
    },
    "openllmetry": {
        "chat": {},
        "stream": {},
        "n=3": {"alternatives": 2},
        "responses": {},
        "schema": {"schema": SCHEMA},
        "tools": {"sources": RESULT},
    },
    "openllmetry-langchain": {
        "chain": {"sources": RETRIEVED, "tokens": TOKENS},
        "stream": {"sources": RETRIEVED, "tokens": TOKENS, "model": "stub"},
        "schema": {"sources": RETRIEVED},
        "tools": {"sources": RESULT},
    },
}
NOTHING = {"alternatives": 0, "sources": [], "tokens": [], "schema": None, "model": "stub-1"}


@pytest.fixture(scope="session")
def elsewhere() -> str:
    """The Python of an environment with the clients that are not in ours, made once for these versions."""
    digest = hashlib.sha256("\n".join((*REQUIREMENTS, sys.version)).encode()).hexdigest()[:12]
    folder = Path(tempfile.gettempdir(), f"touchstone-otel-clients-{digest}")
    python, done = folder / "bin/python", folder / "complete"
    if not done.exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True, timeout=120)
        command = [str(python), "-m", "pip", "install", "-q", *REQUIREMENTS]
        install = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
        if install.returncode:
            (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(install.stderr.strip()[-300:])
        done.touch()
    return str(python)


def check(python: str, client: str) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    command = [python, "-m", "tests.runtime.otel_clients", client]
    run = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=100, env=environment | {"PYTHONPATH": str(ROOT)}
    )
    assert run.returncode == 0, run.stderr[-2000:]
    rows = [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]
    common = {"question": QUESTION, "answer": ANSWER}
    assert rows == [NOTHING | common | {"call": call} | more for call, more in EXPECTED[client].items()]


@pytest.mark.parametrize("client", ["genai", "openinference"])
def test_what_a_client_sends_is_read(client: str) -> None:
    pytest.importorskip("openinference.instrumentation.openai")
    pytest.importorskip("opentelemetry.instrumentation.genai.openai")
    check(sys.executable, client)


@pytest.mark.network
@pytest.mark.timeout(900)
@pytest.mark.parametrize("client", ["openinference-langchain", "openllmetry", "openllmetry-langchain"])
def test_what_a_client_of_an_environment_of_its_own_sends_is_read(client: str, elsewhere: str) -> None:
    check(elsewhere, client)
