"""Parts of the Detectors page that need no server: labels, names of settings, curves, the heat of tokens."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from calibrate.stats.sweep.sweep import sweep
from calibrate.types import Token, Trace
from calibrate.workflow.detection.configurations import distinguish_configs
from db.scores import Config
from pages.components import charts
from pages.components.labelling import trace_card
from pages.components.text import label, plain


@pytest.mark.parametrize(
    "text", ["Judge: score per sentence", "Self-consistency", "ROUGE-L", "token_overlap", "类似度"]
)
def test_an_ordinary_title_is_its_own_accessible_name(text: str) -> None:
    assert label(text) == text


@pytest.mark.parametrize(
    "text",
    ["![x](http://evil/p.png)", "**b**", ":red[x]", "_i_", "`c`", "$x$", "<b>x</b>", "- x", "# x", "http://evil"],
)
def test_what_markdown_would_act_on_is_escaped(text: str) -> None:
    escaped = label(text)
    assert re.sub(r"\\(.)", r"\1", escaped).replace("\u2060", "") == text
    assert escaped != text


@pytest.mark.parametrize("text", ["see https://evil/x", "HTTP://evil", "www.evil.example", "mail who@evil.example"])
@pytest.mark.parametrize("shown", [label, plain])
def test_no_address_is_one_that_markdown_makes_a_link_of(shown: Callable[[str], str], text: str) -> None:
    """As GitHub's Markdown finds them, in text from which escapes are gone."""
    found = re.sub(r"\\(.)", r"\1", shown(text))
    assert not re.search(r"https?://|www\.|[\w.+-]+@[\w-]+\.", found, re.IGNORECASE)
    assert found.replace({label: "\u2060", plain: ":small[]"}[shown], "") == text


@pytest.mark.parametrize("shown", [label, plain])
def test_a_model_with_an_at_sign_is_no_address(shown: Callable[[str], str]) -> None:
    name = "anthropic/claude-3-5-sonnet@20240620"
    assert re.sub(r"\\(.)", r"\1", shown(name)) == name


def test_what_is_copied_from_plain_text_holds_nothing_unseen() -> None:
    assert "\u2060" not in plain("see https://evil/x, www.evil.example, who@evil.example")


@pytest.mark.parametrize("name", ["a<b>c</b>", "&lt;i&gt;", "a & b", "%{y}", 'it\'s "so"'])
def test_a_name_in_a_chart_reads_as_it_is_written(name: str) -> None:
    """As plotly reads it: what stands in angle brackets is a tag, then entities are characters."""
    drawn = charts.curves([(name, sweep([True, False], [1.0, 0.0]))]).data[0]
    assert "<" not in drawn.name
    assert re.sub("&(lt|gt|amp);", lambda one: {"lt": "<", "gt": ">", "amp": "&"}[one[1]], drawn.name) == name
    assert name not in drawn.hovertemplate


def test_settings_are_named_by_what_differs() -> None:
    same = {"k": 3, "variant": "default"}
    configs = [
        Config(1, "d", "1", same, "m@1+prompt-aa"),
        Config(2, "d", "1", {**same, "variant": "plain"}, "m@1+prompt-aa"),
    ]
    assert distinguish_configs(configs) == ["variant default", "variant plain"]
    reworded = [Config(1, "d", "1", same, "m@1+prompt-aa"), Config(2, "d", "1", same, "m@1+prompt-bb+refusals:cc")]
    assert distinguish_configs(reworded) == ["revision prompt-aa", "revision prompt-bb + refusals:cc"]
    lists = [Config(1, "d", "1", same, ""), Config(2, "d", "1", same, "refusals:cc")]
    assert len(set(distinguish_configs(lists))) == 2


def test_both_curves_are_drawn_under_their_names_and_a_name_is_no_markup() -> None:
    y = np.arange(60) % 3 == 0
    rng = np.random.default_rng(0)
    curves = [sweep(y, y + rng.normal(size=60)), sweep(y, rng.normal(size=60))]
    figure = charts.curves([("A: k 1", curves[0]), ("B: <b>model</b>&lt;", curves[1])])
    spec: dict[str, Any] = json.loads(figure.to_json())
    assert [one["name"] for one in spec["data"]] == ["A: k 1", "B: &lt;b&gt;model&lt;/b&gt;&amp;lt;"]
    for line, curve in zip(figure.data, curves, strict=True):
        np.testing.assert_array_equal(line.x, curve.recall)
        np.testing.assert_array_equal(line.y, curve.precision)
        assert line.showlegend


def test_token_heat_is_by_probability_and_text_stays_text() -> None:
    p = {"Two": 0.9, " <img>": 0.3, " years": 0.04, " 二年": 0.001}
    trace = Trace("t", answer="".join(p), tokens=tuple(Token(text, math.log(value)) for text, value in p.items()))
    shown = trace_card.card(trace, heat=True)
    kinds = {piece["t"]: piece.get("k") for piece in shown["answer"]}
    assert kinds["<img>"] == ["heat h1"]
    assert kinds["years"] == ["heat h3"]
    assert kinds["二年"] == ["heat h4"]
    assert "".join(piece["t"] for piece in shown["answer"]) == trace.answer
    assert [one["kind"] for one in shown["legend"]] == [f"heat h{level}" for level in (1, 2, 3, 4)]
    hot = next(piece for piece in shown["answer"] if piece["t"] == "years")
    assert hot["heat"] == ["p = 0.04, −log p = 3.22"]
    assert "heat" not in json.dumps(trace_card.card(trace)["answer"])


@pytest.mark.parametrize("logprob", [math.nan, 3.0])
def test_numbers_that_are_no_log_probabilities_have_no_heat(logprob: float) -> None:
    trace = Trace("t", answer="a b", tokens=(Token("a", logprob), Token(" b", logprob)))
    assert trace_card.heats(trace) == []
    assert trace_card.heats(Trace("t", answer="a")) == []
