"""The example in docs/reference/thresholds-file.md is a file that readers take."""

from __future__ import annotations

from pathlib import Path

from calibrate.thresholds import FORMAT, encode, read, schema

PAGE = Path(__file__).parents[2].joinpath("docs", "reference", "thresholds-file.md").read_text(encoding="utf-8")


def test_the_example_is_byte_for_byte_what_we_write() -> None:
    example = PAGE.split("```json\n")[1].split("```")[0]
    assert encode(read(example.encode())).decode() == example
    assert len(read(example.encode()).detectors) == 2


def test_the_page_names_every_field_and_the_format_number() -> None:
    fields = set(schema()["properties"])
    for part in schema()["$defs"].values():
        fields |= set(part.get("properties", ()))
    fields |= set(schema()["$defs"]["rule"]["properties"]["form"]["enum"])
    assert [field for field in sorted(fields) if f"`{field}`" not in PAGE] == []
    assert f"format {FORMAT}" in PAGE
