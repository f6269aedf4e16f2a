"""HHEM-2.1-open: the encoder of a T5 with a classifier on its first token, rebuilt from the weights alone.

The published model comes with code; none of it is run. The encoder is that of `transformers`; its sizes are read from
the shapes of the weights, which `model.safetensors` names `t5.transformer.…` and `t5.classifier.…`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from calibrate.backends import hub, weights
from calibrate.backends.grounding.grounder import Grounder
from calibrate.backends.grounding.labels import Reading
from calibrate.backends.inference import files
from calibrate.backends.inference.files import shorten
from calibrate.errors import Unavailable

FOUNDATION = "google/flan-t5-base"
_TOKENS: dict[str, Any] = {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
_PREFIX = "t5."
_BLOCK = re.compile(r"transformer\.encoder\.block\.(\d+)\.")


class HhemGrounder(Grounder):
    """HHEM-2.1-open, or a model trained like it."""

    def read(self, config: Mapping[str, Any], folder: Path) -> Reading:
        """Two columns, of which the second is "consistent"; a map may say otherwise."""
        if not self._labels:
            return Reading((1,), "softmax")
        return super().read({**config, "num_labels": 2}, folder)

    def check(self, config: Mapping[str, Any], folder: Path) -> None:
        super().check(config, folder)
        if not (folder / "model.safetensors").is_file():
            raise Unavailable(f"{folder} has no model.safetensors, which HHEM is read from")

    def explain_tokenizer(self, config: Mapping[str, Any], folder: Path) -> str | None:
        """Say that the tokenizer is missing: beside the weights, and that of the model which HHEM was trained from."""
        if self._tokenizer_file(folder, config) is not None:
            return None
        return (
            f"{folder} has no tokenizer.json; put that of {_foundation(config)} beside the weights, or fetch it with "
            f"`python -m calibrate models pull {_foundation(config)}`"
        )

    @staticmethod
    def _tokenizer_file(folder: Path, config: Mapping[str, Any]) -> Path | None:
        """The tokenizer beside the weights, or that of the model which HHEM was trained from."""
        folders = [folder, weights.directory(_foundation(config))]
        paths = [place / "tokenizer.json" for place in folders if place is not None]
        return next((path for path in paths if path.is_file()), None)

    def load_tokenizer(self, folder: Path) -> Any:
        """Load T5's tokenizer from its one file: no class is looked up by the name in a configuration."""
        from transformers import PreTrainedTokenizerFast

        path = self._tokenizer_file(folder, files.configuration(folder))
        try:
            return PreTrainedTokenizerFast(**_TOKENS, tokenizer_file=str(path))  # type: ignore[no-untyped-call]
        except Exception as error:
            raise Unavailable(f"the tokenizer {path} cannot be loaded: {shorten(error)}") from error

    def digest(self, folder: Path) -> str:
        """As for others; a tokenizer that is not beside the weights counts too."""
        path = self._tokenizer_file(folder, files.configuration(folder))
        beside = path is None or path.parent == folder
        return super().digest(folder) + ("" if beside or path is None else f"-{hub.digest(path)[:8]}")

    @property
    def graph(self) -> str:
        """Its logits are those of the first token."""
        return "hhem"

    def build(self, folder: Path) -> Any:
        """Build the network around the weights. Raises Unavailable if these are of another architecture."""
        return _build(folder / "model.safetensors")

    def compute(self, module: Any, inputs: Mapping[str, Any]) -> Any:
        """Compute the logits of the first token."""
        return module(input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"]).logits[:, 0]


def _foundation(config: Mapping[str, Any]) -> str:
    name = config.get("foundation")
    return name if isinstance(name, str) and name else FOUNDATION


def _build(path: Path) -> Any:
    from safetensors.torch import load_file
    from transformers import T5ForTokenClassification

    state = {name.removeprefix(_PREFIX): tensor.float() for name, tensor in load_file(str(path)).items()}
    embedding = "transformer.shared.weight"
    copy = "transformer.encoder.embed_tokens.weight"  # the same tensor; files may have one of them or both
    if (shared := state.get(embedding, state.get(copy))) is not None:
        state |= {embedding: shared, copy: shared}
    network = T5ForTokenClassification(_configuration(state, path))
    missing, unexpected = network.load_state_dict(state, strict=False)
    if lacking := [name for name in (*missing, *unexpected) if name not in (embedding, copy)]:
        raise Unavailable(f"the weights in {path} are not HHEM's: {lacking[0]} does not fit its architecture")
    return network


def _configuration(state: Mapping[str, Any], path: Path) -> Any:
    """Read T5's sizes from the shapes of its weights.

    Two are in no shape, and are those of every published T5: distances beyond 128 tokens are one bucket, and norms add
    1e-6.
    """
    from transformers import T5Config

    layer = "transformer.encoder.block.0.layer"
    try:
        vocabulary, width = state["transformer.shared.weight"].shape
        buckets, heads = state[f"{layer}.0.SelfAttention.relative_attention_bias.weight"].shape
        inner = state[f"{layer}.0.SelfAttention.q.weight"].shape[0]
        gated = f"{layer}.1.DenseReluDense.wi_0.weight" in state
        hidden = state[f"{layer}.1.DenseReluDense.{'wi_0' if gated else 'wi'}.weight"].shape[0]
        labels = state["classifier.weight"].shape[0]
    except KeyError as error:
        raise Unavailable(f"the weights in {path} are not HHEM's: {error} is missing") from error
    blocks = {int(match.group(1)) for name in state if (match := _BLOCK.match(name))}
    sizes: dict[str, Any] = {
        "vocab_size": vocabulary,
        "d_model": width,
        "d_kv": inner // heads,
        "d_ff": hidden,
        "num_layers": len(blocks),
        "num_heads": heads,
        "relative_attention_num_buckets": buckets,
        "relative_attention_max_distance": 128,
        "layer_norm_epsilon": 1e-6,
        "feed_forward_proj": "gated-gelu" if gated else "relu",
        "num_labels": labels,
        "classifier_dropout": 0.0,
    }
    return T5Config(**sizes)
