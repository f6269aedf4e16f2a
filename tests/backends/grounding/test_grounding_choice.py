"""A name of the catalogue is the only setting: hub id, layout, labels and window come with it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from calibrate.backends import catalogue
from calibrate.backends.grounding import Wanted, grounder, span_finder
from calibrate.backends.grounding.first_token import FirstTokenGrounder
from calibrate.backends.grounding.hhem import HhemGrounder
from tests.tiny_grounding import hhem, minicheck_t5, modernbert
from tests.tiny_nli import random_model

LOADED = [entry for entry in catalogue.entries() if entry.is_pullable]


def install(hub: str, cache: Path) -> Path:
    """The folder that a fetched model of this id has in the hub's cache."""
    folder = cache / f"models--{hub.replace('/', '--')}"
    (folder / "refs").mkdir(parents=True)
    (folder / "refs" / "main").write_text("0" * 40, encoding="utf-8")
    snapshot = folder / "snapshots" / ("0" * 40)
    snapshot.mkdir(parents=True)
    return snapshot


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("entry", LOADED, ids=lambda entry: entry.name)
def test_every_model_of_the_catalogue_runs_by_its_name(entry: catalogue.CatalogueEntry, cache: Path) -> None:
    """With a tiny network of its architecture in the place where `models pull` puts the real one."""
    spans = entry.adapter == "grounded_spans"
    before = (span_finder(Wanted(entry.name), "en") if spans else grounder(Wanted(entry.name))).unavailable() or ""
    assert f"models pull {entry.name}" in before
    snapshot = install(entry.hub, cache)
    if spans:
        modernbert(snapshot, task="token", seed=3)
        finder = span_finder(Wanted(entry.name), "en")
        assert finder.unavailable() is None
        (tokens,) = finder.probabilities([("passage 1: the moon", "the moon")])
        assert len(tokens) == 2
        return
    if entry.template == "hhem":
        hhem(snapshot)
    elif entry.template == "minicheck-t5":
        minicheck_t5(snapshot)
    else:
        random_model(snapshot, "deberta-v2", labels=("LABEL_0", "LABEL_1"), seed=3)
    model = grounder(Wanted(entry.name))
    assert model.unavailable() is None
    assert model.template.name == entry.template
    assert type(model) in (type(grounder(Wanted(str(snapshot)))), type(grounder(Wanted(entry.hub))))
    assert 0 <= model.probabilities([("the moon", "the moon")])[0, 0] <= 1
    assert grounder(Wanted(entry.hub)).revision() == model.revision()


def test_parameters_outrank_the_catalogue(cache: Path) -> None:
    snapshot = install("lytang/MiniCheck-DeBERTa-v3-Large", cache)
    random_model(snapshot, "deberta-v2", labels=("LABEL_0", "LABEL_1"), seed=3)
    usual = grounder(Wanted("minicheck-deberta-large"))
    other = grounder(Wanted("minicheck-deberta-large", template="factcg", labels="0=supported", window=512))
    assert (usual.template.name, usual.limit) == ("minicheck", 2048)
    assert (other.template.name, other.limit) == ("factcg", 512)
    assert usual.probabilities([("a", "b")])[0, 0] != other.probabilities([("a", "b")])[0, 0]


def test_the_variable_takes_a_name_too(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOUCHSTONE_GROUNDED_MODEL", "hhem-2.1-open")
    assert isinstance(grounder(Wanted()), HhemGrounder)
    monkeypatch.setenv("TOUCHSTONE_GROUNDED_MODEL", "minicheck-flan-t5-large")
    assert isinstance(grounder(Wanted()), FirstTokenGrounder)


@pytest.mark.parametrize("name", [entry.name for entry in catalogue.entries() if not entry.is_pullable])
def test_a_model_that_is_served_elsewhere_names_its_detector(name: str, cache: Path) -> None:
    listed = catalogue.entry(name)
    assert listed is not None
    assert listed.adapter in (grounder(Wanted(name)).unavailable() or "")


def test_a_pinned_commit_is_read_and_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a hub's cache has of a model: a later state under its branch, and the state that the catalogue names."""
    pinned, later = "a" * 40, "b" * 40
    pairs = next(entry for entry in LOADED if entry.adapter == "grounded")
    listed = replace(pairs, name="ours", hub="team/ours", revision=pinned)
    monkeypatch.setattr(catalogue, "entry", lambda name: listed if name == "ours" else None)
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    cache = tmp_path / "hub" / "models--team--ours"
    for commit in (later, pinned):
        (cache / "snapshots" / commit).mkdir(parents=True)
    (cache / "refs").mkdir()
    (cache / "refs" / "main").write_text(later)
    assert grounder(Wanted(model="ours")).directory() == cache / "snapshots" / pinned
    assert grounder(Wanted(model="team/ours")).directory() == cache / "snapshots" / later


def test_a_model_that_is_fetched_again_is_loaded_anew(cache: Path) -> None:
    """`main` moves to another commit while a process runs."""
    snapshot = install("team/ours", cache)
    random_model(snapshot, labels=("hallucinated", "grounded"), seed=3)
    before = grounder(Wanted("team/ours"))
    revision, value = before.revision(), before.probabilities([("a", "the moon")])[0, 0]
    random_model(snapshot.parent / ("1" * 40), labels=("hallucinated", "grounded"), seed=4)
    (snapshot.parents[1] / "refs" / "main").write_text("1" * 40, encoding="utf-8")
    after = grounder(Wanted("team/ours"))
    assert after.revision() != revision
    assert after.probabilities([("a", "the moon")])[0, 0] != value
    assert before.revision() == revision


def test_the_catalogues_map_does_not_turn_a_models_own_names_around(cache: Path) -> None:
    """The catalogue is not pinned: its owners may publish the labels in another order."""
    snapshot = install("lytang/MiniCheck-DeBERTa-v3-Large", cache)
    random_model(snapshot, "deberta-v2", labels=("supported", "unsupported"), seed=3)
    assert "the model calls that output 'supported'" in (
        grounder(Wanted("minicheck-deberta-large")).unavailable() or ""
    )
