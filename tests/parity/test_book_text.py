"""Rungs 1 to 3 of the ladder, text to bigram, compared with the published numbers.

Where the published texts are missing, generated ones are used, whose numbers follow from their construction or from
other code.
"""

import json
import math

import pytest
import torch
from tokenizers import Tokenizer as Library
from torch import Tensor, nn

from helpers.oracles import published
from helpers.oracles.published import assert_close
from helpers.texts import (
    MADE_TEA_IDS,
    MADE_VERDICT,
    MADE_VERDICT_REPEATS,
    Texts,
)
from model import ladder
from model.ladder.bpe import BYTE_TO_CHARACTER, gpt2_byte_alphabet


@pytest.fixture(scope="module")
def shakespeare(texts: Texts) -> tuple[ladder.CharacterTokenizer, Tensor]:
    text = texts.shakespeare
    tokenizer = ladder.CharacterTokenizer(text)
    return tokenizer, torch.tensor(tokenizer.encode(text))


@pytest.fixture(scope="module")
def gpt2(texts: Texts) -> ladder.BytePairEncoding:
    byte_of = {character: byte for byte, character in gpt2_byte_alphabet().items()}
    lines = texts.merges.read_text(encoding="utf-8").splitlines()
    pairs = [line.split(" ") for line in lines if line and not line.startswith("#version")]

    def token(spelled: str) -> bytes:
        return bytes(byte_of[character] for character in spelled)

    return ladder.BytePairEncoding((token(left), token(right)) for left, right in pairs)


@pytest.fixture(scope="module")
def verdict_ids(texts: Texts) -> list[int]:
    """The verdict in GPT-2's tokens, as the ``tokenizers`` library reads it."""
    return list(Library.from_str(json.dumps(texts.gpt2_spec())).encode(texts.verdict).ids)


def test_words_of_the_verdict(texts: Texts) -> None:
    tokenizer = ladder.WordTokenizer(texts.verdict)
    assert len(texts.verdict) == texts.expect(published.VERDICT_CHARACTERS, len(MADE_VERDICT))
    assert len(tokenizer.encode(texts.verdict)) == texts.expect(published.VERDICT_WORDS, 13 * MADE_VERDICT_REPEATS)
    assert len(tokenizer.words) == texts.expect(published.VERDICT_VOCABULARY, 11 + 2)
    assert tokenizer.encode(published.TEA_TEXT) == texts.expect(published.TEA_WORD_IDS, MADE_TEA_IDS)


def test_characters_of_shakespeare(shakespeare: tuple[ladder.CharacterTokenizer, Tensor], texts: Texts) -> None:
    tokenizer, ids = shakespeare
    assert (len(tokenizer.characters), len(ids)) == (65, texts.expect(1_115_394, 200_000))
    assert tokenizer.encode("Hi there!") == published.CHAR_ENCODED_HI_THERE
    assert ids[:9].tolist() == texts.expect(published.CHAR_FIRST_9, list(range(9)))
    assert tokenizer.decode(published.CHAR_FIRST_9) == "First Cit"


def test_byte_pairs_of_gpt2(gpt2: ladder.BytePairEncoding, verdict_ids: list[int], texts: Texts) -> None:
    encoder = json.loads(texts.encoder.read_text(encoding="utf-8"))
    names = ("".join(map(BYTE_TO_CHARACTER.__getitem__, token)) for token in gpt2.tokens)
    assert {name: token_id for token_id, name in enumerate(names)} == encoder
    ids = gpt2.encode(texts.verdict)
    assert ids == verdict_ids
    assert len(ids) == texts.expect(published.VERDICT_GPT2_IDS, len(verdict_ids))
    assert ids[:16] == texts.expect(published.VERDICT_FIRST_IDS, verdict_ids[:16])
    assert gpt2.decode(ids) == texts.verdict


def test_sliding_windows_of_the_verdict(verdict_ids: list[int], texts: Texts) -> None:
    ids = torch.tensor(verdict_ids)
    by_stride = {1: published.VERDICT_STRIDE_1_ROWS, 4: published.VERDICT_STRIDE_4_ROWS}
    for stride, rows in by_stride.items():
        inputs, targets = ladder.sliding_windows(ids, context_length=4, stride=stride)
        made = [verdict_ids[start : start + 4] for start in (0, stride, 2 * stride)]
        assert inputs[:3].tolist() == texts.expect(rows, made)
        assert torch.equal(inputs[:, 1:], targets[:, :-1])
    embedding = ladder.TokenAndPositionEmbedding(50257, 4, 256)
    assert embedding(inputs[:8]).shape == (8, 4, 256)


def test_random_batch_of_shakespeare(shakespeare: tuple[ladder.CharacterTokenizer, Tensor], texts: Texts) -> None:
    _, ids = shakespeare
    train = ids[: int(published.SPLIT * len(ids))]
    torch.manual_seed(1337)
    inputs, targets = ladder.random_batch(train, 4, 8)
    torch.manual_seed(1337)
    start = int(torch.randint(len(train) - 8, (4,))[0])
    made = (train[start : start + 8].tolist(), train[start + 1 : start + 9].tolist())
    assert (inputs[0].tolist(), targets[0].tolist()) == texts.expect((published.BATCH_X0, published.BATCH_Y0), made)
    torch.manual_seed(1337)
    loss = ladder.BigramModel(65).loss(inputs, targets)
    torch.manual_seed(1337)
    made_loss = nn.functional.cross_entropy(nn.Embedding(65, 65)(inputs).flatten(0, 1), targets.flatten()).item()
    assert_close(loss, texts.expect(published.BIGRAM_LOSS_UNTRAINED, made_loss))
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


@pytest.mark.slow
def test_bigram_of_shakespeare(shakespeare: tuple[ladder.CharacterTokenizer, Tensor], texts: Texts) -> None:
    tokenizer, ids = shakespeare
    train = ids[: int(published.SPLIT * len(ids))]
    torch.manual_seed(1337)
    model = ladder.BigramModel(65)
    losses = torch.tensor(list(ladder.train_bigram(model, train, steps=10_000)))
    floor = ladder.counted_bigram_loss(train, 65)
    assert losses[-500:].mean().item() == pytest.approx(texts.expect(published.BIGRAM_LOSS_TRAINED, floor), abs=0.03)
    with torch.inference_mode():
        loss = model.loss(train[None, :-1], train[None, 1:]).item()
        held_out = model.loss(ids[None, len(train) : -1], ids[None, len(train) + 1 :]).item()
    # Rung 3 of Learn gives this loss on the held-out tenth. All parts of the made play are alike.
    assert held_out == pytest.approx(texts.expect(2.486, loss), abs=texts.expect(0.005, 0.03))
    assert 0 < loss - floor < 0.05
    text = tokenizer.decode(model.generate(torch.zeros(1, 1, dtype=torch.long), 100)[0].tolist())
    assert len(text) == 101 and " " in text
