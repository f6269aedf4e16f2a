"""Small groundedness models with random weights, made while the tests run, of the architectures of published ones."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from tests.tiny_nli import VOCABULARY, tokenizer

PROMPT_WORDS = "determine if hypothesis true given premise predict choose your answer based on paragraph above can we "
WORDS = sorted({word for word in (*VOCABULARY, *PROMPT_WORDS.split(), "that", "conclude", "options", "yes", "no", "i",
                                  "think", "passage", "briefly", "following") if word.isalnum()})  # fmt: skip


def modernbert(
    folder: Path,
    *,
    task: Literal["sequence", "token"] = "sequence",
    labels: Sequence[str] = ("LABEL_0", "LABEL_1"),
    limit: int = 8192,
    seed: int = 0,
) -> Path:
    """A ModernBERT, as groundcheck, LettuceDetect and TinyLettuce are: no token types, a long window."""
    import torch
    import transformers
    from transformers import ModernBertConfig

    torch.manual_seed(seed)
    config = ModernBertConfig(
        vocab_size=len(VOCABULARY), hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        max_position_embeddings=limit, local_attention=32, global_attn_every_n_layers=2, initializer_range=0.6,
        pad_token_id=0, bos_token_id=2, cls_token_id=2, eos_token_id=3, sep_token_id=3,
        id2label=dict(enumerate(labels)), label2id={name: at for at, name in enumerate(labels)},
    )  # fmt: skip
    network = getattr(transformers, f"ModernBertFor{task.title()}Classification")(config)
    words = tokenizer(limit)
    words.model_input_names = ["input_ids", "attention_mask"]
    return _save(network, words, folder)


def t5_tokenizer() -> Any:
    """A tokenizer laid out as T5's: blanks at the beginnings of words, </s> at the end, no token before the text."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    letters = "abcdefghijklmnopqrstuvwxyzDPHIT0123456789.,:;?!\"'()[]-\n"
    pieces = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("▁", -2.0)]
    pieces += [(f"▁{word}", -3.0) for word in WORDS if word != "0"]
    pieces += [(letter, -6.0) for letter in letters if (letter, -6.0) not in pieces]
    made = Tokenizer(models.Unigram(pieces, unk_id=2, byte_fallback=False))
    made.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    made.decoder = decoders.Metaspace()
    made.post_processor = processors.TemplateProcessing(
        single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 1)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="<pad>", eos_token="</s>", unk_token="<unk>", model_max_length=512
    )


def _t5_sizes(vocabulary: int) -> dict[str, Any]:
    return {
        "vocab_size": vocabulary, "d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4,
        "feed_forward_proj": "gated-gelu", "tie_word_embeddings": False, "initializer_factor": 3.0,
        "decoder_start_token_id": 0, "pad_token_id": 0, "eos_token_id": 1,
    }  # fmt: skip


def minicheck_t5(folder: Path) -> Path:
    """A Flan-T5 that would write "1" or "0"."""
    import torch
    from transformers import T5Config, T5ForConditionalGeneration

    torch.manual_seed(1)
    words = t5_tokenizer()
    return _save(T5ForConditionalGeneration(T5Config(**_t5_sizes(len(words)))), words, folder)


def hhem(folder: Path) -> Any:
    """A directory laid out as HHEM-2.1-open's is, with code beside it that must never run; returns the network whose
    weights it holds, with its own configuration."""
    import torch
    from safetensors.torch import save_file
    from transformers import T5Config, T5ForTokenClassification

    torch.manual_seed(2)
    words = t5_tokenizer()
    network = T5ForTokenClassification(T5Config(**_t5_sizes(len(words)), num_labels=2)).eval()
    with torch.no_grad():
        network.classifier.weight.normal_(0.0, 0.5)
    folder.mkdir(parents=True, exist_ok=True)
    state = {f"t5.{name}": tensor.clone().contiguous() for name, tensor in network.state_dict().items()}
    save_file(state, str(folder / "model.safetensors"), metadata={"format": "pt"})
    words.save_pretrained(folder)
    config = {
        "model_type": "HHEMv2Config",
        "architectures": ["HHEMv2ForSequenceClassification"],
        "foundation": "google/flan-t5-base",
        "auto_map": {
            "AutoConfig": "configuration_hhem_v2.HHEMv2Config",
            "AutoModelForSequenceClassification": "modeling_hhem_v2.HHEMv2ForSequenceClassification",
        },
    }
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    for name in ("configuration_hhem_v2.py", "modeling_hhem_v2.py"):
        (folder / name).write_text("raise SystemExit('the code of a model was run')\n", encoding="utf-8")
    return network


def _save(network: Any, words: Any, folder: Path) -> Path:
    from transformers.utils import logging

    logging.disable_progress_bar()
    network.save_pretrained(folder)
    words.save_pretrained(folder)
    return folder
