"""What somebody sees who does not come in: the sign-in, and a page that their roles do not open."""

from __future__ import annotations

import streamlit as st

from calibrate.errors import Forbidden
from pages.shell import identity
from pages.shell.frame import note_refusal, show_title
from pages.shell.identity import Person, Unknown


def show_unknown(problem: Unknown) -> None:
    """Nobody says who is here: how to change that."""
    show_title("Touchstone")
    with st.container(border=True):
        st.write(str(problem))
        if problem.may_sign_in:
            for provider in identity.providers():
                label = "Sign in" if provider is None else f"Sign in with {provider}"
                st.button(label, type="primary", icon=":material/login:", on_click=st.login, args=(provider,))


def show_no_role(person: Person) -> None:
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


def show_sign_out() -> None:
    """Where people sign in, the way out."""
    if identity.signs_in():
        st.button("Sign out", icon=":material/logout:", on_click=st.logout)


def sign_out_page() -> None:
    show_title("Sign out")
    st.text(f"You are signed in as {identity.user()}.")
    show_sign_out()
