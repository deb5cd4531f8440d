"""HTML files of traces: what they hold, how large they are, and what is refused."""

import html
import re
import runpy
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import model
from helpers.models import ALPHABET, max_difference, prompt_ids, tiny_bpe, tiny_config, tiny_model
from helpers.saved import content, numbers
from model.drawing import bundle, drawing, trace
from model.drawing.html import as_script_data
from model.drawing.weight_buffer import lower_triangle
from model.tokenizer import CharTokenizer
from model.view.__main__ import main

HOSTILE = "</script><!-- \"'& \u2028 \u2029 ]]> <img src=x onerror=alert(1)> \\u003c ${x}"


@pytest.fixture(scope="module")
def text() -> model.Trace:
    """The page's size: 48 heads over 256 tokens."""
    loaded = tiny_model(n_layer=6, n_head=8, n_embd=64, context_length=256)
    return loaded.trace(prompt_ids(256))


def test_weights_and_logits_are_those_of_the_trace(text: model.Trace) -> None:
    exact, half = content(text.html(exact=True)), content(text.html())
    weights = torch.stack([lower_triangle(head) for head in text.attention.flatten(0, 1)]).flatten().numpy()
    assert np.array_equal(numbers(exact["weights"], "<f4"), weights)
    narrow = numbers(half["weights"], "<f2").astype(np.float64) / 2**15
    assert np.all(np.abs(narrow - weights) <= np.maximum(weights * 2.0**-11, 2e-12))
    assert np.array_equal(numbers(half["logits"], "<f4"), text.logits.flatten().numpy())
    assert [half["vocabulary"][str(i)] for i in range(65)] == sorted(ALPHABET)
    assert (half["pointer"]["n_layer"], half["pointer"]["n_head"], half["pointer"]["tokens"]) == (6, 8, 256)


def test_size(text: model.Trace) -> None:
    assert len(text.html().encode()) <= 4.5e6
    assert len(text.html(exact=True).encode()) <= 10e6


def test_a_large_vocabulary_keeps_the_likeliest_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace, "MAX_LOGITS", 1_000)
    loaded = tiny_model(tokenizer=tiny_bpe(400))
    text = loaded.trace("It's a fine day")
    data, T = content(text.html()), len(text.tokens)
    assert "logits" not in data and "controls" not in data and data["vocab_size"] == 400
    ids, logprobs = numbers(data["likeliest"], "<i4").reshape(T, 101), numbers(data["logprobs"], "<f4").reshape(T, 101)
    expected = text.logits.double().log_softmax(-1).numpy()
    assert np.abs(np.take_along_axis(expected, ids, 1) - logprobs).max() < 1e-5
    assert all(set(row[:100]) == set(np.argsort(-every)[:100]) for row, every in zip(ids, expected, strict=True))
    assert ids[:-1, 100].tolist() == [token.id for token in text.tokens[1:]]
    assert data["vocabulary"] == {str(i): loaded.tokens([i])[0].text for i in np.unique(ids).tolist()}


def test_a_file_has_the_windows_of_layers() -> None:
    windowed = tiny_model(windows=(3, None))
    assert content(windowed.trace(prompt_ids(9)).html())["pointer"]["windows"] == [3, None]


def test_texts_are_data() -> None:
    tokenizer = CharTokenizer.train(HOSTILE + ALPHABET)
    loaded = tiny_model(tokenizer=tokenizer, context_length=128)
    loaded.name = "<b>\"'&</b>"
    document = loaded.trace(HOSTILE).html()
    assert document.count("</script") == 4 and "<b>" not in document and "<img" not in document
    assert "".join(content(document)["vocabulary"][str(i)] for i in tokenizer.encode(HOSTILE)) == HOSTILE
    assert content(document)["pointer"]["model"] == loaded.name
    assert "\u2028" not in as_script_data(HOSTILE) and "<" not in as_script_data(HOSTILE)
    frame = loaded.trace(HOSTILE)._repr_html_()
    assert frame is not None
    attributes = r'sandbox="allow-scripts allow-downloads" style="[^"]*" srcdoc="([^"]*)"'
    srcdoc = re.fullmatch(f"<iframe {attributes}></iframe>", frame)
    assert srcdoc and html.unescape(srcdoc[1]) == document


def test_a_file_connects_nowhere() -> None:
    document = tiny_model().trace("To be").html()
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', document)
    assert policy and policy[1].startswith("default-src 'none';")
    assert "http" not in policy[1] and "connect-src" not in policy[1] and "unsafe-eval" not in policy[1]
    assert not re.search(r'(?:src|href)="', document)
    assert "url(" not in bundle.style()


def test_a_model_can_be_imported_without_the_modules_of_the_page(tmp_path: Path) -> None:
    """They are missing where only the folder ``model`` was copied."""
    copied = tmp_path / "model" / "drawing" / "bundle.py"
    copied.parent.mkdir(parents=True)
    shutil.copy(bundle.__file__, copied)
    without = runpy.run_path(str(copied))
    with pytest.raises(FileNotFoundError, match="main.mjs"):
        without["script"]()


def test_repr_has_three_lines(text: model.Trace) -> None:
    lines = repr(text).splitlines()
    assert len(lines) == 3 and all(len(line) <= 120 for line in lines)
    assert "attention (6, 8, 256, 256)" in lines[1] and "to_html" in lines[2]


def test_what_a_notebook_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    text = tiny_model().trace("To be")
    with pytest.raises(RuntimeError, match="in a notebook; to_html"):
        text.show()
    shown: list[dict[str, str]] = []
    display = SimpleNamespace(display=lambda data, raw: shown.append(data) if raw else None)
    shell = SimpleNamespace(get_ipython=lambda: object(), display=display)
    monkeypatch.setitem(sys.modules, "IPython", shell)  # type: ignore[arg-type]
    text.show()
    assert shown == [{"text/html": text._repr_html_(), "text/plain": repr(text)}]
    monkeypatch.setattr(drawing, "MAX_SHOWN_BYTES", 100)
    assert text._repr_html_() is None and "are too many for a notebook" in repr(text)
    with pytest.raises(ValueError, match="are too many for a notebook: to_html"):
        text.show()


def test_a_trace_of_some_heads_is_not_drawn(tmp_path: Path) -> None:
    text = tiny_model().trace("To be", heads=[1])
    assert text._repr_html_() is None and "needs all layers and heads" in repr(text)
    with pytest.raises(ValueError, match="needs all layers and heads"):
        text.to_html(tmp_path / "text.html")
    assert not list(tmp_path.iterdir())


def test_a_written_text_is_drawn_with_its_prompt(tmp_path: Path) -> None:
    loaded = tiny_model()
    written = loaded.generate("To be", max_new_tokens=6, seed=1, temperature=0.5, record=True)
    first = next(written)
    assert repr(written).splitlines()[0] == "Text written by tiny, 1 token so far"
    found = written.trace()
    steps = list(loaded.generate("To be", max_new_tokens=6, seed=1, temperature=0.5, record=True))
    assert steps[0].token_id == first.token_id
    assert [token.id for token in found.tokens[5:]] == [step.token_id for step in steps]
    for step, row in zip(steps, range(4, 10), strict=True):
        assert step.attention is not None
        assert max_difference(step.attention, found.attention[:, :, row, : row + 1]) < 1e-5
    data = content(found.html())
    assert data["pointer"]["n_prompt"] == 5 and data["pointer"]["settings"]["temperature"] == 0.5
    assert written._repr_html_() == found._repr_html_()
    assert loaded.generate("To be", max_new_tokens=2)._repr_html_() is None  # its heads were not asked for
    written.to_html(tmp_path / "text.html")
    assert (tmp_path / "text.html").read_text(encoding="utf-8") == found.html()


def test_a_text_that_fills_the_context_is_drawn_without_the_token_that_is_never_read() -> None:
    loaded = tiny_model()
    written = loaded.generate(prompt_ids(tiny_config().context_length - 2), max_new_tokens=50, seed=1)
    assert len(written.trace().tokens) == tiny_config().context_length == len(written.ids) - 1


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    loaded, file = tiny_model(), tmp_path / "text.html"
    loaded.save(tmp_path / "tiny")
    assert main([str(tmp_path / "tiny"), "To be", str(file)]) == 0
    assert capsys.readouterr().out == f"{file}: {file.stat().st_size:,} bytes\n"
    assert content(file.read_text(encoding="utf-8"))["pointer"]["tokens"] == 5
    assert main([str(tmp_path / "tiny"), "To be", str(file), "--write", "3", "--exact"]) == 0
    data = content(file.read_text(encoding="utf-8"))
    assert (data["pointer"]["tokens"], data["pointer"]["n_prompt"], data["exact"]) == (8, 5, True)
    with pytest.raises(SystemExit) as ended:
        main([str(tmp_path / "tiny"), "", str(file)])
    assert ended.value.code == 2 and "model.view: " in capsys.readouterr().err
