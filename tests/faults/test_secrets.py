"""No password, token or secret parameter of a URL is in a message, in --json, in a log or on a page."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest

from calibrate.cli import main
from calibrate.errors import TouchstoneError
from calibrate.runtime import load
from calibrate.thresholds.files import check_place, deliver
from calibrate.urls import HIDDEN, redact, scrub
from db import open_store

ROOT = Path(__file__).parents[2]
SECRET = "s3cr3t-Pa55"
STORES = [
    "postgresql://ann:{}@127.0.0.1:1/x",
    "postgresql://ann:{}@host:port/x",
    "postgresql://ann:{}@127.0.0.1:99999/x",
    "postgresql://ann:{}@127.0.0.1:1/x?sslmode=verify-full&sslpassword={}",
    "postgresql://ann@127.0.0.1:1/x?password={}",
    "postgresql://ann@127.0.0.1:1/x?passfile=/none&sslkey={}&nonsense={}",
    "postgresql://ann:{}/more@127.0.0.1:1/x",
    "postgresql://ann:p@{}@127.0.0.1:1/x",
    "postgresql://ann:half?{}@127.0.0.1:1/x",
    "postgresql://ann:{}#y@127.0.0.1:1/x",
    "postgresql+asyncpg://ann:{}@127.0.0.1:1/x",
    "postgresql+psycopg2://ann:{}@127.0.0.1:1/x",
    "postgresql+nothing://ann:{}@127.0.0.1:1/x",
    "postgresl://ann:{}@127.0.0.1:1/x",
    "postgres//ann:{}@127.0.0.1:1/x",
    "postgresql:/ann:{}@127.0.0.1:1/x",
    "postgresql:ann:{}@127.0.0.1/x",
    "mysql://ann:{}@127.0.0.1:1/x",
    "sqlite+pysqlcipher://:{}@/x.db",
    "sqlite:////nowhere/x.db?key={}",
    "ann:{}@127.0.0.1/x",
]
PLACES = [
    "https://ann:{}@127.0.0.1:1/t.json",
    "https://{}@127.0.0.1:1/t.json",
    "https://127.0.0.1:1/t.json?token={}",
    "https://127.0.0.1:1/t.json?X-Amz-Signature={}&y",
    "https://127.0.0.1:1/t.json#access_token={}",
    "sftp://ann:{}@127.0.0.1:1/t.json",
    "nothing://ann:{}@127.0.0.1:1/t.json?sig={}",
]


@pytest.mark.parametrize("url", STORES)
def test_a_store_url_that_does_not_work_is_told_of_without_its_secret(
    url: str, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.DEBUG)
    given_url = url.replace("{}", SECRET)
    with pytest.raises(TouchstoneError) as caught:
        open_store(given_url)
    assert SECRET not in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1
    for verb in (["traces"], ["import", __file__], ["serve", "--port", "0"]):
        for json_too in ([], ["--json"]):
            assert main([*verb, "--store", given_url, *json_too]) in (1, 2)
    monkeypatch.setenv("TOUCHSTONE_STORE", given_url)
    assert main(["labels", "export", "/tmp/never.csv"]) in (1, 2)
    captured = capfd.readouterr()
    assert SECRET not in captured.out + captured.err + caplog.text
    assert "this should not happen" not in captured.err


@pytest.mark.parametrize(
    ("url", "words"),
    [
        (
            "postgresql+asyncpg://ann:s3cret@h/x",
            "names the driver 'asyncpg', which is not used here: begin it with p",
        ),
        ("postgresql://ann:s3cret@host:port/x", r"'postgresql://ann:\*\*\*@host:port/x' is not one: write "),
        ("postgresl://ann:s3cret@h/x", "names 'postgresl'; Touchstone keeps stores in sqlite or postgresql"),
        ("postgresql://ann:s3@cret@h/x", "has more than one @: write %40 for an @ in the password"),
    ],
)
def test_a_mistyped_store_url_is_told_with_what_is_wrong(url: str, words: str) -> None:
    with pytest.raises(TouchstoneError, match=words):
        open_store(url)


@pytest.mark.parametrize("url", PLACES)
def test_a_place_of_a_thresholds_file_is_told_of_without_its_secret(
    url: str, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    caplog.set_level(logging.DEBUG)
    place = url.replace("{}", SECRET)
    messages = []
    for act in (
        lambda: load(place),
        lambda: check_place(place, store=None),
        lambda: deliver(b"{}", place),
    ):
        try:
            act()
        except TouchstoneError as error:
            messages.append(str(error))
    assert messages
    store = f"sqlite:///{tmp_path}/x.db"
    open_store(store).close()
    for words in (["release", "--out", place], ["release", "--again", "1", "--out", place], ["watch", "--file", place]):
        assert main([*words, "--store", store, "--json"]) in (1, 2)
    captured = capfd.readouterr()
    assert SECRET not in "".join(messages) + captured.out + captured.err + caplog.text


@pytest.mark.parametrize("url", STORES[::4])
def test_no_page_shows_the_secret(url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("TOUCHSTONE_STORE", url.replace("{}", SECRET))
    page = AppTest.from_file(str(ROOT / "pages/shell/workbench.py"), default_timeout=120).run()
    shown = [
        str(element.value) for element in [*page.text, *page.markdown, *page.caption, *page.error, *page.exception]
    ]
    assert any("store" in text for text in shown)
    assert SECRET not in "".join(shown) + caplog.text


def test_an_error_that_nobody_foresaw_is_scrubbed_too(monkeypatch: pytest.MonkeyPatch) -> None:
    code = (
        "import os, sys, calibrate.cli as cli\n"
        "def broken(args): raise RuntimeError(args.store + ' key ' + os.environ['TOUCHSTONE_CHAT_KEY'])\n"
        "cli._call = broken\n"
        "sys.exit(cli.main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", code, "traces", "--json", "--store", f"postgresql://u:{SECRET}@h/x"]
    environment = {**os.environ, "TOUCHSTONE_CHAT_KEY": f"key-{SECRET}"}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=environment)
    assert done.returncode == 1
    assert SECRET not in done.stdout + done.stderr
    assert "this should not happen" in json.loads(done.stdout)["error"]


NAMES = st.text("abcXYZ019-._~", min_size=1, max_size=8)


@given(NAMES, st.text(st.characters(codec="ascii", exclude_characters="@"), min_size=4, max_size=12), NAMES)
def test_whatever_stands_before_the_last_at_is_hidden(user: str, password: str, host: str) -> None:
    shown = redact(f"postgresql://{user}:{password}Q7@{host}/db")
    assert shown == f"postgresql://{user}:{HIDDEN}@{host}/db"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("sqlite:///a folder/x@y.db", "sqlite:///a folder/x@y.db"),
        ("sqlite:////home/x@y.db", "sqlite:////home/x@y.db"),
        ("sqlite:///x.db?mode=ro", "sqlite:///x.db?mode=ro"),
        ("postgresql://ann@h:5432/x?sslmode=require", "postgresql://ann@h:5432/x?sslmode=require"),
        ("s3://bucket/a@b/t.json", "s3://bucket/a@b/t.json"),
        ("https://h:8080/t@1.json", "https://h:8080/t@1.json"),
        ("/home/ann/t@1?.json", "/home/ann/t@1?.json"),
        ("C:\\t@1.json", "C:\\t@1.json"),
    ],
)
def test_what_is_no_secret_stays(url: str, shown: str) -> None:
    assert redact(url) == shown


def test_secrets_of_a_url_are_taken_out_of_a_text() -> None:
    urls: Sequence[str] = ["postgresql://u:p%40ss@h/x?sslpassword=abc1", "https://tok3n@h/x"]
    text = "failed for p@ss and p%40ss, abc1, tok3n, u, x"
    assert scrub(text, urls) == "failed for *** and ***, ***, ***, u, x"
