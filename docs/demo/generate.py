"""Draw the demo answers from a small local model and write the traces that the demo ships.

    python docs/demo/generate.py draw --gguf SmolLM2-135M-Instruct.Q4_1.gguf --out candidates.jsonl
    python docs/demo/generate.py write --candidates candidates.jsonl --out calibrate/demo/traces.jsonl

``draw`` needs torch, transformers and gguf; ``write`` needs nothing but Python. What was chosen
and how it was labelled is kept with each request in ``corpus.json``.
"""

from __future__ import annotations

import argparse
import json
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Json = dict[str, Any]

CORPUS = Path(__file__).with_name("corpus.json")
CANDIDATES = 8
ALTERNATIVES = 4
ALTERNATIVE_TEMPERATURE = 0.8
MAX_TOKENS = 72
TOP_LOGPROBS = 5
TOP_K = 50


@dataclass(frozen=True, slots=True)
class Decoding:
    temperature: float
    top_p: float


UNLABELLED: Json = {"label": None, "label_type": None, "wrong": []}
DECODING = {1: Decoding(0.3, 0.9), 2: Decoding(0.6, 0.95)}


# --- prompts ---------------------------------------------------------------------------------


def sentences(text: str) -> list[str]:
    return re.split(r"(?<=[.?!])\s+", text)


def render_sources(sources: Sequence[Json]) -> str:
    """Repeat the source number after every sentence: a model that copies one copies its mark."""
    return "\n".join(
        f"{source['title']}: " + " ".join(f"{s} [{number}]" for s in sentences(source["text"]))
        for number, source in enumerate(sources, 1)
    )


def turn(role: str, content: str) -> str:
    return f"<|im_start|>{role}\n{content}<|im_end|>\n"


def user_turn(sources: Sequence[Json], question: str) -> str:
    return turn("user", f"Sources:\n{render_sources(sources)}\n\nQuestion: {question}")


def prompt_of(corpus: Json, request: Json) -> tuple[str, str]:
    """The shared beginning of a prompt (instruction, examples) and the request's own end."""
    prompt = corpus["prompts"][f"{request['operation']}/{request['language']}"][str(request["version"])]
    prefix = turn("system", prompt["system"]) + "".join(
        user_turn(example["sources"], example["question"]) + turn("assistant", example["answer"])
        for example in prompt["examples"]
    )
    suffix = user_turn(sources_of(corpus, request), request["question"])
    return prefix, suffix + "<|im_start|>assistant\n"


def sources_of(corpus: Json, request: Json) -> list[Json]:
    return [corpus["documents"][name] for name in corpus["source_sets"][request["source_set"]]]


def finished(text: str, operation: str) -> bool:
    """Stop strings: in prose a line break or the second closing bracket, in JSON an empty line."""
    if operation == "support_rag":
        return "\n" in text or text.count("]") >= 2
    return "\n\n" in text


# --- drawing ---------------------------------------------------------------------------------


@dataclass(slots=True)
class Row:
    """One answer while it grows."""

    temperature: float
    top_p: float
    ids: list[int] = field(default_factory=list)
    steps: list[Json] = field(default_factory=list)


class Model:
    """SmolLM2 through transformers, one prompt at a time, many answers at once."""

    def __init__(self, gguf: Path) -> None:
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer

        torch.set_num_threads(1)
        where: Json = {"gguf_file": gguf.name}
        self.tokenizer: Any = AutoTokenizer.from_pretrained(gguf.parent, **where)
        self.net: Any = AutoModelForCausalLM.from_pretrained(gguf.parent, dtype=torch.float32, **where)
        self.end = self.tokenizer.convert_tokens_to_ids("<|im_end|>")
        self.prefixes: dict[str, Any] = {}

    def encode(self, text: str) -> Any:
        return self.tokenizer(text, return_tensors="pt", add_special_tokens=False).input_ids

    def read(self, prefix: str, suffix: str) -> tuple[Any, Any]:
        """Key-value cache and last logits of a prompt; the prefix is read once and kept."""
        import copy

        if prefix not in self.prefixes:
            out = self.net(self.encode(prefix), use_cache=True, logits_to_keep=1)
            self.prefixes[prefix] = out.past_key_values
        cache = copy.deepcopy(self.prefixes[prefix])
        out = self.net(self.encode(suffix), past_key_values=cache, use_cache=True, logits_to_keep=1)
        return out.past_key_values, out.logits[:, -1]

    def generate(self, prefix: str, suffix: str, rows: Sequence[Row], *, operation: str, seed: int) -> None:
        """Fill ``rows`` by top-k, top-p sampling.

        All rows share one cache: each step feeds one token of every unfinished row, and a mask
        lets a row see the prompt and its own tokens only.
        """
        import torch

        rng = torch.Generator().manual_seed(seed)
        with torch.inference_mode():
            cache, logits = self.read(prefix, suffix)
            prompt_length = cache.get_seq_length()
            live, owners = list(range(len(rows))), list[int]()
            logits = logits.repeat(len(rows), 1)
            for position in range(prompt_length, prompt_length + MAX_TOKENS):
                chosen = pick(logits, [rows[i] for i in live], rng)
                fed = []
                for i, token, row_logits in zip(live, chosen, logits, strict=True):
                    if self.extend(rows[i], row_logits, token) and not finished(
                        self.tokenizer.decode(rows[i].ids), operation
                    ):
                        fed.append((i, token))
                if not fed:
                    break
                live = [i for i, _ in fed]
                owners += live
                own = torch.tensor(live)[:, None] == torch.tensor(owners)[None, :]
                prompt = torch.ones(len(live), prompt_length, dtype=torch.bool)
                out = self.net(
                    torch.tensor([[token for _, token in fed]]),
                    attention_mask=torch.cat([prompt, own], dim=1)[None, None],
                    position_ids=torch.full((1, len(live)), position),
                    past_key_values=cache,
                    use_cache=True,
                )
                logits = out.logits[0]

    def extend(self, row: Row, logits: Any, token: int) -> bool:
        """Append a token with its log-probability at temperature 1; False at the end mark."""
        if token == self.end:
            return False
        logprobs = logits.log_softmax(-1)
        top = logprobs.topk(TOP_LOGPROBS)
        row.ids.append(token)
        row.steps.append(
            {
                "logprob": rounded(logprobs[token].item()),
                "top_logprobs": [
                    {"token": self.tokenizer.decode([i]), "logprob": rounded(value)}
                    for value, i in zip(top.values.tolist(), top.indices.tolist(), strict=True)
                ],
            }
        )
        return True

    def tokens(self, row: Row) -> list[Json]:
        """Tokens with their text. A character split over tokens is the text of its last one."""
        tokens, before = [], ""
        for i, step in enumerate(row.steps, 1):
            text = self.tokenizer.decode(row.ids[:i])
            piece = "" if text.endswith("\ufffd") else text[len(before) :]
            before += piece
            tokens.append({"token": piece, **step})
        return tokens


def pick(logits: Any, rows: Sequence[Row], rng: Any) -> list[int]:
    """One sampled token id per row, each at its row's own temperature."""
    import torch

    temperature = torch.tensor([[row.temperature] for row in rows])
    top_p = torch.tensor([[row.top_p] for row in rows])
    values, ids = (logits / temperature).topk(TOP_K)
    weights = values.softmax(-1)
    weights[weights.cumsum(-1) - weights > top_p] = 0
    picked: list[int] = ids.gather(1, torch.multinomial(weights, 1, generator=rng))[:, 0].tolist()
    return picked


def rounded(logprob: float) -> float:
    return round(min(logprob, 0.0), 4) + 0.0  # + 0.0 turns -0.0 into 0.0


def draw(corpus: Json, gguf: Path) -> Iterator[Json]:
    """One record of candidates per draw; requests that ask the same again share one."""
    model = Model(gguf)
    draws = {request["draw"]: request for request in corpus["requests"]}
    for name, request in sorted(draws.items()):
        prefix, suffix = prompt_of(corpus, request)
        own = DECODING[request["version"]]
        rows = [Row(own.temperature, own.top_p) for _ in range(CANDIDATES)]
        rows += [Row(ALTERNATIVE_TEMPERATURE, own.top_p) for _ in range(ALTERNATIVES)]
        seed = zlib.crc32(name.encode())
        model.generate(prefix, suffix, rows, operation=request["operation"], seed=seed)
        answers = [trimmed(model.tokens(row), request["operation"]) for row in rows]
        yield {
            "id": name,
            "candidates": answers[:CANDIDATES],
            "alternatives": [text_of(a) for a in answers[CANDIDATES:]],
        }


def trimmed(tokens: Sequence[Json], operation: str) -> list[Json]:
    """Cut at the stop string (prose keeps its bracket) and take the white space off both ends."""
    stop = "\n" if operation == "support_rag" else "\n\n"
    text = text_of(tokens)
    end = len(text.split(stop)[0].rstrip())
    start = len(text) - len(text.lstrip())
    pieces, at = [], 0
    for token in tokens:
        piece = token["token"][max(start - at, 0) : max(end - at, 0)]
        at += len(token["token"])
        if piece or (start < at < end and not token["token"]):
            pieces.append({**token, "token": piece})
    return pieces


def text_of(tokens: Sequence[Json]) -> str:
    return "".join(token["token"] for token in tokens)


# --- writing ---------------------------------------------------------------------------------


def trace_of(corpus: Json, request: Json, drawn: Json) -> Json:
    """The shipped record of one request: the chosen candidate and, if labelled, its verdict."""
    tokens = drawn["candidates"][request["candidate"]]
    answer = text_of(tokens)
    verdict = request["verdict"] if request["labelled"] else UNLABELLED
    return {
        "timestamp": request["timestamp"],
        "model": f"smollm2-135m-instruct/support-bot-{request['version']}",
        "operation": request["operation"],
        "question": request["question"],
        "context": None,
        "sources": {str(n): s for n, s in enumerate(sources_of(corpus, request), 1)},
        "answer": answer,
        "tokens": tokens if request["with_tokens"] else None,
        "alternatives": drawn["alternatives"] if request["with_alternatives"] else None,
        "schema": corpus["schemas"].get(request["operation"]),
        "attributes": {key: request[key] for key in ("channel", "language", "stakes")},
        "label": verdict["label"],
        "label_type": verdict["label_type"],
        "spans": [span_of(answer, **wrong) for wrong in verdict["wrong"]],
        "source_id": request["source_set"],
    }


def span_of(answer: str, *, text: str, type: str, nth: int = 1) -> Json:
    """Offsets of the ``nth`` occurrence of a wrong passage in the answer."""
    start = -1
    for _ in range(nth):
        start = answer.find(text, start + 1)
        if start < 0:
            raise ValueError(f"{text!r} does not occur {nth} times in {answer!r}")
    return {"start": start, "end": start + len(text), "type": type}


def traces(corpus: Json, drawn: Sequence[Json]) -> Iterator[Json]:
    by_id = {record["id"]: record for record in drawn}
    for n, request in enumerate(sorted(corpus["requests"], key=lambda r: r["timestamp"]), 1):
        yield {"trace_id": f"demo-{n:04d}", **trace_of(corpus, request, by_id[request["draw"]])}


# --- files -----------------------------------------------------------------------------------


def write_lines(path: Path, records: Iterator[Json]) -> None:
    with path.open("w", encoding="utf-8") as file:
        for record in records:
            file.write(json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n")
            file.flush()


def read_lines(path: Path) -> list[Json]:
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    drawing = verbs.add_parser("draw", help="draw candidates and alternatives from the model")
    drawing.add_argument("--gguf", type=Path, required=True)
    drawing.add_argument("--out", type=Path, required=True)
    writing = verbs.add_parser("write", help="write the chosen candidates as traces")
    writing.add_argument("--candidates", type=Path, required=True)
    writing.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    corpus: Json = json.loads(CORPUS.read_text(encoding="utf-8"))
    if args.verb == "draw":
        write_lines(args.out, draw(corpus, args.gguf))
    else:
        write_lines(args.out, traces(corpus, read_lines(args.candidates)))


if __name__ == "__main__":
    main()
