"""A model that classifies texts or pairs of texts: found, identified, loaded on first use, and run in batches.

Any model of `transformers` works that needs no code of its own: a directory (safetensors or `model.onnx`), or a hub id
in the local cache. No network access, and nothing truncated: `fit` cuts what is longer than the model reads.

What is loaded stays, and so does its revision: where the files change, `nli` and its kin hand out another object.
"""

from __future__ import annotations

import importlib.util
import os
import re
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import permutations
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from calibrate import settings
from calibrate.backends import device, hub, weights
from calibrate.backends.inference import checks, export, files, network
from calibrate.backends.inference.batches import pad_inputs, split_into_batches
from calibrate.backends.memo import Memo
from calibrate.backends.text.segments import Part, windows
from calibrate.errors import BadInput, Unavailable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Rows = NDArray[np.float32]

Pair = tuple[str, str]
Encoded = dict[str, list[int]]
"""One encoded input by the names of the network's tensors: `input_ids`, `attention_mask` and what else it takes."""

SAMPLE_TOKENS = 1024  # of the longest input that an export is tried on
SAMPLES = (
    "The parcel left our warehouse on Monday.", "It left on Monday.", "It has not left.", "The moon is made of cheese.",
    "Batteries are covered for twelve months, damage by water is excluded.", "Water damage: two years, not three.",
)  # fmt: skip
_SURROGATE = re.compile("[\ud800-\udfff]")


class Classifier:
    """One model; it loads nothing before the first input.

    A subclass sets `task`, `kind` (what messages call the model) and `most_tokens` (to read no more at once, even where
    the model could), and overrides `explain_missing` and `check`.
    """

    task: ClassVar[network.Task] = "sequence-classification"
    kind: ClassVar[str] = "model"
    most_tokens: ClassVar[int] = files.MAX_TOKENS

    def __init__(self, model: str, commit: str = hub.MAIN) -> None:
        self.model, self.commit = model, commit
        self._network: network.Network | None = None
        self._failure: tuple[str, str] | None = None  # the revision that cannot be loaded or exported, and why
        self._named: str | None = None  # the digest that the revision names
        self._is_tied = False  # whether files of that digest are loaded
        self._tokenizer: Any = None
        self._limit = 0
        self._lock = threading.RLock()  # tokenizers are not safe between threads
        self._windows: dict[int, Memo[tuple[Part, ...]]] = {}

    # ------------------------------------------------------------------------------------------------ identity

    def directory(self) -> Path | None:
        """The directory of the model's files, or None if they are missing."""
        return weights.directory(self.model, self.commit)

    def explain_missing(self) -> str:
        """Say that the model is missing, and the remedy."""
        return (
            f"no {self.kind} {self.model!r} here; fetch it with `python -m calibrate models pull {self.model}`, or "
            "name a directory that holds one (config.json, tokenizer.json, and model.safetensors or model.onnx)"
        )

    def check(self, config: Mapping[str, Any], folder: Path) -> None:
        """Check the model's configuration, loading nothing. Raises Unavailable where it is not of the expected kind."""

    def explain_tokenizer(self, config: Mapping[str, Any], folder: Path) -> str | None:
        """Say that the tokenizer is missing, and the remedy; None if it is there."""
        return checks.explain_tokenizer(folder)

    def unavailable(self) -> str | None:
        """Why the model cannot be used, and the remedy; None if it can. Loads nothing."""
        if (folder := self.directory()) is None:
            return self.explain_missing()
        if not files.weights(folder):
            return checks.explain_lacking(folder)
        try:
            config = files.configuration(folder)
            if (why := checks.explain_weights(folder, config) or self.explain_tokenizer(config, folder)) is not None:
                return why
            self.check(config, folder)
            setting = settings.inference()
            exported = export.backend(folder, setting, self.graph)
        except (Unavailable, BadInput) as error:
            return str(error)
        is_onnx = files.is_onnx(files.weights(folder))
        for package in export.packages(exported, is_onnx=is_onnx):
            if importlib.util.find_spec(package) is None:
                other = " (or set TOUCHSTONE_INFERENCE to torch)" if setting != "torch" and not is_onnx else ""
                return f"the package {package} is missing; install it with `pip install {package}`{other}"
        if self._failure is not None and self._failure[0] == self.revision():  # files that were mended since are tried
            return self._failure[1]
        return device.problem(uses_torch=exported is None and not is_onnx)

    def revision(self) -> str:
        """The model's name and the start of a digest of its files; part of every cache key. Loads no model.

        Once something is loaded, it stays that of the files which were loaded.
        """
        folder = self.directory()
        if not self._is_tied:
            self._named = self.digest(folder) if folder else None
        if folder is None or self._named is None:
            return f"{self.model}@missing"
        if (exported := self.exported()) is not None:
            suffix = export.revision_suffix(exported)
        else:
            suffix = "" if files.is_onnx(files.weights(folder)) else device.revision_suffix()
        return f"{self.model}@{self._named}{suffix}"

    def digest(self, folder: Path) -> str:
        """The digest of the files as they are now."""
        return files.digest(folder)

    def _tie(self, folder: Path) -> None:
        """Tie what is about to be loaded to the digest that the revision names.

        Raises Unavailable where the files have changed since it was named.
        """
        now = self.digest(folder)
        if self._named not in (None, now):
            raise Unavailable(f"the files of the {self.kind} in {folder} were replaced meanwhile; start again")
        self._named, self._is_tied = now, True

    def exported(self) -> export.Export | None:
        """The ONNX file that TOUCHSTONE_INFERENCE has this model run on, where it is or will be; None for the model's
        own files. Never raises: `unavailable` reports what is wrong with the setting."""
        folder = self.directory()
        try:
            return export.backend(folder, settings.inference(), self.graph) if folder else None
        except BadInput:
            return None

    # ------------------------------------------------------------------------------------------------- loading

    def require(self) -> Path:
        """Return the model's directory. Raises Unavailable, with the remedy, where the model cannot be used."""
        if (why := self.unavailable()) is not None:
            raise Unavailable(why)
        folder = self.directory()
        assert folder is not None
        # Everything is read from disk; without this a library may still ask the hub about the model.
        os.environ.setdefault("HF_HUB_OFFLINE", "1")
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
        return folder

    @property
    def graph(self) -> str:
        """Names what computes the logits: an ONNX file of one graph is not taken for that of another."""
        return self.task

    def build(self, folder: Path) -> Any:
        """Load the torch module. A subclass with an architecture of its own overrides this, `compute` and `graph`."""
        return network.load_module(folder, self.task)

    def compute(self, module: Any, inputs: Mapping[str, Any]) -> Any:
        """Compute the logits of input tensors, in the shape of the task. No branch may depend on their values or
        sizes: ONNX files are traced from it."""
        return network.compute_logits(self.task, module, inputs)

    def load(self, folder: Path) -> network.Network:
        """Load the network onto the device, exported where TOUCHSTONE_INFERENCE says so.

        Raises Unavailable if that fails, and BadInput if the device is not there.
        """
        weight_files = files.weights(folder)
        try:
            if (exported := export.backend(folder, settings.inference(), self.graph)) is not None:
                return network.run_onnx(self._prepare(exported), may_use_gpu=not exported.is_int8)
            if files.is_onnx(weight_files):
                return network.run_onnx(next(path for path in weight_files if path.suffix == ".onnx"))
            return network.run_torch(self.build(folder), self.compute)
        except BadInput:
            raise
        except Unavailable as error:
            self._remember(str(error))
            raise
        except Exception as error:
            why = f"the model in {folder} cannot be loaded: {files.shorten(error)}"
            self._remember(why)
            raise Unavailable(why) from error

    def _remember(self, why: str) -> None:
        """Keep why it failed, so that it is not tried again for every trace. Nothing stays loaded."""
        self._failure = (self.revision(), why)
        self._tokenizer, self._is_tied = None, False

    def _prepare(self, exported: export.Export) -> Path:
        return export.prepare(exported, lambda: self.build(exported.source), self.compute, self._samples)

    def _samples(self) -> list[network.Inputs]:
        """Padded inputs on which an export is compared: some short ones together, a long one; and pairs of sentences,
        on which the rounding of 8-bit integers is measured."""
        most = min(self.limit, SAMPLE_TOKENS)
        pairs = [("The parcel left on Monday.", "It left."), ("No.", "Two years, not three."), (" and so on" * 20, "a")]
        batches = [pairs, [(" and so on" * most, "It left on Monday.")], list(permutations(SAMPLES, 2))]
        pad = int(self.tokenizer().pad_token_id or 0)
        return [
            pad_inputs([{name: ids[:most] for name, ids in item.items()} for item in self.encode_pairs(batch)], pad)
            for batch in batches
        ]

    def load_tokenizer(self, folder: Path) -> Any:
        """Load the tokenizer. Raises Unavailable if that fails."""
        return files.load_tokenizer(folder)

    def tokenizer(self) -> Any:
        """The model's `transformers` tokenizer."""
        with self._lock:
            if self._tokenizer is None:
                folder = self.require()
                self._tie(folder)
                try:
                    tokenizer = self.load_tokenizer(folder)
                except Unavailable as error:
                    self._remember(str(error))
                    raise
                config = files.configuration(folder)
                self._limit = files.limit(config, tokenizer.model_max_length, most=self.most_tokens)
                self._tokenizer = tokenizer
            return self._tokenizer

    @property
    def limit(self) -> int:
        """The most tokens that an input may have, special ones included."""
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
        offsets = self.encode([text[part.start : part.end]], return_offsets_mapping=True)["offset_mapping"][0]
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

    def divide(self, first: str, second: str) -> Iterator[tuple[int, Encoded]]:
        """Divide a pair that does not fit: yields every part of the first with every part of the second, encoded, each
        with the number of its part of the second."""
        free = self.limit - int(self.tokenizer().num_special_tokens_to_add(pair=True))
        for number, piece in enumerate(self.fit(second, [Part(0, len(second))])):
            second_part = second[piece.start : piece.end]
            room = free - len(self.encode([second_part])["input_ids"][0])
            first_parts = [first[a:b] for a, b in self.fit(first, [Part(0, len(first))], room=room)]
            for inputs in self.encode_pairs([(first_part, second_part) for first_part in first_parts]):
                if len(inputs["input_ids"]) > self.limit:
                    raise ValueError(f"a pair could not be cut to fit the {self.kind}")
                yield number, inputs

    # ------------------------------------------------------------------------------------------------ encoding

    def encode(self, texts: Sequence[str], seconds: Sequence[str] | None = None, **options: Any) -> Any:
        """Tokenize pairs, or single texts without special tokens: a `BatchEncoding` of `transformers`, nothing
        truncated. `options` go to the tokenizer, such as return_offsets_mapping=True.

        A special token written in a text stays text. Otherwise a context could end itself with "[SEP]" and append a
        premise of its own.
        """
        usual = {
            "add_special_tokens": seconds is not None,
            "split_special_tokens": True,
            "return_attention_mask": True,
        }
        more = [] if seconds is None else [list(map(clean, seconds))]
        with self._lock:
            return self.tokenizer()(
                list(map(clean, texts)), *more, truncation=False, verbose=False, **{**usual, **options}
            )

    def encode_pairs(self, pairs: Sequence[Pair]) -> list[Encoded]:
        """Encode pairs as `logits` takes them."""
        encoded = self.encode([first for first, _ in pairs], [second for _, second in pairs])
        return [{name: encoded[name][row] for name in encoded} for row in range(len(pairs))]

    # ------------------------------------------------------------------------------------------------- forward

    def logits(self, inputs: Sequence[Encoded], columns: Sequence[int] | None = None) -> Rows:
        """Compute the logits of whole inputs: one row each, in order; only these columns of them, if given.

        No inputs give an array of shape (0, 0). Not for token classification: see `token_logits`.
        """
        import numpy as np

        result: Rows | None = None
        for batch, logits in self._run(inputs):
            rows = logits if columns is None else logits[:, list(columns)]
            result = np.empty((len(inputs), rows.shape[1]), dtype=np.float32) if result is None else result
            result[batch] = rows
        return result if result is not None else np.zeros((0, 0), dtype=np.float32)

    def token_logits(self, inputs: Sequence[Encoded]) -> list[Rows]:
        """Compute the logits of every token: per input, in order, an array of shape (tokens, labels), without padding;
        special tokens have rows as well."""
        rows: dict[int, Rows] = {}
        for batch, logits in self._run(inputs):
            rows.update((at, logits[row, : len(inputs[at]["input_ids"])]) for row, at in enumerate(batch))
        return [rows[at] for at in range(len(inputs))]

    def _run(self, inputs: Sequence[Encoded]) -> Iterator[tuple[list[int], Rows]]:
        """Run the network: yields positions of inputs with their logits.

        Batches hold inputs of similar lengths, up to a number of tokens.
        """
        with self._lock:
            if self._network is None:
                folder = self.require()
                self._tie(folder)
                self._network = self.load(folder)
            loaded, pad = self._network, int(self.tokenizer().pad_token_id or 0)
        order = sorted(range(len(inputs)), key=lambda i: -len(inputs[i]["input_ids"]))
        batches = split_into_batches(order, [len(item["input_ids"]) for item in inputs], on_gpu=loaded.is_on_gpu)

        def forward(batch: list[int]) -> Rows:
            return loaded.infer(pad_inputs([inputs[i] for i in batch], pad))

        for batch, logits in device.run_batches(forward, batches, on_gpu=loaded.is_on_gpu):
            yield batch, device.require_finite(logits)


def clean(text: str) -> str:
    """Replace lone surrogates, which cannot be encoded; the length stays, and with it the offsets."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def softmax(logits: Rows) -> Rows:
    """Turn logits into probabilities along the last axis."""
    import numpy as np

    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True), dtype=np.float32)
