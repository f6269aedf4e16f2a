"""What every session runs: the configuration of its page, who is here, the bar, and the page that their roles open."""

from __future__ import annotations

import pandas  # noqa: F401  # plotly takes it half imported where another session is importing it
import streamlit as st
from streamlit.runtime.scriptrunner import StopException

from calibrate.errors import TouchstoneError
from pages.shell import detectors, doors, identity, navigation
from pages.shell.bar import bar
from pages.shell.frame import show_error, show_style
from pages.shell.identity import Unknown


def main() -> None:
    identity.install()
    if identity.may_type_a_name() and identity.is_local() and "user" in st.query_params:
        st.session_state.setdefault("user", st.query_params["user"][:100])
    person = identity.person()
    if person.roles is not None and not person.roles:
        doors.show_no_role(person)
        return
    detectors.put_in_place()
    page = st.navigation(navigation.all_pages(), position="hidden")
    if elsewhere := navigation.moved(page):
        st.switch_page(navigation.page(elsewhere), query_params=navigation.opens(page) | st.query_params.to_dict())
    key = navigation.key_of(page)
    at_hand = bar.show(key, person)
    if navigation.is_lost(page):
        doors.show_lost(page.url_path)
    elif closed := navigation.closed(key):
        doors.show_closed(person, closed)
    else:
        try:
            page.run()
        except StopException:
            bar.follow(key, at_hand)
            raise
        bar.follow(key, at_hand)


st.set_page_config(page_icon="⚖️", layout="wide")
show_style()
try:
    main()
except Unknown as problem:
    doors.show_unknown(problem)
except TouchstoneError as error:
    show_error(error)
