"""What a version of the guide changed, and which key a kind gets."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrate.report.sentences.labelling.guides import kinds_changed
from calibrate.types import Guide, Kind
from calibrate.workflow.labelling import guide_changes, guide_file, guides
from db import Store, open_store
from tests.workflow.making import NOW


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(f"sqlite:///{tmp_path / 'store.db'}")


def rows(store: Store) -> list[tuple[str | None, str, str]]:
    return [(kind.key, kind.name, kind.meaning) for kind in guides.current(store).kinds]


def test_a_change_is_told_line_by_line_and_kind_by_kind() -> None:
    kinds = (Kind("a", "A", "one"), Kind("b", "B"), Kind("c", "C"))
    before = Guide(1, "first\nsecond\nthird", kinds)
    after = Guide(2, "first\n2nd\nthird", (Kind("c", "C"), Kind("a", "Alpha", "other"), Kind("d", "D")))
    changes = guide_changes.changes(before, after)
    assert changes.lines == ((" ", "first"), ("-", "second"), ("+", "2nd"), (" ", "third"))
    told = kinds_changed(changes)
    assert told == ["added D", "retired B", "redefined Alpha", "A is now Alpha", "another order"]
    assert not guide_changes.changes(before, Guide(9, before.text, kinds))


def test_a_renamed_kind_keeps_its_key_and_a_retired_one_comes_back_as_itself(store: Store) -> None:
    key, _, meaning = rows(store)[0]
    changed = [(key, "Made up", meaning), *rows(store)[2:], (None, "Wrong date", "Another day."), (None, " ", "")]
    kinds = guide_changes.kinds_named(store, changed)
    assert (kinds[0].key, kinds[0].name, kinds[-1]) == (
        "fabrication", "Made up", Kind("wrong_date", "Wrong date", "Another day."),
    )  # fmt: skip
    guides.save(store, "Look.", kinds, by="ann", now=NOW)
    assert [kind.key for kind in guide_changes.retired(store)] == ["contradiction"]
    again = guide_changes.kinds_named(store, [*rows(store), (None, "contradiction", "Back.")])
    assert again[-1] == Kind("contradiction", "contradiction", "Back.")
    # The name is free since it was renamed, the key is not: labels of before hold it.
    other = guide_changes.kinds_named(store, [*rows(store), (None, "Fabrication", "Another idea.")])
    assert other[-1].key == "fabrication_b"


@given(st.lists(st.text(max_size=60), max_size=9))
def test_every_name_gets_a_key_of_its_own_that_a_label_can_hold(names: list[str]) -> None:
    keys: list[str] = []
    for name in names:
        keys.append(guide_changes.new_key(name, keys))
    assert len(set(keys)) == len(keys)
    for key in keys:
        guide_file.check("Look.", [Kind(key, "A name")])


def test_many_kinds_of_one_name_get_keys() -> None:
    keys: list[str] = []
    for _ in range(60):
        keys.append(guide_changes.new_key("日付", keys))
    assert len(set(keys)) == 60
    assert keys[:3] == ["kind", "kind_b", "kind_c"]
