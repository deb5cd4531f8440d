"""Small vocabularies with the pipelines of Llama, Gemma, Qwen, SmolLM and Pythia: contents of a ``tokenizer.json``."""

import json
from collections.abc import Callable
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from helpers.models import ALPHABET, PROSE
from model.tokenizer.pipeline import LLAMA3_PATTERN, QWEN2_PATTERN

SPACES = [" " * n for n in range(2, 6)]


def content(tokenizer: Tokenizer) -> dict[str, Any]:
    spec: dict[str, Any] = json.loads(tokenizer.to_str())
    return spec


def trained(tokenizer: Tokenizer, special: list[str], alphabet: list[str] | None = None) -> dict[str, Any]:
    tokenizer.train_from_iterator(
        [PROSE * 3, ALPHABET, "1234567890 12 34567  \n\n x"],
        trainers.BpeTrainer(
            vocab_size=420 + len(special),
            special_tokens=special,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet() if alphabet is None else alphabet,
            show_progress=False,
        ),
    )
    return content(tokenizer)


def byte_level(*before: Any, **model: Any) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE(**model))
    last = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=not any("Split" in str(each) for each in before))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*before, last]) if before else last
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def llama3() -> dict[str, Any]:
    tokenizer = byte_level(pre_tokenizers.Split(Regex(LLAMA3_PATTERN), "isolated"), ignore_merges=True)
    spec = trained(tokenizer, ["<|begin_of_text|>", "<|eot_id|>"])
    tokenizer = Tokenizer.from_str(json.dumps(spec))
    template = processors.TemplateProcessing("<|begin_of_text|> $A", special_tokens=[("<|begin_of_text|>", 0)])
    tokenizer.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), template])
    return content(tokenizer)


def qwen2() -> dict[str, Any]:
    tokenizer = byte_level(pre_tokenizers.Split(Regex(QWEN2_PATTERN), "isolated"))
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    return trained(tokenizer, ["<|endoftext|>", "<|im_start|>", "<|im_end|>"])


def olmo2() -> dict[str, Any]:
    spec = trained(byte_level(pre_tokenizers.Split(Regex(LLAMA3_PATTERN), "removed", invert=True)), ["<|endoftext|>"])
    flags = dict.fromkeys(("special", "single_word", "lstrip", "rstrip", "normalized"), False)
    spec["added_tokens"].append(flags | {"content": "|||IP_ADDRESS|||", "id": len(spec["model"]["vocab"])})
    return spec


def smollm() -> dict[str, Any]:
    return trained(byte_level(pre_tokenizers.Digits(individual_digits=True)), ["<|endoftext|>", "<|im_start|>"])


def pythia() -> dict[str, Any]:
    tokenizer = byte_level()
    tokenizer.normalizer = normalizers.NFC()
    spec = trained(tokenizer, ["<|endoftext|>", "<|padding|>"])
    tokenizer = Tokenizer.from_str(json.dumps(spec))
    tokenizer.add_tokens([AddedToken(spaces, normalized=True) for spaces in SPACES])
    return content(tokenizer)


def llama2(prepends: bool = True, scheme: str = "first") -> dict[str, Any]:
    """With the space before a text put there by the normalizer, as Llama 2, or by the pre-tokenizer, as Mistral.

    ``scheme`` is that of the pre-tokenizer; with "never", no space is put there, nor by the normalizer.
    """
    tokenizer = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme=scheme, split=False)
    fallback = [f"<0x{byte:02X}>" for byte in range(256)]
    alphabet = sorted({"▁", *ALPHABET, *PROSE[:200]} - {" "})
    spec = trained(tokenizer, ["<unk>", "<s>", "</s>", *fallback], alphabet)
    spec["added_tokens"] = [token for token in spec["added_tokens"] if token["content"] not in fallback]
    if prepends:
        spaces = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
        prepend = [] if scheme == "never" else [{"type": "Prepend", "prepend": "▁"}]
        spec["normalizer"] = {"type": "Sequence", "normalizers": [*prepend, spaces]}
        spec["pre_tokenizer"] = None
    tokenizer = Tokenizer.from_str(json.dumps(spec))
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    tokenizer.decoder = decoders.Sequence(steps[:3] if scheme == "never" else steps)
    tokenizer.post_processor = processors.TemplateProcessing("<s> $A", special_tokens=[("<s>", 1)])
    return content(tokenizer)


def gemma3() -> dict[str, Any]:
    """Llama 2's without a space, a split at spaces, of which the normalizer leaves none, and runs as added tokens."""
    spec = llama2(scheme="never")
    vocabulary = spec["model"]["vocab"]
    flags = dict.fromkeys(("special", "single_word", "lstrip", "rstrip", "normalized"), False)
    for run in ("\n\n", "▁▁", "▁▁▁"):
        spec["added_tokens"].append(flags | {"content": run, "id": vocabulary.setdefault(run, len(vocabulary))})
    replace = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
    split = {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": False}
    return spec | {"normalizer": replace, "pre_tokenizer": split}


PIPELINES: dict[str, Callable[[], dict[str, Any]]] = {
    "llama 3": llama3,
    "qwen 2": qwen2,
    "olmo 2": olmo2,
    "smollm": smollm,
    "pythia": pythia,
    "llama 2": llama2,
    "llama 2 without a space": lambda: llama2(scheme="never"),
    "gemma 3": gemma3,
    "mistral": lambda: llama2(prepends=False),
    "mistral, a space after special tokens": lambda: llama2(prepends=False, scheme="always"),
    "mistral without a space": lambda: llama2(prepends=False, scheme="never"),
}
