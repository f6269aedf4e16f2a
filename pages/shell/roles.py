"""Who may do what: the team file, and which pages and tables each role opens."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from calibrate.errors import BadInput
from db import Group

Role = Literal["labeller", "calibrator", "approver"]
ROLES: tuple[Role, ...] = get_args(Role)
# The pages of a role by their keys in the navigation; None is every page.
PAGES: Mapping[Role, frozenset[str] | None] = {
    "labeller": frozenset({"week", "traces", "label", "guidelines"}),
    "calibrator": None,
    "approver": frozenset(
        {"week", "traces", "agreement", "guidelines", "tune", "ensemble", "release", "audit",
         "watch"}
    ),
}  # fmt: skip
# The groups of tables that a role may write to; None is all.
WRITES: Mapping[Role, frozenset[Group] | None] = {
    "labeller": frozenset({"labels", "skips", "leases", "flags", "repeats"}),
    "calibrator": None,
    "approver": frozenset({"releases"}),
}


@dataclass(frozen=True, slots=True)
class Team:
    """The roles as the team file gives them, and the claim that lists a person's groups."""

    users: Mapping[Role, tuple[str, ...]]
    groups: Mapping[Role, tuple[str, ...]]
    claim: str

    def roles_of(self, name: str, groups: Iterable[str]) -> frozenset[Role]:
        from calibrate.workflow.releasing.approval import same_person  # heavy, and the server's start needs none of it

        theirs = set(groups)
        return frozenset(
            role
            for role in ROLES
            if any(same_person(name, user) for user in self.users[role]) or theirs.intersection(self.groups[role])
        )


def read(path: str) -> Team | None:
    """Read the team file; None where none is configured. Raises BadInput for one that cannot be used: a misspelt role
    must not open what it was to close."""
    if not path:
        return None
    try:
        document = tomllib.loads(Path(path).expanduser().read_text("utf-8"))
    except OSError as error:
        raise BadInput(f"the team file {path} (TOUCHSTONE_ROLES) cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadInput(f"the team file {path} (TOUCHSTONE_ROLES) is no TOML: {error}") from error
    claim = document.pop("claim", "groups")
    if unknown := sorted(set(document) - set(ROLES)):
        raise BadInput(f"the team file {path} names {unknown[0]!r}; the roles are {', '.join(ROLES)}")
    if not isinstance(claim, str):
        raise BadInput(f"the team file {path}: claim cannot be {claim!r}; it is the name of a claim, like groups")
    members = {role: _members(path, role, document.get(role, {})) for role in ROLES}
    return Team(
        {role: users for role, (users, _) in members.items()},
        {role: groups for role, (_, groups) in members.items()},
        claim,
    )


def _members(path: str, role: Role, section: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The users and the groups of a role."""
    if not isinstance(section, dict) or (wrong := sorted(set(section) - {"users", "groups"})):
        which = f"names {wrong[0]!r}" if isinstance(section, dict) else "is no section"
        raise BadInput(f"the team file {path}: [{role}] {which}; it holds the lists users and groups")
    lists = [section.get(name, []) for name in ("users", "groups")]
    for names in lists:
        if not isinstance(names, list) or not all(isinstance(name, str) and name.strip() for name in names):
            raise BadInput(f"the team file {path}: [{role}] cannot hold {names!r}; users and groups are lists of names")
    return tuple(lists[0]), tuple(lists[1])


def opens(roles: frozenset[Role] | None, key: str) -> bool:
    """Whether these roles open a page; None: nobody has configured any."""
    return roles is None or any(PAGES[role] is None or key in (PAGES[role] or ()) for role in roles)


def are_blind(roles: frozenset[Role] | None) -> bool:
    """Whether these roles only label: then no page shows scores, gold or what others said, as labels would lean towards
    it."""
    return not opens(roles, "tune")


def writes(roles: frozenset[Role] | None) -> frozenset[Group] | None:
    """The groups of tables that these roles may write to; None is all."""
    if roles is None or "calibrator" in roles:
        return None
    return frozenset(group for role in roles for group in WRITES[role] or ())
