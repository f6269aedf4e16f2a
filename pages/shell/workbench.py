"""What every session runs: the configuration of its page, who is here, navigation to what their roles open."""

from __future__ import annotations

import pandas  # noqa: F401  # plotly takes it half imported where another session is importing it
import streamlit as st

from calibrate.errors import TouchstoneError
from pages.shell import doors, identity, navigation
from pages.shell.frame import show_error
from pages.shell.identity import Unknown


def main() -> None:
    identity.install()
    if identity.may_type_a_name() and identity.is_local() and "user" in st.query_params:
        st.session_state.setdefault("user", st.query_params["user"][:100])
    person = identity.person()
    if person.roles is not None and not person.roles:
        doors.show_no_role(person)
        return
    page = st.navigation(navigation.all_pages(), position="top")
    if closed := navigation.closed(page):
        doors.show_closed(person, closed)
    else:
        page.run()


st.set_page_config(page_title="Touchstone", page_icon="⚖️", layout="wide")
try:
    main()
except Unknown as problem:
    doors.show_unknown(problem)
except TouchstoneError as error:
    show_error(error)
