"""What is said of labels that nobody drew: no share of the traffic, where they count, and what to do."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from calibrate.cli import main
from calibrate.report.sentences.tuning import scoreboard as sentences
from calibrate.workflow.traces.import_labelled import import_traces
from calibrate.workflow.tuning.scoreboard import scoreboard
from db import Store
from tests.workflow.evidence.test_which_labels import complain, draw, fill_traffic, keys_of, say
from tests.workflow.making import ABOVE, DETECTOR, NOW
from tests.workflow.traces.test_import_labelled import write


@pytest.fixture
def complaints(store: Store) -> Store:
    """Traffic of which only what people complained of has labels: 77 of 80 are hallucinated."""
    complain(store, fill_traffic(store))
    return store


def test_labels_of_no_design_are_no_share_of_the_traffic(
    complaints: Store, store_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    at = ("--store", store_url)
    assert main(["compare", DETECTOR, ABOVE, *at]) == 0
    table = capsys.readouterr().out.partition("caution:")[0]
    assert "Of traffic" in table
    assert not re.search(r"\d% \(", table)
    assert main(["seen", *at]) == 0
    out = capsys.readouterr().out
    assert "not in these labels" not in out
    assert "not known" in out


def test_a_scoreboard_says_that_labels_wait(store: Store) -> None:
    bad = fill_traffic(store)
    sample = draw(store, "w1", size=40)
    say(store, keys_of(store, sample)[1:], bad)
    said = set(sentences.silent(scoreboard(store, sample="w1")).values())
    assert said == {"its labels wait behind a trace that nobody has labelled"}


@pytest.mark.parametrize(
    ("words", "remedy"),
    [
        ((DETECTOR,), "there is only token_overlap: name another, or compare within one (`--by models`"),
        ((DETECTOR, DETECTOR), "token_overlap is named twice: leave one out"),
        ((DETECTOR, "--by", "settings"), "run the detector with other parameters"),
        ((DETECTOR, "--by", "samples"), "there is none: draw and label another one"),
    ],
)
def test_a_comparison_of_one_names_the_remedy(
    complaints: Store, store_url: str, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], remedy: str
) -> None:
    assert main(["compare", *words, "--store", store_url]) == 2
    assert remedy in capsys.readouterr().err


def test_an_import_of_traces_says_where_their_labels_count(
    store: Store, store_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As `labels import` does: traces imported again with labels may be members of a sample by then."""
    at = ("--store", store_url)
    import_traces(store, write(tmp_path / "t.jsonl", labelled=0), keep_labels=False, now=NOW)
    members = keys_of(store, draw(store, "w1", size=12, design="random"))
    labelled = write(tmp_path / "again.jsonl", n=6, labelled=6)
    inside = sum(pk <= 6 for pk in members)
    assert 0 < inside < 6
    assert main(["import", str(labelled), "--json", *at]) == 0
    document = json.loads(capsys.readouterr().out)
    (of,) = document["in_samples"]
    assert (of["sample"], of["counted"] + of["waiting"], document["outside_samples"]) == ("w1", inside, 6 - inside)
    assert main(["import", str(labelled), *at]) == 0
    assert f"{inside} labels are of members of the sample 'w1'" in capsys.readouterr().out
    file = tmp_path / "l.csv"
    file.write_text("trace_id,verdict\nt20,clean\n")
    assert main(["labels", "import", str(file), "--json", *at]) == 0
    document = json.loads(capsys.readouterr().out)
    assert sum(each["counted"] + each["waiting"] for each in document["in_samples"]) + document["outside_samples"] == 1
