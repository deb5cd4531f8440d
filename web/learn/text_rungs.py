"""Rungs 1 and 2 as data: the sentence as tokens, as windows and as vectors."""

import string
from functools import lru_cache
from typing import Any

import torch

from model.ladder import (
    BytePairEncoding,
    CharacterTokenizer,
    LearnedMerge,
    WordTokenizer,
    learn_merges,
    sliding_windows,
    visible,
)
from model.ladder_bpe import Word, split_into_bytes
from model.ladder_text import split_words

from .ask import Ask, check_lesson, check_sentence
from .sentence import read_sentence

MOST_MERGES = 200
SHOWN_TOKENS = 60  # of a sentence, beside which stands how many there are
STEP_CHARACTERS = 60  # of a sentence whose merges are shown one by one

# The 65 characters of tiny Shakespeare, in order.
ALPHABET = "\n !$&',-.3:;?" + string.ascii_uppercase + string.ascii_lowercase

LESSON = """The longest journey starts with one step, and the next step starts where the first one ends.
One traveller asked the other: where does your road end? It ends where you stop, said the other, and it starts with
the next step. The rain fell on the road, the rain fell on the river, and the two went on with their journey.
They walked through the morning, they rested in the shade, and they wrote down every word that they heard.
A word is a step, wrote one of them, and a sentence is a road. You read one word, then the next one, and you guess what
comes after it. The better you remember the words before, the better you guess the words behind them."""


def tokens(ask: Ask) -> dict[str, Any]:
    """Rung 1: one sentence through three tokenizers."""
    check_sentence(ask.sentence)
    check_lesson(ask.lesson)
    lesson = ask.lesson if ask.lesson.strip() else LESSON
    return {
        "lesson": lesson,
        "words": by_words(lesson, ask.sentence),
        "characters": by_characters(ask.sentence),
        "pairs": by_pairs(lesson, ask.sentence, ask.merges),
    }


def by_words(lesson: str, sentence: str) -> dict[str, Any]:
    tokenizer = WordTokenizer(lesson)
    ids, words = tokenizer.encode(sentence), split_words(sentence)
    return {
        "vocab_size": len(tokenizer.words),
        "n": len(ids),
        "tokens": [
            {"text": word, "id": token_id, "known": word in tokenizer.ids}
            for word, token_id in zip(words[:SHOWN_TOKENS], ids, strict=False)
        ],
        "decoded": tokenizer.decode(ids[:SHOWN_TOKENS]),
    }


def by_characters(sentence: str) -> dict[str, Any]:
    """The ids, or what the alphabet lacks; the characters stand there either way."""
    tokenizer = CharacterTokenizer(ALPHABET)
    problem = ""
    try:
        tokenizer.encode(sentence)
    except ValueError as error:
        problem = f"Refused: {error}."
    return {
        "vocab_size": len(tokenizer.characters),
        "n": len(sentence),
        "tokens": [
            {"text": c, "id": tokenizer.ids.get(c), "known": c in tokenizer.ids} for c in sentence[:SHOWN_TOKENS]
        ],
        "problem": problem,
    }


@lru_cache(maxsize=8)
def learned(lesson: str) -> list[LearnedMerge]:
    """All merges that the slider reaches: fewer are the first of them."""
    return list(learn_merges(lesson, MOST_MERGES))


def by_pairs(lesson: str, sentence: str, n_merges: int) -> dict[str, Any]:
    merges = learned(lesson)[:n_merges]
    tokenizer = BytePairEncoding(merge.pair for merge in merges)
    ids, beginning = tokenizer.encode(sentence), sentence[:STEP_CHARACTERS]
    return {
        "vocab_size": len(tokenizer.tokens),
        "n": len(ids),
        "n_bytes": len(sentence.encode()),
        "tokens": [{"text": visible(tokenizer.tokens[i]), "id": i, "known": True} for i in ids[:SHOWN_TOKENS]],
        "merges": [
            {"pair": [visible(half) for half in pair], "occurrences": occurrences} for pair, occurrences in merges
        ],
        "start": spelled(split_into_bytes(beginning)),
        "steps": [
            {"rank": step.rank, "pair": [visible(half) for half in step.pair], "words": spelled(step.words)}
            for step in tokenizer.steps(beginning)
        ],
        "cut": len(sentence) > STEP_CHARACTERS,
    }


def spelled(words: list[Word]) -> list[list[str]]:
    return [[visible(token) for token in word] for word in words]


def windows(ask: Ask) -> dict[str, Any]:
    """Rung 2: inputs with their targets, and the vectors that a model makes of the inputs."""
    sentence = read_sentence(ask.sentence)
    ids, token, position, x = sentence.embedded
    vocabulary = {word: int(i) for word, i in zip(sentence.words, ids, strict=True)}
    data = {
        "words": sentence.words,
        "note": sentence.note,
        "ids": ids.tolist(),
        "vocabulary": sorted(vocabulary.items(), key=lambda entry: entry[1]),
        "token": token.tolist(),
        "position": position.tolist(),
        "x": x.tolist(),
        "context_length": ask.context_length,
        "stride": ask.stride,
    }
    if len(ids) < 2:
        return data | {"problem": "One token has no next one: a window needs at least two. Type another word."}
    context_length = min(ask.context_length, len(ids) - 1)
    places = torch.arange(len(ids))
    inputs, targets = sliding_windows(ids, context_length, ask.stride)
    starts, _ = sliding_windows(places, context_length, ask.stride)
    return data | {
        "context_length": context_length,
        "starts": starts[:, 0].tolist(),
        "inputs": inputs.tolist(),
        "targets": targets.tolist(),
    }
