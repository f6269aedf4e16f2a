"""A saved ensemble becomes part of a release, with the detectors it was made from or not at all."""

from __future__ import annotations

import dataclasses
import json
from argparse import Namespace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from calibrate.cli import grammar, verify
from calibrate.cli import release as release_verb
from calibrate.errors import BadInput
from calibrate.report.sentences.releasing import release as sentences
from calibrate.runtime import decide, load
from calibrate.stats.ensembles.combine import Recipe
from calibrate.thresholds import Sampling, ThresholdsFile, diff
from calibrate.types import Ensemble, EnsembleCut, EnsembleCuts
from calibrate.workflow.releasing import release
from calibrate.workflow.releasing.candidate import build_candidate
from calibrate.workflow.tuning import ensemble
from db import Store
from db.releases import ReleaseRequest
from tests.workflow.making import NOW, keep_sample, save
from tests.workflow.tuning.test_ensemble import A, B, filled

NAME = "grounding"
SAVED: list[Ensemble] = []  # made once: it takes a second, and is the same in every store


@pytest.fixture
def ready(store: Store) -> Store:
    """Two detectors with a saved point each, on a sample, and an ensemble of them."""
    filled(store)
    keep_sample(store, ["all"] * 120, {"all": 2000})
    for name in (A, B):
        save(store, "manual:0.45", name=name, sample="w47")
    if not SAVED:
        SAVED.append(ensemble.document_of(build(store, "weighted")))
    store.ensembles.save(NAME, SAVED[0], by="ann", now=NOW)
    return store


def build(store: Store, kind: Any) -> ensemble.Report:
    return ensemble.build(store, Recipe(kind), [A, B], budget=0.2)


def made(store: Store, **given: Any) -> ThresholdsFile:
    previous = given.pop("previous", None)
    request = ReleaseRequest(**{"ensembles": [NAME], "by": "ann", **given})
    return build_candidate(store, request, points=store.points.latest(), previous=previous, now=NOW)


@pytest.mark.parametrize("kind", ["any", "logistic"])
def test_the_file_flags_what_the_ensemble_flagged(ready: Store, tmp_path: Path, kind: str) -> None:
    report = build(ready, kind)
    ensemble.save(ready, NAME, ensemble.document_of(report), by="ann", now=NOW)
    out = tmp_path / "thresholds.json"
    off: Any = {A: "off", B: "off"}
    release.release(ready, ReleaseRequest(ensembles=[NAME], tiers=off, by="ann"), now=NOW, out=out)
    file = load(out)
    traffic = report.gathered.training.traffic
    expected = report.rule.score(traffic) >= (report.signal.threshold or 0)
    rows = [{name: None if np.isnan(v[row]) else v[row] for name, v in traffic.items()} for row in range(120)]
    assert [decide(file, row).flags == (NAME,) for row in rows] == expected.tolist()
    assert 0 < expected.sum() < 120
    entry = file.ensembles[NAME]
    assert (entry.members, entry.budget, entry.metrics.n) == ((B, A), 0.2, report.n)
    assert entry.metrics.recall == report.figures.recall


def test_the_file_says_how_the_samples_were_drawn_and_sampling_stays(ready: Store) -> None:
    drawn = made(ready).data.samples["w47"]
    assert (drawn.design, drawn.by, drawn.pool, drawn.size) == ("stratified", "model", 2000, 120)
    assert drawn.strata == {"all": (2000, 120)}
    before = made(ready)
    sampled = dataclasses.replace(before.detectors[A], sampling=Sampling(0.1))
    before = dataclasses.replace(before, detectors={**before.detectors, A: sampled})
    after = made(ready, previous=before)
    assert after.detectors[A].sampling == Sampling(0.1)
    assert diff(before, after) == []


def test_a_tier_takes_the_page_cut_away(ready: Store) -> None:
    cuts = EnsembleCuts(EnsembleCut(1.75, 0.1), EnsembleCut(1.5, 0.2))
    ready.ensembles.save(NAME, dataclasses.replace(SAVED[0], cuts=cuts), by="ann", now=NOW)
    assert (made(ready).ensembles[NAME].cuts.page, made(ready).ensembles[NAME].cuts.signal) == (1.75, 1.5)
    (caution,) = sentences.cautions(made(ready))
    assert "the ensemble grounding pages people" in caution
    quiet = made(ready, tiers={NAME: "signal"})
    assert (quiet.ensembles[NAME].cuts.page, quiet.ensembles[NAME].cuts.signal) == (None, 1.5)
    assert sentences.cautions(quiet) == []
    assert not made(ready, tiers={NAME: "off"}).ensembles[NAME].live


def test_members_must_be_in_the_release_with_the_scores_it_was_made_from(ready: Store) -> None:
    with pytest.raises(BadInput, match="reads rouge_l, which is not in this release"):
        made(ready, detectors=[A])
    (saved,) = SAVED
    other = {**saved.detectors, B: dataclasses.replace(saved.detectors[B], version="0", params={"variant": "old"})}
    ready.ensembles.save(NAME, dataclasses.replace(saved, detectors=other), by="ann", now=NOW)
    with pytest.raises(BadInput) as caught:
        made(ready)
    assert str(caught.value) == (
        "the ensemble grounding was made from other scores of rouge_l than this release has (version '0', here '1'; "
        "params {'variant': 'old'}, here {'variant': 'default'}): make it again and save it, or save the point of "
        "those scores"
    )
    with pytest.raises(BadInput, match="there is no ensemble 'other': saved are grounding"):
        made(ready, ensembles=["other"])
    ready.ensembles.save("Gründe", saved, by="ann", now=NOW)
    with pytest.raises(BadInput, match="save 'Gründe' under such a name"):
        made(ready, ensembles=["Gründe"])


def test_the_command_line_takes_it(ready: Store, store_url: str, tmp_path: Path) -> None:
    out = tmp_path / "t.json"
    given = ["--out", str(out), "--tier", f"{A}=off", "--ensemble", NAME, "--note", "with it", "--store", store_url]
    answer = release_verb.run(grammar.build().parse_args(["release", *given]))
    assert answer.exit_code == 0
    assert list(json.loads(out.read_text())["ensembles"]) == [NAME]
    assert "; ensembles: grounding" in verify.run(Namespace(file=str(out), key=None)).text
