"""Readers in other languages take the vectors, releases of a real store, and files changed at random, as ours does.

Each is held to a folder of vectors by a command of its own; a release or a changed file is written as one.
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from calibrate.errors import BadThresholds
from calibrate.runtime import decide
from calibrate.stats.choosing.policy import parse
from calibrate.stats.ensembles.combine import Recipe
from calibrate.thresholds import read, schema
from calibrate.thresholds.signing import read_public_keys
from calibrate.types import Guarantee
from calibrate.workflow.detection import baselines, detect
from calibrate.workflow.evidence import loading
from calibrate.workflow.evidence.basis import Basis
from calibrate.workflow.releasing import release as step
from calibrate.workflow.tuning import ensemble, operating_points, probability
from db import Store
from db.releases import Release, ReleaseRequest
from tests.thresholds.go_toolchain import run_go
from tests.thresholds.make_vectors import FOLDER, OURS, TRUSTED
from tests.thresholds.test_fuzz import GOOD, mutated
from tests.workflow.detection.test_baselines import add, trace
from tests.workflow.making import NOW, draw, fill, give_scores, save

ROOT = Path(__file__).parents[2]
CONSUMERS = ROOT / "docs" / "consumers"
Run = Callable[[Path], subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module", params=["javascript", pytest.param("go", marks=pytest.mark.network)])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Holds a reader to a folder of vectors."""
    command = ["node", "vectors.mjs"]
    if request.param == "go":
        made = tmp_path_factory.mktemp("go")
        run_go("build", "-o", str(made / "vectors"), "./cmd/vectors", cwd=CONSUMERS / "go")
        command = [str(made / "vectors")]
    elif shutil.which("node") is None:
        pytest.skip("no node here")

    def hold(folder: Path) -> subprocess.CompletedProcess[str]:
        where = CONSUMERS / request.param
        given = [*command, str(folder)]
        return subprocess.run(given, cwd=where, capture_output=True, text=True, timeout=110, check=False)

    return hold


def test_it_meets_every_vector(run: Run) -> None:
    done = run(FOLDER)
    assert (done.returncode, done.stdout) == (0, f"{len(list(FOLDER.glob('*.json')))} vectors, 0 not met\n")


def test_a_vector_that_is_not_met_is_told(run: Run, tmp_path: Path) -> None:
    wrong = json.loads((FOLDER / "tiers.json").read_text())
    wrong["cases"][0]["decision"]["tier"] = "signal"
    (tmp_path / "tiers.json").write_text(json.dumps(wrong))
    (tmp_path / "whole.json").write_text(json.dumps({"document": wrong["document"], "refused": True}))
    done = run(tmp_path)
    assert done.returncode == 1
    assert "whole.json: read, but it must be refused" in done.stdout
    assert "2 vectors, 2 not met" in done.stdout


@pytest.mark.parametrize("seed", range(2))
def test_it_takes_and_refuses_changed_files_as_ours_does(run: Run, tmp_path: Path, seed: int) -> None:
    rng, taken = random.Random(seed), 0
    for number in range(300):
        content = mutated(rng, rng.choice(GOOD))
        try:
            text = content.decode()
        except UnicodeDecodeError:  # a vector is JSON, and can hold no other bytes
            continue
        try:
            read(content)
            refused = False
            taken += 1
        except BadThresholds:
            refused = True
        vector = {"text": text, "refused": refused, "cases": []}
        (tmp_path / f"{number:03}.json").write_text(json.dumps(vector))
    done = run(tmp_path)
    assert done.returncode == 0, done.stdout
    assert 10 < taken < 150


# ------------------------------------------------------------------------------------------------- real releases


def real_releases(store: Store) -> list[Release]:
    """Measured, bounded, certified and at the elbow; off and paging; with a map, an ensemble, baselines; signed."""
    labels, scores = draw(300)
    names = {"rouge_l": 0.02, "bleu": -0.03, "word_overlap": 0.01, "token_overlap": 0.0}
    fill(store, labels, scores, name="token_overlap")
    traces = store.traces.load([store.traces.find(f"t{place}") or 0 for place in range(300)])
    for name, shift in names.items():
        give_scores(store, traces, [None if s is None else s + shift for s in scores], name=name)
    save(store, "precision>=0.7", name="token_overlap")
    save(store, "elbow", name="bleu")
    save(store, "manual:0.35", name="word_overlap")
    bounded = loading.load_evidence(store, "rouge_l", basis=Basis(None))
    point = operating_points.choose_point(bounded, parse("precision>=0.5"), strength="bounded")
    assert point.feasible
    operating_points.save_point(store, bounded, point, reason="few labels", by="ann", now=NOW)
    certified = store.points.latest()["word_overlap"]
    promise = Guarantee("certified", 0.7, 0.95, 0.733, 84, 69, "fresh")
    store.points.save(replace(certified, point=replace(certified.point, guarantee=promise)))
    mapped = probability.fit(store, "token_overlap")
    probability.save(store, mapped, by="ann", now=NOW)

    def make(key: Any = None, **given: Any) -> Release:
        return step.release(store, ReleaseRequest(by="ann", reason="a test", **given), now=NOW, sign=key)

    made = [make(detectors=["word_overlap"])]
    report = ensemble.build(store, Recipe("logistic"), ["token_overlap", "rouge_l"], budget=0.2)
    ensemble.save(store, "grounding", ensemble.document_of(report), by="ann", now=NOW, reason="a test")
    tiers: Any = {"word_overlap": "page", "rouge_l": "signal", "bleu": "off"}
    made.append(make(ensembles=["grounding"], tiers=tiers))
    add(store, [trace(f"c{n}", n)[0] for n in range(12)], "clean")
    add(store, [trace(f"h{n}", 60 + n)[0] for n in range(6)], "hallucinated")
    baselines.fit(store, NOW)
    queued = detect.queue(store, ["entropy_z"], {"labelled": True})
    detect.work(store, run_id=queued.id)
    save(store, "manual:1e6", name="entropy_z")  # flags nothing: its precision is unknown
    made.append(make(OURS, ensembles=["grounding"]))
    made.append(step.rollback(store, 1, by="bob", now=NOW, sign=OURS))
    return made


def test_it_loads_every_release_of_a_real_store(store: Store, run: Run, tmp_path: Path) -> None:
    rows = real_releases(store)
    documents = [json.loads(row.document) for row in rows]
    # That these releases hold what a hand-made example does not.
    whole = documents[2]
    detectors = whole["detectors"]
    assert detectors["entropy_z"]["metrics"]["precision"] == {"value": None, "low": None, "high": None}
    assert whole["data"]["window"] is None
    assert {type(value).__name__ for entry in whole["baselines"].values() for value in entry["entropy_z"].values()} >= {
        "str", "float"
    }  # fmt: skip
    strengths = {entry.get("guarantee", {}).get("strength", "measured") for entry in detectors.values()}
    assert strengths == {"measured", "bounded", "certified"}
    assert {entry["tier"] for entry in detectors.values()} == {"page", "signal", "off"}
    assert whole["ensembles"]
    assert "probability_map" in detectors["token_overlap"]
    assert ["x-signature" in document for document in documents] == [False, False, True, True]
    rng = random.Random(0)
    for row, document in zip(rows, documents, strict=True):
        Draft202012Validator(schema()).validate(document)
        signed = "x-signature" in document
        file = read(row.document.encode(), keys=read_public_keys(TRUSTED) if signed else ())
        cases = []
        for number in range(20):
            scores = {name: rng.choice([None, rng.random(), entry.threshold]) for name, entry in file.detectors.items()}
            decision = {key: value for key, value in asdict(decide(file, scores)).items() if key in KEYS}
            cases.append({"about": f"case {number}", "scores": scores, "decision": decision})
        vector = {"text": row.document, "cases": cases} | ({"verify_key": TRUSTED} if signed else {})
        (tmp_path / f"v{row.version}.json").write_text(json.dumps(vector))
    done = run(tmp_path)
    assert (done.returncode, done.stdout) == (0, "4 vectors, 0 not met\n"), done.stdout


KEYS = {"flags", "tier", "verdict", "version", "scored", "missing", "unknown", "unscored"}
