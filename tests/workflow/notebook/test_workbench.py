"""The workbench of a notebook: frames in and out, with the numbers and the checks of the command line."""

from __future__ import annotations

import doctest
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd
import pytest

import calibrate
import calibrate.workspace
from calibrate.cli import main
from calibrate.errors import BadInput, Unavailable
from calibrate.ingest import read
from calibrate.types import Record
from calibrate.workflow.notebook import Workbench
from tests.workflow.making import draw

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/notebook.db"


@pytest.fixture
def bench(url: str) -> Iterator[Workbench]:
    with calibrate.open(url) as opened:
        yield opened


def answers(n: int = 80) -> pd.DataFrame:
    """Answers that copy a part of their source; how much of it they copy follows the label, with exceptions."""
    labels, shares = draw(n, ties=False)
    texts = [" ".join(f"w{place}_{word}" for word in range(20)) for place in range(n)]
    rows = [
        {
            "trace_id": f"t{place}",
            "timestamp": pd.Timestamp(NOW - timedelta(hours=place)),
            "model": "a" if place % 3 else "b",
            "answer": " ".join(text.split()[: round(20 * min(1.0, max(0.1, share or 0.5)))] + ["else"] * 5),
            "sources": [text],
            "label": "hallucinated" if bad else "clean",
        }
        for place, (bad, share, text) in enumerate(zip(labels, shares, texts, strict=True))
    ]
    return pd.DataFrame(rows)


def call(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert main([*words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_every_figure_is_that_of_the_command_line(
    bench: Workbench, url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bench.add(answers(), labels_as="ann", design="random", name="may").sample == "may"
    run = bench.detect(["token_overlap", "citation_validity"])
    assert run["scored"].tolist()[0] == 80
    assert run.attrs["status"] == "done"
    capsys.readouterr()
    document, sweep = call(capsys, "sweep", "token_overlap", "--store", url), bench.sweep("token_overlap")
    points = pd.DataFrame(document["points"]).astype("float64")
    pd.testing.assert_frame_equal(sweep[points.columns], points, check_exact=True)
    for name in ("n", "positives", "prevalence", "coverage", "auroc", "average_precision", "flag_when", "sample"):
        assert sweep.attrs[name] == document[name]
    flagged = sweep["true_positives"] + sweep["false_positives"]
    assert (sweep["flagged"] == flagged).all()
    assert (flagged + sweep["false_negatives"] + sweep["true_negatives"] == 80).all()
    for policy, more in (
        ("precision>=0.7", {}),
        ("f1", {}),
        ("precision>=0.3", {"strength": "bounded"}),
        ("alerts<=5/day", {}),
        ("manual:0.5", {}),
    ):
        options = [word for name, value in more.items() for word in (f"--{name}", value)]
        said = call(capsys, "choose", "token_overlap", "--policy", policy, "--store", url, *options)
        choice = bench.choose("token_overlap", policy, **more)
        assert (choice.threshold, str(choice.state.verdict)) == (said["threshold"], said["state"])
        for figure in ("precision", "recall", "fpr", "flag_rate"):
            interval = getattr(choice.point, figure)
            assert [interval.value, interval.low, interval.high] == list(said[figure].values())
    assert bench.choose("token_overlap", "f1", save=True, reason="a test").saved
    released = bench.release(tmp_path / "thresholds.json", note="first")
    assert released.file is not None
    assert json.loads((tmp_path / "thresholds.json").read_text())["version"] == released.version == 1
    with pytest.raises(BadInput, match="nothing changes against v1"):
        bench.release(tmp_path / "thresholds.json")
    assert bench.scores(wide=True)["token_overlap"].notna().sum() == 80
    assert len(bench.scores(["token_overlap"], sample="may")) == 80


def test_a_frame_comes_in_as_its_rows_would_from_a_file(bench: Workbench, tmp_path: Path) -> None:
    """Cells as pandas has them give the traces that JSON lines of the same values give."""
    frame = pd.DataFrame(
        {
            "ID": [UUID(int=5), "b", "c", "d"],
            "reply": ["Blue [1].", "Green.", None, "Red."],
            "timestamp": [NOW, pd.NaT, NOW, NOW],
            "sources": [np.array(["one", "two"]), None, ["x"], [{"text": "t", "retrieval_score": np.float64(0.5)}]],
            "tokens": [[{"token": "B", "logprob": -0.5, "top_logprobs": {"B": -0.5}}], None, None, [{"token": 1}]],
            "tries": pd.array([3, pd.NA, 1, 2], dtype="Int64"),
            "share": [0.5, float("nan"), 1.0, 2.0],
            "cached": [True, False, True, True],
        },
        index=pd.Index([10, 20, 30, 40]),
    )
    added = bench.add(frame, columns={"answer": "reply"})
    assert (added.imported, added.rejections) == (2, 2)
    assert added.rejected.index.tolist() == [30, 40]
    assert added.rejected["reason"].tolist() == [
        "answer: missing",
        "tokens[0].token: expected text, found the number 1",
    ]
    lines = [
        {
            "trace_id": str(UUID(int=5)), "answer": "Blue [1].", "timestamp": NOW.isoformat(),
            "sources": ["one", "two"],
            "tokens": [{"token": "B", "logprob": -0.5, "top_logprobs": {"B": -0.5}}], "tries": 3, "share": 0.5,
            "cached": True,
        },
        {"trace_id": "b", "answer": "Green.", "cached": False},
    ]  # fmt: skip
    path = tmp_path / "traces.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    of_file = [record.trace for record in read(path) if isinstance(record, Record)]
    store = bench._store
    loaded = store.traces.load(sorted(store.traces.keys_of([trace.id for trace in of_file]).values()))
    assert [trace.content_hash() for trace in loaded] == [trace.content_hash() for trace in of_file]
    assert [trace.timestamp for trace in loaded] == [trace.timestamp for trace in of_file]
    assert loaded[0].attributes == {"tries": "3", "share": "0.5", "cached": "true"}
    assert bench.add(frame, columns={"answer": "reply"}).duplicates == 2
    again = bench.add(bench.traces().drop(columns="gold"))
    assert (again.imported, again.duplicates, again.rejections) == (0, 2, 0)


def test_scores_that_come_along_are_told_defined_and_swept(bench: Workbench, url: str) -> None:
    frame = answers(20)
    frame["scores"] = [{"our_judge": n / 20, "rouge_l": 0.5} for n in range(20)]
    added = bench.add(frame, labels_as="ann", design="random")
    [taken] = added.scores
    assert (taken.name, taken.new, taken.left_out) == ("our_judge", 20, 0)
    assert added.scores_left_out.keys() == {"rouge_l"}
    assert sorted(bench.scores(wide=True)["our_judge"]) == [n / 20 for n in range(20)]
    with pytest.raises(BadInput, match="nobody has said"):
        bench.sweep("our_judge")
    with pytest.raises(BadInput, match="say what to define"):
        bench.define("our_judge")
    assert bench.define("our_judge", flag_when="below").flag_when == "below"
    assert bench.sweep("our_judge").attrs["flag_when"] == "below"
    # What a shell beside says counts at once.
    workspace = calibrate.workspace.current()
    assert main(["scores", "define", "our_judge", "--flag-when", "above", "--store", url]) == 0
    calibrate.workspace.use(workspace)  # as this process knew it before
    assert bench.sweep("our_judge").attrs["flag_when"] == "above"


def test_labels_go_out_as_they_came_in(bench: Workbench, url: str) -> None:
    bench.add(answers(6).drop(columns="label"))
    verdicts = pd.DataFrame(
        {
            "trace_id": ["t0", "t1", "t2", "t9", "t3"],
            "verdict": ["hallucinated", "Clean", "unsure", "clean", "maybe"],
            "labeller": ["ann", None, "ben", "ann", "ann"],
            "kinds": ["fabrication;contradiction", None, [], None, None],
            "spans": [[{"start": 0, "end": 3, "type": "fabrication"}], None, None, None, None],
            "seconds": [3.5, float("nan"), np.float64(2), 1, 1],
        }
    )
    done = bench.label(verdicts, labels_as="eve")
    assert (done.added, done.unchanged, done.rejected["row"].tolist()) == (3, 0, [3, 4])
    labels = bench.labels()
    assert labels["labeller"].tolist() == ["ann", "eve", "ben"]
    assert labels["kinds"].tolist()[0] == ["fabrication", "contradiction"]
    assert labels["spans"].tolist()[0] == [{"start": 0, "end": 3, "type": "fabrication"}]
    assert bench.traces(label="labelled")["gold"].value_counts().to_dict() == {
        "hallucinated": 1, "clean": 1, "unsure": 1,
    }  # fmt: skip
    assert bench.label(bench.labels()).unchanged == 3


@pytest.mark.parametrize(
    ("do", "message"),
    [
        (lambda bench: bench.add([{"answer": "x"}]), "a list is no frame"),
        (lambda bench: bench.add(None), "None is no frame"),
        (lambda bench: bench.label(pd.Series(["t0"])), "a Series is no frame"),
        (lambda bench: bench.add(pd.DataFrame({"answer": []})), "no rows"),
        (lambda bench: bench.label(pd.DataFrame({"trace_id": [], "verdict": []})), "no rows"),
        (lambda bench: bench.traces(label="zzz"), "'zzz': label is one of any, unlabelled, labelled, clean"),
        (lambda bench: bench.add(pd.DataFrame({"reply": ["x"]})), "no column 'answer'; it has 'reply'"),
        (lambda bench: bench.add(pd.DataFrame([["x", "y"]], columns=["answer", "answer"])), "two columns 'answer'"),
        (lambda bench: bench.label(pd.DataFrame({"trace_id": ["a"]})), "no column 'verdict'"),
        (lambda bench: bench.labels(sample="may"), "no sample 'may'"),
        (lambda bench: bench.sweep("token_overlap"), "has no scores yet"),
        (lambda bench: bench.sweep("tokens"), "no detector 'tokens'"),
        (lambda bench: bench.release("thresholds.json"), "save an operating point first"),
        (lambda bench: bench.release("t.json", tiers={"token_overlap": "loud"}), "a tier is one of"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_sentence(bench: Workbench, do: Any, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        do(bench)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"design": "rnd"}, "stated as 'rnd': say random, flagged, feedback"),
        ({"design": ["random"]}, r"stated as \['random'\]"),
        ({"design": "random", "name": None}, "name=None is no name"),
        ({"design": "random", "name": 7}, "name=7 is no name"),
        ({"design": "random", "name": " "}, "name=' ' is no name"),
    ],
)
def test_a_wrong_statement_is_refused_before_anything_is_stored(
    bench: Workbench, words: dict[str, Any], message: str
) -> None:
    with pytest.raises(BadInput, match=message):
        bench.add(answers(4), **words)
    assert len(bench.traces()) == 0
    bench.add(answers(4).drop(columns="label"))
    if words.get("name", "") is None:
        return  # the default of `label`
    with pytest.raises(BadInput, match=message):
        bench.label(pd.DataFrame({"trace_id": ["t0"], "verdict": ["clean"]}), **words)
    assert len(bench.labels()) == 0


def test_a_name_of_labels_needs_a_design(bench: Workbench) -> None:
    bench.add(answers(4).drop(columns="label"))
    verdicts = pd.DataFrame({"trace_id": ["t0"], "verdict": ["clean"]})
    with pytest.raises(BadInput, match="name='june' is the name of a sample"):
        bench.label(verdicts, name="june")
    assert len(bench.labels()) == 0
    assert bench.label(verdicts, design="flagged", name="june").sample == "june"


def test_a_closed_workbench_says_so(url: str) -> None:
    with calibrate.open(url) as bench:
        bench.add(answers(4))
    for do in (
        lambda: bench.add(answers(4)),
        lambda: bench.label(pd.DataFrame({"trace_id": ["t0"], "verdict": ["clean"]})),
        bench.traces, bench.labels, bench.scores,
        lambda: bench.detect("token_overlap"),
        lambda: bench.sweep("token_overlap"),
        lambda: bench.choose("token_overlap", "f1"),
        lambda: bench.release("thresholds.json"),
    ):  # fmt: skip
        with pytest.raises(BadInput, match="the workbench is closed: open it again"):
            do()
    assert repr(bench).endswith("closed>")
    bench.close()


def test_two_people_release_where_the_team_wants_it(
    bench: Workbench, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.add(answers(), labels_as="ann", design="random")
    bench.detect("token_overlap")
    bench.choose("token_overlap", "f1", save=True, reason="a test")
    monkeypatch.setenv("TOUCHSTONE_APPROVAL", "1")
    proposed = bench.release(tmp_path / "thresholds.json")
    assert (proposed.version, proposed.file, proposed.proposal) == (None, None, 1)
    assert not (tmp_path / "thresholds.json").exists()


def test_the_wheel_says_what_it_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(Unavailable, match="needs the workbench"):
        calibrate.open()


def test_the_examples_of_the_docstrings_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the order in which the methods stand; those of the class come first and leave the store to them."""
    monkeypatch.chdir(tmp_path)
    finder = doctest.DocTestFinder()
    parts = (*Workbench.__bases__, Workbench)  # the class itself last: its own examples stand under the bare name
    tests = {test.name: test for part in parts for test in finder.find(part, "Workbench")}
    names: dict[str, Any] = {}
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    for name in ("Workbench", "Workbench.add", "Workbench.label", *sorted(tests)):
        if not tests[name].examples:
            continue
        tests[name].globs = names
        runner.run(tests[name], clear_globs=False)
        if name == "Workbench":
            names["bench"] = calibrate.open("sqlite:///touchstone.db")
        tests[name].examples = []
    assert (runner.failures, runner.tries > 15) == (0, True)
