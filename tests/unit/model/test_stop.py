"""Stop strings, half characters and end tokens: when text is released, and that it is never taken back."""

import random
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.models import ALPHABET, scripted_model, tiny_bpe
from model import SamplingSettings, Step
from model.generate import TextOut, generate
from model.tokenizer import BPETokenizer, CharTokenizer

CHARACTERS = CharTokenizer.train(ALPHABET)
BYTES = tiny_bpe(257)
WORDS = BPETokenizer.train(["aab aaab abab baab " * 20], 270)


def write(text: str, stop: object = (), end: str = "", length: int | None = None, bytewise: bool = False) -> list[Step]:
    """The steps of a model that writes ``text`` and then, where ``end`` is given, its end token."""
    tokenizer = BYTES if bytewise else CHARACTERS
    script = tokenizer.encode(text + end)
    eos = tokenizer.special_tokens["<|endoftext|>"] if bytewise else None
    loaded = scripted_model(script, tokenizer, eos_token_id=eos)
    return list(loaded.generate([5], length or len(script), temperature=0, stop=stop))


def texts(steps: list[Step]) -> list[str]:
    return [step.text for step in steps]


def test_the_scripted_model_writes_its_script() -> None:
    steps = write("Hello, world!\n")
    assert texts(steps) == list("Hello, world!\n")
    assert steps[-1].finish_reason == "length"


@pytest.mark.parametrize(
    ("text", "stop", "expected"),
    [
        ("one END two", "END", ["o", "n", "e", " ", "", "", ""]),  # split across tokens
        ("one END two", ["END"], ["o", "n", "e", " ", "", "", ""]),
        ("aaab", ["aab"], ["", "", "a", ""]),  # the beginning that fails may hold another beginning
        ("aabaaaba", ["aabb"], ["", "", "", "aab", "", "a", "", "aaba"]),
        ("ababac", ["abac"], ["", "", "", "ab", "", ""]),
        ("xyz", ["q", "yz", "z"], ["x", "", ""]),
        ("abcd", ["cd", "bcx"], ["a", "", "", "b"]),  # held back for one stop string, ended by the other
        ("abcx", ["bcd", "cx"], ["a", "", "", "b"]),
        ("stop", ["stop"], ["", "", "", ""]),  # the whole text, and its very end
        ("a stop", ["stop"], ["a", " ", "", "", "", ""]),
        ("a sto", ["stop"], ["a", " ", "", "", "sto"]),  # never completed, so released at the end
        ("a\n\nb", ["\n\n"], ["a", "", ""]),
        ("first", ["f"], [""]),
    ],
)
def test_stop_strings_end_the_text(text: str, stop: object, expected: list[str]) -> None:
    steps = write(text, stop)
    assert texts(steps) == expected
    ended_early = any(string in text for string in ([stop] if isinstance(stop, str) else stop))
    assert steps[-1].finish_reason == ("stop" if ended_early else "length")
    assert all(step.finish_reason is None for step in steps[:-1])


def test_a_stop_string_in_the_prompt_is_none_in_the_text() -> None:
    loaded = scripted_model(CHARACTERS.encode("bcd"), CHARACTERS)
    assert "".join(texts(list(loaded.generate("a", 3, temperature=0, stop="ab")))) == "bcd"


def test_a_stop_string_inside_one_token() -> None:
    """With merges one token holds the text before the stop string, the string, and text after it."""
    tokenizer = WORDS
    script = tokenizer.encode("aab aaab")
    assert max(len(tokenizer.decode([token_id])) for token_id in script) >= 3
    loaded = scripted_model(script, tokenizer)
    steps = list(loaded.generate([9], len(script), temperature=0, stop=["b a"]))
    assert "".join(texts(steps)) == "aa"
    assert steps[-1].finish_reason == "stop"


def test_emoji_is_emitted_whole() -> None:
    assert texts(write("a🙂b", bytewise=True)) == ["a", "", "", "", "🙂", "b"]
    family = "👩‍👧"
    steps = write(family, bytewise=True)
    assert [text for text in texts(steps) if text] == list(family)


def test_an_emoji_as_a_stop_string() -> None:
    steps = write("ab🙂c", stop=["🙂"], bytewise=True)
    assert texts(steps) == ["a", "b", "", "", "", ""]
    assert steps[-1].finish_reason == "stop"


@pytest.mark.parametrize("n_bytes", [1, 2, 3])
def test_half_a_character_at_the_end(n_bytes: int) -> None:
    """Cut by the length or by the end token, it becomes U+FFFD, as in ``decode``."""
    script = BYTES.encode("a🙂")[: 1 + n_bytes]
    for ids in (script, [*script, 0]):
        loaded = scripted_model(ids, BYTES, eos_token_id=0)
        steps = list(loaded.generate([5], len(ids), temperature=0))
        assert "".join(texts(steps)) == "a\ufffd" == BYTES.decode(script)
        assert texts(steps)[:-1] == (["a"] + [""] * len(ids))[: len(ids) - 1]
        assert steps[-1].finish_reason == ("stop" if ids[-1] == 0 else "length")


def test_u_fffd_may_complete_a_stop_string() -> None:
    script = BYTES.encode("ab🙂")[:4]
    steps = list(scripted_model(script, BYTES).generate([5], 4, temperature=0, stop=["b\ufffd"]))
    assert "".join(texts(steps)) == "a"
    assert steps[-1].finish_reason == "stop"


def test_broken_bytes_before_good_ones() -> None:
    script = BYTES.encode("🙂")[:2] + BYTES.encode("ok")
    steps = list(scripted_model(script, BYTES).generate([5], 4, temperature=0))
    assert texts(steps) == ["", "", "\ufffdo", "k"]


def test_the_end_token_ends_and_gives_no_text() -> None:
    steps = write("ab", end="<|endoftext|>", bytewise=True)
    assert texts(steps) == ["a", "b", ""]
    assert (steps[-1].token_id, steps[-1].finish_reason) == (0, "stop")
    held = write("ab", stop=["bc"], end="<|endoftext|>", bytewise=True)
    assert texts(held) == ["a", "", "b"]
    assert held[-1].finish_reason == "stop"


def test_special_tokens_that_do_not_end_a_text_are_part_of_it_only_where_they_are_to_be_shown() -> None:
    loaded = scripted_model(BYTES.encode("a<|endoftext|>b"), BYTES)
    steps = list(loaded.generate([5], 3, temperature=0))
    assert texts(steps) == ["a", "", "b"] and steps[1].token_id == 0
    request = loaded.request([5], 3, sampling=SamplingSettings(temperature=0), skip_special_tokens=False)
    assert texts(list(generate(loaded.gpt, loaded.begin(request)))) == ["a", "<|endoftext|>", "b"]


@pytest.mark.parametrize("stop", [[""], ["a", ""], "", [5], [None], [b"a"], [["a"]]])
def test_bad_stop_strings_are_refused(stop: object) -> None:
    loaded = scripted_model(CHARACTERS.encode("abc"), CHARACTERS)
    if stop == "":
        stop = [stop]
    with pytest.raises(ValueError, match="stop must hold strings of at least one character, found"):
        loaded.generate("a", 3, stop=stop)


def ends_at(text: str, boundaries: list[int], stop: list[str]) -> tuple[str, bool]:
    """The oracle: after each token, the first stop string in all the text so far ends it."""
    for boundary in boundaries:
        found = [text[:boundary].find(string) for string in stop if string in text[:boundary]]
        if found:
            return text[: min(found)], True
    return text, False


@settings(max_examples=400, deadline=None, derandomize=True)
@given(
    text=st.text(alphabet="ab c", max_size=25),
    stop=st.lists(st.text(alphabet="ab", min_size=1, max_size=4), max_size=3),
    merged=st.booleans(),
)
def test_streaming_equals_searching_the_whole_text(text: str, stop: list[str], merged: bool) -> None:
    tokenizer = WORDS if merged else CHARACTERS
    out, shown, ids = TextOut(tokenizer, stop), "", tokenizer.encode(text)
    boundaries = [len(tokenizer.decode(ids[: n + 1])) for n in range(len(ids))]
    expected, stopped = ends_at(text, boundaries, stop)
    for token_id, boundary in zip(ids, boundaries, strict=True):
        shown += out.release(out.stream.push(token_id))
        if out.stopped:
            break
        held = text[len(shown) : boundary]
        assert text.startswith(shown)
        # What is held back is the longest that might begin a stop string, and no more.
        ends = [n for string in stop for n in range(len(string)) if text[:boundary].endswith(string[:n])]
        assert len(held) == max(ends, default=0)
    assert out.stopped == stopped
    assert shown + out.finish() == expected


@settings(max_examples=200, deadline=None, derandomize=True)
@given(ids=st.lists(st.integers(0, 256), max_size=30), seed=st.integers(0, 5))
def test_any_bytes_join_to_their_decoding(ids: list[int], seed: int) -> None:
    stop = [] if seed else ["\x00\x01\x02\x03"]
    random.Random(seed).shuffle(ids)
    out = TextOut(BYTES, stop)
    pieces = [out.release(out.stream.push(token_id)) for token_id in ids]
    if not out.stopped:
        assert "".join(pieces) + out.finish() == BYTES.decode(ids)


def test_long_stop_strings_take_linear_time() -> None:
    """Twenty near misses of a string of 200,000 characters."""
    out, started = TextOut(CHARACTERS, ["a" * 200_000 + "b", "c" * 100_000]), time.process_time()
    text = ("a" * 200_000 + "c") * 20
    shown = "".join(out.release(text[i : i + 1000]) for i in range(0, len(text), 1000))
    assert shown + out.finish() == text and time.process_time() - started < 10


def write_on(text: str, bytewise: bool = False, **options: object) -> list[Step]:
    """The steps of a model that writes ``text``, with further options of a request."""
    tokenizer = BYTES if bytewise else CHARACTERS
    ids = tokenizer.encode(text)
    eos = tokenizer.special_tokens["<|endoftext|>"] if bytewise else None
    loaded = scripted_model(ids, tokenizer, eos_token_id=eos)
    request = loaded.request([5], len(ids), sampling=SamplingSettings(temperature=0), **options)  # type: ignore[arg-type]
    return list(generate(loaded.gpt, loaded.begin(request)))


def test_tokens_that_end_a_text_are_part_of_it() -> None:
    steps = write_on("abcabc", stop_token_ids=CHARACTERS.encode("zc"))
    assert "".join(texts(steps)) == "abc" and steps[-1].finish_reason == "stop"
    (end,) = BYTES.special_tokens.values()
    steps = write_on("ab<|endoftext|>c", bytewise=True, stop_token_ids=[end])
    assert "".join(texts(steps)) == "ab" and steps[-1].token_id == end  # unless they are special


def test_nothing_ends_a_text_before_it_has_so_many_tokens() -> None:
    ids = CHARACTERS.encode("c")
    for least, written in ((0, "abc"), (2, "abc"), (3, "abXabc")):
        steps = write_on("abcabc", stop_token_ids=ids, min_new_tokens=least)
        text = "".join(texts(steps))
        assert len(text) == len(written) and text.endswith("abc") and steps[-1].finish_reason == "stop"
        assert "c" not in text[:-1]  # another token is drawn in its place
    assert "".join(texts(write_on("abcabc", stop=["bc"], min_new_tokens=3))) == "abca"
    assert "".join(texts(write_on("abcabc", stop=["bc"], min_new_tokens=2))) == "abca"  # none that began too early
    assert "".join(texts(write_on("abcabc", stop=["bc"], min_new_tokens=1))) == "a"
    steps = write_on("ab<|endoftext|>cd", bytewise=True, min_new_tokens=4)
    assert len(steps) == 5 and steps[-1].finish_reason == "length"
