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

    verb = add_verb(verbs, "purge", "take the texts of traces out of the store for good; verdicts and figures stay")
    verb.add_argument("--before", metavar="DATE", help="traces logged before that day, like 2026-08-01 (UTC)")
    verb.add_argument("--older-than", metavar="AGE", help="the same, as an age: 90d, 26w; for cron")
    verb.add_argument("--trace", action="append", default=[], metavar="ID", help="this trace; repeat for more")
    verb.add_argument(
        "--where",
        action="append",
        default=[],
        metavar="ATTR=VALUE",
        help="traces of which an attribute, model or operation has this value; several conditions must all hold",
    )
    verb.add_argument("--dry-run", action="store_true", help="remove nothing; say what would go")
    verb.add_argument("--yes", action="store_true", help="remove it: there is no way back but a backup")
