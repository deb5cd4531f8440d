"""Rungs 1 to 3 of the ladder, text to bigram: compared with results by hand, counts and tiktoken."""

import math

import pytest
import tiktoken
import torch

from model import ladder
from model.ladder.bpe import GPT2_WORD, gpt2_byte_alphabet
from model.tokenizer.byte_pair import byte_to_character

RHYME = "the cat in the hat, the rat in the vat"
ODD_TEXT = "Zoë's  naïve café —\n\n\t it's 1,024 🦊🦊!!   don't<|endoftext|>  "


# ---- Rung 1 ----------------------------------------------------------------------------------------------------------


def test_word_tokenizer() -> None:
    tokenizer = ladder.WordTokenizer("the cat, the hat -- a cat?")
    assert tokenizer.words == [",", "--", "?", "a", "cat", "hat", "the", "<|endoftext|>", "<|unk|>"]
    ids = tokenizer.encode("the dog, a cat? <|endoftext|>")
    assert ids == [6, 8, 0, 3, 4, 2, 7]
    assert tokenizer.decode(ids) == "the <|unk|>, a cat? <|endoftext|>"
    with pytest.raises(ValueError, match="token ids must be from 0 to 8, found 9"):
        tokenizer.decode([9])


def test_character_tokenizer() -> None:
    tokenizer = ladder.CharacterTokenizer("hello\n")
    assert tokenizer.characters == ["\n", "e", "h", "l", "o"]
    assert tokenizer.decode(tokenizer.encode("hole\n")) == "hole\n"
    with pytest.raises(ValueError, match="vocabulary of 5 characters lacks 'x', 'é'"):
        tokenizer.encode("exéx")
    with pytest.raises(ValueError, match="token ids must be from 0 to 4, found -1"):
        tokenizer.decode([-1])


def test_merges_are_learned_most_frequent_first() -> None:
    merges = list(ladder.learn_merges(RHYME, 20))
    assert [(b"".join(merge.pair).decode(), merge.occurrences) for merge in merges] == [
        *[("th", 4), ("the", 4), ("at", 4), (" the", 3), (" i", 2), (" in", 2)]
    ]
    assert list(ladder.learn_merges(RHYME, 2)) == merges[:2]
    assert list(ladder.learn_merges("", 5)) == []
    with pytest.raises(ValueError, match="n_merges must be an integer from 0 to .*, found -1"):
        next(ladder.learn_merges(RHYME, -1))


def test_a_byte_that_is_only_a_part_of_a_character_is_shown_by_its_number() -> None:
    found = [ladder.visible(token) for token in (b" the", "ü".encode(), "ü".encode()[:1], b"a\xbc\n", b"\x7f")]
    assert found == ["Ġthe", "ü", "<0xC3>", "a<0xBC>Ċ", "ġ"]


def test_merge_steps_show_the_way_to_the_tokens() -> None:
    tokenizer = ladder.BytePairEncoding.learn(RHYME, 3)
    shown = [
        " ".join("|".join(map(ladder.visible, word)) for word in step.words) for step in tokenizer.steps("that the")
    ]
    assert shown == ["th|a|t Ġ|th|e", "th|a|t Ġ|the", "th|at Ġ|the"]
    assert [step.rank for step in tokenizer.steps("that the")] == [0, 1, 2]
    assert list(tokenizer.steps("dog")) == []
    assert tokenizer.encode("that the") == [256, 258, tokenizer.ids[b" "], 257]


def test_a_merge_proceeds_from_the_left_without_overlaps() -> None:
    tokenizer = ladder.BytePairEncoding([(b"a", b"a")])
    assert [tokenizer.tokens[token_id] for token_id in tokenizer.encode("aaaaa")] == [b"aa", b"aa", b"a"]


def test_merges_that_spell_the_same_token_share_its_id() -> None:
    tokenizer = ladder.BytePairEncoding([(b"a", b"b"), (b"b", b"c"), (b"ab", b"c"), (b"a", b"bc")])
    assert tokenizer.tokens[256:] == [b"ab", b"bc", b"abc", b"<|endoftext|>"]


@pytest.mark.parametrize("text", ["", RHYME, ODD_TEXT])
def test_byte_pairs_agree_with_tiktoken(text: str) -> None:
    tokenizer = ladder.BytePairEncoding.learn(RHYME + ODD_TEXT, 40)
    oracle = tiktoken.Encoding(
        "learned",
        pat_str=GPT2_WORD.pattern,
        mergeable_ranks=tokenizer.ids,
        special_tokens={ladder.END_OF_TEXT: tokenizer.end_of_text_id},
    )
    assert tokenizer.encode(text) == oracle.encode_ordinary(text)
    assert tokenizer.encode(text, allow_end_of_text=True) == oracle.encode(text, allowed_special="all")
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_byte_pairs_refuse_bad_input() -> None:
    tokenizer = ladder.BytePairEncoding([(b" ", b"t"), (b" t", b"h")])
    assert tokenizer.decode(tokenizer.encode("é")[:1]) == "\N{REPLACEMENT CHARACTER}"
    with pytest.raises(ValueError, match="token ids must be from 0 to 258, found 259"):
        tokenizer.decode([259])


# ---- Rung 2 ----------------------------------------------------------------------------------------------------------


def test_sliding_windows_shift_targets_by_one() -> None:
    inputs, targets = ladder.sliding_windows(torch.arange(10), context_length=4, stride=3)
    assert inputs.tolist() == [[0, 1, 2, 3], [3, 4, 5, 6]]
    assert targets.tolist() == [[1, 2, 3, 4], [4, 5, 6, 7]]
    assert len(ladder.sliding_windows(torch.arange(10), context_length=9, stride=1)[0]) == 1
    with pytest.raises(ValueError, match="context_length must be an integer from 1 to 9, found 10"):
        ladder.sliding_windows(torch.arange(10), context_length=10, stride=1)
    with pytest.raises(ValueError, match="stride must be an integer from 1 to .*, found 0"):
        ladder.sliding_windows(torch.arange(10), context_length=4, stride=0)
    with pytest.raises(ValueError, match=r"one row of at least 2, found shape \(1,\)"):
        ladder.sliding_windows(torch.tensor([1]), context_length=1, stride=1)


def test_random_batch_reaches_both_ends() -> None:
    generator = torch.Generator().manual_seed(1)
    inputs, targets = ladder.random_batch(torch.arange(5), 5, 3, generator)
    assert torch.equal(targets, inputs + 1)
    assert sorted(set(inputs[:, 0].tolist())) == [0, 1]
    with pytest.raises(ValueError, match="context_length must be an integer from 1 to 4, found 5"):
        ladder.random_batch(torch.arange(5), 1, 5)
    with pytest.raises(ValueError, match="batch_size must be an integer from 1 to .*, found 0"):
        ladder.random_batch(torch.arange(5), 0, 3)


# ---- Rung 3 ----------------------------------------------------------------------------------------------------------


def test_bigram_learns_to_count() -> None:
    ids = torch.tensor([0, 1, 0, 2] * 50 + [0])
    floor = ladder.counted_bigram_loss(ids, 3)
    assert floor == pytest.approx(math.log(2) / 2)  # after 0 a fair coin, after 1 and 2 no doubt
    assert ladder.counted_bigram_loss(ids, 4) == floor  # an id that never occurs adds nothing
    torch.manual_seed(0)
    model = ladder.BigramModel(3)
    losses = list(ladder.train_bigram(model, ids, steps=300, learning_rate=0.05))
    assert losses[0] > 2 * floor
    assert floor <= model.loss(ids[None, :-1], ids[None, 1:]).item() < floor + 0.02
    texts = [model.generate(torch.tensor([[1]]), 20, torch.Generator().manual_seed(5)) for _ in range(2)]
    assert torch.equal(*texts) and texts[0].shape == (1, 21)
    assert set(texts[0][0, 1::2].tolist()) == {0}


def test_bigram_refuses_bad_input() -> None:
    model = ladder.BigramModel(3)
    with pytest.raises(ValueError, match="token ids must be from 0 to 2, found 1 to 3"):
        model(torch.tensor([[1, 3]]))
    with pytest.raises(ValueError, match="token ids must be from 0 to 2, found -1 to 1"):
        ladder.counted_bigram_loss(torch.tensor([1, -1]), 3)


def test_the_rung_spells_bytes_as_the_tokenizer_does() -> None:
    assert gpt2_byte_alphabet() == byte_to_character()
