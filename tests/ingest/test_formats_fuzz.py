"""Every registered format under damage: no traceback, no part of a record, bounded time and memory.

A new format is covered as soon as it is registered. Give it a valid example in EXAMPLES, and mutations of that too.
"""

from __future__ import annotations

import gzip
import io
import json
import tempfile
import time
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from calibrate.errors import BadInput
from calibrate.ingest import Record, Rejected, read
from calibrate.ingest.files import InputFile
from calibrate.ingest.formats import format_of, formats

FORMATS = tuple(format.name for format in formats())
CHAT = {"role": "assistant", "content": "She did."}
COMPLETION = {"id": "c", "object": "chat.completion", "created": 1767225600, "choices": [{"index": 0, "message": CHAT}]}
OBSERVATION = {"id": "o", "traceId": "t", "type": "GENERATION", "input": "Who?", "output": "She did."}
RUN = {"id": "r", "trace_id": "r", "run_type": "llm", "start_time": "2026-01-01T00:00:00", "inputs": {"prompt": "Who?"},
       "outputs": {"generations": [{"text": "She did."}]}}  # fmt: skip
EXAMPLES: dict[str, list[Any]] = {
    "json": [{"trace_id": "a", "question": "Who?", "answer": "She did.", "sources": [{"text": "x"}]}],
    "jsonl": [{"trace_id": "a", "question": "Who?", "answer": "She did.", "sources": {"1": "x"}}],
    "openai": [{"request": {"messages": [{"role": "user", "content": "Who?"}]}, "response": COMPLETION}],
    "halueval": [{"knowledge": "x", "question": "Who?", "right_answer": "She.", "hallucinated_answer": "He."}],
    "selfcheckgpt": [
        {"gpt3_text": "She. Did.", "gpt3_sentences": ["She.", "Did."], "annotation": ["accurate", "minor_inaccurate"]}
    ],
    "ragtruth": [{"id": "1", "source_id": "s", "labels": [], "response": "She did.", "model": "m"}],
    "langfuse": [{"trace": {"id": "t"}, "observations": [OBSERVATION]}],
    "langsmith": [RUN],
}
SOURCES = {"source_id": "s", "task_type": "QA", "prompt": "p", "source_info": {"question": "Who?", "passages": "x"}}
SECONDS = 20
NO_DEADLINE = settings(deadline=None, suppress_health_check=list(HealthCheck))

some_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=6), below, max_size=3),
    max_leaves=8,
)


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "source_info.jsonl").write_text(json.dumps(SOURCES))
        yield Path(name)


def take(folder: Path, name: str, content: bytes, file: str = "response.jsonl") -> list[Record | Rejected]:
    """Read the content as the format of that name. Every record must be whole; the rest, rejected or refused."""
    path = folder / file
    path.write_bytes(content)
    found = []
    try:
        for each in read(path, format=name):
            assert isinstance(each, (Record, Rejected))
            if isinstance(each, Record):
                assert each.trace.id
                assert isinstance(each.trace.answer, str)
                each.trace.content_hash().encode()
                assert all(label.trace_id == each.trace.id for label in each.labels)
            else:
                assert each.reason
                assert "\n" not in each.reason
            found.append(each)
    except BadInput:
        return found
    return found


def write(*objects: Any, indent: int | None = None) -> bytes:
    return "\n".join(json.dumps(each, indent=indent) for each in objects).encode()


@pytest.mark.parametrize("name", FORMATS)
@settings(NO_DEADLINE, max_examples=25)
@given(content=st.binary(max_size=300))
def test_arbitrary_bytes(folder: Path, name: str, content: bytes) -> None:
    take(folder, name, content or b"x")


@pytest.mark.parametrize("name", FORMATS)
@settings(NO_DEADLINE, max_examples=40)
@given(value=some_json, data=st.data())
def test_arbitrary_json_and_mutated_examples(folder: Path, name: str, value: Any, data: st.DataObject) -> None:
    take(folder, name, write(value))
    take(folder, name, write([value, {"data": value}], indent=1))
    example = data.draw(st.sampled_from(EXAMPLES.get(name) or [each for some in EXAMPLES.values() for each in some]))
    take(folder, name, write(replaced(example, data, value), example))


def replaced(example: Any, data: st.DataObject, value: Any) -> Any:
    """The example with another value, or none, somewhere in it."""
    if not isinstance(example, (dict, list)) or not example or data.draw(st.integers(0, 3)) == 0:
        return value
    if isinstance(example, list):
        at = data.draw(st.integers(0, len(example) - 1))
        return [*example[:at], replaced(example[at], data, value), *example[at + 1 :]]
    key = data.draw(st.sampled_from(sorted(example)))
    if data.draw(st.booleans()) and data.draw(st.booleans()):
        return {other: each for other, each in example.items() if other != key}
    return {**example, key: replaced(example[key], data, value)}


def damaged(example: Any, values: Sequence[Any]) -> Iterator[Any]:
    """The example with each of the values in each of its places, and without each of its keys."""
    yield from values
    if isinstance(example, list):
        for at, item in enumerate(example):
            yield from ([*example[:at], changed, *example[at + 1 :]] for changed in damaged(item, values))
    elif isinstance(example, dict):
        for key, item in example.items():
            yield {other: each for other, each in example.items() if other != key}
            yield from ({**example, key: changed} for changed in damaged(item, values))


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_every_value_of_an_example_may_be_of_another_kind(folder: Path, name: str) -> None:
    values = (None, True, -1, 1e308, "x", "", [], [None], ["x"], [{}], {}, {"x": 1}, {"content": [3]})
    for example in EXAMPLES[name]:
        for changed in damaged(example, values):
            take(folder, name, write(changed, example))


@pytest.mark.parametrize("name", FORMATS)
def test_bombs_deep_nesting_and_many_sources(folder: Path, name: str) -> None:
    """100 MB of blanks in 100 kB, a zip, brackets 10^5 deep, a record of 10^5 sources."""
    began = time.monotonic()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("traces.jsonl", b" " * 10**6)
    deep = 10**5
    many = {"trace_id": "a", "answer": "x", "sources": ["s"] * 10**5}
    example = (EXAMPLES.get(name) or [many])[0]
    nested = json.dumps(example)[:-1] + ', "extra": ' + "[" * deep + "]" * deep + "}"
    contents = [
        gzip.compress(b" " * (40 * 2**20), 1),
        gzip.compress(b'{"answer": "' + b"x" * (40 * 2**20), 1),
        packed.getvalue(),
        b"[" * deep,
        b'{"a":' * deep,
        b"[" * deep + b"]" * deep,
        nested.encode(),
        write(many),
        json.dumps([many] * 2).encode(),
        write({**example, **dict.fromkeys(("messages", "observations", "outputs"), [{}] * 10**5)}),
    ]
    for content in contents:
        found = take(folder, name, content)
        assert not any(isinstance(each, Record) and len(each.trace.sources) > 10**4 for each in found)
    assert time.monotonic() - began < SECONDS


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_an_example_is_recognised_and_cut_anywhere_it_loses_only_its_end(folder: Path, name: str) -> None:
    """Compressed or not, whatever the file is called."""
    whole = write(*EXAMPLES[name], indent=1) if name == "json" else write(*EXAMPLES[name] * 3)
    for file, content in (("response.jsonl", whole), ("response.json", whole), ("a.gz", gzip.compress(whole))):
        if name == "ragtruth" and file == "a.gz":
            continue  # its other file is looked for by its name
        path = folder / file
        path.write_bytes(content)
        with InputFile(path) as opened:
            assert format_of(opened, "auto").name == name
        assert any(isinstance(each, Record) for each in read(path))
    number = len(take(folder, name, whole))
    for cut in range(1, len(whole), max(1, len(whole) // 25)):
        assert len(take(folder, name, whole[:cut])) <= number + 1
