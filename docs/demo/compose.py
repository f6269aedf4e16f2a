"""Compose the traces and the readings of the complete demo, from the documents of corpus.json and shop.toml.

    python docs/demo/compose.py

No model wrote these answers: each is put together from sentences that were written by hand, so what is wrong with it,
and where, is known. What two careful readers could read differently is among them, with both readings.
"""

from __future__ import annotations

import json
import random
import re
import tomllib
from collections.abc import Iterator
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from typing import Any

Json = dict[str, Any]

HERE = Path(__file__).parent
OUT = HERE.parents[1] / "calibrate" / "demo"
END = datetime(2026, 11, 22, 23, 0, tzinfo=UTC)
DAYS, A_DAY, SEED = 63, 20, 16
NEW_MODEL = timedelta(days=6, hours=8)  # so long before the end the second model begins
SHARE_OF_NEW = 0.6
NEW_PROMPT = timedelta(days=14)  # so long before the end; no answer is composed otherwise for it
# How often each way of answering is taken, by model. The second one invents more.
WAYS = {
    "shop-assistant-1": {
        "copied": 52, "two": 20, "words": 3, "refused": 2, "close": 7,
        "made_up": 15, "wrong": 3, "further": 3, "wrong_citation": 2,
    },
    "shop-assistant-2": {
        "copied": 40, "two": 18, "words": 3, "refused": 1, "close": 9,
        "made_up": 20, "wrong": 4, "further": 5, "wrong_citation": 2,
    },
}  # fmt: skip
OPENERS = ("", "", "", "", "Hi, ", "Hello! ", "Good morning. ", "One question: ")
REFUSALS = (
    "I am sorry, I find nothing about this in our documents.",
    "Our documents do not say that. A colleague will get back to you.",
)
KINDS = {"made_up": "fabrication", "wrong": "contradiction", "further": "extrapolation"}
SLIP, DOUBT = 0.125, 0.2  # how often Ben overlooks a wrong word, and is unsure about what goes too far


def sentences(text: str) -> list[str]:
    return re.split(r"(?<=[.?!])\s+", text)


class Shop:
    """The documents, and what is said about them rightly and wrongly."""

    def __init__(self) -> None:
        documents = json.loads((HERE / "corpus.json").read_text(encoding="utf-8"))["documents"]
        self.facts: dict[str, Json] = tomllib.loads((HERE / "shop.toml").read_text(encoding="utf-8"))
        self.documents: dict[str, Json] = {name: documents[name] for name in self.facts}
        self.rng = random.Random(SEED)

    def compose(self, model: str) -> tuple[Json, Json]:
        """A trace without its name and time, and what is wrong with it."""
        rng = self.rng
        name = rng.choice(list(self.facts))
        facts, says = self.facts[name], sentences(self.documents[name]["text"])
        at = rng.randrange(len(says))
        way = rng.choices(list(WAYS[model]), list(WAYS[model].values()))[0]
        shown = rng.sample([name, *rng.sample([other for other in self.facts if other != name], 2)], 3)
        cite = f"[{shown.index(name) + 1}]"
        true = facts["words"][at] if rng.random() < 0.05 else says[at]
        answer, truth = f"{true} {cite}", Truth()
        if way == "copied":
            answer = f"{says[at]} {cite}"
        elif way == "words":
            answer = f"{facts['words'][at]} {cite}"
        elif way == "two":
            answer += f" {says[(at + 1) % len(says)]} {cite}"
        elif way == "refused":
            answer = rng.choice(REFUSALS)
        elif way == "wrong":
            answer = f"{facts['wrong'][at]} {cite}"
            truth = Truth("contradiction", *differing(says[at], facts["wrong"][at]), why=f"The document: {says[at]}")
            truth.slip = rng.random() < SLIP
        elif way in ("made_up", "further"):
            extra = rng.choice(facts[way])
            answer = f"{extra} {cite}" if way == "made_up" and rng.random() < 0.3 else f"{answer} {extra}"
            truth = Truth(KINDS[way], answer.index(extra), answer.index(extra) + len(extra))
            truth.why = "No document says so."
            truth.doubt = way == "further" and rng.random() < DOUBT
        elif way == "wrong_citation":
            wrong = rng.choice([f"[{n}]" for n in (1, 2, 3, 4) if f"[{n}]" != cite])
            answer = f"{says[at]} {wrong}"
            truth = Truth("wrong_citation", len(says[at]) + 1, len(answer))
        elif way == "close":
            extra, *readings, settled, why = rng.choice(facts["close"])
            answer += f" {extra}"
            start = answer.index(extra)
            truth = Truth("extrapolation", start, start + len(extra), readings=readings, settled=settled, why=why)
        trace = {
            "model": model,
            "operation": "shop_chat",
            "question": self.ask(facts["asks"][at]),
            "sources": {str(n): self.documents[document] for n, document in enumerate(shown, 1)},
            "answer": answer,
            "alternatives": self.alternatives(facts, says, at, way) if rng.random() < 0.5 else None,
            "attributes": {"channel": rng.choice(["app", "web", "web", "mail"])},
        }
        return trace, truth.readings_of()

    def ask(self, asks: list[str]) -> str:
        opener, question = self.rng.choice(OPENERS), self.rng.choice(asks)
        if opener.endswith((", ", ": ")) and not question.startswith("I "):
            question = question[0].lower() + question[1:]
        return opener + question

    def alternatives(self, facts: Json, says: list[str], at: int, way: str) -> list[str]:
        """Three other answers: what is made up comes out differently each time, what is in the sources does not."""
        sure = [says[at], says[at], facts["words"][at]]
        unsure = [*facts["made_up"], *facts["further"], says[at], facts["wrong"][at]]
        return [self.rng.choice(unsure if way in ("made_up", "further", "wrong") else sure) for _ in range(3)]


class Truth:
    """What is wrong with an answer, and how Ada and Ben read it. Nothing is wrong with one that has no kind."""

    def __init__(
        self,
        kind: str | None = None,
        start: int = 0,
        end: int = 0,
        *,
        readings: list[str] | None = None,
        settled: str | None = None,
        why: str = "",
    ) -> None:
        self.kind, self.span, self.settled, self.why = kind, {"start": start, "end": end, "type": kind}, settled, why
        self.readings = readings
        self.slip = self.doubt = False

    def readings_of(self) -> Json:
        """The verdicts of Ada and Ben and, where the two differ, Lena's."""
        if self.readings:
            ada, ben = self.readings
        else:
            ada = "hallucinated" if self.kind else "clean"
            ben = "clean" if self.slip else "unsure" if self.doubt else ada
            self.settled = ada
        rows = {"ada": self.row(ada), "ben": self.row(ben)}
        if {ada, ben} == {"clean", "hallucinated"}:
            rows["lena"] = {"verdict": self.settled, "note": self.why}
        return rows

    def row(self, verdict: str) -> Json:
        return {"verdict": verdict} | (
            {"kinds": [self.kind], "spans": [self.span]} if verdict == "hallucinated" else {}
        )


def differing(right: str, wrong: str) -> tuple[int, int]:
    """Where the wrong sentence differs from the right one, in whole words."""
    one, other = right.split(" "), wrong.split(" ")
    start = next(n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
    tail = next(n for n, (a, b) in enumerate(zip(one[::-1], other[::-1], strict=False)) if a != b)
    begin = len(" ".join(other[:start])) + (start > 0)
    return begin, max(len(" ".join(other[: len(other) - tail])), begin + 1)


def times(rng: random.Random) -> Iterator[datetime]:
    for day in range(DAYS, 0, -1):
        date = (END - timedelta(days=day - 1)).date()
        for second in sorted(rng.sample(range(6 * 3600, 23 * 3600), A_DAY)):
            yield datetime.combine(date, time(), UTC) + timedelta(seconds=second)


def main() -> None:
    shop, traces, readings = Shop(), [], []
    for n, at in enumerate(times(shop.rng), 1):
        new = END - at < NEW_MODEL and shop.rng.random() < SHARE_OF_NEW
        trace, read = shop.compose(f"shop-assistant-{1 + new}")
        trace["attributes"]["prompt_version"] = "v2" if END - at < NEW_PROMPT else "v1"
        traces.append({"trace_id": f"shop-{n:04d}", "timestamp": at.strftime("%Y-%m-%dT%H:%M:%SZ"), **trace})
        readings += [{"trace_id": f"shop-{n:04d}", "labeller": who, **label} for who, label in read.items()]
    for name, rows in (("shop.jsonl", traces), ("readings.jsonl", readings)):
        lines = [json.dumps({k: v for k, v in row.items() if v is not None}, ensure_ascii=False) for row in rows]
        (OUT / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
        print(f"{OUT / name}: {len(rows)}")


if __name__ == "__main__":
    main()
