"""Small models and vocabularies: random, seeded, with attention that is far from uniform."""

import copy
import re
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from model import GPTConfig, LoadedModel
from model.gpt import GPT
from model.tokenizer import BPETokenizer, CharTokenizer, Tokenizer

# 65 characters, as tiny Shakespeare has: newline, space, punctuation, letters.
ALPHABET = "\n !$&',-.3:;?ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
PROSE = (
    "It's a fine day, isn't it? They've 12 apples, 1,024 pears and 3 plums;\n\n  we'll   eat them\tall...   \n"
    "Café naïve über straße — “quoted” 日本語 テスト 🙂👩‍👩‍👧 \u00a0 x²+y²=z²\r\n    def f(x):\n        return x\n"
)


def tiny_config(**changes: Any) -> GPTConfig:
    """A GPT of 2 layers with 2 heads, 65 tokens and a context of 32, with ``changes``."""
    sizes = {"n_layer": 2, "n_head": 2, "n_embd": 16, "vocab_size": 65, "context_length": 32}
    return GPTConfig(**(sizes | changes))


def randomise(module: nn.Module, seed: int = 0, std: float = 0.3) -> None:
    """Give every parameter random values, including biases, and layer norms around 1."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator) * std
            parameter.copy_(noise + 1 if re.search("ln_|_norm", name) and name.endswith("weight") else noise)


def tiny_gpt(seed: int = 0, **changes: Any) -> GPT:
    """A random GPT in evaluation mode."""
    gpt = GPT(tiny_config(**changes))
    randomise(gpt, seed)
    return gpt.eval().requires_grad_(False)


def tiny_model(
    seed: int = 0, tokenizer: Tokenizer | None = None, eos_token_id: int | None = None, **changes: Any
) -> LoadedModel:
    """A random model, with 65 characters unless a ``tokenizer`` is given."""
    tokenizer = tokenizer or CharTokenizer.train(ALPHABET)
    gpt = tiny_gpt(seed, **({"vocab_size": tokenizer.vocab_size} | changes))
    return LoadedModel("tiny", gpt, tokenizer, bos_token_id=eos_token_id, eos_token_id=eos_token_id)


def tiny_bpe(vocab_size: int = 400) -> BPETokenizer:
    """A byte-level vocabulary learned from ``PROSE``."""
    return BPETokenizer.train([PROSE * 3, ALPHABET], vocab_size)


def last_probabilities(loaded: LoadedModel, text: str, muted: Sequence[tuple[int, ...]]) -> list[float]:
    """The probability of the last token of ``text``, with all heads and without those ``muted``."""
    mask = torch.ones(loaded.config.n_layer, loaded.config.n_head)
    for layer, head in muted:
        mask[layer, head] = 0
    ids = loaded.tokenizer.encode(text)
    return [float(loaded.trace(ids[:-1], head_mask=scales).logits[-1].softmax(-1)[ids[-1]]) for scales in (None, mask)]


def wide_alphabet(n_characters: int) -> str:
    """``n`` different characters, ``ALPHABET`` first."""
    return ALPHABET + "".join(chr(0x4E00 + i) for i in range(n_characters - len(ALPHABET)))


def char_spec(alphabet: str = ALPHABET) -> dict[str, Any]:
    """The content of a ``tokenizer.json`` for a character vocabulary, which a test may change."""
    return copy.deepcopy(CharTokenizer.train(alphabet).spec)


def prompt_ids(n_tokens: int, vocab_size: int = 65, seed: int = 0) -> list[int]:
    """Random token ids."""
    return torch.randint(vocab_size, (n_tokens,), generator=torch.Generator().manual_seed(seed)).tolist()


def batch(*shape: int, vocab_size: int = 65, seed: int = 0) -> Tensor:
    """Random token ids as a tensor."""
    return torch.randint(vocab_size, shape, generator=torch.Generator().manual_seed(seed))


def max_difference(one: Tensor, other: Tensor) -> float:
    assert one.shape == other.shape, (one.shape, other.shape)
    return float((one.double() - other.double()).abs().max())


def scripted_model(script: list[int], tokenizer: Tokenizer, eos_token_id: int | None = None) -> LoadedModel:
    """A model that writes ``script`` whatever it reads: after position ``p`` comes token ``script[p]``.

    The token embeddings are zero, so only the position reaches the head, which knows each position's next token.
    A prompt of one token is followed by the whole script.
    """
    n = max(len(script), 2)
    changes = {"n_layer": 1, "n_head": 1, "n_embd": n, "context_length": n, "tie_word_embeddings": False}
    loaded = tiny_model(tokenizer=tokenizer, eos_token_id=eos_token_id, **changes)
    gpt = loaded.gpt
    for name, parameter in gpt.named_parameters():
        parameter.fill_(1.0 if "ln_" in name and name.endswith("weight") else 0.0)
    gpt.wpe.weight.copy_(torch.eye(n))
    for position, token_id in enumerate(script):
        gpt.lm_head.weight[token_id, position] = 100.0
    return loaded


def logits_of(loaded: LoadedModel) -> Tensor:
    """The logits of twelve random tokens."""
    return loaded.trace(prompt_ids(12, loaded.config.vocab_size)).logits


def same_model(one: LoadedModel, other: LoadedModel) -> bool:
    """Assert that two models are equal: every weight bit for bit, the logits up to the order of sums."""
    if (one.config, one.tokenizer.spec, one.eos_token_id) != (other.config, other.tokenizer.spec, other.eos_token_id):
        return False
    weights = other.gpt.state_dict()
    equal = all(torch.equal(tensor, weights[name]) for name, tensor in one.gpt.state_dict().items())
    return equal and max_difference(logits_of(one), logits_of(other)) <= 1e-5
