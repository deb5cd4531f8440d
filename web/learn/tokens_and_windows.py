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
from model.ladder.bpe import Word, split_into_bytes
from model.ladder.text import split_words

from .ask import Ask, check_lesson, check_sentence
from .sentence import read_sentence

MOST_MERGES = 200
SHOWN_TOKENS = 60  # of a sentence, beside which stands how many there are
STEP_CHARACTERS = 60  # of a sentence whose merges are shown one by one
SHOWN_WINDOWS = 12

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
    """Rung 2: inputs with their targets over the whole sentence, and the vectors of its first words."""
    sentence = read_sentence(ask.sentence)
    words, every = sentence.words, sentence.every
    ids, token, position, x = sentence.embedded
    vocabulary = sorted({word: int(i) for word, i in zip(every, ids, strict=True)}.items(), key=lambda entry: entry[1])
    note = ""
    if sentence.is_cut:
        note = (
            f"Your sentence has {len(every)} words: the windows run over all, the tables show the first {len(words)}."
        )
    data = {
        "words": words,
        "note": note,
        "n_words": len(every),
        "vocabulary": vocabulary[:SHOWN_TOKENS],
        "vocab_size": len(vocabulary),
        "token": token[: len(words)].tolist(),
        "position": position[: len(words)].tolist(),
        "x": x[: len(words)].tolist(),
        "context_length": ask.context_length,
        "stride": ask.stride,
    }
    if len(ids) < 2:
        return data | {"problem": "One token has no next one: a window needs at least two. Type another word."}
    context_length = min(ask.context_length, len(ids) - 1)
    inputs, targets = sliding_windows(ids, context_length, ask.stride)
    places, places_of_targets = sliding_windows(torch.arange(len(ids)), context_length, ask.stride)

    def shown(ids: torch.Tensor, places: torch.Tensor) -> list[list[dict[str, Any]]]:
        rows = zip(ids[:SHOWN_WINDOWS].tolist(), places[:SHOWN_WINDOWS].tolist(), strict=True)
        return [[{"id": i, "text": every[at]} for i, at in zip(*row, strict=True)] for row in rows]

    return data | {
        "context_length": context_length,
        "n_windows": len(inputs),
        "windows": [
            {"inputs": one, "targets": later}
            for one, later in zip(shown(inputs, places), shown(targets, places_of_targets), strict=True)
        ],
    }
