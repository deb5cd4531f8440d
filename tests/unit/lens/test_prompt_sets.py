"""The sets of prompts that come with the page, on the model that they were written for."""

import json
from typing import Any

import pytest
import torch

import model
from helpers.files import ROOT
from helpers.models import tiny_model
from model import LoadedModel
from model.lens.interventions.patching import patch_site
from model.lens.text_pass import TextPass

SETS: dict[str, list[dict[str, str]]] = {
    each["key"]: each["rows"]
    for each in json.loads((ROOT / "web/js/look/ask/prompts/prompt_sets.json").read_text(encoding="utf-8"))
}


@pytest.fixture(scope="module")
def stories() -> LoadedModel:
    return model.load(ROOT / "checkpoints" / "stories-bpe", device="cpu", dtype="float32")


@pytest.mark.parametrize("key", SETS)
def test_rows_are_pairs_with_single_answers(stories: LoadedModel, key: str) -> None:
    encode = stories.tokenizer.encode
    assert len(SETS[key]) == 24 and len({row["prompt"] + row["corrupted"] for row in SETS[key]}) == 24
    for row in SETS[key]:
        assert len(encode(row["prompt"])) == len(encode(row["corrupted"]))
        assert row["prompt"] != row["corrupted"] and row["answer"] != row["wrong"]
        assert len(encode(row["answer"])) == len(encode(row["wrong"])) == 1


@pytest.mark.slow
def test_names_are_carried_by_the_heads_that_copy_them(stories: LoadedModel) -> None:
    encode, restored = stories.tokenizer.encode, list[torch.Tensor]()
    for row in SETS["names"][::4]:
        texts = [TextPass(stories.gpt, encode(row[name])) for name in ("prompt", "corrupted")]
        given: dict[str, Any] = {name: encode(row[name])[0] for name in ("answer", "wrong")}
        found = patch_site(*texts, **given, site="z", positions="all")
        assert found.clean > 0 > found.corrupted and found.exact is not None
        restored.append(found.exact)
    best = torch.stack(restored).mean(0).flatten().argsort(descending=True)[:3].tolist()
    assert {divmod(int(index), 8) for index in best} == {(6, 0), (7, 6), (5, 6)}


def test_rows_of_one_template_are_averaged_position_by_position() -> None:
    loaded = tiny_model()
    rows = [
        {"prompt": "To be", "corrupted": "No be", "answer": "a", "wrong": "b"},
        {"prompt": "or it", "corrupted": "or be", "answer": "c", "wrong": "d"},
    ]
    found = loaded.over_prompts("patch_site", rows, site="z", positions="each")
    each = [
        loaded.patch_site(row["prompt"], row["corrupted"], "z", answer=row["answer"], wrong=row["wrong"])
        for row in rows
    ]
    assert found.mean["exact"].shape == each[0].exact.shape
    assert torch.allclose(found.mean["exact"].float(), torch.stack([one.exact for one in each]).mean(0), atol=1e-5)
    axes = ("layer", "head", "position")
    assert found.summary == f"The largest means over 2 rows: exact {found.peak(found.mean['exact'], *axes)}."
    assert "exact L" in found.summary and found.texts == ["T", "o", " ", "b", "e"]
    by_token = next(part for part in found.drawn() if part.name == "mean exact")
    assert by_token.axes == axes and "<th>T</th>" in found._repr_html_()
    stream = loaded.over_prompts("patch", rows, site="resid_pre", positions="each")
    assert stream.axes_of("exact") == ("layer", "position")

    longer = {"prompt": "or it is", "corrupted": "or be is", "answer": "c", "wrong": "d"}
    with_longer = loaded.over_prompts("patch_site", [*rows, longer], site="z", positions="each")
    assert with_longer.n == 2 and torch.equal(with_longer.mean["exact"], found.mean["exact"])
    assert "This row has 8 tokens and the first row 5" in with_longer.rows[2]["error"]
