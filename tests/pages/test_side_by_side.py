"""What is compared side by side, and the address that says it."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest


def chooser() -> None:
    import streamlit as st

    from pages.thresholds.comparison import choose_kind

    st.session_state["kind"] = choose_kind()


def opened(**address: str) -> AppTest:
    page = AppTest.from_function(chooser, default_timeout=30)
    page.query_params.update(address)
    return page.run()


def kind_and_address(page: AppTest) -> tuple[str, str]:
    assert not page.exception
    return page.session_state["kind"], "".join(page.query_params.get("compare", ""))  # a list of one, or its text


@pytest.mark.parametrize(
    ("address", "kind", "kept"),
    [
        ({}, "Detectors", ""),
        ({"compare": "models"}, "Models", "models"),
        ({"compare": "weeks"}, "Weeks", "weeks"),
        ({"compare": "settings"}, "Settings", "settings"),
        ({"compare": "<b>"}, "Detectors", ""),
    ],
)
def test_an_address_opens_the_kind_that_it_names(address: dict[str, str], kind: str, kept: str) -> None:
    assert kind_and_address(opened(**address)) == (kind, kept)


def test_what_is_chosen_is_in_the_address_and_an_address_that_is_followed_counts() -> None:
    page = opened(compare="models")
    page.segmented_control[0].set_value("Weeks").run()
    assert kind_and_address(page) == ("Weeks", "weeks")
    assert kind_and_address(page.run()) == ("Weeks", "weeks")
    page.query_params["compare"] = "models"  # the browser's Back
    assert kind_and_address(page.run()) == ("Models", "models")
    page.segmented_control[0].set_value("Detectors").run()
    assert kind_and_address(page) == ("Detectors", "")
