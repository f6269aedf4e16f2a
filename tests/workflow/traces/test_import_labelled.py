"""A file's labels are kept unless they are not wanted, and become a sample where it is said how they were chosen."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from calibrate.cli import main
from calibrate.workflow.evidence.basis import Chosen, choose_basis
from calibrate.workflow.traces.import_labelled import import_traces
from db import Store
from pages.traces.import_job import ImportFile, ImportJob, Labels
from pages.traces.import_report import details
from tests.workflow.evidence.test_which_labels import draw, fill_traffic, keys_of
from tests.workflow.making import NOW


def write(path: Path, *, n: int = 30, labelled: int = 12, start: int = 0) -> Path:
    rows = [
        {"trace_id": f"t{place}", "answer": f"answer {place}", "timestamp": f"2026-11-0{1 + place % 7}T10:00:00Z"}
        | ({"label": "clean" if place % 3 else "hallucinated"} if place < start + labelled else {})
        for place in range(start, start + n)
    ]
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


@pytest.mark.parametrize(("labels_as", "labeller"), [(None, "audit.jsonl"), ("mara", "mara")])
def test_labels_are_kept_as_those_of_the_file(
    store: Store, tmp_path: Path, labels_as: str | None, labeller: str
) -> None:
    path = write(tmp_path / "audit.jsonl")
    report, sample, *_ = import_traces(store, path, labels_as=labels_as, now=NOW)
    assert (report.imported, report.labels, report.labels_left_out, sample) == (30, 12, 0, None)
    assert store.labels.labellers() == [labeller]


def test_labels_that_are_not_wanted_or_of_rejected_traces_are_counted(store: Store, tmp_path: Path) -> None:
    path = write(tmp_path / "audit.jsonl")
    report, *_ = import_traces(store, path, keep_labels=False, now=NOW)
    assert (report.imported, report.labels, report.labels_left_out) == (30, 0, 12)
    changed = path.read_text().replace('"answer": "answer 2"', '"answer": "another"')
    path.write_text(changed)
    report, sample, *_ = import_traces(store, path, design="feedback", now=NOW)
    assert (report.duplicates, report.rejected, report.labels, report.labels_left_out) == (29, 1, 11, 1)
    assert sample is not None
    assert (sample.name, sample.design, sample.size) == ("audit", "feedback", 11)
    assert choose_basis(store, "audit").caution is not None


def test_a_verb_reports_kept_and_left_out(
    store_url: str, store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, at = str(write(tmp_path / "audit.jsonl")), ("--store", store_url)
    assert main(["import", path, "--no-labels", *at]) == 0
    assert "0 labels kept, 12 left out" in capsys.readouterr().out
    assert main(["import", path, *at]) == 0
    out = capsys.readouterr().out
    assert "12 labels kept, 0 left out" in out
    assert "labels outside samples choose no threshold unless every trace has one" in out
    assert main(["import", path, "--design", "random", *at]) == 0
    assert "the sample 'audit': 12 labelled traces, drawn at random from the 30 traces" in capsys.readouterr().out
    basis = choose_basis(store, None)
    assert basis.sample is not None
    assert (basis.sample.name, basis.caution) == ("audit", None)
    assert main(["import", path, "--no-labels", "--design", "random", *at]) == 2
    assert "--design is about the file's labels" in capsys.readouterr().err


@pytest.mark.parametrize("design", ["random", "flagged", "feedback"])
def test_labels_can_be_imported_with_how_they_were_chosen(
    store_url: str, store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str], design: str
) -> None:
    at = ("--store", store_url)
    import_traces(store, write(tmp_path / "traces.jsonl", labelled=0), now=NOW)
    file = tmp_path / "complaints.csv"
    file.write_text("trace_id,verdict\nt1,clean\nt2,hallucinated\nt9,hallucinated\nnowhere,clean\n")
    assert main(["labels", "import", str(file), "--design", design, "--json", *at]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["labels"], document["rejected"], document["sample"]) == (3, 1, "complaints")
    assert store.labels.labellers() == ["complaints.csv"]
    sample = store.samples.get("complaints")
    assert sample is not None
    assert (sample.design, sample.size) == (design, 3)
    caution = choose_basis(store, "complaints").caution
    assert (caution is None) if design == "random" else (caution is not None and caution.chosen == Chosen(design))
    assert main(["labels", "export", str(tmp_path / "x.csv"), "--design", "random", *at]) == 2


def test_the_page_keeps_labels_and_says_how_many(store: Store, tmp_path: Path) -> None:
    files = [
        ImportFile("audit.jsonl", write(tmp_path / "upload-1")),
        ImportFile("b.jsonl", write(tmp_path / "2", start=30)),
    ]
    job = ImportJob(store, files, labels=Labels(design="random"), strict=False)
    job._thread.join()
    assert store.labels.labellers() == ["audit.jsonl", "b.jsonl"]
    assert [state.sample.name for state in job.files if state.sample] == ["audit", "b"]
    assert "24 labels kept, 0 left out." in details(job)
    assert any("drawn at random" in line for line in details(job))


def test_labels_of_members_count_in_their_sample_and_make_no_random_one(
    store_url: str, store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Members of a sample drawn by suspicion, labelled out of its order: stated as random they would bend figures."""
    bad, at = fill_traffic(store), ("--store", store_url)
    members = keys_of(store, draw(store, "w1", size=40))
    traces = [f"t{pk - 1}" for pk in members]
    out_of_order = tmp_path / "o1.csv"
    lines = [f"{trace},{'hallucinated' if bad[pk - 1] else 'clean'}" for trace, pk in zip(traces, members, strict=True)]
    out_of_order.write_text("\n".join(["trace_id,verdict", *lines[10:]]) + "\n")
    assert main(["labels", "import", str(out_of_order), "--design", "random", *at]) == 2
    said = capsys.readouterr().err
    assert "30 of 30 traces are members of sample w1, drawn by octaves" in said
    assert "import without --design, they count there" in said
    assert not store.labels.gold_counts()
    assert main(["labels", "import", str(out_of_order), *at]) == 0
    said = capsys.readouterr().out
    assert "30 labels are of members of the sample 'w1': 0 count, 30 wait behind a trace" in said
    assert "--design" not in said
    other = next(f"t{place}" for place in range(len(bad)) if f"t{place}" not in traces)
    rest = tmp_path / "o2.csv"
    rest.write_text("\n".join(["trace_id,verdict", *lines[:10], f"{other},clean"]) + "\n")
    assert main(["labels", "import", str(rest), *at]) == 0
    said = capsys.readouterr().out
    assert "10 labels are of members of the sample 'w1': all of them count" in said
    assert "1 label is of traces in no sample" in said
