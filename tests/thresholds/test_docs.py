"""The example in docs/reference/thresholds-file.md is a file that readers take."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from calibrate.thresholds import FORMAT, encode, read, schema

PAGE = Path(__file__).parents[2].joinpath("docs", "reference", "thresholds-file.md").read_text(encoding="utf-8")


def test_the_example_is_byte_for_byte_what_we_write() -> None:
    example = PAGE.split("```json\n")[1].split("```")[0]
    assert encode(read(example.encode())).decode() == example
    assert len(read(example.encode()).detectors) == 2


def resolved(part: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in part:
        part = schema()["$defs"][part["$ref"].removeprefix("#/$defs/")]
    return part


def may_be_null(part: dict[str, Any]) -> bool:
    part = resolved(part)
    kinds = part.get("type", [])
    return "null" in ([kinds] if isinstance(kinds, str) else kinds) or any(map(may_be_null, part.get("anyOf", ())))


def test_the_page_says_of_every_field_whether_it_may_be_null() -> None:
    """The tables stand in this order."""
    parts = ["detector", "segmentThreshold", "guarantee", "probability_map", "ensemble", "data"]
    expected = [schema()["properties"], *(schema()["$defs"][name]["properties"] for name in parts)]
    tables = PAGE.split("| field | `null`? | meaning |\n|---|---|---|\n")[1:]
    assert len(tables) == len(expected)
    for table, properties in zip(tables, expected, strict=True):
        rows = [line.split(" | ") for line in table.split("\n\n")[0].splitlines()]
        found = {name: row[1] == "yes" for row in rows for name in re.findall(r"`([a-z_]+)`", row[0])}
        assert found == {name: may_be_null(part) for name, part in properties.items()}
    assert [name for name, part in schema()["$defs"]["interval"]["properties"].items() if not may_be_null(part)] == []


def test_the_page_names_every_field_and_the_format_number() -> None:
    fields = set(schema()["properties"])
    for part in schema()["$defs"].values():
        fields |= set(part.get("properties", ()))
    fields |= set(schema()["$defs"]["rule"]["properties"]["form"]["enum"])
    assert [field for field in sorted(fields) if f"`{field}`" not in PAGE] == []
    assert f"format {FORMAT}" in PAGE
