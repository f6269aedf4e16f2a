"""What somebody sees who does not come in: the sign-in, and a page that their roles do not open."""

from __future__ import annotations

import streamlit as st

from calibrate.errors import Forbidden
from calibrate.sanitize import visible
from pages.shell import identity
from pages.shell.frame import note_refusal, show_title
from pages.shell.identity import Person, Unknown
from pages.shell.navigation import page


def show_unknown(problem: Unknown) -> None:
    """Nobody says who is here: how to change that."""
    st.set_page_config(page_title="Touchstone")
    show_title("Touchstone")
    with st.container(border=True):
        st.write(str(problem))
        if problem.may_sign_in:
            for provider in identity.providers():
                label = "Sign in" if provider is None else f"Sign in with {provider}"
                st.button(label, type="primary", icon=":material/login:", on_click=st.login, args=(provider,))


def show_no_role(person: Person) -> None:
    st.set_page_config(page_title="Touchstone")
    show_title("Touchstone")
    with st.container(border=True):
        st.markdown(":material/lock: **You have no role in this workbench yet.**")
        st.text(f"You are {person.name}. Whoever keeps the team file can give you one.")
    show_sign_out()


def show_closed(person: Person, title: str) -> None:
    """A page that this person's roles do not open."""
    show_title(title)
    with st.container(border=True):
        st.markdown(":material/lock: **This page is not open to your role.**")
        named = " and ".join(sorted(person.roles or ()))
        st.text(f"You are {person.name}, {named}. Whoever keeps the team file can change that.")
    note_refusal(Forbidden(f"the page {title}"))


def show_lost(address: str) -> None:
    """An address that no page has."""
    show_title("There is no such page")
    with st.container(border=True):
        st.text(f"Nothing is at /{visible(address, 80)}: the bar above has every page.")
        st.page_link(page("week"), label="Go to This week", icon=":material/home:")


def show_sign_out() -> None:
    """Where people sign in, the way out."""
    if identity.signs_in():
        st.button("Sign out", icon=":material/logout:", on_click=st.logout)


def sign_out_page() -> None:
    show_title("Sign out")
    st.text(f"You are signed in as {identity.user()}.")
    show_sign_out()
