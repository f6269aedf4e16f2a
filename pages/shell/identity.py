"""Who acts. One answer for pages, callbacks and the audit log: a name, how it is known, and the roles it has.

Where people sign in (Streamlit's OIDC), what the provider says counts; else where a proxy names them, its header; else,
on this machine only, the login name. A name that somebody typed counts for nothing but labels.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import streamlit as st
from streamlit.auth_util import get_secrets_auth_section
from streamlit.runtime.scriptrunner import get_script_run_ctx

from calibrate import settings
from calibrate.errors import Forbidden
from db.audit import Actor, How, identify_by
from pages.shell import gate, roles
from pages.shell.roles import Role, Team

SIGNED_IN_FOR = 12 * 3600  # seconds: whoever left the team, or a group, is out after that
_LIMIT = 200  # characters of a name
_FORWARDED = ("x-forwarded-for", "x-forwarded-host", "x-real-ip", "forwarded", "via")


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody at a page. `roles` is None where no team file gives any: then everybody may do everything."""

    name: str
    how: How
    roles: frozenset[Role] | None = None

    @property
    def actor(self) -> Actor:
        return Actor(self.name, self.how, roles.writes(self.roles))

    @property
    def is_blind(self) -> bool:
        """Whether they only label, so that nothing may tell them what detectors and other people say of a trace."""
        return roles.are_blind(self.roles)

    @property
    def shown(self) -> str:
        """The name, marked where somebody at a page typed it."""
        return f"{self.name} (unverified)" if self.how == "typed" else self.name


class Headers(Protocol):
    """The headers of a request, by names in any case."""

    def get(self, name: str, default: str) -> str: ...
    def get_all(self, name: str) -> list[str]: ...
    def __contains__(self, name: object) -> bool: ...
    def __len__(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Visit:
    """What a request brings: its headers, what the provider said of whoever signed in, and a name that was typed."""

    headers: Headers
    claims: Mapping[str, Any]
    typed: str


class Unknown(Forbidden):
    """Nobody says who is here. `may_sign_in` if they can change that."""

    def __init__(self, message: str, *, may_sign_in: bool = False) -> None:
        super().__init__(message)
        self.may_sign_in = may_sign_in


def person(visit: Visit | None = None) -> Person:
    """Who acts, in this session or by a request of its own; asked anew each time, as a session outlives a role. Raises
    Unknown."""
    visit = visit or _session()
    given = settings.identity()
    team = roles.read(given.roles)
    if signs_in():
        name, groups = _signed_in(visit.claims, given.claim, team.claim if team else "")
        return Person(name, "oidc", _roles(team, name, groups))
    if given.header:
        name = _named_by_proxy(visit.headers, given.header)
        return Person(name, "header", _roles(team, name))
    local, typed = is_local(visit.headers), visit.typed[:_LIMIT]
    if team is not None and not local:
        raise Unknown(
            "This workbench has roles, but nothing says who you are: set up sign-in or a proxy's header, as in "
            "docs/how-to/team.md."
        )
    if typed and team is None:
        return Person(typed, "typed")
    if not local:
        return Person("somebody", "typed")
    login = settings.read()
    return Person(login.user, "login" if login.is_login else "environment", _roles(team, login.user))


def may_type_a_name() -> bool:
    """Whether people say themselves who they are."""
    given = settings.identity()
    return not (signs_in() or given.header or given.roles)


def user() -> str:
    return person().name


def may_open(key: str) -> bool:
    return roles.opens(person().roles, key)


def has_role(role: Role) -> bool:
    """Whether the person has a role; without a team file everybody has all."""
    held = person().roles
    return held is None or role in held


def require(role: Role, *others: Role) -> None:
    """Raises Forbidden where the person has none of these roles; without a team file everybody has all."""
    someone = person()
    if someone.roles is not None and not someone.roles & {role, *others}:
        raise Forbidden(f"{someone.name} may not do this: it takes the role {' or '.join((role, *others))}")


def signs_in() -> bool:
    """Whether .streamlit/secrets.toml names a provider to sign in with."""
    return bool(get_secrets_auth_section())


def providers() -> list[str | None]:
    """What `st.login` takes, one for each provider; None is the one without a name."""
    section = get_secrets_auth_section()
    named = sorted(
        str(name) for name, value in section.items() if isinstance(value, Mapping) and name != "client_kwargs"
    )
    return [None] if "client_id" in section else [*named]


def is_local(headers: Headers | None = None) -> bool:
    """Whether the person sits at this machine: socket, page and server say so, and no proxy stands between."""
    headers = st.context.headers if headers is None else headers
    if not headers:  # a page under test has no request
        return get_script_run_ctx() is not None
    peer = headers.get(gate.PEER.decode(), "")
    return (
        gate.serves_this_machine_only()
        and gate.is_loopback(peer)
        and not settings.identity().trusts(peer)
        and not any(name in headers for name in _FORWARDED)
        and gate.is_local_page(headers.get("origin", ""))
    )


def _session() -> Visit:
    return Visit(st.context.headers, st.user if signs_in() else {}, str(st.session_state.get("user") or ""))


def _roles(team: Team | None, name: str, groups: Sequence[str] = ()) -> frozenset[Role] | None:
    return None if team is None else team.roles_of(name, groups)


def _signed_in(claims: Mapping[str, Any], claim: str, groups_claim: str) -> tuple[str, list[str]]:
    if not claims.get("is_logged_in"):
        raise Unknown("Sign in to go on.", may_sign_in=True)
    issued = claims.get("iat")
    if not isinstance(issued, (int, float)) or time.time() - issued > SIGNED_IN_FOR:
        raise Unknown("You signed in more than 12 hours ago: sign in again.", may_sign_in=True)
    name = claims.get(claim)
    if not isinstance(name, str) or not name.strip():
        raise Unknown(
            f"Your provider does not say your {claim}: set TOUCHSTONE_USER_CLAIM to a claim that it sends.",
            may_sign_in=True,
        )
    if claim == "email" and claims.get("email_verified") is False:
        raise Unknown("Your provider has not verified your e-mail address, so it does not name you.", may_sign_in=True)
    groups = claims.get(groups_claim) or []
    listed = [groups] if isinstance(groups, str) else groups if isinstance(groups, list) else []
    return " ".join(name.split())[:_LIMIT], [str(group) for group in listed]


def _named_by_proxy(headers: Headers, header: str) -> str:
    """The gate has taken the header away from everybody but the proxies."""
    names = headers.get_all(header) if gate.PEER.decode() in headers else []
    name = " ".join(names[0].split())[:_LIMIT] if len(names) == 1 else ""
    if not name:
        raise Unknown("The proxy in front of this workbench does not say who you are, so nothing is shown.")
    return name


def _acting() -> Actor | None:
    """For the store: who acts in this session, nobody who may write where that is unknown, None outside of sessions."""
    if get_script_run_ctx(suppress_warning=True) is None:
        return None
    try:
        return person().actor
    except Unknown:
        return Actor("nobody", "unstated", frozenset())


def install() -> None:
    """Let the store know who acts."""
    identify_by(_acting)
