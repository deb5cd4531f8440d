"""Answers as tables: their labels, digits, captions and sentences."""

import re

import pytest
import torch

from helpers.models import tiny_model
from model.drawing.heat_map import Part, draw, in_digits

CELLS = {"large": 1.0, "small": 1 / 128}


def test_a_table_has_one_number_of_decimals() -> None:
    part = Part("heads", torch.tensor([[0.67, -9.29e-05], [0.1, float("nan")]]), ("n_layer", "n_head"))
    html = draw("Answer", "", [part])
    assert all(f">{shown}</td>" in html for shown in ("0.670", "0.000", "0.100", "nan"))
    assert in_digits(-1234.5) == "-1234.50" and in_digits(0.0000123) == "1.2e-5"


def test_what_is_too_large_for_a_table_shows_its_largest_numbers() -> None:
    values = torch.zeros(8, 1_000, 2)
    values[3, 17, 1] = -5
    html = draw("Answer", "", [Part("exact", values, ("layer", "neuron", "position"))], ["a", " b"])
    assert "the largest of 16,000" in html and ">L3 N17 ·b</td>" in html and html.count("<tr>") == 21


def test_tables_show_the_tokens() -> None:
    loaded = tiny_model()
    readings = loaded.logit_lens("To be")
    words = [loaded.tokenizer.decode([token_id]) for token_id in readings.ids[-1, :, 0].tolist()]
    html = readings._repr_html_()
    assert "most probable" in html and all(f"<td>{word}</td>" in html for word in words if word.isalnum())
    assert "<th>T</th><th>o</th>" in loaded.patch("To be", "No be")._repr_html_()
    decided = int(readings.decided[-1])
    assert f"<td style='white-space: nowrap'>after L{decided - 1}</td>" in html or (
        decided == 0 and ">embedded<" in html
    )
    compared = loaded.difference("To be", "No be")
    assert (
        re.search(r">e \(4\)<|>b \(3\)<|>· \(2\)<|>o \(1\)<", compared._repr_html_())
        and "> (" not in compared._repr_html_()
    )
    assert "other_tokens: ['N', 'o', ' ', 'b', 'e']" in repr(compared)
    assert "removed: {token: " in repr(loaded.head("To be", 0, 0))
    assert "<th>real</th>" in loaded.token_circuit(0, 0)._repr_html_()
    assert in_digits(0.00000164) == "1.6e-6" and in_digits(-0.00000164, 3) == "0.000"


def test_the_sentence_over_prompts_names_what_tells_something() -> None:
    loaded, texts = tiny_model(), ["To be", "or not"]
    readings = loaded.over_prompts("logit_lens", texts)
    assert "rows: answer " in readings.summary and "kl" not in readings.summary
    assert "tensor(" not in readings._repr_html_() and type(readings.rows[0]["decided"]) is int
    assert loaded.over_prompts("head", texts, layer=0, head=1).summary.startswith(
        "The means over 2 rows: weight 1.000; "
    )


def test_captions_have_code_where_a_help_has_backticks() -> None:
    html = draw("title", "", [Part("each", torch.ones(1, 1), (["<"], ["`x`"]), "Those of `<ids>`, `y`.")])
    assert "Those of <code>&lt;ids&gt;</code>, <code>y</code>." in html and "`x`" in html


def test_tables_of_one_family_share_colours_and_digits() -> None:
    tables = [Part(name, torch.tensor([[value]]), ("n_layer", "n_head"), family="f") for name, value in CELLS.items()]
    html = draw("title", "", tables)
    assert ">1.000</td>" in html and ">0.008</td>" in html and ", 0.70)" in html and ", 0.01)" in html
    html = draw("title", "", [part._replace(plain=1 / 128, family="") for part in tables])
    assert "background: rgba(40, 110, 220, 0.00)" in html and "background: rgba(210, 90, 40, 0.70)" in html


def test_paths_are_coloured_by_what_they_change() -> None:
    loaded = tiny_model()
    roles = loaded.role_paths(1, 0)
    parts = {part.name: part for part in roles.drawn()}
    for role, plain in roles.plain.items():
        assert parts[f"direct {role}"].plain == parts[f"every {role}"].plain == plain
    assert {part.family for part in parts.values() if part.axes} == {"paths"}
    assert {part.family for part in loaded.paths("To be", 1, 0).drawn() if part.axes} == {"paths"}
    patched = loaded.patch_paths("To be", "No be", 1, 0, answer="a", wrong="b")
    assert {part.family for part in patched.drawn() if part.axes} == {"", "restored"}
    most = max(
        abs(float(x))
        for ways in (patched.direct, patched.mlps, patched.every)
        for each in ways.values()
        for x in each.flatten()
    )
    said = patched.summary.rpartition(": ")[2].rstrip(".")
    assert abs(float(said)) == pytest.approx(most, rel=0.01)
    assert re.search(r" into [qkv] from L0 H[01]: ", patched.summary)
    assert "patch that changes" not in loaded.patch_paths("To be", "No be", 0, 0, answer="a", wrong="b").summary


def test_standard_errors_are_folded() -> None:
    html = tiny_model().over_prompts("knockout", ["To be", "or not"])._repr_html_()
    shown, folded = html.split("<details><summary>Standard errors</summary>")
    assert "mean delta" in shown and "standard error" not in shown and "standard error of delta" in folded
