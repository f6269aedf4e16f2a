"""Natural language inference: does a premise entail a hypothesis, contradict it, or neither?

Any Hugging Face sequence-classification model with NLI's labels works: a directory (PyTorch weights, or `model.onnx`),
or a hub id in the local cache. One model per process, every distinct pair judged once, no network access, and nothing
truncated: a pair that is longer than the model reads is judged in parts.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibrate.backends import device, hub, weights
from calibrate.backends.memo import Memo
from calibrate.backends.nli import network
from calibrate.backends.text.segments import Part, windows
from calibrate.errors import BadInput, Unavailable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Rows = NDArray[np.float32]

DEFAULT = "default"
HUB_DEFAULT = "cross-encoder/nli-deberta-v3-small"
VARIABLE = "TOUCHSTONE_NLI_MODEL"
ENTAILMENT, NEUTRAL, CONTRADICTION = 0, 1, 2  # the columns of `probabilities`
MEMO_ENTRIES = 100_000  # about 300 bytes each
PARTS = 256  # of one pair; seconds to a minute
_SURROGATE = re.compile("[\ud800-\udfff]")

Pair = tuple[str, str]


class Nli:
    """One NLI model. Get it from `nli(model)`; it loads nothing before the first pair."""

    def __init__(self, model: str) -> None:
        self.model = model
        self._network: network.Network | None = None
        self._tokenizer: Any = None
        self._limit = 0
        self._lock = threading.RLock()  # tokenizers are not safe between threads
        self._memo: OrderedDict[bytes, tuple[float, float, float]] = OrderedDict()
        self._windows: dict[int, Memo[tuple[Part, ...]]] = {}

    # ------------------------------------------------------------------------------------------------ identity

    def directory(self) -> Path | None:
        """The directory of the model's files, or None if they are missing."""
        return weights.directory(self.model)

    def unavailable(self) -> str | None:
        """Why the model cannot be used, and the remedy; None if it can. Loads nothing."""
        if (folder := self.directory()) is None:
            pull = "nli" if self.model == resolve(DEFAULT) else self.model
            return (
                f"no NLI model {self.model!r} here; fetch it with `python -m calibrate models pull {pull}`, or set "
                f"{VARIABLE} to a directory that holds one (config.json, tokenizer.json, and model.safetensors or "
                "model.onnx)"
            )
        if not (files := network.weights(folder)):
            return f"{folder} holds no weights: model.safetensors, pytorch_model.bin or model.onnx should be there"
        for package in ("transformers", "onnxruntime" if network.is_onnx(files) else "torch"):
            if importlib.util.find_spec(package) is None:
                return f"the package {package} is missing; install it with `pip install {package}`"
        try:
            self.labels()
        except Unavailable as error:
            return str(error)
        return device.problem(uses_torch=not network.is_onnx(files))

    def labels(self) -> network.Labels:
        """The model's labels. Raises Unavailable if it is missing or its labels are not NLI's."""
        if (folder := self.directory()) is None:
            raise Unavailable(self.unavailable() or f"no NLI model {self.model!r} here")
        return network.Labels.from_config(network.configuration(folder), folder)

    def revision(self) -> str:
        """The model's name and the start of a digest of weights, configuration and tokenizer; part of every cache key.

        Loads no model. Weights are read once, and not at all in the hub's cache, which names them by digest.
        """
        folder = self.directory()
        if folder is None:
            return f"{self.model}@missing"
        beside = [path for name in ("config.json", "tokenizer*", "*.txt", "*.model") for path in folder.glob(name)]
        weight_files = network.weights(folder)
        files = sorted({*weight_files, *beside})
        digests = "".join(f"{path.name}:{hub.digest(path)};" for path in files if path.is_file())
        precision = "" if network.is_onnx(weight_files) else device.revision_suffix()
        return f"{self.model}@{hashlib.sha256(digests.encode()).hexdigest()[:12]}{precision}"

    # ------------------------------------------------------------------------------------------------- loading

    def _require(self) -> Path:
        if (why := self.unavailable()) is not None:
            raise Unavailable(why)
        folder = self.directory()
        assert folder is not None
        # Everything is read from disk; without this a library may still ask the hub about the model.
        os.environ.setdefault("HF_HUB_OFFLINE", "1")
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
        return folder

    def tokenizer(self) -> Any:
        """The model's `transformers` tokenizer."""
        with self._lock:
            if self._tokenizer is None:
                folder = self._require()
                tokenizer = network.load_tokenizer(folder)
                self._limit = network.limit(network.configuration(folder), tokenizer.model_max_length)
                self._tokenizer = tokenizer
            return self._tokenizer

    @property
    def limit(self) -> int:
        """The most tokens that a pair may have, special ones included."""
        self.tokenizer()
        return self._limit

    @property
    def room(self) -> int:
        """The most tokens of a text that fits together with another of the same length."""
        return max(1, (self.limit - int(self.tokenizer().num_special_tokens_to_add(pair=True))) // 2)

    # ------------------------------------------------------------------------------------------------- cutting

    def fit(self, text: str, parts: Iterable[Part], *, room: int | None = None) -> list[Part]:
        """Cut every part of more than `room` tokens (default: half of what the model reads) into parts that fit."""
        most = self.room if room is None else max(1, room)
        return [piece for part in parts for piece in self._split(text, part, most)]

    def _split(self, text: str, part: Part, room: int) -> Iterator[Part]:
        # A character is mostly one token or less, but emoji and rare scripts are split into bytes.
        if part.end - part.start <= max(1, room // 6):
            yield part
            return
        with self._lock:
            excerpt = _clean(text[part.start : part.end])
            offsets = self._encode([excerpt], None, return_offsets_mapping=True)["offset_mapping"][0]
        if len(offsets) <= room:
            yield part
            return
        step = max(1, room - room // 16)  # a piece that is cut inside a word can have one token more
        starts = [part.start, *(part.start + offsets[i][0] for i in range(step, len(offsets), step))]
        pieces = [Part(a, b) for a, b in zip(starts, [*starts[1:], part.end], strict=True) if a < b]
        if len(pieces) == 1:  # all its tokens begin at one character
            middle = (part.start + part.end) // 2
            pieces = [Part(part.start, middle), Part(middle, part.end)]
        for piece in pieces:
            yield from self._split(text, piece, room)

    def windows(self, text: str, *, sentences_per_window: int) -> tuple[Part, ...]:
        """Windows of a text that each fit the model beside a hypothesis. Computed once per distinct text."""
        if sentences_per_window not in self._windows:

            def cut(text: str, size: int = sentences_per_window) -> tuple[Part, ...]:
                return tuple(self.fit(text, windows(text, sentences_per_window=size)))

            self._windows[sentences_per_window] = Memo(cut)
        return self._windows[sentences_per_window](text)

    # ------------------------------------------------------------------------------------------------- judging

    def probabilities(self, pairs: Sequence[Pair]) -> Rows:
        """Judge pairs of (premise, hypothesis).

        Distinct pairs are judged once and cached. A pair that is longer than the model reads is divided: its row is
        that of the least supported part of the hypothesis with the part of the premise that supports it most, by
        P(entailment) - P(contradiction).

        Returns float32, one row per pair, in order, with columns entailment, neutral, contradiction. A model with two
        labels fills two columns: `neutral` holds not_entailment, and contradiction is 0. Raises BadInput for a pair of
        more than PARTS parts.
        """
        import numpy as np

        keys = [_key(pair) for pair in pairs]
        with self._lock:
            new = {key: pair for key, pair in zip(keys, pairs, strict=True) if key not in self._memo}
            fresh: dict[bytes, tuple[float, float, float]] = {}
            if new:
                rows = self._judge([(_clean(premise), _clean(hypothesis)) for premise, hypothesis in new.values()])
                fresh = dict(zip(new, map(tuple, rows.tolist()), strict=True))
            known_rows = [fresh[key] if key in fresh else self._memo[key] for key in keys]
            self._remember(keys, fresh)
        return np.array(known_rows, dtype=np.float32).reshape(-1, 3)

    def _judge(self, pairs: Sequence[Pair]) -> Rows:
        import numpy as np

        encoded = self._encode_pairs(pairs)
        # (row, part of the hypothesis, input): one for a pair that fits, several for one that does not.
        parts: list[tuple[int, int, dict[str, list[int]]]] = []
        for row, inputs in enumerate(encoded):
            if len(inputs["input_ids"]) <= self.limit:
                parts.append((row, 0, inputs))
            else:
                divided = list(islice(self._divide(*pairs[row]), PARTS + 1))
                if len(divided) > PARTS:
                    raise BadInput(_too_long(*pairs[row]))
                parts += [(row, piece, inputs) for piece, inputs in divided]
        rows = self.labels().columns(self.forward([inputs for _, _, inputs in parts]))
        if len(parts) == len(pairs):
            return rows
        support = rows[:, ENTAILMENT] - rows[:, CONTRADICTION]
        best: dict[tuple[int, int], int] = {}
        for at, (row, piece, _) in enumerate(parts):
            chosen = best.setdefault((row, piece), at)
            best[row, piece] = at if support[at] > support[chosen] else chosen
        worst: dict[int, int] = {}
        for (row, _), at in best.items():
            chosen = worst.setdefault(row, at)
            worst[row] = at if support[at] < support[chosen] else chosen
        return np.asarray(rows[[worst[row] for row in range(len(pairs))]])

    def _divide(self, premise: str, hypothesis: str) -> Iterator[tuple[int, dict[str, list[int]]]]:
        """Divide a pair that does not fit: yields inputs, each with the number of its part of the hypothesis."""
        free = self.limit - int(self.tokenizer().num_special_tokens_to_add(pair=True))
        for number, piece in enumerate(self.fit(hypothesis, [Part(0, len(hypothesis))])):
            hypothesis_part = hypothesis[piece.start : piece.end]
            room = free - len(self._encode([hypothesis_part], None)["input_ids"][0])
            premises = [premise[a:b] for a, b in self.fit(premise, [Part(0, len(premise))], room=room)]
            for inputs in self._encode_pairs([(premise_part, hypothesis_part) for premise_part in premises]):
                if len(inputs["input_ids"]) > self.limit:
                    raise ValueError("a pair could not be cut to fit the NLI model")
                yield number, inputs

    def _encode(self, texts: Sequence[str], seconds: Sequence[str] | None, **options: Any) -> Any:
        """Tokenize pairs (or single texts). A special token written in a text stays text.

        Otherwise a context could end itself with "[SEP]" and append a premise of its own.
        """
        special = {
            "add_special_tokens": seconds is not None,
            "split_special_tokens": True,
            "return_attention_mask": True,
        }
        more = [] if seconds is None else [list(seconds)]
        return self.tokenizer()(list(texts), *more, truncation=False, verbose=False, **special, **options)

    def _encode_pairs(self, pairs: Sequence[Pair]) -> list[dict[str, list[int]]]:
        encoded = self._encode([premise for premise, _ in pairs], [hypothesis for _, hypothesis in pairs])
        return [{name: encoded[name][row] for name in encoded} for row in range(len(pairs))]

    def probabilities_truncated(self, premises: Sequence[str], hypotheses: Sequence[str] | None = None) -> Rows:
        """Compute probabilities as common recipes do, for comparison only; columns in the model's own order.

        Special tokens written in a text count as such, and everything beyond the limit is dropped.
        """
        with self._lock:
            more = [] if hypotheses is None else [list(map(_clean, hypotheses))]
            encoded = self.tokenizer()(list(map(_clean, premises)), *more, truncation=True, max_length=self.limit)
            return self.forward([{name: encoded[name][row] for name in encoded} for row in range(len(premises))])

    # ------------------------------------------------------------------------------------------------- forward

    def forward(self, inputs: Sequence[dict[str, list[int]]]) -> Rows:
        """Compute the softmax of the model's logits: one row per input, columns in the model's own order.

        Batches hold inputs of similar lengths, up to a number of tokens.
        """
        import numpy as np

        with self._lock:
            if self._network is None:
                self._network = network.load_network(self._require())
            loaded, pad = self._network, int(self.tokenizer().pad_token_id or 0)
        order = sorted(range(len(inputs)), key=lambda i: -len(inputs[i]["input_ids"]))
        batches = network.split_into_batches(
            order, [len(item["input_ids"]) for item in inputs], on_gpu=loaded.is_on_gpu
        )

        def forward(batch: list[int]) -> Rows:
            return loaded.infer(network.pad_inputs([inputs[i] for i in batch], pad))

        result: Rows | None = None
        for batch, logits in device.run_batches(forward, batches, on_gpu=loaded.is_on_gpu):
            rows = np.exp(device.require_finite(logits) - logits.max(axis=1, keepdims=True))
            rows /= rows.sum(axis=1, keepdims=True)
            result = np.empty((len(inputs), rows.shape[1]), dtype=np.float32) if result is None else result
            result[batch] = rows
        return result if result is not None else np.zeros((0, 3), dtype=np.float32)

    def _remember(self, keys: Sequence[bytes], fresh: dict[bytes, tuple[float, float, float]]) -> None:
        self._memo.update(fresh)
        for key in keys:
            self._memo.move_to_end(key)
        while len(self._memo) > MEMO_ENTRIES:
            self._memo.popitem(last=False)

    def forget(self) -> None:
        """Clear the cache, for benchmarks."""
        with self._lock:
            self._memo.clear()


def _key(pair: Pair) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    premise, hypothesis = (text.encode("utf-8", "surrogatepass") for text in pair)
    digest.update(len(premise).to_bytes(8, "big") + premise + hypothesis)
    return digest.digest()


def _too_long(premise: str, hypothesis: str) -> str:
    return (
        f"a premise of {len(premise)} and a hypothesis of {len(hypothesis)} characters would take the NLI model more "
        f"than {PARTS} parts to judge; shorten the texts"
    )


def _clean(text: str) -> str:
    """Lone surrogates cannot be encoded; a replacement of the same length keeps the offsets."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def resolve(model: str = DEFAULT) -> str:
    """Resolve "default": TOUCHSTONE_NLI_MODEL if that is set, else a small DeBERTa-v3 of the hub."""
    return (os.environ.get(VARIABLE, "").strip() or HUB_DEFAULT) if model in (DEFAULT, "") else model


def nli(model: str = DEFAULT) -> Nli:
    """Get the process's NLI model of this name."""
    return _models(resolve(model))


_models = lru_cache(maxsize=4)(Nli)
