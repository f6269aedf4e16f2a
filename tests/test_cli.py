"""The command line: the whole loop on both databases, the documented JSON keys, exit codes, and no traceback ever."""

from __future__ import annotations

import gzip
import io
import json
import random
import runpy
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from calibrate.cli import main
from calibrate.runtime import decide, load
from calibrate.thresholds import files
from calibrate.workflow.evidence.loading import load_evidence
from db import open_store
from tests.thresholds.make import entry, release

ROOT = Path(__file__).parent.parent


def call(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, dict[str, Any]]:
    """Exit code and the one JSON object on standard output."""
    code = main([*args, "--json"])
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    return code, json.loads(out)


def write(path: Path, count: int = 60) -> Path:
    """Answers that copy their source when clean and do not when hallucinated; every fourth is hallucinated."""
    with path.open("w") as file:
        for n in range(count):
            bad = n % 4 == 0
            record = {
                "trace_id": f"t{n}",
                "timestamp": f"2026-11-{1 + n % 20:02d}T08:00:00Z",
                "model": "m1" if n % 2 else "m2",
                "answer": f"Parcel {n} leaves our warehouse before noon"
                + (" on golden wings, singing [3]." if bad else " [1]."),
                "sources": {"1": f"Parcel {n} leaves our warehouse before noon."},
                "label": "hallucinated" if bad else "clean",
                "label_type": "fabrication" if bad else None,
            }
            file.write(json.dumps(record) + "\n")
    return path


@pytest.mark.both_databases
def test_the_whole_loop(capsys: pytest.CaptureFixture[str], store_url: str, tmp_path: Path) -> None:
    at = ("--store", store_url)
    traces = str(write(tmp_path / "traces.jsonl"))
    code, imported = call(capsys, "import", traces, "--labels-as", "gold", *at)
    assert (code, imported["imported"], imported["labels"], imported["errors"]) == (0, 60, 60, [])
    assert call(capsys, "import", traces, "--labels-as", "gold", *at)[1] == {
        "imported": 0, "duplicates": 60, "rejected": 0, "labels": 0, "labels_left_out": 0, "samples": [], "errors": [],
        "repaired": 0, "left_out": {}, "cut": False, "in_samples": [], "outside_samples": 60,
        "purged": 0, "redacted": {}, "scores": [], "scores_left_out": {},
        "formats": [{"file": traces, "format": "jsonl", "read_with": []}], "refused": {},
        "fields": {"question": 0, "context": 60, "sources": 60, "retrieval_scores": 0, "tokens": 0, "alternatives": 0,
                   "schema": 0, "timestamp": 60, "model": 60, "operation": 0, "label": 60},
    }  # fmt: skip
    assert len(call(capsys, "traces", "--limit", "7", *at)[1]["traces"]) == 7

    code, sample = call(capsys, "sample", "w", "--size", "40", "--design", "stratified", "--by", "model",
                        "--since", "all", "--seed", "5", *at)  # fmt: skip
    assert (code, sample["name"], sample["size"], sample["pool"], sample["undated"]) == (0, "w", 40, 60, 0)

    code, run = call(capsys, "detect", "token_overlap", "rouge_l", "citation_validity", "schema", "--sample", "w", *at)
    assert code == 0
    assert set(run["detectors"]["token_overlap"]) >= {"scored", "abstained", "failed", "reused", "seconds"}
    assert run["detectors"]["token_overlap"]["scored"] == 40
    assert run["detectors"]["schema"]["abstained"] == 40
    again = call(capsys, "detect", "token_overlap", "--sample", "w", *at)[1]["detectors"]["token_overlap"]
    assert (again["scored"], again["reused"]) == (0, 40)

    code, swept = call(capsys, "sweep", "token_overlap", "--sample", "w", *at)
    keys = {"detector", "flag_when", "n", "positives", "prevalence", "coverage", "auroc", "average_precision", "points"}
    assert code == 0
    assert set(swept) >= keys
    assert set(swept["points"][0]) >= {"threshold", "precision", "recall", "fpr", "flag_rate", "recall_scored"}
    assert swept["auroc"] == 1.0

    for detector in ("token_overlap", "citation_validity"):
        code, point = call(capsys, "choose", detector, "--policy", "precision>=0.7", "--sample", "w", "--save", *at)
        assert code == 0
        assert point["feasible"] is True
        assert set(point["precision"]) == {"value", "low", "high"}

    out = tmp_path / "thresholds.json"
    code, released = call(
        capsys, "release", "--out", str(out), "--note", "first", "--tier", "citation_validity=page", *at
    )
    assert (code, released["version"], released["path"]) == (0, 1, str(out))
    assert call(capsys, "verify", str(out))[1]["ok"] is True
    assert (
        call(capsys, "release", "--again", "1", "--out", str(tmp_path / "same.json"), *at)[1]["sha256"]
        == released["sha256"]
    )
    assert (tmp_path / "same.json").read_bytes() == out.read_bytes()

    # A tier stands until somebody changes it; a device is not replaced.
    again = tmp_path / "again.json"
    call(capsys, "release", "--out", str(again), "--tier", "token_overlap=off", *at)
    assert load(again).detectors["citation_validity"].tier == "page"
    assert call(capsys, "release", "--out", "/dev/full", *at)[0] == 2

    # The file decides as the sweep counted, trace by trace.
    thresholds = load(out)
    data = load_evidence(open_store(store_url), "token_overlap", sample="w")
    flagged = [row.gold for row in data.rows if decide(thresholds, {"token_overlap": row.value}).flags]
    assert (flagged.count("hallucinated"), flagged.count("clean")) == (swept["positives"], 0)
    scores = tmp_path / "scores.json"
    scores.write_text(json.dumps({"token_overlap": data.rows[0].value, "citation_validity": None}))
    code, decision = call(capsys, "decide", str(out), "--scores", str(scores))
    assert code == 0
    assert decision["missing"] == ["citation_validity"]
    assert (decision["flags"] == ["token_overlap"]) == (data.rows[0].gold == "hallucinated")


def test_the_same_seed_draws_the_same_sample_on_both_databases(
    capsys: pytest.CaptureFixture[str], sqlite_url: str, postgres_url: str, tmp_path: Path
) -> None:
    drawn = []
    for url in (sqlite_url, postgres_url):
        call(capsys, "import", str(write(tmp_path / "traces.jsonl")), "--store", url)
        call(capsys, "sample", "w", "--size", "9", "--since", "all", "--seed", "5", "--store", url)
        store = open_store(url)
        drawn.append([trace.id for trace in store.traces.load([pk for pk, _ in store.samples.keys(1)])])
    assert drawn[0] == drawn[1]


test_the_same_seed_draws_the_same_sample_on_both_databases = pytest.mark.postgres(
    test_the_same_seed_draws_the_same_sample_on_both_databases
)


def test_labels_go_out_and_come_back(capsys: pytest.CaptureFixture[str], sqlite_url: str, tmp_path: Path) -> None:
    at = ("--store", sqlite_url)
    call(capsys, "import", str(write(tmp_path / "traces.jsonl", 8)), "--labels-as", "gold", *at)
    for name in ("labels.csv", "labels.jsonl"):
        file = str(tmp_path / name)
        assert call(capsys, "labels", "export", file, *at)[1]["labels"] == 8
        assert call(capsys, "labels", "import", file, *at) == (
            0,
            {"labels": 0, "unchanged": 8, "replaced": 0, "rejected": 0, "errors": [], "cut": False, "sample": None,
             "in_samples": [], "outside_samples": 8, "left_out": {}},
        )  # fmt: skip
    file = str(tmp_path / "labels.json")
    for name in ("label-studio", "argilla", "phoenix"):  # an import recognises each by itself
        code, written = call(capsys, "labels", "export", file, "--format", name, "--force", *at)
        assert (code, written["labels"], written["format"]) == (0, 8, name)
        code, report = call(capsys, "labels", "import", file, *at)
        assert (code, report["unchanged"], report["rejected"]) == (0, 8, 0)
    assert written["not_held"] == {"no_span": 8}
    assert main(["labels", "export", file, "--format", "argilla", "--force", *at]) == 0
    assert "a file for Argilla does not hold when 8 labels were made" in capsys.readouterr().out
    (tmp_path / "other.csv").write_text("trace_id,verdict\nt1,hallucinated\nnowhere,clean\nt2,perhaps\n")
    code, report = call(capsys, "labels", "import", str(tmp_path / "other.csv"), "--labels-as", "bob", *at)
    assert (code, report["labels"], report["rejected"]) == (0, 1, 2)

    twice = ["t1,clean", "t1,hallucinated", "t2,clean", "t2,clean", *(f"t3,odd{n}" for n in range(30))]
    (tmp_path / "twice.csv").write_text("\n".join(["trace_id,verdict", *twice]))
    assert main(["labels", "import", str(tmp_path / "twice.csv"), "--labels-as", "eve", *at]) == 0
    said = capsys.readouterr().out
    assert "1 of them replaced by the same person's later verdict" in said
    assert said.splitlines()[-1] == "  … and 10 more; --json lists all"


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (["nonsense"], 2, "invalid choice"),
        (["detect"], 2, "name at least one detector"),
        (["detect", "no_such_one"], 2, "no detector"),
        (["detect", "token_overlp"], 2, "did you mean token_overlap"),
        (["detect", "token_overlap", "--param", "variant"], 2, "NAME=VALUE"),
        (["detect", "token_overlap", "--param", "variant=odd"], 2, "default, plain"),
        (["detect", "token_overlap", "--param", "what=1"], 2, "parameter 'what'"),
        (["detect", "token_overlap", "--sample", "nowhere"], 2, "there is no sample 'nowhere'"),
        (["sweep", "token_overlap"], 2, "no scores yet"),
        (["choose", "token_overlap", "--policy", "best"], 2, "no scores yet"),
        (["sample", "x", "--size", "0", "--since", "all"], 2, "at least one"),
        (["sample", "x", "--since", "yesterday"], 2, "yesterday"),
        (["sample", "x", "--design", "stratified"], 2, "--by"),
        (["sample", "x", "--design", "stratified", "--by", "nobody", "--since", "all"], 2, "nothing to stratify by"),
        (["sample", "x", "--by", "model"], 2, "--design stratified"),
        (["sample", "x", "--design", "stratified", "--by", "model", "--size", "1", "--since", "all"], 2, "2 strata"),
        (["sample", "x", "--seed", "-1"], 2, "seed"),
        (
            ["sample", "x", "--design", "uncertain", "--cut", "token_overlp=1", "--since", "all"],
            2,
            "did you mean token",
        ),
        (["sample", "x", "--seed", "99999999999999999999"], 2, "seed"),
        (["sample", "two\nlines", "--since", "all"], 2, "control character"),
        (["sample", "\x1b[2J", "--since", "all"], 2, "control character"),
        (["sample", "\u2028", "--since", "all"], 2, "control character"),
        (["sample", "a\u202eb", "--since", "all"], 2, "control character"),
        (["sample", "", "--since", "all"], 2, "a sample needs a name"),
        (["labels", "export", "/dev/full"], 2, "it is no file"),
        (["labels", "export", "/"], 2, "'/': it is a directory"),
        (["labels", "export", "/nowhere/x.csv"], 2, "no folder '/nowhere'"),
        (["labels", "export", "/tmp/" + "x" * 300], 2, "File name too long"),
        (["labels", "export", "x.csv", "--labels-as", "bob"], 2, "--labels-as is for import"),
        (["labels", "import", "x.csv", "--sample", "w"], 2, "--sample is for export"),
        (["labels", "import", "x.csv", "--labels-as", "a\x1b[2J"], 2, "the labeller's name 'a\\x1b[2J' holds"),
        (["labels", "import", "x.csv", "--labels-as", "a\u202eb"], 2, "control character"),
        (["import", "x.jsonl", "--labels-as", "two\nlines"], 2, "control character"),
        (["labels", "import", "x.csv", "--force"], 2, "--force is for export"),
        (["worker", "--run", "7"], 2, "no run 7; the newest is none"),
        (["worker", "--run", "99999999999999999999"], 2, "no run 99999999999999999999"),
        (["traces", "--limit", "99999999999999999999"], 2, "--limit"),
        (["traces", "--label", "odd"], 2, "--label is one of"),
        (["import", "x.csv", "--column", "qestion=prompt"], 2, "no field 'qestion'"),
        (["import", "/nowhere/x.jsonl"], 2, "/nowhere/x.jsonl"),
        (["release", "--out", "/tmp/x.json"], 2, "nothing to release"),
        (["release", "--out", "/nowhere/x.json"], 2, "'/nowhere/x.json': there is no folder '/nowhere'"),
        (["release", "--out", "/tmp"], 2, "it is a directory; name a file in it"),
        (["release", "--out", "/tmp/x.json", "--again", "7"], 2, "no release 7"),
        (["verify", "/nowhere/x.json"], 2, None),
        (["decide", "/nowhere/x.json", "--scores", "-"], 2, "no such file"),
    ],
)
def test_bad_input_is_a_sentence(
    capsys: pytest.CaptureFixture[str], sqlite_url: str, tmp_path: Path, args: list[str], code: int, words: str | None
) -> None:
    call(capsys, "import", str(write(tmp_path / "traces.jsonl", 4)), "--store", sqlite_url)
    store = [] if args == ["nonsense"] else ["--store", sqlite_url]
    found, document = call(capsys, *args, *store)
    assert found == code
    if words is not None:
        assert words in document["error"]


@pytest.mark.parametrize("damage", [lambda data: data[: len(data) // 2], lambda data: data[:-4] + b"\0" * 4])
def test_what_is_good_of_a_damaged_file_is_kept_and_the_damage_is_bad_input(
    capsys: pytest.CaptureFixture[str], sqlite_url: str, tmp_path: Path, damage: Any
) -> None:
    at = ("--store", sqlite_url)
    rng = random.Random(3)
    lines = [
        json.dumps({"trace_id": f"t{n}", "answer": rng.randbytes(300).hex(), "model": "\0", "deep": [1]})
        for n in range(400)
    ]
    (tmp_path / "cut.jsonl.gz").write_bytes(damage(gzip.compress("\n".join(lines).encode())))
    code, report = call(capsys, "import", str(tmp_path / "cut.jsonl.gz"), *at)
    assert (code, report["cut"], report["rejected"]) == (2, True, 1)
    assert report["imported"] == report["repaired"] == report["left_out"]["deep"] > 150
    assert main(["import", str(tmp_path / "cut.jsonl.gz"), *at]) == 2
    assert "could not be read to its end" in capsys.readouterr().out

    labels = "\n".join(json.dumps({"trace_id": f"t{n}", "verdict": "clean", "note": lines[n]}) for n in range(400))
    (tmp_path / "labels.jsonl.gz").write_bytes(damage(gzip.compress(labels.encode())))
    code, report = call(capsys, "labels", "import", str(tmp_path / "labels.jsonl.gz"), "--labels-as", "ann", *at)
    assert (code, report["cut"]) == (2, True)
    assert report["labels"] > 150


def test_verify_shows_no_password_of_a_url(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "https://user:S3cretKey@127.0.0.1:1/x.json"]) == 2
    shown = capsys.readouterr()
    assert "S3cretKey" not in shown.out + shown.err


def test_an_export_replaces_a_file_only_when_told(
    capsys: pytest.CaptureFixture[str], sqlite_url: str, tmp_path: Path
) -> None:
    at = ("--store", sqlite_url)
    call(capsys, "import", str(write(tmp_path / "traces.jsonl", 4)), "--labels-as", "gold", *at)
    mine = tmp_path / "mine.csv"
    older = "trace_id,labeller,verdict\nt1,ann,clean\n"
    mine.write_text(older)
    code, document = call(capsys, "labels", "export", str(mine), *at)
    assert (code, "--force replaces it" in document["error"]) == (2, True)
    assert mine.read_text() == older
    assert call(capsys, "labels", "export", str(mine), "--force", *at)[1]["labels"] == 4
    assert "t1,ann" not in mine.read_text()


def test_messages_about_a_label_file_speak_of_labels(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    at = ("--store", f"sqlite:///{tmp_path}/store.db")
    call(capsys, "import", str(write(tmp_path / "traces.jsonl", 1)), *at)
    contents = {"empty.jsonl": b"", "binary.jsonl": bytes(range(32)) * 9, "list.jsonl": b"[\n]", "other.jsonl": b"3\n"}
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
        _, document = call(capsys, "labels", "import", str(tmp_path / name), *at)
        said = document.get("error") or document["errors"][0]["reason"]
        assert "label" in said.replace(str(tmp_path), "")
        assert "trace" not in said.replace(str(tmp_path), "")


def test_a_sample_larger_than_its_pool_says_so(
    capsys: pytest.CaptureFixture[str], sqlite_url: str, tmp_path: Path
) -> None:
    call(capsys, "import", str(write(tmp_path / "traces.jsonl", 4)), "--store", sqlite_url)
    _, drawn = call(capsys, "sample", "w", "--size", "9", "--since", "all", "--store", sqlite_url)
    assert (drawn["size"], drawn["requested"], drawn["pool"]) == (4, 9, 4)


def test_a_run_that_does_not_wait(capsys: pytest.CaptureFixture[str], sqlite_url: str, tmp_path: Path) -> None:
    at = ("--store", sqlite_url)
    call(capsys, "import", str(write(tmp_path / "traces.jsonl", 4)), *at)
    call(capsys, "detect", "token_overlap", "--all", *at)
    assert main(["worker", "--run", "1", *at]) == 0
    assert "run 1 does not wait, it is done" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("scores", "words"),
    [
        ('{"rouge_l": 31.0}', "the score 31 of rouge_l cannot be, it is from 0 to 1"),
        ('{"rouge_l": -0.01}', "from 0 to 1"),
        ('{"rouge_l": NaN}', "the score of rouge_l is not finite: it counts as missing"),
        ('{"other": -Infinity}', None),
        ('{"rouge_l": 1e999}', "not finite"),
        ('{"rouge_l": 1' + "0" * 400 + "}", "not finite"),
        ('{"rouge_l": 1.00000001, "not_of_this_release": 77, "from_elsewhere": 77}', None),
        ('{"rouge_l": null, "from_elsewhere": 1}', None),
    ],
)
def test_the_command_decides_as_the_runtime_and_says_what_is_odd(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, scores: str, words: str | None
) -> None:
    files.write(release({"rouge_l": entry(0.3), "from_elsewhere": entry(0.3)}), tmp_path / "thresholds.json")
    (tmp_path / "scores.json").write_text(scores)
    at = str(tmp_path / "thresholds.json")
    assert main(["decide", at, "--scores", str(tmp_path / "scores.json"), "--json"]) == 0
    captured = capsys.readouterr()
    decision = asdict(decide(load(at), json.loads(scores)))
    document = json.loads(captured.out)
    assert set(document) - set(decision) == {"known_bad", "cautions"}
    assert {name: document[name] for name in decision} == json.loads(json.dumps(decision))
    assert words in captured.err if words else "the score" not in captured.err


def test_a_detector_scored_twice_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    files.write(release({"rouge_l": entry(0.3)}), tmp_path / "thresholds.json")
    (tmp_path / "scores.json").write_text('{"rouge_l": 0.2, "rouge_l": 0.9}')
    code, document = call(
        capsys, "decide", str(tmp_path / "thresholds.json"), "--scores", str(tmp_path / "scores.json")
    )
    assert code == 2
    assert "'rouge_l' twice" in document["error"]


@pytest.mark.parametrize(
    ("options", "verdict"),
    [((), "REVIEW"), (("--on-missing", "accept"), "ACCEPT"), (("--on-missing", "reject"), "REJECT")],
)
def test_what_nothing_could_score_is_decided_as_asked(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, options: tuple[str, ...], verdict: str
) -> None:
    files.write(release({"rouge_l": entry(0.3)}), tmp_path / "thresholds.json")
    (tmp_path / "scores.json").write_text('{"rouge_l": null}')
    code, document = call(
        capsys, "decide", str(tmp_path / "thresholds.json"), "--scores", str(tmp_path / "scores.json"), *options
    )
    assert (code, document["verdict"], document["unscored"]) == (0, verdict, True)


def test_what_standard_input_should_hold(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    files.write(release({"rouge_l": entry(0.3)}), tmp_path / "thresholds.json")
    monkeypatch.setattr(sys, "stdin", io.StringIO("[1]"))
    code, document = call(capsys, "decide", str(tmp_path / "thresholds.json"), "--scores", "-")
    assert (code, document["error"].split(" like")[0]) == (2, "standard input should hold one object")


def test_an_interrupt_while_modules_load_is_no_traceback(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Interrupt:
        def find_spec(self, name: str, *_: object) -> None:
            if name == "calibrate.cli":
                raise KeyboardInterrupt

    for name in [name for name in sys.modules if name.startswith("calibrate.cli")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [Interrupt(), *sys.meta_path])
    monkeypatch.setattr(sys, "argv", ["calibrate", "traces", "--json"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("calibrate", run_name="__main__")
    out, _ = capsys.readouterr()
    assert (ended.value.code, json.loads(out)) == (130, {"error": "stopped"})


@pytest.mark.parametrize(
    ("verb", "error"),
    [
        (("detect", "token_overlap", "--all"), "stopped; what was done so far is kept"),
        (("simulate",), "stopped"),
        (("release", "--proposals"), "stopped"),
    ],
)
def test_an_interrupt_says_what_is_kept(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], verb: tuple[str, ...], error: str
) -> None:
    def interrupt(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(f"calibrate.cli.{verb[0]}.run", interrupt)
    assert call(capsys, *verb) == (130, {"error": error})


def test_a_store_that_is_not_there(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, document = call(capsys, "traces", "--store", f"sqlite:///{tmp_path}/none.db")
    assert (code, "there is no store" in document["error"]) == (2, True)


def test_hostile_text_does_not_reach_the_terminal(
    capsys: pytest.CaptureFixture[str], sqlite_url: str, tmp_path: Path
) -> None:
    hostile = {"trace_id": "\x1b[2J", "answer": "\x1b[31mred\u202e\x9b", "model": "m\r\n2026 forged"}
    (tmp_path / "t.jsonl").write_text(json.dumps(hostile) + "\n")
    assert main(["import", str(tmp_path / "t.jsonl"), "--store", sqlite_url]) == 0
    assert main(["traces", "--store", sqlite_url]) == 0
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert "⟦ESC⟧[31mred⟦RLO⟧" in shown
    assert not any(line.startswith("2026") for line in shown.splitlines())
    assert main(["traces", "--store", sqlite_url, "--json"]) == 0
    shown = capsys.readouterr().out
    assert not {"\x1b", "\u202e", "\x9b"} & set(shown)
    assert json.loads(shown)["traces"][0]["answer"] == hostile["answer"]


def test_it_runs_as_a_module() -> None:
    done = subprocess.run([sys.executable, "-m", "calibrate", "--version"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0
    assert done.stdout.startswith("touchstone ")


def test_the_parameters_it_ships_with_are_tuned_unless_others_are_named(
    capsys: pytest.CaptureFixture[str], sqlite_url: str
) -> None:
    plain = ("--param", "variant=plain")
    for args in (("demo", "--traces-only"), ("detect", "bleu", "--labelled"), ("detect", "bleu", "--labelled", *plain)):
        assert call(capsys, *args, "--store", sqlite_url)[0] == 0
    usual, other = (
        call(capsys, "choose", "bleu", "--policy", "elbow", *params, "--store", sqlite_url)[1] for params in ((), plain)
    )
    assert (usual["params"]["variant"], other["params"]["variant"]) == ("default", "plain")
    assert usual["threshold"] != other["threshold"]
    assert main(["sweep", "bleu", *plain, "--store", sqlite_url]) == 0
    assert "bleu (variant=plain)" in capsys.readouterr().out


@pytest.mark.parametrize("verb", [["scoreboard"], ["ensemble", "logistic"], ["agreement"], ["detect", "rouge_l"]])
def test_a_second_sample_is_refused_where_one_is_taken(verb: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*verb, "--sample", "first", "--sample", "second", "--json"]) == 2
    assert "not 'first' and 'second'" in json.loads(capsys.readouterr().out)["error"]
