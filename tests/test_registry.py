"""Finding detectors by name, and reading their parameters from a form or a command line."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from calibrate import registry
from calibrate.errors import BadInput, UnknownDetector


@dataclass(frozen=True)
class Foreign:
    """A detector of another package."""

    name: ClassVar[str] = "foreign"
    level: float = 0.5


class Entry(SimpleNamespace):
    def load(self) -> Any:
        if isinstance(self.found, Exception):
            raise self.found
        return self.found


@pytest.fixture
def offered(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Offers objects as other packages would, by entry point."""

    def offer(*found: Any) -> None:
        entries = [Entry(name="foreign", value="elsewhere:Foreign", found=one) for one in found]
        monkeypatch.setattr(registry, "entry_points", lambda group: entries)
        registry._load_classes.cache_clear()

    yield offer
    registry._load_classes.cache_clear()


def test_finds_the_shipped_detectors() -> None:
    shipped = {"token_overlap", "rouge_l", "schema", "citation_validity", "citation_grounding", "semantic_similarity"}
    assert shipped <= set(registry.names())
    assert registry.names() == sorted(registry.names())


def test_unknown_name_gets_a_hint() -> None:
    with pytest.raises(UnknownDetector, match="no detector 'rougel'; did you mean rouge_l"):
        registry.get("rougel")
    with pytest.raises(UnknownDetector, match="there are: bertscore"):
        registry.get("zzzzzzzz")


def test_third_party_detectors_are_found(offered: Any) -> None:
    offered(Foreign)
    assert "foreign" in registry.names()
    assert registry.config_of(registry.make("foreign", {"level": "0.25"})) == {"level": 0.25}


def test_of_two_of_one_name_the_first_is_taken_and_that_is_said(offered: Any, caplog: Any) -> None:
    offered(Foreign, Foreign)
    assert registry.get("foreign") is Foreign
    assert "two detectors are called 'foreign'" in caplog.text


@pytest.mark.parametrize("error", [ImportError("no module named gone"), RuntimeError("no module named gone")])
def test_a_broken_plugin_is_named_and_takes_no_other_with_it(error: Exception, offered: Any, caplog: Any) -> None:
    offered(error)
    assert registry.make("rouge_l").name == "rouge_l"
    assert "foreign" not in registry.names()
    with pytest.raises(BadInput, match="elsewhere:Foreign cannot be loaded: no module named gone"):
        registry.get("foreign")
    assert caplog.text.count("cannot be loaded") == 1


@pytest.mark.parametrize(
    ("name", "given", "read"),
    [
        ("token_overlap", {"stemming": "no"}, {"stemming": False}),
        ("token_overlap", {"stemming": True}, {"stemming": True}),
        ("rouge_l", {"sentences_per_window": "5"}, {"sentences_per_window": 5}),
        ("rouge_l", {"sentences_per_window": 5.0}, {"sentences_per_window": 5}),
        ("rouge_l", {"variant": "plain"}, {"variant": "plain"}),
        ("schema", {"draft": "7"}, {"draft": "7"}),
        ("schema", {"draft": 7}, {"draft": "7"}),
        ("citation_grounding", {"model": "/some/where"}, {"model": "/some/where"}),
    ],
)
def test_values_are_read_as_the_parameters_type(name: str, given: dict[str, Any], read: dict[str, Any]) -> None:
    config = registry.config_of(registry.make(name, given))
    assert {key: config[key] for key in read} == read
    assert all(type(config[key]) is type(read[key]) for key in read)


@pytest.mark.parametrize(
    ("name", "given", "says"),
    [
        ("token_overlap", {"steming": "no"}, "has no parameter 'steming'; it has: variant, stemming"),
        ("token_overlap", {"stemming": "maybe"}, "stemming cannot be 'maybe'; it is true or false"),
        ("token_overlap", {"variant": "Plain"}, "it is one of default, plain"),
        ("rouge_l", {"sentences_per_window": "2.5"}, "it is a whole number from 1 to 20"),
        ("rouge_l", {"sentences_per_window": 0}, "from 1 to 20"),
        ("rouge_l", {"sentences_per_window": True}, "cannot be True"),
        ("rouge_l", {"sentences_per_window": "9" * 5000}, "whole number"),
        ("rouge_l", {"sentences_per_window": float("inf")}, "whole number"),
        ("citation_grounding", {"model": None}, "it is a text"),
    ],
)
def test_what_does_not_fit_is_refused(name: str, given: dict[str, Any], says: str) -> None:
    with pytest.raises(BadInput) as refused:
        registry.make(name, given)
    assert says in str(refused.value)
    assert str(refused.value).startswith(name)


def test_parameters_for_a_form() -> None:
    found = {one.name: one for one in registry.parameters(registry.get("rouge_l"))}
    assert found["variant"].choices == ("default", "plain")
    assert (found["sentences_per_window"].type, found["sentences_per_window"].default) == (int, 3)
    assert (found["sentences_per_window"].low, found["sentences_per_window"].high) == (1, 20)
