"""External scores from the file to production and back, by the command line: what the figures are by scikit-learn."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import precision_recall_curve, precision_score, recall_score, roc_auc_score

from calibrate import workspace
from calibrate.cli import main
from calibrate.runtime import Guard, decide, load
from calibrate.types import Trace

NAME = "ragas_faithfulness"
N = 160
CLOSE = 1e-12


@pytest.fixture(autouse=True)
def own_workspace() -> Iterator[None]:
    yield
    workspace.use(workspace.Workspace())


def draw() -> tuple[list[bool], list[float]]:
    """Verdicts, and scores with ties that know something of them: low ones are suspicious."""
    rng = np.random.default_rng(11)
    bad = [bool(each) for each in rng.random(N) < 0.4]
    return bad, [round(float(np.clip(rng.normal(0.35 if each else 0.75, 0.2), 0, 1)), 2) for each in bad]


BAD, SCORES = draw()


class Shell:
    """The command line on one store."""

    def __init__(self, store: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.store, self.folder, self.capsys = store, folder, capsys

    def __call__(self, *words: str, code: int = 0) -> dict[str, Any]:
        assert main([*words, "--store", self.store, "--json"]) == code, self.capsys.readouterr()
        out, err = self.capsys.readouterr()
        assert "Traceback" not in err
        document: dict[str, Any] = json.loads(out)
        return document

    def traces(self, **more: Any) -> str:
        lines = []
        for n, bad in enumerate(BAD):
            record = {"trace_id": f"t{n}", "question": f"question {n}", "answer": f"answer {n}", "model": "m",
                      "timestamp": f"2026-11-{1 + n % 20:02}T10:00:00Z", "sources": {"1": f"text {n}"},
                      "label": "hallucinated" if bad else "clean"}  # fmt: skip
            lines.append(json.dumps(record | {name: value(n) for name, value in more.items()}) + "\n")
        return self._write("traces.jsonl", "".join(lines))

    def scores(self, scores: Sequence[float], *extra: str) -> str:
        rows = [f"t{n},{score!r},because {n}\n" for n, score in enumerate(scores)]
        return self._write("scores.csv", "".join(["trace_id,faithfulness,reason\n", *rows, *extra]))

    def _write(self, name: str, text: str) -> str:
        (self.folder / name).write_text(text)
        return str(self.folder / name)


@pytest.fixture
def shell(store_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(store_url, tmp_path, capsys)


@pytest.mark.both_databases
def test_scores_from_elsewhere_are_released_decided_on_and_imported_again(shell: Shell, tmp_path: Path) -> None:
    shell("import", shell.traces(), "--labels-as", "gold")
    bad_rows = ("nobody,0.5,\n", "t0,high,\n", "t1,nan,\n", "t2,7,\n")
    file, options = shell.scores(SCORES, *bad_rows), ("--detector", NAME, "--column", "score=faithfulness")
    first = shell("scores", "import", file, *options, "--flag-when", "below", "--low", "0", "--high", "1")
    assert (first["new"], first["rejected"], first["revision"], first["scored"]) == (N, 4, "1", N)
    assert [error["reason"] for error in first["errors"]] == [
        "no trace 'nobody' in the store",
        "score: expected a finite number, not high",
        "score: expected a finite number, not nan",
        "the score 7 is not between 0 and 1",
    ]

    # The figures are those of scikit-learn, at every threshold.
    truth, suspicion = np.array(BAD), -np.array(SCORES)
    sweep = shell("sweep", NAME)
    assert sweep["auroc"] == pytest.approx(roc_auc_score(truth, suspicion), abs=CLOSE)
    precision, recall, thresholds = precision_recall_curve(truth, suspicion)
    points = {point["threshold"]: point for point in sweep["points"]}
    assert sorted(points) == sorted(-thresholds)
    for p, r, at in zip(precision, recall, -thresholds, strict=False):
        assert points[at]["precision"] == pytest.approx(p, abs=CLOSE)
        assert points[at]["recall"] == pytest.approx(r, abs=CLOSE)

    # Chosen, released, decided.
    shell("choose", NAME, "--policy", "precision>=0.8", "--save")
    out = str(tmp_path / "thresholds.json")
    shell("release", "--out", out)
    released = load(out)
    entry = released.detectors[NAME]
    assert entry.is_external
    assert (entry.flag_when, entry.revision, entry.extra["x-range"]) == ("below", "1", {"low": 0.0, "high": 1.0})
    flagged = [bool(decide(released, {NAME: score}).flags) for score in SCORES]
    assert entry.metrics.precision.value == pytest.approx(precision_score(truth, flagged), abs=CLOSE)
    assert entry.metrics.recall.value == pytest.approx(recall_score(truth, flagged), abs=CLOSE)
    guard = Guard(released)  # where there is no store
    workspace.use(workspace.Workspace())
    decisions = guard.check_many([Trace("x", "answer")] * N, scores=[{NAME: score} for score in SCORES])
    assert [bool(decision.flags) for decision in decisions] == flagged
    assert guard.check(Trace("x", "answer")).missing == (NAME,)

    # The same file again changes nothing; a corrected one begins a revision, and the release stays explained.
    again = shell("scores", "import", file, *options)
    assert (again["new"], again["changed"], again["unchanged"], again["revision"]) == (0, 0, N, "1")
    assert shell("watch", "--once", "--since", "all")["waiting"] == 0
    assert not any(row["why"].count("revision") for row in shell("watch", "--status")["thresholds"])
    corrected = [1 - score if n % 40 == 0 else score for n, score in enumerate(SCORES)]
    turned = shell("scores", "import", shell.scores(corrected), *options)
    assert (turned["changed"], turned["unchanged"], turned["revision"]) == (4, N - 4, "2")
    [listed] = shell("scores", "list")["external"]
    assert (listed["revisions"], listed["scored"]) == (["1", "2"], N)
    assert shell("sweep", NAME)["auroc"] == pytest.approx(roc_auc_score(truth, -np.array(corrected)), abs=CLOSE)
    [detector] = shell("recalibrate", "--dry-run")["detectors"]
    assert detector["changes"] == ["revision 1 → 2"]
    shell("recalibrate", "--out", out, "--reason", "corrected scores")
    entry = load(out).detectors[NAME]
    flagged = [bool(decide(load(out), {NAME: score}).flags) for score in corrected]
    assert (entry.revision, entry.metrics.n) == ("2", N)
    assert entry.metrics.precision.value == pytest.approx(precision_score(truth, flagged), abs=CLOSE)


def test_scores_come_with_traces_and_wait_for_their_direction(shell: Shell) -> None:
    def scores(n: int) -> Any:
        if n % 2:
            return {NAME: SCORES[n], "rouge_l": 0.5, "verdict": "good", "none": None}
        return [{"name": NAME, "value": SCORES[n], "reason": "2 of 3"}, {"name": "help\x1bful", "value": 1}]

    done = shell("import", shell.traces(scores=scores), "--labels-as", "gold")
    [taken] = done["scores"]
    assert (taken["detector"], taken["new"], taken["left_out"]) == (NAME, N, 0)
    assert sorted(done["scores_left_out"]) == ["help\x1bful", "rouge_l"]
    assert done["left_out"] == {"scores.verdict (text, no number)": N // 2}
    error = shell("sweep", NAME, code=2)["error"]
    assert error.endswith(f"`scores define {NAME} --flag-when above`, or below")
    assert shell("scoreboard", code=2)["error"] == error
    for named in ((), ("--detector", NAME)):
        assert shell("scores", "export", str(shell.folder / "out.jsonl"), "--force", *named)["rows"] == N
    rows = map(json.loads, (shell.folder / "out.jsonl").read_text().splitlines())
    assert {row["trace_id"]: row["score"] for row in rows} == {f"t{n}": score for n, score in enumerate(SCORES)}
    shell("scores", "define", NAME, "--flag-when", "below", "--unit", "share of claims")
    assert shell("sweep", NAME)["auroc"] == pytest.approx(roc_auc_score(BAD, -np.array(SCORES)), abs=CLOSE)
    again = shell("import", shell.traces(scores=scores), "--labels-as", "gold")
    assert [each["unchanged"] for each in again["scores"]] == [N]
    assert NAME in [each["name"] for each in shell("detectors")["detectors"]]
    assert shell("detect", NAME, "--all", code=2)["error"].startswith(f"{NAME} is not run: its scores are imported")
    listed = shell("detect", "--list", "--all")["detectors"][NAME]
    assert (listed["group"], listed["scored"]) == ("imported", N)
    assert NAME in shell("scoreboard")["ranked"] + shell("scoreboard")["may_be_best"] + [shell("scoreboard")["leader"]]
    assert shell("scores", "export", str(shell.folder / "out.jsonl"), "--detector", NAME, "--force")["rows"] == N


def test_rows_without_an_id_are_found_by_what_they_quote(shell: Shell) -> None:
    twin = {"trace_id": "twin", "question": "question 3", "answer": "answer 3", "sources": {"1": "another"}}
    shell("import", shell.traces(), "--no-labels")
    shell("import", shell._write("twin.jsonl", json.dumps(twin)))
    rows = [
        {"response": "answer 1", "user_input": "question 1", "faithfulness": 0.1},
        {"response": " answer 2\n", "faithfulness": 0.2},
        {"response": "answer 3", "user_input": "question 3", "faithfulness": 0.3},  # two traces of other contents
        {"response": "answer 3", "user_input": "question 3", "retrieved_contexts": ["another"], "faithfulness": 0.35},
        {"response": "answer 4", "user_input": "another question", "faithfulness": 0.4},
        {"trace_id": "elsewhere-5", "response": "answer 5", "faithfulness": 0.5},
        {"trace_id": "t6", "response": "whatever it quotes", "faithfulness": 0.6},
    ]
    file = shell._write("quoted.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    options = ("--detector", NAME, "--column", "score=faithfulness", "--flag-when", "below")
    done = shell("scores", "import", file, *options)
    assert (done["new"], done["by_content"], done["rejected"]) == (5, 4, 2)
    assert [(error["line"], error["reason"].split(":")[0]) for error in done["errors"]] == [
        (3, "2 traces of different content have the quoted answer"),
        (5, "no trace in the store is as quoted"),
    ]
    out = shell.folder / "out.csv"
    shell("scores", "export", str(out), "--detector", NAME)
    with out.open() as exported:
        held = {row["trace_id"]: float(row["score"]) for row in csv.DictReader(exported)}
    assert held == {"t1": 0.1, "t2": 0.2, "twin": 0.35, "t5": 0.5, "t6": 0.6}


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("import", "scores.csv"), "one --detector NAME"),
        (("import", "scores.csv", "--detector", "rouge_l"), "rouge_l is a detector of Touchstone"),
        (("import", "none.csv", "--detector", NAME), "there is no file"),
        (("import", "--detector", NAME), "it is `scores import FILE`"),
        (("define", NAME), "say what to define"),
        (("import", "scores.csv", "--detector", NAME, "--column", "score=zzz"), "has no column 'zzz'"),
        (("import", "scores.csv", "--detector", NAME, "--column", "reason=yyy"), "has no column 'yyy'"),
        (("remove", NAME), f"there is no external detector {NAME}"),
        (("list", "file"), "it is `scores list`"),
        (("export", "out.csv", "--flag-when", "above"), "--flag-when is for import and define"),
        (("import", "scores.csv", "--force"), "--force is for export"),
    ],
)
def test_a_wrong_call_is_one_sentence(shell: Shell, words: Sequence[str], why: str) -> None:
    shell("import", shell.traces())
    shell.scores(SCORES)
    given = [str(shell.folder / word) if word.endswith(".csv") else word for word in words]
    assert why in shell("scores", *given, code=2)["error"]


def say(shell: Shell, *words: str, code: int = 0) -> str:
    """What the command prints for people."""
    assert main([*words, "--store", shell.store]) == code
    out, err = shell.capsys.readouterr()
    assert "Traceback" not in err
    return str(out + err)


def test_only_define_turns_a_detector_round_and_says_so(shell: Shell) -> None:
    shell("import", shell.traces())
    take = ("scores", "import", shell.scores(SCORES[:5]), "--detector", NAME, "--column", "score=faithfulness")
    shell(*take, "--flag-when", "below")
    shell.scores([0.5, *SCORES[1:7]])
    error = shell(*take, "--flag-when", "above", "--unit", "share", code=2)["error"]
    assert f"`scores define {NAME} --flag-when above`" in error
    [kept] = shell("scores", "list")["external"]
    assert (kept["flag_when"], kept["unit"], kept["scored"], kept["revision"]) == ("below", None, 5, "1")
    assert "now high scores are suspicious (before: low scores are suspicious)" in say(
        shell, "scores", "define", NAME, "--flag-when", "above"
    )
    assert "before" not in say(shell, "scores", "define", NAME, "--flag-when", "above")
    shell(*take, "--flag-when", "above")


def test_a_file_of_which_no_row_is_taken_leaves_no_detector(shell: Shell) -> None:
    shell("import", shell.traces())
    file = shell._write("bad.csv", "trace_id,score\nnowhere,0.5\nt1,7\n")
    take = ("scores", "import", file, "--detector", NAME, "--flag-when", "below", "--high", "1")
    assert shell(*take, code=2)["rejected"] == 2
    assert shell("scores", "list") == {"external": []}
    shell._write("bad.csv", "trace_id,score\nnowhere,0.5\nt1,0.7\n")
    assert shell(*take)["new"] == 1
    [kept] = shell("scores", "list")["external"]
    assert (kept["flag_when"], kept["high"], kept["scored"]) == ("below", 1.0, 1)
    assert "it stays" in shell("scores", "remove", NAME, code=2)["error"]
    # One of which no row is taken says of no next step.
    assert "Next:" in say(shell, *take)
    shell._write("bad.csv", "trace_id,score\nnowhere,0.5\n")
    assert "Next:" not in say(shell, *take, code=2)


def test_a_detector_without_scores_says_so_and_can_be_removed(shell: Shell) -> None:
    shell("import", shell.traces())
    assert f"{NAME} has no scores yet" in say(shell, "scores", "define", NAME, "--flag-when", "below")
    for words in (("sweep", NAME), ("scores", "export", str(shell.folder / "out.csv"), "--detector", NAME)):
        assert f"`scores import FILE --detector {NAME}`" in shell(*words, code=2)["error"]
    assert shell("scores", "remove", NAME) == {"removed": NAME}
    assert shell("scores", "list") == {"external": []}


def test_bounds_that_leave_stored_scores_outside_are_refused(shell: Shell) -> None:
    shell("import", shell.traces())
    file = shell._write("some.csv", "trace_id,score\nt1,0.2\nt2,0.4\nt3,3\n")
    shell("scores", "import", file, "--detector", NAME, "--flag-when", "below")
    error = shell("scores", "define", NAME, "--low", "0.3", "--high", "1", code=2)["error"]
    assert error == f"{NAME}: 2 stored scores are outside of these bounds; they go from 0.2 to 3"
    assert shell("scores", "define", NAME, "--low", "0", "--high", "3")["high"] == 3
    document = shell("scores", "define", NAME, "--high", "none")
    assert (document["low"], document["high"]) == (0, None)
