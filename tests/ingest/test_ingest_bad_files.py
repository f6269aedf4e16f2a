"""Files that are cut, huge, in another encoding or no traces at all: a clear reason, and the rest is kept."""

from __future__ import annotations

import errno
import gzip
import json
import random
import tracemalloc

import pytest
from ingesting import good, ids, only, reasons

from calibrate.errors import BadInput
from calibrate.ingest import Rejected, read
from calibrate.ingest.files import MAX_LINE_BYTES


@pytest.mark.parametrize("content", [b"", b"\n \r\n\n", b"\xef\xbb\xbf", gzip.compress(b"", mtime=0)])
def test_a_file_without_traces(tmp_path, content):
    path = tmp_path / "empty.jsonl"
    path.write_bytes(content)
    with pytest.raises(BadInput, match=r"empty\.jsonl (is empty: it holds no traces|holds no traces)"):
        list(read(path))


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(BadInput, match="there is no file"):
        list(read(tmp_path / "none.jsonl"))
    with pytest.raises(BadInput, match="is a folder"):
        list(read(tmp_path))
    with pytest.raises(BadInput, match="cannot read"):
        list(read("nul\x00.jsonl"))


def test_a_file_without_rights(jsonl, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(errno.EACCES, "Permission denied")

    path = jsonl(good())
    monkeypatch.setattr(type(path), "open", refuse)  # root, who may run the tests, may read everything
    with pytest.raises(BadInput, match=r"cannot read .*traces\.jsonl': Permission denied"):
        list(read(path))


def test_not_json(jsonl):
    path = jsonl(good("a"), "hello", '{"answer": "x"', good("b"), "[1, 2]", "null", '{"answer": "x"} trailing')
    assert ids(path) == ["a", "b"]
    assert reasons(path) == {
        2: "not JSON: Expecting value at column 1",
        3: "not JSON: Expecting ',' delimiter at column 16",
        5: "the line: expected an object with an answer, found a list",
        6: "the line: expected an object with an answer, found null",
        7: "not JSON: Extra data at column 17",
    }


@pytest.mark.parametrize("name", ["list.json", "list.jsonl", "list.txt", "list.json.gz"])
@pytest.mark.parametrize("indent", [None, 2])
def test_a_json_document_of_records_is_read(tmp_path, name, indent):
    path = tmp_path / name
    two = [good("a"), good("b")]
    for document in (two, {"data": two}, {"exported": "today", "pages": [], "records": two}, {"mine": two, "of": 2}):
        path.write_text(json.dumps(document, indent=indent))
        if indent is None and isinstance(document, dict) and "data" not in document:
            continue  # on one line it is a record of JSON lines
        assert ids(path) == ["a", "b"]
    path.write_text(json.dumps(good("alone", sources=[{"text": "x"}]), indent=indent))
    assert ids(path) == ["alone"]


def test_of_a_list_the_good_items_are_kept(tmp_path):
    path = tmp_path / "list.json"
    path.write_text(json.dumps([good("a"), 3, {"trace_id": "b"}, good("c")], indent=1))
    assert ids(path) == ["a", "c"]
    assert sorted(reasons(path).values()) == ["answer: missing", "the item: expected an object, found the number 3"]


def test_a_file_of_something_else_gets_one_sentence(tmp_path):
    path = tmp_path / "other.jsonl"
    for content, message in (
        ("\n".join(f"2026-11-01 INFO request {n}" for n in range(2000)), "looks like plain text: its first 20 lines"),
        ("<html>\n" * 2000, "looks like XML or HTML"),
        ("\n".join(json.dumps({"reply": "x", "n": n}) for n in range(30)), "no 'answer': its first 20 .*'reply', 'n'"),
        (json.dumps({"reply": "x", "user": {"id": 1}}, indent=1), "no 'answer': its record has 'reply', 'user'"),
        (json.dumps({"a": [1, 2]}, indent=1), "no 'answer': its record has 'a'"),
        (json.dumps(good(), indent=1)[:-5], "begins as one JSON document and is not JSON"),
    ):
        path.write_text(content)
        with pytest.raises(BadInput, match=f"^other.jsonl .*{message}") as caught:
            list(read(path))
        assert len(str(caught.value)) < 700
    path.write_text("\n".join(json.dumps({"reply": f"x{n}"}) for n in range(30)))
    assert len(ids(path, columns={"answer": "reply"})) == 30


def test_twenty_bad_lines_are_no_other_file(tmp_path):
    """Only where nothing before was good: a log that is cut at its start, say."""
    path = tmp_path / "logs.jsonl"
    path.write_text("\n".join(["hello"] * 19 + [json.dumps(good("a"))] + ["hello"] * 40))
    assert ids(path) == ["a"]
    assert len(reasons(path)) == 59


def test_zstd_is_read_and_cut_off_zstd_as_far_as_it_goes(tmp_path):
    import pyarrow as pa

    rng = random.Random(7)
    lines = [json.dumps(good(f"t{at}", answer=rng.randbytes(400).hex())) for at in range(2000)]
    data = pa.compress("\n".join(lines).encode(), codec="zstd", asbytes=True)
    path = tmp_path / "a.jsonl.zst"
    path.write_bytes(data)
    assert len(ids(path)) == 2000
    path.write_bytes(data[: len(data) * 2 // 3])
    *records, last = read(path)
    assert len(records) > 1000
    assert (last.last, "cut off" in last.reason) == (True, True)


def compressed(count: int) -> tuple[bytes, int]:
    """Incompressible traces, gzipped; and the size of what is left when the last third is cut off."""
    rng = random.Random(7)
    lines = (json.dumps(good(f"t{at}", answer=rng.randbytes(400).hex())) for at in range(count))
    data = gzip.compress("\n".join(lines).encode())
    return data, len(data) * 2 // 3


def test_a_truncated_gzip_gives_all_its_whole_lines(tmp_path):
    data, cut = compressed(600)
    path = tmp_path / "cut.jsonl.gz"
    path.write_bytes(data[:cut])
    *records, last = read(path)
    assert [record.trace.id for record in records] == [f"t{at}" for at in range(len(records))]
    # Not just most of them: no buffer may be lost on the way (600 lines of about 470 compressed bytes).
    assert len(records) >= cut * 600 // len(data) - 3
    assert isinstance(last, Rejected)
    assert last.line == len(records) + 1
    assert f"cut off at line {last.line}" in last.reason
    assert last.last


def test_a_damaged_gzip(tmp_path):
    data, cut = compressed(600)
    path = tmp_path / "damaged.jsonl.gz"
    path.write_bytes(data[:cut] + b"\xff" * 500 + data[cut + 500 :])
    *records, last = read(path)
    assert len(records) > 300
    assert isinstance(last, Rejected)
    assert last.last


def test_a_gzip_cut_before_its_first_line(tmp_path):
    path = tmp_path / "cut.jsonl.gz"
    path.write_bytes(compressed(5)[0][:15])
    with pytest.raises(BadInput, match="cut off before its first trace"):
        list(read(path))


def test_what_is_compressed_is_told_by_content(tmp_path):
    line = json.dumps(good()).encode()
    for name, content in (("a.gz", gzip.compress(line)), ("b.jsonl.gz", line), ("c.jsonl", gzip.compress(line))):
        path = tmp_path / name
        path.write_bytes(content)
        assert ids(path) == ["a"]


def test_a_line_of_50_mb_is_skipped_without_holding_it(tmp_path):
    path = tmp_path / "long.jsonl"
    with path.open("wb") as file:
        file.write(json.dumps(good("a")).encode() + b'\n{"answer": "')
        for _ in range(50):
            file.write(b"x" * 2**20)
        file.write(b'"}\n' + json.dumps(good("b")).encode())
    tracemalloc.start()
    found = list(read(path))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [type(one).__name__ for one in found] == ["Record", "Rejected", "Record"]
    assert found[1] == Rejected(2, "the line is longer than 16 MB; write one trace per line")
    assert peak < 2.5 * MAX_LINE_BYTES


def test_an_answer_of_1_mb_is_fine(jsonl):
    answer = "word " * 200_000
    assert only(jsonl(good(answer=answer))).trace.answer == answer


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity"])
def test_nan_and_infinity(jsonl, constant):
    path = jsonl(f'{{"answer": "x", "tokens": [{{"token": "x", "logprob": {constant}}}]}}', good("b"))
    assert reasons(path) == {
        1: f"not JSON: {constant} is not a JSON number; write null where there is no value",
    }
    assert ids(path) == ["b"]


def test_lone_surrogates_and_nul_become_the_replacement_character(jsonl):
    path = jsonl(
        r'{"trace_id": "a\u0000", "answer": "\ud83d\ude00 \ud83d \u0000", "sources": {"1": "\udc00"}, "k\u0000": 1}'
    )
    record = only(path)
    assert record.trace.id == "a\ufffd"
    assert record.trace.answer == "😀 \ufffd \ufffd"
    assert record.trace.sources[0].text == "\ufffd"
    assert record.trace.attributes == {"k\ufffd": 1}
    assert record.repaired == 5


def test_a_raw_nul_and_raw_tab_in_a_text(jsonl):
    filler = [good(f"f{at}", answer="x" * 200) for at in range(30)]
    record = list(read(jsonl(*filler, b'{"answer": "a\x00b\tc"}')))[-1]
    assert record.trace.answer == "a\ufffdb\tc"
    assert record.repaired == 1


def test_what_is_not_utf8(jsonl):
    path = jsonl(good("a"), '{"answer": "caf\u00e9"}'.encode("latin-1"), good("b"))
    assert ids(path) == ["a", "b"]
    assert reasons(path)[2].startswith("not UTF-8 text (byte 16 of the line)")


def test_nesting_that_would_end_the_interpreter(jsonl):
    deep = '{"answer": "x", "schema": ' + '{"a":' * 5000 + "1" + "}" * 5001
    steep = '{"answer": "x", "schema": ' + '{"a":' * 150 + "1" + "}" * 151
    assert reasons(jsonl(deep, steep, "[" * 100_000)) == {
        1: "not usable JSON: it is nested too deeply",
        2: "schema: nested deeper than 100 levels",
        3: "not usable JSON: it is nested too deeply",
    }


def test_a_number_with_thousands_of_digits(jsonl):
    assert reasons(jsonl('{"answer": "x", "n": ' + "9" * 5000 + "}")) == {
        1: "not usable JSON: it holds a number with thousands of digits"
    }


def test_of_two_equal_keys_none_counts(jsonl):
    assert reasons(jsonl('{"answer": "x", "answer": "y"}')) == {
        1: "the key 'answer' occurs twice in one object; give each key once"
    }


def test_byte_order_mark_windows_line_ends_and_blank_lines(jsonl):
    path = jsonl(b"\xef\xbb\xbf" + json.dumps(good("a")).encode(), "", "  ", good("b"), end=b"\r\n")
    assert [(one.line, one.trace.id) for one in read(path)] == [(1, "a"), (4, "b")]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (json.dumps(good()).encode("utf-16"), "UTF-16 text; save it as UTF-8"),
        (json.dumps(good()).encode("utf-16-le"), "UTF-16 text; save it as UTF-8"),
        (json.dumps(good()).encode("utf-32-be"), "UTF-16 text; save it as UTF-8"),
        (b"PK\x03\x04\x14\x00" + bytes(range(256)) * 8, "zip or Excel file"),
        (b"\x89PNG\r\n\x1a\n" + random.Random(3).randbytes(3000), "binary file"),
        (gzip.compress(b"\x7fELF" + random.Random(3).randbytes(3000)), "binary file"),
    ],
)
@pytest.mark.parametrize("name", ["x.jsonl", "x.csv", "x.dat"])
def test_what_is_no_utf8_text_at_all(tmp_path, content, message, name):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(BadInput, match=f"{name}.*{message}"):
        list(read(path))


def test_the_format_is_told_by_name_then_by_content(tmp_path):
    line = json.dumps(good()).encode()
    for name, content in (
        ("a.log", line),
        ("b.txt", b"id,question,answer\na,Who?,She did [1].\n"),
        ("c.NDJSON", line),
    ):
        path = tmp_path / name
        path.write_bytes(content)
        assert ids(path) == ["a"]


def test_an_unknown_format(tmp_path):
    path = tmp_path / "x.xml"
    path.write_text("<answer/>")
    with pytest.raises(BadInput, match=r"x\.xml looks like XML or HTML; Touchstone reads .*JSON lines.*Parquet table"):
        list(read(path))
    with pytest.raises(BadInput, match=r"there is no format 'xml'; there are auto, .*jsonl, .*csv, parquet"):
        list(read(path, format="xml"))
