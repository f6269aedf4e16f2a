"""The whole path on a real model: propose, estimate, compare, stop, go on, save. The path, never the model's taste.

Four requests of a real model on a processor take most of a minute.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from calibrate.cli import main
from calibrate.types import Kind, Label, Record, Source, Trace, TraceFilter
from calibrate.workflow.aligning import comparison
from calibrate.workflow.aligning.judges import load_judge
from calibrate.workflow.detection import team_files
from calibrate.workflow.labelling import guides
from calibrate.workflow.sampling.sample import draw
from db import open_store
from tests.llm import Llm

NOW = datetime(2026, 11, 23, tzinfo=UTC)
JUDGE, N, FEW = "judge_yes_no", 10, 2

KINDS = [Kind("number", "Wrong number")]
SHORT = (
    "=== system ===\nTexts stand between lines with {fence}.\n=== user ===\n{context}\n{answer}\nIs it so? YES or NO."
)


def test_from_labels_to_a_saved_prompt(llm_chat: Llm, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = f"sqlite:///{tmp_path}/team.db"
    store = open_store(url)
    records = []
    for number in range(N):
        bad = number % 2 == 0
        minutes = 40 if not bad else 10 + number
        source = Source("1", f"Ferry {number} takes 40 minutes.")
        trace = Trace(f"t{number}", answer=f"It takes {minutes} minutes.", sources=(source,), group=f"g{number}")
        records.append(Record(number + 1, trace, (Label(trace.id, "", "hallucinated" if bad else "clean"),)))
    store.traces.add(records, labels_as="ann", now=NOW)

    def align(*words: str) -> dict[str, Any]:
        capsys.readouterr()
        assert main(["align", *words, JUDGE, "--store", url, "--examples", "2", "--json"]) == 0
        document: dict[str, Any] = json.loads(capsys.readouterr().out)
        return document

    team_files.save(store, "prompts/judge_yes_no.txt", SHORT, by="ann", now=NOW)
    guides.save(store, "Check the minutes.", KINDS, by="ann", now=NOW)
    first = align("save", "--reason", "to begin with")
    assert len(first["examples"]) == first["newly"] == 2
    assert not first["compared"]
    guides.save(store, "Minutes have to be the source's.", KINDS, by="ann", now=NOW)
    draw(store, "few", size=FEW, design="random", where=TraceFilter(), seed=1, now=NOW)
    few = ("--sample", "few")
    judge = load_judge(store, JUDGE, sample="few")
    proposed, n = align("propose", *few), len(judge.data.rows)
    assert (proposed["newly"], proposed["before"]) == (0, first["after"])
    assert align("compare", *few, "--estimate")["requests"] == 2 * n  # once under either prompt

    class Stop(Exception):
        pass

    def stop(done: int, total: int) -> None:
        assert total == 2 * n
        if done == 1:
            raise Stop

    with pytest.raises(Stop):
        comparison.compare(store, judge, examples=2, by="ann", now=NOW, on_progress=stop)
    compared = align("compare", *few)
    assert compared["verdict"] in ("better", "worse", "open")
    assert compared["after"] == proposed["after"]
    assert (compared["recall"], compared["released"], compared["looks"]) == (0.7, False, 1)
    assert align("compare", *few, "--estimate")["cached"] >= compared["second_scored"]  # replies are stored
    stored = comparison.newest_comparison(store, JUDGE)
    assert stored is not None
    assert comparison.read_comparison(stored).gain.verdict == compared["verdict"]
    saved = align("save", *few, "--reason", "whatever the model's taste")
    assert saved["saved"]
    assert saved["verdict"] == compared["verdict"]
    assert team_files.get(store, saved["file"]).version == proposed["after"]
    store.close()
