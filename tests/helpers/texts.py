"""The published texts and vocabulary, or, if they are missing, generated ones with the same file names and formats."""

import json
import os
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from model.tokenizer import BPETokenizer

from .models import ALPHABET, PROSE

VARIABLE = "HEADSCOPE_DATA"
N_MERGES = 50_000  # of GPT-2's vocabulary: with 256 bytes and <|endoftext|> it has 50,257 tokens
END_OF_TEXT = "<|endoftext|>"
Value = TypeVar("Value")

WORDS = (
    "the and to of you my that in is with not your his be but this as it have for he me so will what her no we are by "
    "him shall if do our come good now more love lord from sir or thou at thee they here would was let well she then "
    "there how go make had man their say know when why them us may must night day heart death king hand sweet time "
    "never speak house world light father poor eyes word friend brother noble fair live stand honour true away "
    "morning gentle cannot nothing heaven peace better blood name long mother great think before pray hear bear"
).split()
# 13 words and punctuation marks, 11 of them different.
MADE_VERDICT_SENTENCE = "Do you like the tea? In the palace, you do."
MADE_VERDICT_REPEATS = 40
MADE_VERDICT = " ".join([MADE_VERDICT_SENTENCE] * MADE_VERDICT_REPEATS)
# Ids in the sorted list , . ? Do In do like palace tea the you <|endoftext|> <|unk|> of ``published.TEA_TEXT``.
MADE_TEA_IDS = [12, 0, 5, 10, 6, 8, 2, 11, 4, 9, 12, 12, 12, 9, 7, 1]


@dataclass(frozen=True)
class Texts:
    """A folder with tinyshakespeare.txt, the-verdict.txt, tinystories-valid.txt and gpt2-vocab/."""

    folder: Path
    are_published: bool

    def expect(self, published: Value, made: Value) -> Value:
        """The expected value for these texts: published or generated."""
        return published if self.are_published else made

    def read(self, name: str) -> str:
        return (self.folder / f"{name}.txt").read_text(encoding="utf-8")

    @property
    def shakespeare(self) -> str:
        """A play in 65 different characters."""
        return self.read("tinyshakespeare")

    @property
    def verdict(self) -> str:
        return self.read("the-verdict")

    @property
    def encoder(self) -> Path:
        """The tokens of GPT-2's vocabulary with their ids, in JSON."""
        return self.folder / "gpt2-vocab" / "encoder.json"

    @property
    def merges(self) -> Path:
        """The merges of GPT-2's vocabulary, one per line below a heading."""
        return self.folder / "gpt2-vocab" / "vocab.bpe"

    def gpt2_spec(self) -> dict[str, Any]:
        """GPT-2's vocabulary as the content of a ``tokenizer.json``."""
        end = {"id": 256 + N_MERGES, "content": END_OF_TEXT, "special": True, "normalized": False}
        byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
        vocabulary = json.loads(self.encoder.read_text(encoding="utf-8"))
        merges = self.merges.read_text(encoding="utf-8").splitlines()[1:]
        return {
            "version": "1.0",
            "truncation": None,
            "padding": None,
            "added_tokens": [end | {"single_word": False, "lstrip": False, "rstrip": False}],
            "normalizer": None,
            "pre_tokenizer": byte_level,
            "post_processor": byte_level,
            "decoder": byte_level,
            "model": {"type": "BPE", "vocab": vocabulary, "merges": merges},
        }


def open_texts(folder: Path) -> Texts:
    """The published texts, or else generated ones, written to ``folder``."""
    if path := os.environ.get(VARIABLE):
        return Texts(Path(path), are_published=True)
    made = Texts(folder, are_published=False)
    play = made_play(n_characters=200_000)
    contents = {"tinyshakespeare": play, "the-verdict": MADE_VERDICT, "tinystories-valid": play[-20_000:]}
    for name, text in contents.items():
        (folder / f"{name}.txt").write_text(text, encoding="utf-8")
    made.encoder.parent.mkdir()
    write_vocabulary(made, play)
    return made


def made_play(n_characters: int) -> str:
    """Speeches of random words and names, with each character of ``ALPHABET``."""
    rng = random.Random(0)

    def name() -> str:
        return "".join(rng.choice("BCDFGHJKLMNPQRSTVWXYZ") + rng.choice("AEIOU") for _ in range(rng.randint(2, 3)))

    def line() -> str:
        words = [rng.choice(WORDS) for _ in range(rng.randint(4, 9))]
        words[rng.randrange(len(words))] = name().lower()
        words[rng.randrange(len(words))] = name().title()
        words[0] = words[0].title()
        return rng.choice([" ", " ", "'d ", ", ", "-", " & "]).join(words) + rng.choice(".!?:;,")

    parts = [ALPHABET]
    while sum(map(len, parts)) < n_characters:
        parts.append(f"\n\n{name()}:\n" + "\n".join(line() for _ in range(rng.randint(1, 6))))
    return "".join(parts)[:n_characters]


def write_vocabulary(texts: Texts, play: str) -> None:
    """As many merges as GPT-2 has: learned ones first, then pairs of bytes. The bytes are in GPT-2's order."""
    from transformers.convert_slow_tokenizer import bytes_to_unicode

    learned = BPETokenizer.train([PROSE * 3, play], 1_500).spec["model"]["merges"]
    characters = list(bytes_to_unicode().values())
    known = {"".join(merge) for merge in learned}
    pairs = [[one, other] for one in characters for other in characters if one + other not in known]
    merges = [*learned, *pairs][:N_MERGES]
    tokens = [*characters, *map("".join, merges), END_OF_TEXT]
    texts.encoder.write_text(json.dumps({token: i for i, token in enumerate(tokens)}), encoding="utf-8")
    texts.merges.write_text("\n".join(["#version: 0.2", *map(" ".join, merges), ""]), encoding="utf-8")
