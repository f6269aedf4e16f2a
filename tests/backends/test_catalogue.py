"""The catalogue of groundedness models is complete, spelt as its readers expect, and honest about what is not known."""

import re

import pytest

from calibrate.backends import hub
from calibrate.backends.catalogue import CatalogueEntry, entries, entry


@pytest.mark.parametrize("model", entries(), ids=lambda model: model.name)
def test_an_entry_says_all_that_one_setting_replaces(model: CatalogueEntry) -> None:
    assert entry(model.name.upper()) is model
    assert model.licence
    assert model.source.startswith("https://")
    assert 0 < model.threshold < 1
    assert model.window >= 512
    assert model.parameters > 0
    assert len(model.published) in (1, 2)
    assert all(50 < figure < 100 for figure in model.published)
    assert re.fullmatch("main|[0-9a-f]{40}", model.revision), "a branch that moves, or a commit"
    assert model.adapter == "http" or (hub.is_id(model.hub) and model.template)


def test_a_licence_against_commercial_use_is_marked() -> None:
    assert {model.name for model in entries() if not model.commercial} == {"bespoke-minicheck-7b", "lynx-8b"}
    assert all(model.commercial == ("NC" not in model.licence) for model in entries())


def test_what_is_loaded_here_can_be_fetched_and_the_rest_is_served() -> None:
    assert {model.adapter for model in entries() if model.is_pullable} == {"grounded", "grounded_spans"}
    assert entry("no such model") is None
