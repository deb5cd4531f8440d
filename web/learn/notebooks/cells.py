"""What the notebooks run: one function per rung, whose body becomes a cell, with its parameters set in the cell above.

The definitions that they use are copied from the ladder (see ``copied_source.py``), except those
that this file defines.
"""

import hashlib
import json
import os
import re
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer
from torch import Tensor, nn

from model.ladder.averages import (
    attention_without_weights,
    average_by_loop,
    average_by_matrix,
    average_by_softmax,
    mask_future,
    naive_softmax,
    stable_softmax,
    sum_normalise,
)
from model.ladder.bigram import BigramTraining, rate
from model.ladder.block import block_by_ladder, linear, normalise
from model.ladder.bpe import BytePairEncoding, Word, learn_merges, visible
from model.ladder.induction import read_twice
from model.ladder.terms import causal_stages, embed_words, seeded
from model.ladder.text import CharacterTokenizer, WordTokenizer, sliding_windows, split_words
from model.ladder.trainable_attention import (
    CausalAttention,
    SelfAttentionV1,
    SelfAttentionV2,
    StackedHeads,
    WeightSplits,
    drop_weights,
    merge_heads,
    transfer_heads,
    transfer_weights,
)
from model.sampling import draw_tokens, probabilities, random_generator


def show(name: str, values: Tensor, rows: Sequence[str] = ()) -> None:
    """Print numbers to four decimal places, one line for each row, after its name if it has one."""
    print(name)
    lines = torch.atleast_2d(values.detach().float()).tolist()
    names = [row if row.isprintable() else repr(row) for row in rows] or [""] * len(lines)
    for row, line in zip(names, lines, strict=True):
        print(row.rjust(max(map(len, names))), " ".join(f"{value:9.4f}" for value in line))


def near(answer: object, expected: Tensor | float) -> bool:
    """Whether ``answer`` has the shape and the numbers of ``expected``, to four decimal places; None has not."""
    if answer is None:
        return False
    mine, right = torch.as_tensor(answer).float(), torch.as_tensor(expected).float()
    return mine.shape == right.shape and torch.allclose(mine, right, atol=1e-4)


# The words that byte pairs never cross. Each non-ASCII character is represented by an ASCII character of the same kind.
WORDS = re.compile(r"'(?:[sdmt]|ll|ve|re)| ?[A-Za-z]+| ?[0-9]+| ?[^\sA-Za-z0-9]+|\s+(?!\S)|\s+", re.ASCII)


def split_into_bytes(text: str) -> list[Word]:
    """The words of ``text`` as single bytes, as GPT-2's pattern splits them, by the standard library alone."""
    kinds = {"L": "a", "N": "0", "Z": "\t"}
    ascii_text = "".join(c if c.isascii() else kinds.get(unicodedata.category(c)[0], "!") for c in text)
    words = [text[found.start() : found.end()] for found in WORDS.finditer(ascii_text)]
    return [tuple(bytes([byte]) for byte in word.encode()) for word in words]


def make_linear(weight: Tensor, bias: Tensor | None) -> nn.Linear:
    """A linear layer with these parameters, ``(out, in)`` and ``(out,)``."""
    layer = nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None)
    layer.load_state_dict({"weight": weight} | ({} if bias is None else {"bias": bias}))
    return layer


def make_norm(weight: Tensor, bias: Tensor, eps: float) -> nn.LayerNorm:
    layer = nn.LayerNorm(len(weight), eps=eps)
    layer.load_state_dict({"weight": weight, "bias": bias})
    return layer


def make_block(tensors: dict[str, Tensor], config: dict[str, Any]) -> Any:
    """A block of a GPT-2 from its tensors, with matrices ``(in, out)`` as GPT-2 stores them."""

    def layer(name: str) -> nn.Linear:
        return make_linear(tensors[f"{name}.weight"].T, tensors.get(f"{name}.bias"))

    def norm(name: str) -> nn.LayerNorm:
        return make_norm(tensors[f"{name}.weight"], tensors[f"{name}.bias"], config["eps"])

    n_head, n_embd = config["n_head"], len(tensors["ln_1.weight"])
    attn = SimpleNamespace(
        c_attn=layer("attn.c_attn"), c_proj=layer("attn.c_proj"), n_head=n_head, scale=(n_embd // n_head) ** -0.5
    )
    mlp = SimpleNamespace(c_fc=layer("mlp.c_fc"), c_proj=layer("mlp.c_proj"), activation=config["activation"])
    return SimpleNamespace(attn=attn, mlp=mlp, ln_1=norm("ln_1"), ln_2=norm("ln_2"))


def open_gpt2(folder: str, file: str) -> Any:
    """The GPT-2 of a checkpoint folder, with the weights in ``file``, in float32."""
    with open(f"{folder}/config.json", encoding="utf-8") as opened:
        settings = json.load(opened)
    stored = {name.removeprefix("transformer."): t.float() for name, t in load_file(f"{folder}/{file}").items()}
    config = {
        "n_head": settings["n_head"],
        "eps": settings.get("layer_norm_epsilon", 1e-5),
        "activation": settings.get("activation_function", "gelu_new"),
    }

    def inside(prefix: str) -> dict[str, Tensor]:
        return {name.removeprefix(prefix): tensor for name, tensor in stored.items() if name.startswith(prefix)}

    return SimpleNamespace(
        wte=nn.Embedding.from_pretrained(stored["wte.weight"]),
        wpe=nn.Embedding.from_pretrained(stored["wpe.weight"]),
        h=[make_block(inside(f"h.{layer}."), config) for layer in range(settings["n_layer"])],
        ln_f=make_norm(stored["ln_f.weight"], stored["ln_f.bias"], config["eps"]),
        lm_head=make_linear(stored.get("lm_head.weight", stored["wte.weight"]), None),
    )


def fetch_model(server: str, folder: str, files: dict[str, str]) -> None:
    """Fetch the files that ``folder`` lacks from the server, and check the SHA-256 of all."""
    for file, sha256 in files.items():
        path = Path(folder, file)
        if not path.exists():
            key = os.environ.get("HEADSCOPE_KEY")  # only a server with a key asks for it
            try:
                with urlopen(
                    Request(f"{server}/{file}", headers={"Authorization": f"Bearer {key}"} if key else {})
                ) as got:
                    data = got.read()
            except HTTPError as error:
                if error.code != 401:
                    raise
                raise PermissionError(
                    f"{server} asks for a key. Run os.environ['HEADSCOPE_KEY'] = '...' with it, then this cell again."
                ) from None
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        found = hashlib.sha256(path.read_bytes()).hexdigest()
        if found != sha256:
            raise ValueError(
                f"{path} has the SHA-256 {found}, but the model's file has {sha256}. Delete it and try again."
            )


def tokens(sentence: str, training_text: str, alphabet: str, merges: int, allow_end_of_text: bool) -> None:
    """A sentence through three tokenizers: words, characters and byte pairs."""
    print("words", WordTokenizer(training_text).encode(sentence))
    try:
        print("characters", CharacterTokenizer(alphabet).encode(sentence))
    except ValueError as error:
        print("characters", error)
    learned = list(learn_merges(training_text, merges))
    pairs = BytePairEncoding(merge.pair for merge in learned)
    ids = pairs.encode(sentence, allow_end_of_text=allow_end_of_text)
    print("byte pairs", ids)
    print("as text", [visible(pairs.tokens[token_id]) for token_id in ids])
    for merge in learned[:12]:
        print("merge", *map(visible, merge.pair), merge.occurrences, "times")


def windows(sentence: str, context_length: int, stride: int) -> None:
    """Windows with their targets, and the vectors of the words: token plus position."""
    words = split_words(sentence)
    embedded = embed_words(words, 3)
    print("ids", embedded.ids.tolist())
    inputs, targets = sliding_windows(embedded.ids, min(context_length, len(embedded.ids) - 1), stride)
    for one, other in zip(inputs.tolist(), targets.tolist(), strict=True):
        print("inputs", one, "targets", other)
    show("Token embeddings", embedded.token, words)
    show("Position embeddings", embedded.position, words)
    show("Their sum", embedded.x, words)


def bigram(sentence: str, training_text: str, steps: int, learning_rate: float, seed: int) -> None:
    """A bigram model, trained on a text, and a sentence as its table rates it."""
    training = BigramTraining(training_text, steps, learning_rate, seed)
    before = training.begin()
    show("all characters equally likely", torch.tensor(before["uniform"]))
    show("the floor: counted pairs", torch.tensor(before["floor"]))
    show("untrained, on the training part", torch.tensor(before["loss"]))
    training.advance(float("inf"))
    after = training.end(sentence)
    show("trained, on the training part", torch.tensor(after["loss"]))
    if after["held_out"] is not None:
        show("trained, on the held-out tenth", torch.tensor(after["held_out"]))
    rated = [each for each in after["sentence"] if each["probability"]]
    if rated:
        p = torch.tensor([each["probability"] for each in rated])
        characters = [each["text"] for each in rated]
        show("each character of the sentence: probability, surprise", torch.stack([p, -p.log()], dim=1), characters)
        show("their mean surprise", -p.log().mean())
    print(after["wrote"])


def recorded_bigram(
    sentence: str, characters: list[str], frequent: list[str], losses: dict[str, float], table: list[list[float]]
) -> None:
    """The table that the page opens with, trained on tiny Shakespeare, and a sentence as it rates it."""
    # Training it takes 10,000 steps on a million characters: bench/lecture.py of Headscope has recorded these.
    show("The losses, as recorded", torch.tensor(list(losses.values()))[:, None], list(losses))
    places = [characters.index(character) for character in frequent]
    print("the most frequent characters:", *map(repr, frequent))
    show("the probability of each of them after each", torch.tensor(table)[places][:, places], frequent)
    rated = [each for each in rate(sentence, characters, table) if each["probability"]]
    if rated:
        p = torch.tensor([each["probability"] for each in rated])
        show(
            "each character of the sentence: probability, surprise",
            torch.stack([p, -p.log()], dim=1),
            [str(each["text"]) for each in rated],
        )
        show("their mean surprise", -p.log().mean())


def averages(sentence: str, words: list[str], x: Tensor, scores: Tensor) -> None:
    """The average of the past, three ways; the scores, if not all are 0, make it a weighted one."""
    print(sentence)
    show("Weights", average_by_matrix(torch.eye(len(x))), words)
    show("By a loop", average_by_loop(x), words)
    show("By a matrix product", average_by_matrix(x), words)
    show("Weights of the softmax", average_by_softmax(torch.eye(len(x)), scores), words)
    show("By a softmax", average_by_softmax(x, scores), words)


def self_attention(sentence: str, words: list[str], x: Tensor, factor: float) -> None:
    """Self-attention without weights."""
    print(sentence)
    scores, weights, context = attention_without_weights(x)
    show("Attention scores", scores, words)
    show("Plain normalisation", sum_normalise(scores), words)
    show("Attention weights", weights, words)
    show("Context vectors", context, words)
    show("Softmax by its definition", naive_softmax(scores * factor), words)
    show("Stable softmax", stable_softmax(scores * factor), words)


def trainable_weights(
    sentence: str,
    words: list[str],
    x: Tensor,
    W_query: Tensor,
    W_key: Tensor,
    W_value: Tensor,
    scale: float,
    is_swapped: bool,
) -> None:
    """Self-attention with trainable weights, and the same class with parameters and with linear layers."""
    print(sentence)
    query, key, value = x @ W_query, x @ W_key, x @ W_value
    show("Queries", query, words)
    show("Keys", key, words)
    show("Values", value, words)
    scores = key @ query.T if is_swapped else query @ key.T
    show("Attention scores", scores, words)
    weights = stable_softmax(scores * scale)
    show("Attention weights", weights, words)
    show("Context vectors", weights @ value, words)
    layers, parameters = seeded(789, lambda: SelfAttentionV2(3, 2)), seeded(123, lambda: SelfAttentionV1(3, 2))
    show("SelfAttentionV1, seed 123", parameters(x), words)
    show("SelfAttentionV2, seed 789", layers(x), words)
    transfer_weights(layers, parameters)
    show("SelfAttentionV1 with the weights of SelfAttentionV2", parameters(x), words)


def causal_masking(
    sentence: str,
    words: list[str],
    x: Tensor,
    W_query: Tensor,
    W_key: Tensor,
    mask: Tensor,
    factor: float,
    dropout: float,
    seed: int,
) -> None:
    """Masked attention two ways, dropout, and the class, whose mask is causal, on a batch."""
    print(sentence)
    scores = (x @ W_query * factor) @ (x @ W_key).T
    show("Attention scores", scores, words)
    stages = causal_stages(scores, W_key.shape[1] ** -0.5, mask)
    show("Masked scores", stages.masked, words)
    show("Weights without the mask", stages.all_weights, words)
    show("Attention weights", stages.weights, words)
    show("1b. The hidden ones set to 0", stages.cut, words)
    show("1b, divided by the sum of the rest", stages.renormalised, words)
    show("After dropout", drop_weights(stages.weights, dropout, torch.Generator().manual_seed(seed)), words)
    attention = seeded(123, lambda: CausalAttention(3, 2)).eval()
    show("Context vectors", attention(torch.stack([x, x]))[0], words)


def many_heads(sentence: str, words: list[str], x: Tensor, d_out: int) -> None:
    """Two heads, stacked and split from one projection, and an output projection."""
    print(sentence)
    stacked, splits = seeded(123, lambda: StackedHeads(3, 2, 2)), seeded(123, lambda: WeightSplits(3, 4, 2))
    transfer_heads(stacked, splits)
    attention = splits.attend(x)
    for head in range(2):
        show(f"Attention weights, head {head}", attention.weights[head], words)
        show(f"Values, head {head}", splits.project(x)[2][head], words)
    show("Context vectors", stacked(x), words)
    show("Weight splits", merge_heads(splits.attend(x).context), words)
    show("Output", splits(x), words)
    book = seeded(123, lambda: WeightSplits(3, d_out, 2))
    attention = book.attend(x)
    for head in range(2):
        show(f"Masked scores of head {head}, seed 123", mask_future(attention.scores[head]), words)
        show(f"Weights of head {head}, seed 123", attention.weights[head], words)
    show("Before the output projection", merge_heads(attention.context), words)
    show("After the output projection", book(x), words)


def block(
    sentence: str,
    words: list[str],
    x: Tensor,
    tensors: dict[str, Tensor],
    config: dict[str, Any],
    recorded_losses: dict[str, float],
) -> None:
    """A block on three numbers for each word, and the recorded losses of models with ever more parts of it."""
    print(sentence)
    stages = block_by_ladder(make_block(tensors, config), x)
    show("Layer norm", stages.normed, words)
    show("Attention weights, head 0", stages.weights[0], words)
    show("What attention adds", stages.attended, words)
    show("x + attention", stages.resid_mid, words)
    show("Layer norm again", stages.mlp_input, words)
    show("Hidden numbers", stages.hidden, words)
    show("After GELU", stages.activated, words)
    show("What the MLP adds", stages.mlp_output, words)
    show("... + MLP", stages.after, words)
    # Training these models takes minutes: bench/lecture.py of Headscope has recorded these.
    losses = torch.tensor(list(recorded_losses.values()))
    show("The loss ladder, as recorded", losses[:, None], list(recorded_losses))


def whole_model(
    folder: str,
    file: str,
    sentence: str,
    n_tokens: int,
    layer: int,
    head: int,
    query: int,
    temperature: float,
    top_k: int,
    top_p: float,
    seed: int,
    draws: int,
) -> None:
    """A trained model, from the tokens of a sentence to the probabilities of the next one, which is then drawn."""
    gpt = open_gpt2(folder, file)
    tokenizer = Tokenizer.from_file(f"{folder}/tokenizer.json")
    ids = tokenizer.encode(sentence, add_special_tokens=False).ids[:n_tokens]
    print("ids", ids)
    words = [tokenizer.decode([token_id], skip_special_tokens=False) for token_id in ids]
    x = gpt.wte(torch.tensor(ids)) + gpt.wpe.weight[: len(ids)]
    for i, each_block in enumerate(gpt.h):
        stages = block_by_ladder(each_block, x)
        if i == layer:
            show("Residual stream", stages.x[query])
            show(f"Attention weights of L{layer} H{head}", stages.weights[head], words)
            show("Context vector of the head", stages.context[head, query])
            show("Residual stream after the layer", stages.after[query])
        x = stages.after
    logits = linear(gpt.lm_head, normalise(gpt.ln_f, x[query]))
    shares = stable_softmax(logits)
    drawn_with = to_draw_with(logits, temperature, top_k, top_p)
    drawn = draw_tokens(drawn_with, random_generator(seed), draws)
    counts = torch.bincount(drawn, minlength=len(logits))
    for token_id in logits.argsort(descending=True)[:10].tolist():
        token = tokenizer.decode([token_id], skip_special_tokens=False)
        print(f"{token!r:12} logit {logits[token_id]:9.4f} probability {shares[token_id]:.4f}", end=" ")
        print(f"drawn with {drawn_with[token_id]:.4f}, {counts[token_id]} of {draws} draws")
    print("drawn first:", repr(tokenizer.decode([int(drawn[0])], skip_special_tokens=False)))
    if query + 1 < len(ids):
        show("surprise at the token that follows", -shares[ids[query + 1]].log())


def to_draw_with(logits: Tensor, temperature: float, top_k: int, top_p: float) -> Tensor:
    """The probabilities that the next token is drawn with."""
    settings: Any = SimpleNamespace(temperature=temperature, top_k=top_k, top_p=top_p, min_p=0, has_penalties=False)
    return probabilities(logits, settings)


def induction(
    sentence: str,
    words: list[str],
    phrase: list[int],
    folder: str,
    file: str,
    steps: dict[int, str],
    layer: int,
    head: int,
    fed_by: tuple[int, int] | None,
    muted: tuple[int, int] | None,
) -> None:
    """A phrase read twice: by each kept step of a training, and at one of them with all heads and without one."""
    print(sentence)
    curve = []
    for each in steps.values():
        read = read_twice(open_gpt2(folder, each), phrase)
        fed = [float(read.previous_token[fed_by])] if fed_by else []
        curve.append([float(read.induction[layer, head]), *fed, read.first_loss, read.second_loss])
    if curve:
        also = f", weight of L{fed_by[0]} H{fed_by[1]} on the token before" if fed_by else ""
        print(
            f"after each step: weight of L{layer} H{head} on what followed{also}, loss of the phrase, of its repetition"
        )
        show("How it formed", torch.tensor(curve), list(map(str, steps)))
    gpt = open_gpt2(folder, file)
    for without in [[], [muted]] if muted else [[]]:
        read = read_twice(gpt, phrase, without)
        print("without", without or "none")
        show("loss of each token but the first", read.losses[:, None], [*words[1:], *words])
        show(f"weight of L{layer} H{head} on what followed last time", read.induction[layer, head])
        show("loss of the phrase", torch.tensor(read.first_loss))
        show("loss of the repetition", torch.tensor(read.second_loss))
