"""Rungs 1 and 2 as data: the sentence as tokens, as windows and as vectors."""

import string
from functools import lru_cache

import torch
from pydantic import Field

from model.ladder import (
    END_OF_TEXT,
    BytePairEncoding,
    CharacterTokenizer,
    LearnedMerge,
    WordTokenizer,
    learn_merges,
    sliding_windows,
    visible,
)
from model.ladder.bpe import Pair, Word, split_into_bytes
from model.ladder.text import split_words

from ..serving.served_models import ServedModels
from .lesson_request import SHOWN_WORDS, LessonRequest, TrainingText, check_sentence, check_training_text
from .sentence import counted, embedded_words, word_model

MAX_MERGES = 200  # the end of the slider
SHOWN_TOKENS = 60  # of a sentence; the total is shown too
STEP_CHARACTERS = 60  # of a sentence, for which merges are shown one by one
SHOWN_WINDOWS = 12
SHOWN_BATCHES = 6

# The 65 characters of tiny Shakespeare, in order.
ALPHABET = "\n !$&',-.3:;?" + string.ascii_uppercase + string.ascii_lowercase

TRAINING_TEXT = """The longest journey starts with one step, and the next step starts where the first one ends.
One traveller asked the other: where does your road end? It ends where you stop, said the other, and it starts with
the next step. The rain fell on the road, the rain fell on the river, and the two went on with their journey.
They walked through the morning, they rested in the shade, and they wrote down every word that they heard.
A word is a step, wrote one of them, and a sentence is a road. You read one word, then the next one, and you guess what
comes after it. The better you remember the words before, the better you guess the words after them."""


class TokensRequest(LessonRequest):
    training_text: TrainingText = ""  # if empty, the page's own
    merges: int = Field(60, ge=0, le=200)
    allow_end_of_text: bool = False  # whether <|endoftext|> in the sentence is a token of its own


class WindowsRequest(LessonRequest):
    context_length: int = Field(4, ge=1, le=SHOWN_WORDS)
    stride: int = Field(1, ge=1, le=SHOWN_WORDS)
    batch_size: int = Field(2, ge=1, le=8)
    shuffle: bool = False
    drop_last: bool = True
    seed: int = Field(1, ge=0, le=10**9)


def tokens(served: ServedModels, request: TokensRequest) -> dict[str, object]:
    """Rung 1: one sentence, split by three tokenizers, and by that of a model."""
    check_sentence(request.sentence)
    check_training_text(request.training_text)
    training_text = request.training_text if request.training_text.strip() else TRAINING_TEXT
    return {
        "training_text": training_text,
        "words": by_words(training_text, request.sentence),
        "characters": by_characters(request.sentence),
        "pairs": by_pairs(training_text, request),
        "model": by_model(served, request),
    }


def by_words(training_text: str, sentence: str) -> dict[str, object]:
    """The tokens of a vocabulary of words."""
    tokenizer = WordTokenizer(training_text)
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


def by_characters(sentence: str) -> dict[str, object]:
    """The sentence as characters of tiny Shakespeare, and a message if it has other characters."""
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
def learned(training_text: str) -> list[LearnedMerge]:
    """All merges up to the end of the slider; any smaller number of merges is a prefix of them."""
    return list(learn_merges(training_text, MAX_MERGES))


def by_pairs(training_text: str, request: TokensRequest) -> dict[str, object]:
    """The tokens of byte-pair encoding, with the merges that lead to them."""
    sentence, allowed = request.sentence, request.allow_end_of_text
    merges = learned(training_text)[: request.merges]
    tokenizer = BytePairEncoding(merge.pair for merge in merges)
    ids, beginning = tokenizer.encode(sentence, allow_end_of_text=allowed), sentence[:STEP_CHARACTERS]
    return {
        "vocab_size": len(tokenizer.tokens),
        "n": len(ids),
        "n_bytes": len(sentence.encode()),
        "n_start": len(BytePairEncoding([]).encode(sentence, allow_end_of_text=allowed)),
        "tokens": [{"text": visible(tokenizer.tokens[i]), "id": i, "known": True} for i in ids[:SHOWN_TOKENS]],
        "merges": [merged(pair) | {"occurrences": occurrences} for pair, occurrences in merges],
        "end_of_text": {
            "pieces": len(tokenizer.encode(END_OF_TEXT)),
            "id": tokenizer.end_of_text_id,
            "allowed": allowed,
        },
        "start": spelled(split_into_bytes(beginning)),
        "steps": [
            merged(step.pair) | {"rank": step.rank, "words": spelled(step.words)} for step in tokenizer.steps(beginning)
        ],
        "cut": len(sentence) > STEP_CHARACTERS,
    }


def by_model(served: ServedModels, request: TokensRequest) -> dict[str, object] | None:
    """The tokens of a model that was trained on byte pairs, None without one."""
    loaded = word_model(served, request.model)
    if loaded is None or loaded.tokenizer.kind != "bpe":
        return None
    tokenizer = loaded.tokenizer
    ids = tokenizer.encode_prompt(request.sentence)
    return {
        "name": loaded.name,
        "vocab_size": tokenizer.vocab_size,
        "n": len(ids),
        "tokens": [{"text": visible(tokenizer.token_bytes(i)), "id": i, "known": True} for i in ids[:SHOWN_TOKENS]],
    }


def merged(pair: Pair) -> dict[str, object]:
    """The printable tokens of a merge. Bytes that make up a character read otherwise once they are merged."""
    return {"pair": [visible(half) for half in pair], "merged": visible(b"".join(pair))}


def spelled(words: list[Word]) -> list[list[str]]:
    """Words as printable tokens."""
    return [[visible(token) for token in word] for word in words]


def windows(request: WindowsRequest) -> dict[str, object]:
    """Rung 2: the windows over the whole sentence, and the vectors of its first words."""
    check_sentence(request.sentence)
    all_words = split_words(request.sentence)
    words = all_words[:SHOWN_WORDS]
    ids, token, position, x = embedded_words(all_words)
    vocabulary = sorted(
        {word: int(i) for word, i in zip(all_words, ids, strict=True)}.items(), key=lambda entry: entry[1]
    )
    note = ""
    if len(all_words) > len(words):
        note = (
            f"Your sentence has {counted(all_words)}. The windows cover all of them; "
            f"the tables show the first {len(words)}."
        )
    data: dict[str, object] = {
        "words": words,
        "note": note,
        "n_words": len(all_words),
        "ids": ids[: len(words)].tolist(),
        "vocabulary": vocabulary[:SHOWN_TOKENS],
        "vocab_size": len(vocabulary),
        "token": token[: len(words)].tolist(),
        "position": position[: len(words)].tolist(),
        "x": x[: len(words)].tolist(),
        "context_length": request.context_length,
        "stride": request.stride,
    }
    if len(ids) < 2:
        return data | {"problem": "A window needs at least two tokens, an input and its target. Type another word."}
    context_length = min(request.context_length, len(ids) - 1)
    inputs, targets = sliding_windows(ids, context_length, request.stride)
    input_positions, target_positions = sliding_windows(torch.arange(len(ids)), context_length, request.stride)

    def shown(ids: torch.Tensor, positions: torch.Tensor) -> list[list[dict[str, object]]]:
        rows = zip(ids[:SHOWN_WINDOWS].tolist(), positions[:SHOWN_WINDOWS].tolist(), strict=True)
        return [[{"id": i, "text": all_words[at]} for i, at in zip(*row, strict=True)] for row in rows]

    batches, left_over = into_batches(len(inputs), request)
    return data | {
        "context_length": context_length,
        "n_windows": len(inputs),
        "sentence": all_words[: (SHOWN_WINDOWS - 1) * request.stride + context_length + 1],
        "batch_size": request.batch_size,
        "n_batches": len(batches),
        "batches": batches[:SHOWN_BATCHES],
        "left_over": left_over,
        "tensors": [
            {"inputs": inputs[batch].tolist(), "targets": targets[batch].tolist()} for batch in batches[:SHOWN_BATCHES]
        ],
        "windows": [
            {"inputs": window, "targets": shifted}
            for window, shifted in zip(shown(inputs, input_positions), shown(targets, target_positions), strict=True)
        ],
    }


def into_batches(n_windows: int, request: WindowsRequest) -> tuple[list[list[int]], int]:
    """The windows of each batch, in order or shuffled, and how many windows are left over if the last is dropped."""
    order = torch.arange(n_windows)
    if request.shuffle:
        order = torch.randperm(n_windows, generator=torch.Generator().manual_seed(request.seed))
    batches = [batch.tolist() for batch in order.split(request.batch_size)]
    left_over = n_windows % request.batch_size
    return (batches[:-1], left_over) if request.drop_last and left_over else (batches, 0)
