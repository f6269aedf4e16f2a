"""Commands in our sentences are set as code; whatever a name in them holds stays text."""

from __future__ import annotations

import pytest

from pages.components.text import plain, spoken


def test_what_stands_between_backticks_is_code_and_the_rest_is_plain() -> None:
    text = spoken("fetch it with `models pull x_y`, or set *one*")
    assert text == f"fetch it with `models pull x_y`{plain(', or set *one*')}"


@pytest.mark.parametrize("name", ["`", "a`b", "```"])
def test_a_name_with_an_odd_backtick_makes_no_code(name: str) -> None:
    assert spoken(f"no model {name} here") == plain(f"no model {name} here")


@pytest.mark.parametrize("name", ["`<img src=x>`", "`$x$`", "` [a](http://b) `"])
def test_a_name_in_backticks_is_literal(name: str) -> None:
    inner = name.strip("`")
    assert f"`{inner}`" in spoken(f"no model {name} here")  # in a span of code Markdown acts on nothing
