"""What READMEs say to paste works where it is pasted, or says in a sentence what is lacking."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from openai import OpenAI

from examples.rag import app
from tests.runtime.serving import Server, serving

ROOT = Path(__file__).parents[2]
JAVASCRIPT = ROOT / "docs" / "consumers" / "javascript"


@pytest.fixture
def nobody() -> str:
    """The address of an endpoint that is not there."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}/v1"


@pytest.fixture
def endpoint() -> Iterator[Server]:
    """One that is there, and has nothing."""
    with serving(lambda _: (404, {}, b"{}")) as server:
        yield server


def said(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> str:
    """What the example ends with."""
    monkeypatch.setattr(sys, "argv", ["app", *arguments])
    monkeypatch.setattr(app.wait, "__defaults__", (0.0,))
    with pytest.raises(SystemExit) as caught:
        app.main()
    assert isinstance(caught.value.code, str)  # Python prints it, and exits with 1
    return caught.value.code


def test_the_example_says_in_a_sentence_what_it_lacks(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, nobody: str, endpoint: Server
) -> None:
    traces = ("--traces", str(tmp_path / "traces.jsonl"))
    assert said(monkeypatch, "--url", nobody, *traces).startswith(f"nobody answers at {nobody}: start a chat endpoint")
    assert said(monkeypatch, "--url", endpoint.url, *traces).startswith(f"{endpoint.url}: Error code: 404")
    lacking = said(monkeypatch, "--url", endpoint.url, *traces, "--thresholds", "nowhere.json")
    assert lacking.startswith("nowhere.json: no such file")


def test_the_example_waits_for_a_server_that_was_just_started(monkeypatch: pytest.MonkeyPatch, nobody: str) -> None:
    waited = []
    client = OpenAI(base_url=nobody, api_key="none", max_retries=0)
    with ExitStack() as stack:

        def sleep(seconds: float) -> None:
            waited.append(seconds)
            if len(waited) == 3:
                server = stack.enter_context(serving(lambda _: (404, {}, b"{}")))
                client.base_url = f"{server.url}/v1"  # type: ignore[assignment]

        monkeypatch.setattr(app.time, "sleep", sleep)
        app.wait(client)
    assert len(waited) == 3


def vectors(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = ["node", str(folder / "vectors.mjs"), *arguments]
    return subprocess.run(command, cwd=os.sep, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.skipif(shutil.which("node") is None, reason="no node here")
def test_the_vectors_run_where_they_are_and_a_copy_says_what_to_put_beside_it(tmp_path: Path) -> None:
    here = vectors(JAVASCRIPT)
    assert (here.returncode, here.stderr) == (0, "")
    assert here.stdout.endswith(" vectors, 0 not met\n")
    assert not here.stdout.startswith("0 ")
    lost = vectors(JAVASCRIPT, "nowhere")
    assert (lost.returncode, lost.stderr.count("\n")) == (1, 1)
    assert "nowhere: no such folder" in lost.stderr
    for one in JAVASCRIPT.glob("*.mjs"):
        shutil.copy(one, tmp_path)
    copy = vectors(tmp_path, str(tmp_path))
    assert (copy.returncode, copy.stderr.count("\n")) == (1, 1)
    assert "schema.json is not here: copy it beside" in copy.stderr
