"""The part of docs/reference/results.md about judges and adapters: that their paths work, on models too small to judge.

The judges ask the language model of tests/llm.py, the adapters load models with random weights that are made here.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from results_groups import grouped
from results_points import figure

from calibrate.ingest import import_file
from calibrate.report.sentences.tuning.ensembles import names as listed
from calibrate.types import Interval, TraceFilter
from calibrate.workflow.detection import detect
from calibrate.workflow.evidence import evidence, loading
from db import Store, open_store
from tests import llm, tiny_grounding, tiny_nli

TITLE = "Plumbing: judges and adapters"
FILE = Path(__file__).resolve().parent / "reference" / "plumbing.json"
SET = "ragtruth_qa"
LANGUAGE_MODEL, RANDOM = "SmolLM2-135M-Instruct", "random weights"
MODELS = {
    "grounded": f"a ModernBERT of {RANDOM}",
    "grounded_spans": f"a ModernBERT of {RANDOM}",
    "nli": f"a BERT of {RANDOM}",
    "http": "a local server that counts words",
    "judge_template": LANGUAGE_MODEL,
    "judge_yes_no": LANGUAGE_MODEL,
    "judge_score": LANGUAGE_MODEL,
    "judge_verdict": LANGUAGE_MODEL,
    "claim_nli": f"{LANGUAGE_MODEL}, and a BERT of {RANDOM}",
}
ADAPTERS = ("grounded", "grounded_spans", "judge_template", "http")
EACH = {"grounded": 12, "grounded_spans": 12, "nli": 12, "http": 12, "judge_verdict": 1, "claim_nli": 1}  # per verdict
USUAL = 6
TEXT = """\
This measures that the path works, from the trace to the interval, and not quality: the models are tiny. {model} stands
behind a chat endpoint on this machine and is asked as any endpoint is; the classifiers have random weights, made for
the run; `http` asks a server that scores an answer by the share of its words that are not in the context. What they are
asked about are traces of {data}, half of them hallucinated, those with the fewest characters; fewer where replies are
long. *Failed* means that no reply could be read, and *parsed* is the share of the replies that could. Seconds are those
of the whole run on two busy cores, with the loading of a classifier. An AUROC here says nothing of what the detector
does with a proper model; that of random weights is not shown.
"""
HEAD = (
    "| detector | model | traces | scored | abstained | failed | parsed | AUROC | seconds | most often unscored for |"
)
WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Row:
    """What a detector did with its traces; `auroc` is written out."""

    name: str
    traces: int
    scored: int
    abstained: int
    failed: int
    auroc: str
    seconds: int
    why: str

    def cells(self) -> str:
        replies = self.scored + self.failed
        auroc = "not shown: random weights" if MODELS[self.name].endswith(RANDOM) else self.auroc
        parsed = f"{self.scored / replies:.0%}" if replies else "–"
        return (
            f"| {self.name} | {MODELS[self.name]} | {self.traces} | {self.scored} | {self.abstained} | {self.failed} "
            f"| {parsed} | {auroc} | {self.seconds:,} | {self.why} |"
        )


def measure(data: Path, names: Sequence[str], areas: Callable[[evidence.Evidence], Interval]) -> None:
    """Run these judges and adapters, or all, over traces of a labelled file, and keep what each did."""
    if why := llm.unavailable():
        raise SystemExit(why)
    with tempfile.TemporaryDirectory() as folder, llm.serving() as served, _counting_words() as scorer:
        random_models = {
            "TOUCHSTONE_NLI_MODEL": tiny_nli.random_model(Path(folder) / "nli", limit=256),
            "TOUCHSTONE_GROUNDED_MODEL": tiny_grounding.modernbert(
                Path(folder) / "grounded", labels=("grounded", "hallucinated"), limit=512
            ),
            "TOUCHSTONE_SPANS_MODEL": tiny_grounding.modernbert(Path(folder) / "spans", task="token", limit=512),
        }
        os.environ |= {name: str(path) for name, path in random_models.items()}
        os.environ |= {
            "TOUCHSTONE_CHAT_URL": served.url,
            "TOUCHSTONE_CHAT_MODEL": served.model,
            "TOUCHSTONE_CHAT_CONCURRENCY": "1",  # the model answers one request at a time
            "TOUCHSTONE_CHAT_TIMEOUT": "600",
            "TOUCHSTONE_HTTP_URL": scorer,
        }
        for name in names or MODELS:
            with _open_shortest(data, Path(folder), EACH.get(name, USUAL)) as store:
                row = _run(store, name, areas)
            print(row.cells(), flush=True)
            rows = {**_load(), name: row}
            written = [asdict(rows[name]) for name in MODELS if name in rows]
            FILE.write_text(json.dumps(written, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def section() -> str:
    """The section of the page, from what is kept."""
    rows = _load()
    table = [HEAD, "|---|---|--:|--:|--:|--:|--:|---|--:|---|", *(row.cells() for row in rows.values())]
    broken = [f"`{name}` ({rows[name].failed} of {rows[name].traces})" for name in ADAPTERS if rows[name].failed]
    adapters = f"Of the adapters, {listed(broken) if broken else 'none'} failed on traces."
    adapters += " `selfcheck_judge` has no row, as these traces have no alternatives."
    if waiting := [f"`{name}`" for name in MODELS if name not in rows]:
        adapters += f" Not measured yet, as their replies are long: {listed(waiting)}."
    return "\n\n".join([f"## {TITLE}", TEXT.format(model=LANGUAGE_MODEL, data=SET).strip(), "\n".join(table), adapters])


def _load() -> dict[str, Row]:
    rows = json.loads(FILE.read_text(encoding="utf-8")) if FILE.is_file() else []
    return {row["name"]: Row(**row) for row in rows}


@contextmanager
def _open_shortest(data: Path, folder: Path, each: int) -> Iterator[Store]:
    """A store with this many of the shortest traces of either verdict, in their groups."""
    with gzip.open(data, "rt", encoding="utf-8") as file:
        size = {record["trace_id"]: len(record["context"]) + len(record["answer"]) for record in map(json.loads, file)}
    copy = grouped(data, folder)
    records = [json.loads(line) for line in copy.read_text(encoding="utf-8").splitlines()]
    records.sort(key=lambda record: size[record["trace_id"]])
    chosen = [
        record
        for verdict in ("hallucinated", "clean")
        for record in [record for record in records if record["label"] == verdict][:each]
    ]
    copy.write_text("".join(json.dumps(record) + "\n" for record in chosen), encoding="utf-8")
    with tempfile.TemporaryDirectory() as place:
        store = open_store(f"sqlite:///{place}/plumbing.db")
        import_file(store.traces, copy, labels_as="data")
        yield store
        store.close()


def _run(store: Store, name: str, areas: Callable[[evidence.Evidence], Interval]) -> Row:
    began = time.perf_counter()
    queued = detect.queue(store, [name], detect.scope_of(labelled=True))
    finished = detect.work(store, run_id=queued.id)
    seconds = time.perf_counter() - began
    assert finished is not None, name
    tally: Any = finished.counts[name]
    scores = tally["scored"]
    auroc = figure(areas(loading.load_evidence(store, name)) if scores else Interval(None), "too few scored")
    why = next(iter(tally["why"]), "").partition(":")[0][:80].replace("|", "/")
    traces = store.traces.count(TraceFilter())
    return Row(name, traces, scores, tally["abstained"], tally["failed"], auroc, round(seconds), why)


@contextmanager
def _counting_words() -> Iterator[str]:
    """A scorer on this machine, at the address that it gives: the share of an answer's words not in the context."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            context = set(WORD.findall(" ".join(body["context"]).lower()))
            answer = WORD.findall(body["answer"].lower())
            missing = sum(word not in context for word in answer)
            content = json.dumps({"score": missing / max(len(answer), 1)}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *args: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/score"
    server.shutdown()
    server.server_close()
