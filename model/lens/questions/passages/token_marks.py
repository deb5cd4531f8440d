"""What there is to say about a query and the key it looks at, from the text alone."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from ....tokenizer import Tokenizer, token_text

QUOTES = frozenset("\"'\u2018\u2019\u201c\u201d\u201e\u00ab\u00bb")  # straight, curly, low, angular


@dataclass(frozen=True)
class TokenMarks:
    """A text of ``N`` tokens, each tensor ``(N,)``: what kind of token each is, and in which word."""

    ids: Tensor
    word: Tensor  # which word it belongs to, counted from 1; white space counts to the word before it
    has_text: Tensor  # anything but white space
    line_break: Tensor
    line_start: Tensor  # the first token of the text or after a line break
    quote: Tensor
    capital: Tensor
    punctuation: Tensor


PATTERNS = (
    "itself",
    "previous_token",
    "same_token",
    "after_same_token",
    "same_word",
    "previous_word",
    "line_start",
    "line_break",
    "quote",
    "capital",
    "punctuation",
    "from_line_start",
)


def patterns(marks: TokenMarks, query: Tensor, key: Tensor) -> Tensor:
    """Which of ``PATTERNS`` each query and key, positions in the text ``(...)``, have: ``(..., len(PATTERNS))`` bool.

    - itself, previous_token: the key is the query, or the token before it;
    - same_token, after_same_token: it is an earlier occurrence of the query's token, or the token that followed one;
    - same_word, previous_word: it is an earlier token of the query's word, or in the word before;
    - line_start, line_break, quote, capital, punctuation: what the key is, whatever the query;
    - from_line_start: the query is the first token of its line, whatever the key.
    """
    earlier, words_back = key < query, marks.word[query] - marks.word[key]
    both_text = marks.has_text[query] & marks.has_text[key]
    same = marks.ids[query]
    found = {
        "itself": key == query,
        "previous_token": key == query - 1,
        "same_token": earlier & (marks.ids[key] == same),
        "after_same_token": earlier & (key > 0) & (marks.ids[(key - 1).clamp_min(0)] == same),
        "same_word": earlier & both_text & (words_back == 0),
        "previous_word": both_text & (words_back == 1),
        "line_start": marks.line_start[key],
        "line_break": marks.line_break[key],
        "quote": marks.quote[key],
        "capital": marks.capital[key],
        "punctuation": marks.punctuation[key],
        "from_line_start": marks.line_start[query],
    }
    return torch.stack([found[name] for name in PATTERNS], -1)


def mark_tokens(tokenizer: Tokenizer, ids: Sequence[int]) -> TokenMarks:
    """The marks of every token of a text."""
    tokens = torch.tensor(ids)
    known, place = tokens.unique(return_inverse=True)
    texts = [token_text(tokenizer, token_id) for token_id in known.tolist()]

    def mark(holds: Callable[[str], bool]) -> Tensor:
        return torch.tensor([holds(text) for text in texts])[place]

    has_text = mark(lambda text: not text.isspace() and text != "")
    opens, closes = mark(lambda text: text[:1].isspace()), mark(lambda text: text[-1:].isspace())
    line_break = mark(lambda text: "\n" in text)
    begins_word = has_text & (opens | F.pad(closes[:-1], (1, 0), value=True))
    return TokenMarks(
        ids=tokens,
        word=begins_word.cumsum(0),
        has_text=has_text,
        line_break=line_break,
        line_start=F.pad(line_break[:-1], (1, 0), value=True),
        quote=mark(lambda text: bool(text.strip()) and set(text.strip()) <= QUOTES),
        capital=mark(lambda text: text.strip()[:1].isupper()),
        punctuation=mark(lambda text: bool(text.strip()) and not any(map(str.isalnum, text))),
    )
