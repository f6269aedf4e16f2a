"""The logic of the pages' scripts, by node's own test runner; and that their offsets are Python's."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from pages.components.labelling.segments import segments

HERE = Path(__file__).parent
NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(NODE is None, reason="no node is here, which runs the tests of the pages' scripts")


def test_the_logic_of_the_scripts() -> None:
    files = sorted(str(path) for path in HERE.glob("*.test.js"))
    assert files
    done = subprocess.run([str(NODE), "--test", *files], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout[-4000:]


def test_offsets_are_those_of_python() -> None:
    parts = [
        "a",
        " ",
        "é",
        "e\u0301",
        "👩\u200d👩\u200d👧",
        "🏴\U000e0067\U000e007f",
        "שלום",
        "\u202e",
        "\u200b\u200b",
        "क्\u200dष",
        "𝒳",
        "\x1b",
        "\r",
    ]
    chance = random.Random(7)
    cases: list[tuple[str, int, int]] = []
    for _ in range(300):
        text = "".join(chance.choices(parts, k=chance.randint(1, 12)))
        start = chance.randrange(len(text))
        cases.append((text, start, chance.randint(start + 1, len(text))))
    done = subprocess.run(
        [str(NODE), str(HERE / "cuts.js")], input=json.dumps(cases), capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    answers: list[dict[str, Any]] = json.loads(done.stdout)
    for (text, start, end), answer in zip(cases, answers, strict=True):
        assert answer["slice"] == text[start:end]
        assert answer["length"] == answer["end"] == len(text)
        assert answer["chips"] == [[piece["u"], piece["n"]] for piece in segments(text) if "u" in piece], repr(text)
