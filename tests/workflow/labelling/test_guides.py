"""The labelling guide: versions are numbered and stay, labels keep theirs, and its file goes out and comes in again."""

from __future__ import annotations

import json
import threading
import tomllib
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrate.cli import main
from calibrate.errors import BadInput
from calibrate.types import KINDS, Chosen, Guide, Kind, Label, Member, Record, Trace, TraceFilter
from calibrate.workflow.labelling import guide_file, guides
from calibrate.workflow.upkeep import moving
from db import Store, open_store

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
ODD, EVEN = Kind("odd", "Odd", "Not even."), Kind("even", "Even")
ANSWER = "Ms. Amsel of flat seven says the 2026-K77 boiler leaks again"


def add(store: Store, *answers: str) -> None:
    records = [Record(n, Trace(f"t{n}", answer)) for n, answer in enumerate(answers, 1)]
    store.traces.add(records, labels_as=None, now=NOW)


def test_a_new_store_has_the_kinds_that_labels_have_always_had(store: Store) -> None:
    guide = guides.current(store)
    assert (guide.version, guide.saved_by, guide.saved_at) == (0, None, None)
    assert tuple(kind.key for kind in guide.kinds) == KINDS
    assert guides.history(store) == [guide]


def test_versions_are_numbered_and_stay(store: Store) -> None:
    saved, is_new = guides.save(store, " Look.\r\nTwice. ", [ODD, EVEN], by="ann", now=NOW, why="a try")
    assert (saved, is_new) == (Guide(1, "Look.\nTwice.", (ODD, EVEN), "a try", "ann", NOW), True)
    later = NOW + timedelta(hours=1)
    guides.save(store, "Look.", [EVEN], by="bob", now=later)
    assert [(guide.version, guide.saved_by) for guide in guides.history(store)] == [(2, "bob"), (1, "ann"), (0, None)]
    assert guides.get(store, 1) == saved
    assert guides.current(store) == Guide(2, "Look.", (EVEN,), None, "bob", later)
    assert guides.save(store, "Look.", [EVEN], by="cy", now=later) == (guides.current(store), False)
    with pytest.raises(BadInput, match="has no version 3: name one from 0 to 2"):
        guides.get(store, 3)
    keys = [kind.key for kind in guides.known_kinds(store)]
    assert keys == ["even", "odd", *KINDS]  # those that count now come first, then what older labels may have


def test_a_label_keeps_the_version_it_was_given_under(store: Store) -> None:
    add(store, "one", "two")
    store.labels.add(1, Label("t1", "ann", "clean"), sample_id=None, now=NOW)
    guides.save(store, "Look.", [ODD], by="ann", now=NOW)
    store.labels.add(2, Label("t2", "ann", "clean"), sample_id=None, now=NOW)
    store.labels.add(2, Label("t2", "bob", "clean", guide=0), sample_id=None, now=NOW)  # had the old page open
    store.labels.add_many([Label("t1", "import", "clean")], now=NOW)  # nobody knows
    assert [(label.labeller, label.guide) for pk in (1, 2) for label in store.labels.of_trace(pk)] == [
        ("ann", 0), ("import", None), ("ann", 1), ("bob", 0),
    ]  # fmt: skip


def test_who_changes_an_older_version_is_told(store: Store) -> None:
    guides.save(store, "Look.", [ODD], by="ann", now=NOW, after=0)
    with pytest.raises(BadInput, match="saved version 1 of the labelling guide after the version 0"):
        guides.save(store, "Look twice.", [ODD], by="bob", now=NOW, after=0)
    assert [guide.version for guide in guides.history(store)] == [1, 0]


@pytest.mark.both_databases
def test_of_two_who_change_it_at_once_one_is_told(store: Store) -> None:
    outcomes: list[str] = []
    ready = threading.Barrier(4)

    def change(who: str) -> None:
        ready.wait()
        try:
            guides.save(store, f"Look, says {who}.", [ODD], by=who, now=NOW, after=0)
            outcomes.append("saved")
        except BadInput:
            outcomes.append("refused")

    threads = [threading.Thread(target=change, args=(who,)) for who in ("ann", "bob", "cy", "dee")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["refused", "refused", "refused", "saved"]
    assert [guide.version for guide in guides.history(store)] == [1, 0]


@pytest.mark.parametrize(
    ("text", "kinds", "problem"),
    [
        ("", [ODD], "no `guidelines`"),
        ("Look.", [], "it has 0 kinds: give 1 to 9"),
        ("Look.", [Kind("k" + chr(97 + n), str(n)) for n in range(10)], "it has 10 kinds"),
        ("Look.", [Kind("wrong-citation", "Wrong")], "'wrong-citation' of a kind is not made of a-z and _"),
        ("Look.", [ODD, replace(ODD, name="Other")], "two kinds have the key 'odd'"),
        ("Look.", [ODD, Kind("even", "ODD")], "two kinds have the name 'odd'"),
        ("Look.", [Kind("odd", "O\x1b[31mdd")], "the name of 'odd'"),
        ("Look.", [Kind("odd", "x" * 41)], "the name of 'odd'"),
        ("x" * 20_001, [ODD], "20,001 characters"),
    ],
)
def test_a_guide_nobody_could_work_with_is_refused(text: str, kinds: list[Kind], problem: str) -> None:
    with pytest.raises(BadInput, match=problem.replace("[", r"\[")):
        guide_file.check(text, kinds)


LINES = st.text(st.characters(exclude_categories=("Cs",)), max_size=60)


@given(text=LINES, meaning=LINES)
def test_a_guide_goes_out_as_toml_and_comes_in_again(text: str, meaning: str) -> None:
    written = guide_file.write(Guide(1, text, (Kind("odd", "Odd", meaning), EVEN)))
    document = tomllib.loads(written)
    assert document["guidelines"].removesuffix("\n") == text
    assert document["kinds"][0].get("meaning", "") == meaning
    if text.strip():
        parsed, kinds = guide_file.parse(written)
        assert parsed == text.replace("\r\n", "\n").strip()
        assert [kind.key for kind in kinds] == ["odd", "even"]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("guidelines = ", "it is no TOML"),
        ('text = "Look."', "it names 'text'"),
        ('guidelines = "Look."\nkinds = ["odd"]', "`kinds` is no list of kinds"),
        ('guidelines = "Look."\n[[kinds]]\nkey = 7', "the key of a kind is 7, no text"),
        ('guidelines = "Look."\n[[kinds]]\nkey = "odd"\ncolour = "red"', "a kind names 'colour'"),
        ("guidelines = 3", "it has no `guidelines`"),
    ],
)
def test_a_file_that_is_no_guide_is_refused(content: str, problem: str) -> None:
    with pytest.raises(BadInput, match=problem):
        guide_file.parse(content)


def test_the_verb_shows_sets_and_lists(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    open_store(url).close()
    assert main(["guidelines", "--store", url]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("# labelling guide, version 0 (came with Touchstone; 6 kinds)\n")
    file = tmp_path / "guide.toml"
    file.write_text(shown)
    assert main(["guidelines", "set", str(file), "--store", url]) == 0  # what it shows is what it takes
    assert "the file says what it says already" in capsys.readouterr().out
    file.write_text(shown.replace('"Other"', '"Something else"'))
    assert main(["guidelines", "set", str(file), "--why", "clearer", "--store", url, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["guide"]["version"] == 1
    assert main(["guidelines", "show", "--at", "0", "--store", url]) == 0
    assert capsys.readouterr().out == shown
    assert main(["guidelines", "history", "--store", url, "--json"]) == 0
    assert [line["why"] for line in json.loads(capsys.readouterr().out)["versions"]] == ["clearer", None]
    for words in (["set"], ["show", "x.toml"], ["history", "--at", "1"], ["show", "--why", "x"], ["set", "no.toml"]):
        assert main(["guidelines", *words, "--store", url]) == 2
    with_store = open_store(url)
    assert [(entry.verb, entry.what) for entry in with_store.audit.entries(verb="guide changed")] == [
        ("guide changed", "version 1")
    ]
    with_store.close()


def test_kinds_of_the_team_come_in_with_labels(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    store = open_store(url)
    add(store, "one")
    guides.save(store, "Look.", [ODD], by="ann", now=NOW)
    file = tmp_path / "labels.jsonl"
    file.write_text(json.dumps({"trace_id": "t1", "labeller": "ann", "verdict": "hallucinated", "kinds": ["odd"]}))
    assert main(["labels", "import", str(file), "--store", url]) == 0
    assert [label.kinds for label in store.labels.of_trace(1)] == [("odd",)]
    store.close()


def test_versions_move_with_the_store_and_quotes_are_purged(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path}/a.db")
    add(store, ANSWER)
    store.labels.add(1, Label("t1", "ann", "clean"), sample_id=None, now=NOW)
    guides.save(store, f"Look: {ANSWER} is clean.", [ODD], by="ann", now=NOW, why="as with 2026-K77")
    moving.export_all(store, tmp_path / "a.zip", now=NOW)
    moving.import_all(f"sqlite:///{tmp_path}/b.db", tmp_path / "a.zip")
    moved = open_store(f"sqlite:///{tmp_path}/b.db")
    assert guides.current(moved) == guides.current(store)
    assert moved.labels.of_trace(1) == store.labels.of_trace(1)
    moved.purges.remove(Chosen(trace_ids=("t1",)), by="ann", now=NOW)
    purged = guides.current(moved)
    assert "Amsel" not in purged.text
    assert "2026-K77" not in f"{purged.text} {purged.why}"
    assert purged.kinds == (ODD,)
    for each in (store, moved):
        each.close()


def test_an_answer_of_the_labelling_surface_keeps_its_version_too(store: Store) -> None:
    add(store, "one")
    sample = store.samples.add(
        "w", design="random", by=None, seed=1, pool=1, undated=0, where=TraceFilter(), strata={"all": (1, 1)},
        members=[Member(1, 1.0, "all")], now=NOW,
    )  # fmt: skip
    guides.save(store, "Look.", [ODD], by="ann", now=NOW)
    for who, version in (("ann", None), ("bob", 0)):
        store.answers.add(1, Label("t1", who, "clean", guide=version), sample_id=sample.id, seen=None, now=NOW)
    assert [(label.labeller, label.guide) for label in store.labels.of_trace(1)] == [("ann", 1), ("bob", 0)]
