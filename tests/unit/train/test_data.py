"""Text to windows: nothing is lost, nothing counted twice."""

import hashlib
import itertools
from pathlib import Path

import pytest
import torch

from model.tokenizer import BPETokenizer, CharTokenizer
from model.train.data import (
    consecutive_batches,
    documents,
    encode,
    load_text,
    make_dataset,
    random_batch,
    read_text,
    train_tokenizer,
)

STORIES = "A cat sat.\nIt slept.\n<|endoftext|>\nA dog ran.\n<|endoftext|>\n"


def test_documents_are_cut_at_the_delimiter_lines() -> None:
    assert documents(STORIES) == ["A cat sat.\nIt slept.", "A dog ran."]
    assert documents("no delimiter\n") == ["no delimiter\n"]


def test_each_document_ends_with_the_end_of_text_token() -> None:
    tokenizer = BPETokenizer.train(documents(STORIES), 270)
    ids = encode(tokenizer, STORIES).tolist()
    end = tokenizer.special_tokens["<|endoftext|>"]
    assert ids.count(end) == 2 and ids[-1] == end
    assert tokenizer.decode(ids) == "A cat sat.\nIt slept.<|endoftext|>A dog ran.<|endoftext|>"


def test_a_character_vocabulary_reads_the_text_as_it_is() -> None:
    tokenizer = CharTokenizer.train(STORIES)
    assert tokenizer.decode(encode(tokenizer, STORIES).tolist()) == STORIES


def test_consecutive_windows_count_every_token_but_the_first_once() -> None:
    ids = torch.arange(103, dtype=torch.int32)
    inputs, targets = zip(*consecutive_batches(ids, batch_size=3, context_length=10), strict=True)
    assert torch.cat([x.flatten() for x in inputs]).tolist() == list(range(102))
    assert torch.cat([y.flatten() for y in targets]).tolist() == list(range(1, 103))
    assert inputs[-1].shape == (1, 2)


def test_random_windows_are_shifted_by_one_and_reach_both_ends() -> None:
    ids = torch.arange(12, dtype=torch.int32)
    inputs, targets = random_batch(ids, 500, 4, torch.Generator().manual_seed(0))
    assert torch.equal(inputs + 1, targets)
    assert inputs.min() == 0 and targets.max() == 11


@pytest.mark.parametrize("context_length", [7, 32])
def test_some_windows_are_random_tokens_repeated(context_length: int) -> None:
    ids = torch.arange(5000)
    inputs, targets = random_batch(ids, 10, context_length, torch.Generator().manual_seed(0), repeated=0.3)
    periods = []
    for i, (row, target) in enumerate(zip(inputs.tolist(), targets.tolist(), strict=True)):
        window = [*row, target[-1]]
        assert target == window[1:]
        if i >= 3:
            assert window == list(range(window[0], window[0] + context_length + 1))
            continue
        period = len(set(window))
        assert 2 * period <= context_length + 1
        assert window == [window[place % period] for place in range(context_length + 1)]
        assert period < 3 or any(b != a + 1 for a, b in itertools.pairwise(window[:period]))
        periods.append(period)
    assert context_length < 32 or len(set(periods)) > 1


def test_the_last_tenth_is_held_out(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("".join(chr(65 + i % 26) for i in range(1000)))
    train, validation, sha256 = load_text(tmp_path / "text", None)
    assert (len(train), len(validation)) == (900, 100)
    assert sha256 == hashlib.sha256((train + validation).encode()).hexdigest()


def test_a_validation_file_is_read_instead(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("aaa")
    (tmp_path / "b").write_text("bbb")
    assert load_text(tmp_path / "a", tmp_path / "b")[:2] == ("aaa", "bbb")
    assert train_tokenizer("char", "aaa", "bbb", 0).vocab_size == 2  # the held-out text can be read too


def test_validation_bytes_leave_out_the_delimiters() -> None:
    tokenizer = BPETokenizer.train(documents(STORIES), 270)
    data = make_dataset(tokenizer, STORIES * 4, STORIES, "", 8)
    assert data.validation_bytes == len("A cat sat.\nIt slept.A dog ran.")


def test_windows_and_newlines_are_kept_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(b"a\r\nb")
    assert read_text(tmp_path / "text") == "a\r\nb"


@pytest.mark.parametrize(("content", "words"), [(None, "no such file"), (b"", "empty"), (b"\xff\xfe", "not UTF-8")])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, content: bytes | None, words: str) -> None:
    path = tmp_path / "text"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ValueError, match=f"{path}.*{words}"):
        read_text(path)


def test_too_little_text_is_refused_with_both_numbers() -> None:
    with pytest.raises(ValueError, match="training text has 5 tokens, but at least 9"):
        make_dataset(CharTokenizer.train("abcde"), "abcde", "abc", "", 8)
