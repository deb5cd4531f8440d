"""Numbers that the words of a rung print are those of the chapter and of the lecture, and are computed here."""

import re
from typing import Any

import pytest
import torch
from torch import nn

from helpers.files import ROOT
from helpers.models import tiny_model
from helpers.oracles import published
from web.learn.bigram import recorded
from web.learn.lesson_request import SHOWN_WORDS
from web.learn.lessons import LESSONS
from web.serving.served_models import ServedModels
from web.serving.snapshots import Snapshots
from web.settings import Settings

LEARN = ROOT / "web/js/learn"


@pytest.fixture
def snapshots() -> Snapshots:
    served = ServedModels(Settings(checkpoints=()))
    served.shared["tiny"] = tiny_model()
    served.ready.set_result(None)
    return Snapshots(served)


def test_the_page_says_how_many_words_it_shows() -> None:
    assert f'"up to {SHOWN_WORDS} words"' in (LEARN / "main.mjs").read_text()


def test_rung_7_names_the_chapter_s_second_row(snapshots: Snapshots) -> None:
    lesson = LESSONS["causal-masking"]
    request = lesson.request.model_validate({"sentence": " ".join(published.SENTENCE), "kind": "linear"})
    answer: Any = lesson.answer(snapshots, request)
    words = (LEARN / "content/07_causal_masking.mjs").read_text()
    printed = re.search(
        r"row 2 is ([\d.]+) ([\d.]+) after step 1b, with the sum ([\d.]+)\. .* ([\d.]+) ([\d.]+),", words
    )
    assert printed
    cut, renormalised = answer["cut"][1][:2], answer["renormalised"][1][:2]
    assert [float(found) for found in printed.groups()] == [
        pytest.approx(value, abs=5e-5) for value in (*cut, sum(cut), *renormalised)
    ]
    assert renormalised == pytest.approx(published.CAUSAL_WEIGHTS[1][:2], abs=1e-4)
    assert answer["mask"] == torch.ones(6, 6).tril().tolist()


def test_the_ids_of_the_book_s_text_are_the_published_ones() -> None:
    listed = re.search(r"const VERDICT = \[(.*?)\]", (LEARN / "rungs/02_sliding_window.mjs").read_text(), re.S)
    assert listed
    ids = [int(number) for number in re.findall(r"\d+", listed[1])]
    assert ids[: len(published.VERDICT_FIRST_IDS)] == published.VERDICT_FIRST_IDS


def test_the_lecture_s_untrained_table_writes_what_it_prints() -> None:
    characters = recorded()["before"]["characters"]
    torch.manual_seed(1337)
    table = nn.Embedding(len(characters), len(characters))
    ids = [0]
    for _ in range(100):
        chances = table.weight[ids[-1]].softmax(dim=-1)
        ids.append(int(torch.multinomial(chances[None], 1)))
    printed = re.search(r'sample:\s+"(.*)\\n" \+\s+"(.*)",', (LEARN / "rungs/03_bigram.mjs").read_text())
    assert printed
    assert "".join(characters[i] for i in ids[1:]) == "\n".join(printed.groups())
