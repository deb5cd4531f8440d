"""The visitor's sentence as words and vectors: those of a book, of a trained model, or random ones."""

from dataclasses import dataclass

import torch
from torch import Tensor

from model import InputError, LoadedModel
from model.ladder import JOURNEY, SHINY
from model.ladder.averages import VECTOR_LENGTH, TrainedWords, trained_words
from model.ladder.terms import EmbeddedWords, embed_words
from model.ladder.text import split_words

from ..serving.served_models import ServedModels
from .lesson_request import MAX_VALUE, SHOWN_WORDS, LessonRequest, check_sentence

SIZE = 3  # numbers of a word
BOOKS = {"Raschka’s book": JOURNEY, "this example": SHINY}


@dataclass(frozen=True)
class Sentence:
    """The first words of a sentence with three numbers each, and the origin of these numbers."""

    words: list[str]
    x: Tensor  # (T, 3)
    vectors: str  # "book", "trained" or "random"
    origin: str  # in words
    reduced: str  # how trained numbers were made from embeddings, and how well they keep dot products, in words
    choices: list[str]  # which of the three there are for this sentence
    edited: int  # how many numbers the visitor has changed
    note: str

    @property
    def is_book(self) -> bool:
        return self.vectors == "book"

    @property
    def data(self) -> dict[str, object]:
        """The data about the sentence that every rung sends."""
        return {
            "words": self.words,
            "note": self.note,
            "x": self.x.tolist(),
            "vectors": self.vectors,
            "origin": self.origin,
            "reduced": self.reduced,
            "choices": self.choices,
            "edited": self.edited,
        }


def parse_sentence(served: ServedModels, request: LessonRequest) -> Sentence:
    """Split the sentence into words and assign their numbers. Raises ``InputError`` if it cannot be used."""
    check_sentence(request.sentence)
    all_words = split_words(request.sentence) or [request.sentence.strip()]
    notes = []
    book, left_out = book_of(all_words)
    words = list(BOOKS[book]) if book and request.vectors in ("auto", "book") else all_words[:SHOWN_WORDS]
    if book and left_out and words != all_words:
        name = book[0].upper() + book[1:]
        notes.append(f"{name} has no numbers for “{'”, “'.join(left_out)}”: the pictures leave it out.")
    elif len(all_words) > len(words):
        notes.append(f"Your sentence has {counted(all_words)}; the pictures show the first {len(words)}, "
                     f"up to “{words[-1]}”.")  # fmt: skip
    loaded = word_model(served, request.model)
    trained = trained_words(loaded, words) if loaded else None
    choices = [*(["book"] if book else []), *(["trained"] if trained is not None else []), "random"]
    vectors = request.vectors if request.vectors in choices else choices[0]
    reduced = ""
    if book and vectors == "book":
        x, origin = torch.tensor(list(BOOKS[book].values())), f"made-up numbers, those that {book} uses"
    elif trained is not None and loaded and vectors == "trained":
        x, origin = trained.x, f"trained: the token embeddings of {loaded.name}, reduced to {SIZE} numbers"
        reduced = (
            f"An embedding has {loaded.config.n_embd} numbers, averaged over the pieces of a word and scaled to length "
            f"{VECTOR_LENGTH}. The {SIZE} here keep the dot products best. {similarity_kept(trained, words)}"
        )
    else:
        x, origin = embedded_words(all_words).x[: len(words)], "random: the sums of rung 2 (seed 123)"
    x, edited = edit(x, request.x)
    return Sentence(words, x, vectors, origin, reduced, choices, edited, " ".join(notes))


def similarity_kept(trained: TrainedWords, words: list[str]) -> str:
    """How far the dot products of the three numbers are from those of the whole embeddings, in a sentence."""
    x, products = trained
    share = x.square().sum() / len(x) / VECTOR_LENGTH**2  # of the squared lengths
    here = x @ x.T
    off = (here - products).abs().fill_diagonal_(0)
    i, j = divmod(int(off.argmax()), len(words))
    if off[i, j] < 5e-4:
        return "Nothing is lost: all dot products are those of the whole embeddings."
    return (
        f"They keep {share:.0%} of the squared length, so words that match here need not match in the model: "
        f"“{words[i]}” · “{words[j]}”, which changes most, is {here[i, j]:.3f} here and "
        f"{products[i, j]:.3f} with all numbers."
    ).replace("-", "−")


def embedded_words(all_words: list[str]) -> EmbeddedWords:
    """Untrained embeddings of the words, as rung 2 shows them."""
    return embed_words(all_words, SIZE)


def book_of(words: list[str]) -> tuple[str, list[str]]:
    """The book that has this sentence, punctuation aside ("" for none), and the marks for which it has no numbers."""
    marks = [word for word in words if not any(character.isalnum() for character in word)]
    spoken = [word for word in words if word not in marks]
    return next((book for book, numbers in BOOKS.items() if spoken == list(numbers)), ""), marks


def counted(words: list[str]) -> str:
    """How many words there are, and how many of them are punctuation marks."""
    marks = sum(not any(character.isalnum() for character in word) for word in words)
    if not marks:
        return f"{len(words)} words"
    return f"{len(words)} tokens: {len(words) - marks} words and {marks} punctuation marks"


def word_model(served: ServedModels, name: str | None) -> LoadedModel | None:
    """The model whose embeddings stand for words: the one named unless it reads characters, else one that does not."""
    models = dict(served.models)
    by_pieces = {name: loaded for name, loaded in models.items() if loaded.tokenizer.kind == "bpe"}
    if name in by_pieces:
        return by_pieces[name]
    return next(iter(by_pieces.values()), models.get(name or "") or next(iter(models.values()), None))


def edit(x: Tensor, numbers: list[list[float]] | None) -> tuple[Tensor, int]:
    """``x`` with the visitor's changes, if any, and how many numbers differ."""
    if numbers is None:
        return x, 0
    if len(numbers) != len(x) or any(len(row) != x.shape[1] for row in numbers):
        raise InputError("x", f"x must be {len(x)} rows of {x.shape[1]} numbers")
    edited = torch.tensor(numbers)
    if not edited.isfinite().all() or edited.abs().max() > MAX_VALUE:
        raise InputError("x", f"every number must be from {-MAX_VALUE} to {MAX_VALUE}")
    return edited, int(((edited - x).abs() > 1e-6).sum())
