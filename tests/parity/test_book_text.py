"""Rungs 1 to 3 of the ladder, text to bigram, against the published numbers."""

import json
import math
from pathlib import Path

import pytest
import torch
from torch import Tensor

from helpers.oracles import published
from helpers.oracles.published import assert_close
from model import ladder


@pytest.fixture(scope="module")
def shakespeare(data_dir: Path) -> tuple[ladder.CharacterTokenizer, Tensor]:
    text = (data_dir / "tinyshakespeare.txt").read_text()
    tokenizer = ladder.CharacterTokenizer(text)
    return tokenizer, torch.tensor(tokenizer.encode(text))


@pytest.fixture(scope="module")
def verdict(data_dir: Path) -> str:
    return (data_dir / "the-verdict.txt").read_text()


@pytest.fixture(scope="module")
def gpt2(data_dir: Path) -> ladder.BytePairEncoding:
    return ladder.BytePairEncoding.from_gpt2((data_dir / "gpt2-vocab" / "vocab.bpe").read_text(encoding="utf-8"))


def test_words_of_the_verdict(verdict: str) -> None:
    tokenizer = ladder.WordTokenizer(verdict)
    assert len(verdict) == published.VERDICT_CHARACTERS
    assert len(tokenizer.encode(verdict)) == published.VERDICT_WORDS
    assert len(tokenizer.words) == published.VERDICT_VOCABULARY
    assert tokenizer.encode(published.TEA_TEXT) == published.TEA_WORD_IDS


def test_characters_of_shakespeare(shakespeare: tuple[ladder.CharacterTokenizer, Tensor]) -> None:
    tokenizer, ids = shakespeare
    assert (len(tokenizer.characters), len(ids)) == (65, 1_115_394)
    assert tokenizer.encode("Hi there!") == published.CHAR_ENCODED_HI_THERE
    assert ids[:9].tolist() == published.CHAR_FIRST_9
    assert tokenizer.decode(published.CHAR_FIRST_9) == "First Cit"


def test_byte_pairs_of_gpt2(gpt2: ladder.BytePairEncoding, verdict: str, data_dir: Path) -> None:
    encoder = json.loads((data_dir / "gpt2-vocab" / "encoder.json").read_text(encoding="utf-8"))
    assert {ladder.visible(token): token_id for token_id, token in enumerate(gpt2.tokens)} == encoder
    ids = gpt2.encode(verdict)
    assert len(ids) == published.VERDICT_GPT2_IDS
    assert ids[:16] == published.VERDICT_FIRST_IDS
    assert gpt2.decode(ids) == verdict


def test_sliding_windows_of_the_verdict(gpt2: ladder.BytePairEncoding, verdict: str) -> None:
    ids = torch.tensor(gpt2.encode(verdict))
    for stride, rows in ((1, published.VERDICT_STRIDE_1_ROWS), (4, published.VERDICT_STRIDE_4_ROWS)):
        inputs, targets = ladder.sliding_windows(ids, context_length=4, stride=stride)
        assert inputs[:3].tolist() == rows
        assert torch.equal(inputs[:, 1:], targets[:, :-1])
    embedding = ladder.TokenAndPositionEmbedding(50257, 4, 256)
    assert embedding(inputs[:8]).shape == (8, 4, 256)


def test_random_batch_of_shakespeare(shakespeare: tuple[ladder.CharacterTokenizer, Tensor]) -> None:
    _, ids = shakespeare
    train = ids[: int(published.SPLIT * len(ids))]
    torch.manual_seed(1337)
    inputs, targets = ladder.random_batch(train, 4, 8)
    assert (inputs[0].tolist(), targets[0].tolist()) == (published.BATCH_X0, published.BATCH_Y0)
    torch.manual_seed(1337)
    loss = ladder.BigramModel(65).loss(inputs, targets)
    assert_close(loss, published.BIGRAM_LOSS_UNTRAINED)
    assert loss > math.log(65)


def test_token_and_position_embedding() -> None:
    torch.manual_seed(123)
    embedding = ladder.TokenAndPositionEmbedding(6, 4, 3)
    assert_close(embedding.token.weight[3], published.EMBEDDING_ROW_3)
    out = embedding(torch.tensor([[3, 3], [2, 3]]))
    assert_close(out[0, 1] - out[0, 0], embedding.position.weight[1] - embedding.position.weight[0])
    assert torch.equal(out[0, 1], out[1, 1])
    with pytest.raises(ValueError, match="context_length is 4 tokens, found 5"):
        embedding(torch.zeros(1, 5, dtype=torch.long))
    with pytest.raises(ValueError, match="token ids must be from 0 to 5, found 0 to 6"):
        embedding(torch.tensor([[0, 6]]))


def test_bigram_of_shakespeare(shakespeare: tuple[ladder.CharacterTokenizer, Tensor]) -> None:
    tokenizer, ids = shakespeare
    train = ids[: int(published.SPLIT * len(ids))]
    torch.manual_seed(1337)
    model = ladder.BigramModel(65)
    losses = torch.tensor(list(ladder.train_bigram(model, train, steps=10_000)))
    assert losses[-500:].mean().item() == pytest.approx(published.BIGRAM_LOSS_TRAINED, abs=0.03)
    with torch.inference_mode():
        loss = model.loss(train[None, :-1], train[None, 1:]).item()
        held_out = model.loss(ids[None, len(train) : -1], ids[None, len(train) + 1 :]).item()
    assert held_out == pytest.approx(2.486, abs=0.005)  # what rung 3 of Learn says of the held-out tenth
    assert 0 < loss - ladder.counted_bigram_loss(train, 65) < 0.05
    text = tokenizer.decode(model.generate(torch.zeros(1, 1, dtype=torch.long), 100)[0].tolist())
    assert len(text) == 101 and " " in text
