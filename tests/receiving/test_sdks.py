"""Real SDKs export to the running command: question, answer, model and sources of every answer are in the store."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from calibrate.types import Trace
from calibrate.workflow.detection.external import undefined_of
from db import Store, open_store
from tests.receiving.commands import ROOT, running, wait_until
from tests.receiving.making import Address, stored

FOLDER = Path(__file__).parent
TOKEN = "secret"
PACKAGES = {
    "@opentelemetry/api": "1.9.1",
    "@opentelemetry/sdk-trace-node": "2.12.0",
    "@opentelemetry/exporter-trace-otlp-http": "0.223.1",
    "@opentelemetry/exporter-trace-otlp-proto": "0.223.1",
}


@pytest.fixture(scope="module")
def receiver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Store, Address]]:
    url = f"sqlite:///{tmp_path_factory.mktemp('receive')}/touchstone.db"
    with running(url, "--wait", "1", token=TOKEN) as (_, address):
        store = open_store(url)
        yield store, address
        store.close()


@pytest.fixture(scope="session")
def packages() -> Path:
    """A folder with the JavaScript SDK, fetched once a machine."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("no npm here")
    folder = Path(tempfile.gettempdir()) / f"touchstone-npm-{'-'.join(PACKAGES.values())}"
    if not (folder / "done").exists():
        folder.mkdir(exist_ok=True)
        names = [f"{name}@{version}" for name, version in PACKAGES.items()]
        command = [npm, "install", "--prefix", str(folder), "--no-audit", "--no-fund", "--ignore-scripts", *names]
        subprocess.run(command, check=True, capture_output=True, timeout=100)
        (folder / "done").touch()
    return folder


def environment(address: Address, *, gzip: bool) -> dict[str, str]:
    return {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": f"http://127.0.0.1:{address.port}/v1/traces",
        "OTEL_EXPORTER_OTLP_TRACES_HEADERS": f"Authorization=Bearer%20{TOKEN}",
        "OTEL_EXPORTER_OTLP_TRACES_COMPRESSION": "gzip" if gzip else "none",
    }


def traces_of(store: Store, model: str) -> list[Trace]:
    return sorted((trace for trace in stored(store) if trace.model == model), key=lambda trace: trace.answer)


def check(store: Store, model: str, count: int = 2) -> None:
    wait_until(lambda: len(traces_of(store, model)) == count)
    for trace in traces_of(store, model):
        number = trace.answer.removeprefix("It has ").removesuffix(".")
        assert number in ("0", "1")
        assert trace.question == "How many rivers has Paris?"
        assert [(each.number, each.text, each.title, each.retrieval_score) for each in trace.sources] == [
            ("1", f"Paris has {number} rivers.", "a", 0.5)
        ]
        assert trace.operation == "chat"
        assert trace.timestamp is not None
        assert trace.attributes["session.id"] == "s1"
        assert len(trace.id) == 49


@pytest.mark.parametrize("gzip", [True, False])
def test_python(receiver: tuple[Store, Address], gzip: bool) -> None:
    store, address = receiver
    app = [sys.executable, str(FOLDER / "app.py")]
    done = subprocess.run(app, env=environment(address, gzip=gzip), capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    check(store, "python-model", 2 if gzip else 4)
    wait_until(lambda: [(each.detector.name, each.high) for each in undefined_of(store)] == [("relevance", 0.25)])


@pytest.mark.network
@pytest.mark.parametrize(("exporter", "count"), [("http", 2), ("proto", 4)])
def test_javascript(receiver: tuple[Store, Address], packages: Path, exporter: str, count: int) -> None:
    store, address = receiver
    app = shutil.copy(FOLDER / "app.js", packages)
    command = ["node", str(app), f"@opentelemetry/exporter-trace-otlp-{exporter}"]
    done = subprocess.run(
        command, env=environment(address, gzip=exporter == "proto"), capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
    check(store, "javascript-model", count)
