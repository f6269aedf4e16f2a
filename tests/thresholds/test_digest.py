"""The digest, recomputed by others: RFC 8785's own examples, plain hashlib, and JavaScript."""

from __future__ import annotations

import hashlib
import json
import shutil
import struct
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from calibrate.errors import BadInput, BadThresholds
from calibrate.thresholds import encode, label_set_digest, to_json
from calibrate.thresholds.canonical import canonical, copy_json, digest_of
from tests.thresholds.make import objects, release

# RFC 8785, appendix B: the bits of a double and what they are written as.
NUMBERS = {
    "0000000000000000": "0",
    "8000000000000000": "0",
    "0000000000000001": "5e-324",
    "8000000000000001": "-5e-324",
    "7fefffffffffffff": "1.7976931348623157e+308",
    "4340000000000000": "9007199254740992",
    "c340000000000000": "-9007199254740992",
    "4430000000000000": "295147905179352830000",
    "44b52d02c7e14af5": "9.999999999999997e+22",
    "44b52d02c7e14af6": "1e+23",
    "44b52d02c7e14af7": "1.0000000000000001e+23",
    "444b1ae4d6e2ef4e": "999999999999999700000",
    "444b1ae4d6e2ef4f": "999999999999999900000",
    "444b1ae4d6e2ef50": "1e+21",
    "3eb0c6f7a0b5ed8c": "9.999999999999997e-7",
    "3eb0c6f7a0b5ed8d": "0.000001",
    "41b3de4355555553": "333333333.3333332",
    "41b3de4355555557": "333333333.33333343",
    "becbf647612f3696": "-0.0000033333333333333333",
    "43143ff3c1cb0959": "1424953923781206.2",
}


@pytest.mark.parametrize(("bits", "written"), NUMBERS.items())
def test_numbers_as_the_rfc_has_them(bits: str, written: str) -> None:
    (number,) = struct.unpack(">d", bytes.fromhex(bits))
    assert canonical({"n": number}) == b'{"n":' + written.encode() + b"}"


def test_the_example_of_the_rfc() -> None:
    document = json.loads(
        r"""{"numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
             "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/", "literals": [null, true, false]}"""
    )
    assert canonical(document).decode() == (
        '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],'
        '"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}'
    )


def test_keys_sort_by_utf16_units_as_the_rfc_has_them() -> None:
    keys = ["\u20ac", "\r", "\ufb33", "1", "\U0001f600", "\x80", "\xf6"]
    written = json.loads(canonical(dict.fromkeys(keys, 0)))
    assert list(written) == ["\r", "1", "\x80", "\xf6", "\u20ac", "\U0001f600", "\ufb33"]


def test_digest_with_nothing_but_hashlib() -> None:
    # For ASCII keys and numbers that are no integers, sorted compact JSON is the canonical form.
    document = {"b": 0.25, "a": {"z": "é", "y": [1, None, True]}, "digest": "whatever"}
    compact = '{"a":{"y":[1,null,true],"z":"é"},"b":0.25}'
    assert digest_of(document) == "sha256:" + hashlib.sha256(compact.encode()).hexdigest()


def test_digest_does_not_see_layout_or_number_spelling() -> None:
    assert digest_of(json.loads('{"a": 1, "b": 1e2}')) == digest_of(json.loads('{"b":100.0,"a":1.0}'))


def test_digest_of_a_written_file() -> None:
    document = json.loads(encode(release()))
    assert document["digest"] == digest_of(document) == to_json(release())["digest"]


NODE = """
const crypto = require('crypto'), fs = require('fs');
%s
const documents = JSON.parse(fs.readFileSync(0, 'utf8'));
console.log(JSON.stringify(documents.map(digestOf)));
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="no node here")
def test_the_javascript_of_the_docs_gives_the_same_digests() -> None:
    page = Path(__file__).parents[2].joinpath("docs", "reference", "thresholds-file.md").read_text(encoding="utf-8")
    script = NODE % page.split("```js\n")[1].split("```")[0]
    documents: list[dict[str, object]] = [to_json(release())]

    @settings(max_examples=60, database=None, suppress_health_check=list(HealthCheck))
    @given(objects)
    def gather(document: dict[str, object]) -> None:
        documents.append(copy_json(document, "document"))

    gather()
    done = subprocess.run(
        ["node", "-e", script], input=json.dumps(documents), capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [digest_of(document) for document in documents]


@given(
    st.lists(st.tuples(st.from_regex("[0-9a-f]{32}", fullmatch=True), st.sampled_from(["clean", "unsure"]))), st.data()
)
@settings(max_examples=30)
def test_label_set_digest_has_no_order(pairs: list[tuple[str, str]], data: st.DataObject) -> None:
    assert label_set_digest(data.draw(st.permutations(pairs))) == label_set_digest(iter(pairs))


def test_label_set_digest_is_sort_and_sha256sum() -> None:
    pairs = [("ff" * 16, "clean"), ("0a" * 16, "hallucinated"), ("ff" * 16, "clean")]
    lines = f"{'0a' * 16}\thallucinated\n{'ff' * 16}\tclean\n{'ff' * 16}\tclean\n"
    assert label_set_digest(pairs) == "sha256:" + hashlib.sha256(lines.encode()).hexdigest()
    assert label_set_digest(pairs) != label_set_digest(pairs[:2])
    assert label_set_digest(pairs) != label_set_digest([(pairs[0][0], "hallucinated"), *pairs[1:]])


@pytest.mark.parametrize("pair", [("not hex", "clean"), ("ab", "maybe"), ("ab\n", "clean")])
def test_label_set_digest_refuses_what_is_no_gold_label(pair: tuple[str, str]) -> None:
    with pytest.raises(BadInput, match="not a content hash"):
        label_set_digest([pair])


@pytest.mark.parametrize("document", [{"a": float("nan")}, {"a": 2**53}, {"a": "\ud800"}, {"\ud800": 1}, {1: 2}])
def test_what_other_readers_could_not_read_alike_is_refused(document: dict[str, object]) -> None:
    with pytest.raises(BadThresholds):
        canonical(document)


def test_plain_makes_lists_of_tuples_and_refuses_the_rest() -> None:
    assert copy_json({"a": (1, 2.5, None)}, "params") == {"a": [1, 2.5, None]}
    for odd in ({"a": {1}}, {"a": float("inf")}, {"a": b""}, {"a": {1: 2}}):
        with pytest.raises(BadThresholds, match=r"params\.a"):
            copy_json(odd, "params")
