"""Cached reads follow every write to the tables that they name, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from calibrate.types import Label, TraceFilter
from calibrate.workflow.sampling import sample as sampling
from calibrate.workflow.sampling.topup import top_up
from db import Store, open_store
from pages.shell import cached_read
from tests.workflow.making import DETECTOR, NOW, draw, fill

ROOT = Path(__file__).parents[2]
TUNE = "pages/thresholds/tune_page.py"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(f"sqlite:///{tmp_path / 'store.db'}")


def shown(page: AppTest) -> str:
    assert not page.exception
    return " ".join(str(element.value) for element in [*page.markdown, *page.caption])


def test_labels_that_a_top_up_brings_in_count_at_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The new members are labelled already, so neither a label nor a score is written."""
    monkeypatch.setenv("TOUCHSTONE_STORE", store.url)
    fill(store, *draw(40))
    sampling.draw(store, "w47", size=20, design="random", by=None, where=TraceFilter(), seed=1, now=NOW)
    scripts = {"pages/week/page.py": "20 of 20", TUNE: "**20 labels**"}
    pages = {}
    for script, before in scripts.items():
        page = AppTest.from_file(str(ROOT / "pages" / "shell" / "workbench.py"), default_timeout=60).run()
        page.query_params.update({"sample": "w47", "detector": DETECTOR, "details": "scoreboard"})
        pages[script] = page.switch_page(f"../../{script}").run()
        assert before in shown(page)
        assert script != TUNE or "20 labels, " in shown(page)  # of the scoreboard
    top_up(store, "w47", more=20, seed=2, now=NOW)
    for script, before in scripts.items():
        assert before.replace("20", "40") in shown(pages[script].run())


def test_a_read_is_made_once_for_each_state_of_its_tables(store: Store) -> None:
    reads: list[tuple[str, int]] = []

    @cached_read(None, "labels")
    def labelled(store: Store, name: str, least: int = 0, _ignored: object = None) -> int:
        reads.append((name, least))
        return sum(store.labels.gold_counts().values())

    fill(store, [None] * 3, [0.1, 0.2, 0.3])
    assert [labelled(store, "a"), labelled(store, "a", 0, object()), labelled(store, name="a")] == [0, 0, 0]
    assert reads == [("a", 0)]
    key = store.traces.find("t0")
    assert key is not None
    sampling.draw(store, "w47", size=2, design="random", by=None, where=TraceFilter(), seed=1, now=NOW)
    assert labelled(store, "a") == 0
    assert len(reads) == 1, "a sample is no label"
    store.labels.add(key, Label("t0", "ann", "clean"), sample_id=None, now=NOW)
    assert labelled(store, "a") == 1
    assert labelled(store, "a", 1) == 1
    assert reads == [("a", 0), ("a", 0), ("a", 1)]


def test_without_groups_every_write_counts(store: Store) -> None:
    reads: list[int] = []

    @cached_read(None)
    def traces(store: Store) -> int:
        reads.append(store.traces.count(TraceFilter()))
        return reads[-1]

    assert [traces(store), traces(store)] == [0, 0]
    fill(store, [True], [0.1])
    assert traces(store) == 1
    assert reads == [0, 1]


def test_two_reads_of_one_name_are_kept_apart(store: Store, tmp_path: Path) -> None:
    other = open_store(f"sqlite:///{tmp_path / 'other.db'}")
    fill(other, [True, True], [0.1, 0.2])

    @cached_read(None)
    def count(store: Store) -> int:
        return store.traces.count(TraceFilter())

    assert [count(store), count(other)] == [0, 2]


def test_nothing_is_cached_in_another_way() -> None:
    """The open store is no read: it is kept for the life of the server."""
    users = {path.name for path in (ROOT / "pages").rglob("*.py") if "st.cache_" in path.read_text()}
    assert users == {"cache.py", "frame.py"}
