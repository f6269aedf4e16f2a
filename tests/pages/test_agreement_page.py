"""The Disputes page names every labeller, also one of whom nothing is known yet."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from calibrate.types import Label
from db import Store, audit
from tests.workflow.making import NOW, fill

WORKBENCH = Path(__file__).resolve().parents[2] / "pages" / "shell" / "workbench.py"


@pytest.fixture(autouse=True)
def nobody() -> Iterator[None]:
    yield
    audit.identify_by(lambda: None)


def said(store: Store, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setenv("TOUCHSTONE_STORE", store.url)
    page = AppTest.from_file(str(WORKBENCH), default_timeout=60).run()
    page.switch_page("../label/agreement_page.py").run()
    assert not page.exception
    return [each.value for each in (*page.markdown, *page.caption)]


def test_a_labeller_without_a_gold_trace_is_said_to_have_none(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(store, [None] * 6, [0.5] * 6)
    for who, verdict, places in (("ann", "clean", (0, 1, 2)), ("bob", "clean", (0, 1)), ("dora", "clean", (4,))):
        for place in places:
            key = store.traces.find(f"t{place}") or 0
            store.labels.add(key, Label("", who, verdict), sample_id=None, now=NOW)  # type: ignore[arg-type]
    (lines,) = (text for text in said(store, monkeypatch) if "says what gold says" in text)
    assert lines.replace("\\", "").splitlines() == [
        "- ann says what gold says of 2 of 2 traces (34–100%): called 0 of 2 clean hallucinated.",
        "- bob says what gold says of 2 of 2 traces (34–100%): called 0 of 2 clean hallucinated.",
        "- dora: no gold trace labelled yet.",
    ]
    assert not any("too high" in text for text in said(store, monkeypatch))


def test_without_a_second_person_there_is_nothing_to_hold_anybody_against(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(store, [True, False], [0.5] * 2)
    assert not any("gold says" in text or "no gold trace" in text for text in said(store, monkeypatch))
