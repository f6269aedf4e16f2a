"""A large file of spans is imported with flat memory: OTLP as JSON lines, a request of 100 spans of 5 kB a line.

    python tests/bench/bench_spans.py [GIGABYTES]

Prints the rate, and the memory at each fifth of the file: it may grow by a tenth from the second fifth on.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from calibrate.ingest import Record, read

MOST_GROWTH = 0.10
PER_TRACE, PER_REQUEST = 4, 100  # spans
PASSAGE = "The warranty covers parts and labour for 24 months from the day of purchase, batteries excepted. "


def attribute(key: str, value: str) -> dict[str, object]:
    return {"key": key, "value": {"stringValue": value}}


def trace(number: int, draw: random.Random) -> list[dict[str, object]]:
    """A root, two retrievers' spans and a model's: 5 kB each on average."""
    ids = [f"{number:08x}{place:08x}" for place in range(PER_TRACE)]
    documents = json.dumps([{"id": f"d{i}", "score": 0.5, "content": PASSAGE * draw.randint(5, 12)} for i in range(6)])
    messages = json.dumps([{"role": "user", "parts": [{"type": "text", "content": f"{number}? {PASSAGE * 40}"}]}])
    reply = json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": f"{number}. {PASSAGE * 20}"}]}])
    found = [attribute("gen_ai.operation.name", "retrieval"), attribute("gen_ai.retrieval.documents", documents)]
    said = [
        attribute("gen_ai.operation.name", "chat"),
        attribute("gen_ai.response.model", "m"),
        attribute("gen_ai.input.messages", messages),
        attribute("gen_ai.output.messages", reply),
    ]
    spans = [("answer", [attribute("http.route", "/answer")]), ("retrieve", found), ("retrieve", found), ("chat", said)]
    return [
        {
            "traceId": f"{number:032x}",
            "spanId": ids[place],
            **({"parentSpanId": ids[0]} if place else {}),
            "name": name,
            "startTimeUnixNano": str(1_795_000_000_000_000_000 + number * 1_000_000 + place * 1000),
            "endTimeUnixNano": str(1_795_000_000_000_000_000 + number * 1_000_000 + place * 1000 + 500),
            "attributes": attributes,
        }
        for place, (name, attributes) in enumerate(spans)
    ]


def write(path: Path, size: float) -> int:
    """Write traces whose spans lie a few requests apart. Returns how many."""
    draw, held, number = random.Random(1), [], 1
    with path.open("w") as file:
        while file.tell() < size:
            while len(held) < 5 * PER_REQUEST:
                held += trace(number, draw)
                number += 1
            draw.shuffle(held)
            document = {"resourceSpans": [{"scopeSpans": [{"scope": {"name": "app"}, "spans": held[:PER_REQUEST]}]}]}
            file.write(json.dumps(document) + "\n")
            del held[:PER_REQUEST]
        document = {"resourceSpans": [{"scopeSpans": [{"scope": {"name": "app"}, "spans": held}]}]}
        file.write(json.dumps(document) + "\n")
    return number - 1


def resident() -> float:
    """Megabytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    raise OSError("no VmRSS in /proc/self/status")


def main(gigabytes: float) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "spans.jsonl")
        traces = write(path, gigabytes * 1e9)
        size, began, memory, count = path.stat().st_size, time.process_time(), [], 0
        for record in read(path):
            assert isinstance(record, Record), record
            assert len(record.trace.sources) <= 12
            count += 1
            if count % (traces // 5) == 0:
                memory.append(resident())
        seconds = time.process_time() - began  # of this process: others share the machine
    growth = memory[-1] / memory[1] - 1
    print(
        f"{size / 1e9:.2f} GB, {traces * PER_TRACE:,} spans: {count:,} answers in {seconds:.0f} s "
        f"({traces * PER_TRACE / seconds:,.0f} spans/s, {size / 1e6 / seconds:.0f} MB/s); memory "
        f"{', '.join(f'{each:.0f}' for each in memory)} MB "
        f"({growth:+.1%} from the second fifth, at most {MOST_GROWTH:+.0%})"
    )
    return count == traces and growth <= MOST_GROWTH


if __name__ == "__main__":
    sys.exit(0 if main(float(sys.argv[1]) if len(sys.argv) > 1 else 1.0) else 1)
