"""Verbs about the store as a whole: copies of it, and whether it is sound."""

from __future__ import annotations

from calibrate.cli.grammar import Verbs, add_verb


def add(verbs: Verbs) -> None:
    verb = add_verb(verbs, "backup", "copy the store to a new file while it is in use, and verify the copy")
    verb.add_argument("file", metavar="FILE")

    verb = add_verb(verbs, "restore", "make a backup the store, after verifying it")
    verb.add_argument("file", metavar="FILE")
    verb.add_argument(
        "--replace", action="store_true", help="where there is a store already: keep it beside, under another name"
    )

    add_verb(verbs, "check", "look whether the store is sound: what it is made of, what points where, every digest")

    verb = add_verb(verbs, "export", "write the whole store to one archive, for `import --all` into another")
    verb.add_argument("--all", action="store_true", dest="everything", help="everything that the store holds")
    verb.add_argument("file", metavar="FILE")
