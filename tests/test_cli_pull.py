"""`pull` on the command line: what it refuses, what it lists, and what the Import page says of it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from calibrate import cli
from db import open_store

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


@pytest.fixture
def url(tmp_path: Path) -> str:
    store = open_store(f"sqlite:///{tmp_path}/s.db")
    store.pulls.begin("phoenix shop at host", "phoenix", {"project": "shop"}, now=NOW)
    store.pulls.advance("phoenix shop at host", {"at": "2026-11-20"}, traces=1234, now=NOW)
    store.pulls.finish("phoenix shop at host", now=NOW)
    store.close()
    return f"sqlite:///{tmp_path}/s.db"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "`pull` takes a system: langfuse, phoenix, mlflow, langsmith, sql"),
        (["nowhere"], "not 'nowhere'"),
        (["phoenix", "--limit", "0"], "--limit 0 pulls nothing"),
        (["phoenix", "--overlap", "all"], "--overlap 'all' is no length of time"),
        (["phoenix", "--since", "soon"], "soon"),
        (["mlflow", "--name", "phoenix shop at host"], "is one from phoenix: give this one another --name"),
        (["mlflow", "--name", "a\x1b[31m"], "holds a line end or a control character"),
        (["sql", "--url", "sqlite:///a.db", "--query", " "], "--query is empty"),
        (["--forget", "another"], "there is no pull 'another'"),
    ],
)
def test_what_cannot_be_is_refused_with_the_remedy(
    url: str, words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["pull", *words, "--store", url]) == 2
    assert message in capsys.readouterr().err


def test_mlflow_without_an_address_makes_no_database(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("mlflow")
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    empty = tmp_path / "here"
    empty.mkdir()
    monkeypatch.chdir(empty)
    assert cli.main(["pull", "mlflow", "--store", url]) == 2
    assert "set MLFLOW_TRACKING_URI, or give --url" in capsys.readouterr().err
    assert list(empty.iterdir()) == []


def test_pulls_are_listed_and_forgotten(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["pull", "--list", "--store", url]) == 0
    assert "phoenix shop at host  phoenix    1,234  2026-11-20 12:00  yes" in capsys.readouterr().out
    assert cli.main(["pull", "--list", "--store", url, "--json"]) == 0
    (pull,) = json.loads(capsys.readouterr().out)["pulls"]
    assert (pull["settings"], pull["cursor"], pull["traces"]) == ({"project": "shop"}, {"at": "2026-11-20"}, 1234)
    assert cli.main(["pull", "--forget", "phoenix shop at host", "--store", url]) == 0
    assert cli.main(["pull", "--list", "--store", url]) == 0
    assert "nothing was pulled" in capsys.readouterr().out


def _page(url: str) -> None:
    from db import open_store
    from pages.traces.import_pulls import show_pulls

    show_pulls(open_store(url))


def test_the_import_page_names_pulls_and_the_command_that_goes_on(url: str, tmp_path: Path) -> None:
    page = AppTest.from_function(_page, args=(url,), default_timeout=60).run()
    assert not page.exception
    assert page.dataframe[0].value["Pull"].tolist() == ["phoenix shop at host"]
    assert page.code[0].value == "python -m calibrate pull phoenix --name 'phoenix shop at host'"
    empty = AppTest.from_function(_page, args=(f"sqlite:///{tmp_path}/empty.db",), default_timeout=60).run()
    assert not empty.exception
    assert empty.code[0].value == "python -m calibrate pull phoenix --since 14d"
