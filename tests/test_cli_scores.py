"""`scores export`: what pandas and pyarrow read back is what the database holds, row by row."""

from __future__ import annotations

import json
import math
import sqlite3
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest

import db.scores
from calibrate.cli import main
from calibrate.ingest.scores import COLUMNS, ScoreRecord, write_scores

FORMULA = "=HYPERLINK(0)"
ENDINGS = ["csv", "parquet", "jsonl"]
Rows = list[dict[str, Any]]


def call(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, dict[str, Any]]:
    code = main([*args, "--json"])
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    return code, json.loads(out)


@pytest.fixture
def at(sqlite_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> tuple[str, str]:
    """Sixty traces, most labelled: scored, without sources (abstained), and refusals; one with a formula as its id."""
    lines = []
    for n in range(60):
        answer = f"Parcel {n} leaves at noon" + (" on golden wings." if n % 3 == 0 else ".")
        record: dict[str, Any] = {"trace_id": FORMULA if n == 4 else f"t{n}", "answer": answer}
        if n % 7:
            record["sources"] = {"1": f"Parcel {n} leaves at noon."}
        if n % 11 == 5:
            record["answer"] = "I don't have that information."
        if n % 5:
            record["label"] = "hallucinated" if n % 3 == 0 else "clean"
        lines.append(json.dumps(record))
    traces = tmp_path / "traces.jsonl"
    traces.write_text("\n".join(lines))
    store = ("--store", sqlite_url)
    assert call(capsys, "import", str(traces), "--labels-as", "gold", *store)[0] == 0
    assert call(capsys, "sample", "s", "--size", "25", "--since", "all", "--seed", "1", *store)[0] == 0
    assert call(capsys, "detect", "word_overlap", "bleu", "--all", *store)[0] == 0
    assert call(capsys, "detect", "bleu", "--all", "--param", "variant=plain", *store)[0] == 0
    assert call(capsys, "detect", "token_overlap", "--labelled", *store)[0] == 0
    return store


def read(path: Path) -> Rows:
    """The rows as pandas (CSV, JSON lines) or pyarrow reads them, with None for what is missing."""
    if path.suffix == ".parquet":
        rows: Rows = pq.read_table(path).to_pylist()
    elif path.suffix == ".csv":
        rows = pd.read_csv(path, dtype={"version": str}, float_precision="round_trip").to_dict("records")
    else:
        rows = pd.read_json(path, lines=True, dtype={"version": str}, precise_float=True).to_dict("records")
    for row in rows:
        row.update({key: None for key, value in row.items() if isinstance(value, float) and math.isnan(value)})
        row["params"] = json.loads(row["params"]) if isinstance(row["params"], str) else row["params"]
    return rows


def stored(url: str, detector: str, *, sample: bool = False) -> Rows:
    """The same from the database, in plain SQL, for the configurations with variant=default."""
    joins = "JOIN sample_members m ON m.trace_pk = t.id LEFT" if sample else ""
    query = f"""SELECT t.trace_id, g.verdict AS gold, s.value AS score, coalesce(s.status, 'not run') AS status,
        s.reason, c.name AS detector, c.version, c.params FROM traces t {joins} JOIN scores s
        ON s.content_hash = t.content_hash
        AND s.config_id = (SELECT id FROM detector_configs WHERE name = ? AND params LIKE '%default%')
        LEFT JOIN gold g ON g.trace_pk = t.id JOIN detector_configs c ON c.name = ? AND c.params LIKE '%default%'
        ORDER BY {"m.position" if sample else "t.id"}"""
    with sqlite3.connect(url.removeprefix("sqlite:///")) as connection:
        connection.row_factory = sqlite3.Row
        rows = [dict(row) for row in connection.execute(query, (detector, detector))]
    return [{**row, "params": json.loads(row["params"])} for row in rows]


@pytest.mark.parametrize("ending", ENDINGS)
def test_what_is_read_back_is_what_is_stored(
    capsys: pytest.CaptureFixture[str],
    at: tuple[str, str],
    tmp_path: Path,
    ending: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(db.scores, "PAGE", 7)
    file = tmp_path / f"scores.{ending}"
    code, document = call(capsys, "scores", "export", str(file), *at)
    expected = [row for name in ("bleu", "token_overlap", "word_overlap") for row in stored(at[1], name)]
    if ending == "csv":
        expected = [{**row, "trace_id": row["trace_id"].replace(FORMULA, f"'{FORMULA}")} for row in expected]
    rows = read(file)
    assert (code, document["rows"], document["path"]) == (0, len(expected), str(file))
    assert len(rows) > 120
    for row, wanted in zip(rows, expected, strict=True):
        assert row == wanted
    assert {row["status"] for row in rows} == {"scored", "abstained", "refusal"}
    by_name = {each["detector"]: each for each in document["configurations"]}
    assert (
        by_name["bleu"]["statuses"]
        == pd.Series([row["status"] for row in expected if row["detector"] == "bleu"]).value_counts().to_dict()
    )


@pytest.mark.parametrize("ending", ENDINGS)
def test_one_detector_one_sample(
    capsys: pytest.CaptureFixture[str], at: tuple[str, str], tmp_path: Path, ending: str
) -> None:
    file = tmp_path / f"scores.{ending}"
    assert call(capsys, "scores", "export", str(file), "--detector", "token_overlap", "--sample", "s", *at)[0] == 0
    rows = read(file)
    expected = stored(at[1], "token_overlap", sample=True)
    assert [(row["gold"], row["score"], row["status"]) for row in rows] == [
        (row["gold"], row["score"], row["status"]) for row in expected
    ]
    assert len(rows) == 25
    assert "not run" in {row["status"] for row in rows}  # members without a label: detect --labelled left them out


def test_one_configuration(capsys: pytest.CaptureFixture[str], at: tuple[str, str], tmp_path: Path) -> None:
    file = tmp_path / "plain.jsonl"
    plain = ("--detector", "bleu", "--param", "variant=plain")
    assert call(capsys, "scores", "export", str(file), *plain, *at)[0] == 0
    assert {row["params"]["variant"] for row in read(file)} == {"plain"}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("scores.txt",), "its ending must be one of .csv, .parquet, .jsonl"),
        (("scores",), "its ending must be one of"),
        (("there.csv",), "it exists and is not a file of scores; name another file"),
        (("no/folder.csv",), "make it first"),
        (("a.csv", "--detector", "nothing"), "nothing"),
        (("a.csv", "--detector", "rouge_l"), "rouge_l has no scores yet"),
        (("a.csv", "--sample", "nowhere"), "nowhere"),
        (("a.csv", "--param", "variant=plain"), "--param needs one --detector"),
    ],
)
def test_bad_input_is_one_sentence_and_no_file(
    capsys: pytest.CaptureFixture[str], at: tuple[str, str], tmp_path: Path, arguments: tuple[str, ...], says: str
) -> None:
    (tmp_path / "there.csv").write_text("mine")
    before = files_of(tmp_path)
    name, *options = arguments
    code, document = call(capsys, "scores", "export", str(tmp_path / name), *options, *at)
    assert code == 2
    assert says in document["error"]
    assert (tmp_path / "there.csv").read_text() == "mine"
    assert files_of(tmp_path) == before


def files_of(folder: Path) -> set[str]:
    """What lies in a folder, but for the log of a store that SQLite removes when it likes."""
    return {path.name for path in folder.iterdir() if not path.name.endswith(("-wal", "-shm"))}


def test_force_replaces(capsys: pytest.CaptureFixture[str], at: tuple[str, str], tmp_path: Path) -> None:
    file = tmp_path / "there.csv"
    file.write_text(",".join(COLUMNS) + "\nt1")
    assert call(capsys, "scores", "export", str(file), *at)[0] == 2
    assert call(capsys, "scores", "export", str(file), "--force", *at)[0] == 0
    assert file.read_text().startswith(",".join(COLUMNS))
    assert not file.read_text().endswith("\nt1")


@pytest.mark.parametrize("ending", ENDINGS)
def test_thirty_thousand_rows_do_not_fill_memory(tmp_path: Path, ending: str) -> None:
    def records() -> Iterator[ScoreRecord]:
        for n in range(30_000):
            yield ScoreRecord(f"t{n}", "clean", n / 7, "scored", None, "d", "1", {"variant": "default"})

    file = tmp_path / f"big.{ending}"
    write_scores([], str(tmp_path / f"empty.{ending}"))  # imports what it needs
    tracemalloc.start()
    write_scores(records(), str(file))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 9e6  # 30,000 records at once take 13 MB or more
    if ending == "parquet":
        assert pq.ParquetFile(file).metadata.num_rows == 30_000
    else:
        assert sum(1 for _ in file.open()) == 30_000 + (ending == "csv")


def test_a_file_is_whole_or_not_there(tmp_path: Path) -> None:
    def records() -> Iterator[ScoreRecord]:
        yield ScoreRecord("t", "clean", 0.5, "scored", None, "d", "1", {})
        raise RuntimeError("the database went away")

    (tmp_path / "old.csv").write_text("old")
    with pytest.raises(RuntimeError):
        write_scores(records(), str(tmp_path / "old.csv"))
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("old.csv", "old")]
