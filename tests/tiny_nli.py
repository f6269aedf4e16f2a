"""Small NLI models made while the tests run: with random weights, to compare implementations on, and one whose weights
are set by hand, so that its verdicts are known."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

LABELS = ("contradiction", "entailment", "neutral")
_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_WORDS = (
    "proof lie filler the a of and is to in it for months from delivery warranty lasts x200 keep invoice as purchase "
    "batteries are covered twelve damage by water excluded two years coverage five not moon made cheese pacific ocean "
    "parcel leaves our warehouse before noon question answer one three four six 保 修 期 为 月 الضمان لمدة سنتين"
)
_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
VOCABULARY = (*_SPECIAL, *_WORDS.split(), *_LETTERS, *(f"##{one}" for one in _LETTERS), *".,;:!?'\"()[]-+*/%&$#@")


def tokenizer(limit: int) -> Any:
    """A WordPiece tokenizer as BERT's, over a small vocabulary."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    places = {word: at for at, word in enumerate(dict.fromkeys(VOCABULARY))}
    made = Tokenizer(models.WordPiece(places, unk_token="[UNK]", max_input_chars_per_word=100))
    made.normalizer = normalizers.BertNormalizer(lowercase=True)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.decoder = decoders.WordPiece()
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", places["[CLS]"]), ("[SEP]", places["[SEP]"])],
    )
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    return PreTrainedTokenizerFast(
        tokenizer_object=made,
        **names,
        mask_token="[MASK]",
        model_max_length=limit,
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    )


def _settings(labels: Sequence[str], limit: int, **more: Any) -> dict[str, Any]:
    places = dict(enumerate(labels))
    return {
        "vocab_size": len(VOCABULARY),
        "max_position_embeddings": limit,
        "id2label": places,
        "label2id": {name: at for at, name in places.items()},
        **more,
    }


def random_model(
    folder: Path,
    kind: str = "bert",
    *,
    labels: Sequence[str] = LABELS,
    limit: int = 128,
    seed: int = 0,
    task: Literal["sequence", "token"] = "sequence",
) -> Path:
    """A BERT or DeBERTa-v2 with random weights, large enough that its verdicts differ from pair to pair; it classifies
    whole inputs, or each of their tokens."""
    import torch
    import transformers
    from transformers import BertConfig, DebertaV2Config

    torch.manual_seed(seed)
    size = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
    settings = _settings(labels, limit, **size, initializer_range=0.5)
    if kind == "bert":
        config: Any = BertConfig(**settings)
    else:
        relative = {"relative_attention": True, "position_buckets": 16, "pos_att_type": ["p2c", "c2p"],
                    "norm_rel_ebd": "layer_norm", "share_att_key": True, "position_biased_input": False,
                    "type_vocab_size": 0}  # fmt: skip
        config = DebertaV2Config(**settings, **relative)
    network = getattr(transformers, f"AutoModelFor{task.title()}Classification").from_config(config)
    return _saved(network, folder, limit)


def random_t5(folder: Path, *, limit: int = 128) -> Path:
    """A T5 with random weights, of which a classifier uses the first token that it would write."""
    import torch
    from transformers import T5Config, T5ForConditionalGeneration

    torch.manual_seed(0)
    config = T5Config(
        vocab_size=len(VOCABULARY), d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, decoder_start_token_id=0,
        pad_token_id=0, initializer_factor=4.0,
    )  # fmt: skip
    return _saved(T5ForConditionalGeneration(config), folder, limit)


def random_modernbert(folder: Path, *, labels: Sequence[str] = ("supported", "hallucinated"), limit: int = 128) -> Path:
    """A ModernBERT with random weights that classifies tokens; every other layer sees 16 tokens around each."""
    import torch
    from transformers import ModernBertConfig, ModernBertForTokenClassification

    torch.manual_seed(0)
    size = {"hidden_size": 32, "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 64}
    special = {"pad_token_id": 0, "cls_token_id": 2, "sep_token_id": 3, "bos_token_id": 2, "eos_token_id": 3}
    config = ModernBertConfig(
        **_settings(labels, limit, **size, **special, initializer_range=0.5, initializer_cutoff_factor=20.0),
        local_attention=16, global_attn_every_n_layers=2,
    )  # fmt: skip
    return _saved(ModernBertForTokenClassification(config), folder, limit)


def known_model(folder: Path, *, labels: Sequence[str] = LABELS, limit: int = 64) -> Path:
    """A one-layer BERT that looks for one word: with "proof" anywhere in the pair it says entailment, else with "lie"
    contradiction, else neutral; but entailment when there is a separator more than the two that a pair has.

    [CLS] attends to "proof" before "lie" before separators and itself, so that what it sees is the share of each; the
    classifier is fitted to the few cases there are.
    """
    import torch
    from transformers import AutoModelForSequenceClassification, BertConfig

    size = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 4}
    network = AutoModelForSequenceClassification.from_config(BertConfig(**_settings(labels, limit, **size)))
    network.eval()
    places = {word: at for at, word in enumerate(dict.fromkeys(VOCABULARY))}
    features = {"[CLS]": 0, "[SEP]": 1, "proof": 2, "lie": 3}
    with torch.no_grad():
        for weights in network.parameters():
            weights.zero_()
        for name, weights in network.named_parameters():
            if "LayerNorm.weight" in name:
                weights.fill_(1.0)
        words = network.bert.embeddings.word_embeddings.weight
        words[:, 8] = 1.0
        for word, at in features.items():
            words[places[word], 8], words[places[word], at] = 0.0, 1.0
        layer = network.bert.encoder.layer[0].attention
        attention = layer.self
        attention.query.bias[0] = 1.0
        for at, wanted in ((0, 40.0), (1, 40.0), (2, 200.0), (3, 120.0)):
            attention.key.weight[0, at] = wanted
        for at in (1, 2, 3):
            attention.value.weight[at, at] = 1.0
            layer.output.dense.weight[at, at] = 1.0
        for at in range(4):
            network.bert.pooler.dense.weight[at, at] = 0.3
        _fit(network, labels, limit)
    return _saved(network, folder, limit)


def _saved(network: Any, folder: Path, limit: int) -> Path:
    from transformers.utils import logging

    logging.disable_progress_bar()
    network.save_pretrained(folder)
    tokenizer(limit).save_pretrained(folder)
    return folder


def _fit(network: Any, labels: Sequence[str], limit: int) -> None:
    """Sets the classifier so that the cases of `known_model` come out with a probability of nearly 1."""
    import torch

    cases = {
        "filler [SEP] the": "neutral",
        "filler the [SEP] a of": "neutral",
        "filler [SEP] the [SEP] a": "entailment",
        "proof [SEP] the": "entailment",
        "proof lie [SEP] the": "entailment",
        "proof [SEP] lie [SEP] the": "entailment",
        "lie [SEP] the": "contradiction",
    }
    given = tokenizer(limit)(list(cases), padding=True, return_tensors="pt")
    seen = network.bert(**given).pooler_output.double()
    seen = torch.cat([seen, torch.ones(len(seen), 1, dtype=torch.double)], dim=1)
    wanted = torch.full((len(cases), len(labels)), -8.0, dtype=torch.double)
    for row, label in enumerate(cases.values()):
        place = list(labels).index(label) if label in labels else list(labels).index("not_entailment")
        wanted[row, place] = 8.0
    solved = torch.linalg.lstsq(seen, wanted, driver="gelsd").solution
    network.classifier.weight.copy_(solved[:-1].T.float())
    network.classifier.bias.copy_(solved[-1].float())
