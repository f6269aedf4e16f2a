"""The keys of every verb's JSON stay: programs read them. `python -m tests.test_cli_documents` writes them anew."""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import re
import tempfile
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from calibrate.cli import main
from calibrate.cli.output import to_json
from calibrate.simulate.cells import Cell
from calibrate.simulate.targets import Report, Row

PINNED = Path(__file__).with_suffix(".json")
# Objects whose keys are data: names of detectors, models, strata and designs, reasons, days.
BY_NAME = {"detectors", "estimate", "why", "unscored", "left_out", "strata", "labels", "params", "scored_nothing",
           "labellers", "verdicts", "failed", "problems", "traffic", "*", "inputs", "standings", "tiers", "scored",
           "figures", "evidence_of", "not_held", "statuses", "rows", "tables_sha256", "lacks", "items",
           "unavailable"}  # fmt: skip
# … each of which holds an object of its own, with keys of ours.
OF_A_NAME = re.compile(r"(detectors|estimate|inputs|standings|scored|figures|strata|evidence_of|items)\.\*$")
# None, or an object: whether anything is undecided depends on the week's draw, and whether a rate changed on how many
# weeks the traces of the last 33 hours fall into, so on the day of the week.
MAY_BE_NONE = ("settled", "series[].change")
WORDS = ["parcels", "leave", "our", "warehouse", "before", "noon", "except", "on", "public", "holidays"]


def keys(document: Any, place: str = "") -> Iterator[str]:
    """The path of every value. Items of a list share one, and so do values that are keyed by names."""
    if place:
        yield place
    if f".{place}".endswith(tuple(f".{name}" for name in MAY_BE_NONE)):
        return
    if isinstance(document, dict):
        for key, value in document.items():
            yield from keys(value, f"{place}.{'*' if keyed_by_names(place) else key}".lstrip("."))
    elif isinstance(document, list):
        for value in document:
            yield from keys(value, f"{place}[]") if isinstance(value, (dict, list)) else ()


def keyed_by_names(place: str) -> bool:
    return place.rpartition(".")[2] in BY_NAME and not OF_A_NAME.search(place)


def write_traces(path: Path, start: int, count: int, *, model: str = "", labelled: bool = False) -> str:
    """Answers of ten words: clean ones repeat six or more of their source's, hallucinated ones seven or fewer.

    The first 400 are of the last days, later ones of the next: a release in between is older than they are.
    """
    rng = random.Random(start)
    began = datetime.now(UTC) - timedelta(minutes=5 * 401)
    with path.open("w") as file:
        for n in range(start, start + count):
            hallucinated = rng.random() < 0.4
            repeated = rng.randint(0, 7) if hallucinated else rng.randint(6, 10)
            answer = " ".join([*WORDS[:repeated], *(f"golden{i}" for i in range(10 - repeated))])
            record: dict[str, Any] = {
                "trace_id": f"t{n}",
                "timestamp": (began + timedelta(minutes=5 * n)).isoformat(),
                "model": model or f"m{n % 2}",
                "question": "When do parcels leave?",
                "answer": answer,
                "sources": {"1": " ".join(WORDS)},
                "attributes": {"channel": "web" if n % 3 else "mail"},
            }
            if labelled:
                record["label"] = "hallucinated" if hallucinated else "clean"
            file.write(json.dumps(record) + "\n")
    return str(path)


class Session:
    """Runs verbs on one store and keeps the keys that each printed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.at = ("--store", f"sqlite:///{folder}/store.db")
        self.printed: dict[str, str] = {}

    def run(self, *arguments: str, label: str = "", store: bool = True) -> dict[str, Any]:
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
            code = main([*arguments, *(self.at if store else ()), "--json"])
        document: dict[str, Any] = json.loads(out.getvalue())
        label = label or " ".join(word for word in arguments if "/" not in word)
        assert label not in self.printed
        self.printed[label] = " ".join([f"exit {code}:", *sorted(set(keys(document)))])
        return document

    def file(self, name: str, text: str = "") -> str:
        path = self.folder / name
        if text:
            path.write_text(text)
        return str(path)

    def label_members(self, sample: str, label: str) -> None:
        """A person's labels for every member of a sample: what repeats six words or fewer is hallucinated."""
        members = self.run("sample", sample, "--list", label=f"sample --list {label}")["members"]
        shown = self.run("traces", "--limit", "5000", label=f"traces {label}")["traces"]
        golden = {trace["trace_id"]: trace["answer"].count("golden") for trace in shown}
        rows = [
            f"{member['trace_id']},{'hallucinated' if golden[member['trace_id']] >= 4 else 'clean'}"
            for member in members
        ]
        file = self.file(f"{label}.csv", "\n".join(["trace_id,verdict", *rows]))
        self.run("labels", "import", file, "--labels-as", "ann", label=f"labels import {label}")


def play(folder: Path) -> dict[str, str]:
    """Every verb and action once, in the loop's order."""
    session = Session(folder)
    run, file = session.run, session.file
    whole = write_traces(folder / "first.jsonl", 0, 400, labelled=True)
    run("import", "--preview", whole)
    run("import", whole, "--labels-as", "gold")
    run(
        "import",
        file("bad.jsonl", '{"trace_id": "x"}\n{"trace_id": "y", "answer": "a", "odd": 1}\n'),
        label="import bad",
    )
    run("traces", "--limit", "2")
    run("traces", "--limit", "0")
    run("pull", "--list")
    run("detect", "word_overlap", "token_overlap", "schema", "--all")
    run("detect", "word_overlap", "judge_yes_no", "--all", "--estimate")
    run("detect", "--list", "--all")
    run("sample", "w", "--size", "300", "--since", "all", "--seed", "1")
    run("sample", "s", "--size", "20", "--since", "all", "--seed", "1", "--design", "stratified", "--by", "model")
    run("sample", "s", "--more", "5", "--seed", "2")
    run("sample", "--plan", "0.05", "--since", "all")
    run("sample", "s", "--list")
    run("labels", "export", file("out.csv"), label="labels export")
    run("scores", "export", file("scores.csv"), label="scores export")
    run("labels", "import", file("in.csv", "trace_id,verdict\nt1,clean\nt2,clean\nnowhere,clean\nt3,odd\n"),
        "--labels-as", "bob", label="labels import")  # fmt: skip
    run("guidelines")
    guide = file("guide.toml", 'guidelines = "Look."\n[[kinds]]\nkey = "odd"\n')
    run("guidelines", "set", guide, "--why", "r", label="guidelines set")
    run("guidelines", "history")
    run("agreement")
    run("agreement", "adjudicate", "t1", "--verdict", "clean")
    run("agreement", "second-look", "--limit", "3")
    run("agreement", "double", "--size", "20", "--name", "d", "--seed", "3")
    run("detectors")
    run("models")
    run("models", "verify")
    run("models", "catalogue")
    run("baselines", "fit")
    run("baselines")
    with mock.patch.dict(os.environ, {"TOUCHSTONE_CHAT_URL": "http://localhost:9", "TOUCHSTONE_CHAT_MODEL": "m"}):
        run("alternatives", "--sample", "s", "--estimate")
    run("files")
    run("files", "show", "prices.csv")
    run("files", "reset", "prices.csv")
    run("worker")
    run("sweep", "word_overlap")
    run("choose", "word_overlap", "--sample", "w", "--save", "--reason", "r",
        label="choose word_overlap --sample w --save")  # fmt: skip
    run("choose", "word_overlap", "--policy", "elbow")
    run("choose", "token_overlap", "--strength", "bounded", "--save")
    run("choose", "token_overlap", "--policy", "alerts<=20/day")
    run("choose", "token_overlap", "--strength", "certified")
    run("segments", "word_overlap", "--by", "model")
    run("compare", "word_overlap", "token_overlap")
    run("compare", "word_overlap", "--by", "models")
    run("compare", "word_overlap", "--by", "samples")
    run("scoreboard", "--csv", file("board.csv"), label="scoreboard")
    run("probability", "word_overlap", "--save")
    run("ensemble", "logistic", "word_overlap", "token_overlap", "--save", "pair", "--reason", "r",
        label="ensemble logistic word_overlap token_overlap --save pair")  # fmt: skip
    run("ensemble", "k_of_n", "word_overlap", "token_overlap")
    run("ensemble", "list")
    run("learn", "word_overlap", "token_overlap")
    out = file("thresholds.json")
    run("release", "word_overlap", "token_overlap", "--out", out, label="release")
    run("release", "--check")
    run(
        "release", "--out", out, "--ensemble", "pair", "--tier", "word_overlap=page", "--reason", "r", label="release 2"
    )
    run("release", "--again", "1", "--out", file("again.json"), label="release --again")
    run("release", "--rollback", "1", "--reason", "r", "--out", out, label="release --rollback")
    with mock.patch.dict(os.environ, {"TOUCHSTONE_APPROVAL": "1", "TOUCHSTONE_USER": "ann"}):
        run("release", "--reason", "r", "--tier", "word_overlap=off", label="release proposed")
        run("release", "--reason", "r", "--tier", "token_overlap=page", label="release proposed again")
        run("release", "--proposals")
        run("release", "--decline", "2")
    run("release", "--approve", "1", "--out", out, label="release --approve")  # under the login name
    run("audit", "--did", "point saved", "--limit", "1")
    run("verify", out, label="verify", store=False)
    run("verify", file("none.json"), label="verify nothing", store=False)
    scores = file("scores.json", '{"word_overlap": 0.2, "other": 1}')
    run("decide", out, "--scores", scores, label="decide", store=False)
    run("gate", "--release", out, "--labels", "w", label="gate")
    run("gate", "--release", out, "--labels", "none", label="gate broken")
    run("recalibrate", "--dry-run", label="recalibrate unchanged")
    run("import", write_traces(folder / "second.jsonl", 400, 900, model="m9"), label="import second")
    run("watch", "--once", "--since", "all")
    run("watch", "--status")
    run("detect", "token_overlap", "word_overlap", "--all", label="detect second")
    run("seen")
    run("drift")
    run("recheck", "word_overlap", "--labels", "30", "--seed", "1")
    run("certify", "token_overlap", "--sample", "w", "--target", "0.6", "--labels", "150", "--seed", "1")
    run("certify", "token_overlap")
    certified = run("certify", "token_overlap", label="certify drawn")
    session.label_members(certified["fresh"], "fresh")
    run("certify", "token_overlap", label="certify labelled")
    run("certify", "token_overlap", "--save", label="certify saved")
    run("choose", "token_overlap", "--strength", "certified", "--policy", "precision>=0.6", "--save")
    run("seen", "--by", "channel")
    run("recalibrate", "--dry-run")
    run("recalibrate", "--reason", "r", "--out", out, label="recalibrate")
    run("weekly", "--size", "20", "--out", file("week.html"), label="weekly")
    run("sample", "m", "--minutes", "10", "--since", "all", "--seed", "4", "--assign", "split", "--labellers", "a,b")
    run("assign", "--sample", "m")
    run("nonsense", store=False)
    upkeep(session)
    return session.printed


def upkeep(session: Session) -> None:
    """The verbs about the store as a whole."""
    run, file = session.run, session.file
    again = ("--store", f"sqlite:///{session.folder}/again.db")
    run("backup", file("backup.db"))
    run("restore", file("backup.db"), *again, store=False, label="restore")
    run("check")
    run("export", "--all", file("store.zip"))
    run(
        "import",
        "--all",
        file("store.zip"),
        "--store",
        f"sqlite:///{session.folder}/moved.db",
        store=False,
        label="import --all",
    )


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return play(tmp_path_factory.mktemp("documents"))


PINNED_KEYS: Mapping[str, str] = json.loads(PINNED.read_text()) if PINNED.exists() else {}


def test_every_call_is_pinned(printed: dict[str, str]) -> None:
    assert list(printed) == list(PINNED_KEYS)


@pytest.mark.parametrize("label", PINNED_KEYS)
def test_the_keys_of_a_verb_stay(printed: dict[str, str], label: str) -> None:
    assert printed[label] == PINNED_KEYS[label]


def test_the_keys_of_simulate_stay() -> None:
    """It runs for minutes: here its report is written without that."""
    row = Row("certified", "≤ 0.05", 0.01, None, 0.0, 0.02, "", True)
    cell = Cell("steep", "grid", "shipped", 300, 50, 0.1, 0.0, None, 0.0, 0.5)
    document = json.loads(to_json(Report(50, 1, (row,), (cell,))))
    assert set(document) == {"replications", "seed", "rows", "cells"}
    assert set(document["rows"][0]) == {"name", "target", "measured", "error", "low", "high", "where", "met"}
    assert set(document["cells"][0]) == {
        "name", "kind", "method", "labels", "replications", "oracle_flags", "violations", "recall_share",
        "recall_error", "certified", "chance", "asked", "followed",
    }  # fmt: skip


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        PINNED.write_text(json.dumps(play(Path(place)), indent=1) + "\n")
