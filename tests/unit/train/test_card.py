"""The model card: everything on it comes from training.json, and no text can break its markup."""

import json
import shlex
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from model.train.__main__ import main as train
from model.train.__main__ import parse_settings
from model.train.card import command, main, model_card
from model.train.chart import Curve, chart
from model.train.settings import add_flags

TEXT = "the cat sat on the mat. the dog sat on the cat.\n" * 40
SHAPE = "--n-layer 2 --n-head 2 --n-embd 16 --context-length 16 --batch-size 4 --warmup 2"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("card")
    (root / "the text.txt").write_text(TEXT)
    about = ["--data-note", "Cats & dogs.", "--limits", "Knows <two> animals.", "--dataset", "a/b,c/d"]
    out = root / "out"
    flags = ["--data", str(root / "the text.txt"), "--out", str(out), *SHAPE.split(), *about]
    train([*flags, "--steps", "8", "--eval-every", "4", "--sample-every", "0", "--snapshots", "4", "--prompt", "the "])
    return out


@pytest.fixture
def report(folder: Path) -> Any:
    return json.loads((folder / "training.json").read_text())


def test_the_card_says_what_was_measured(folder: Path, report: Any) -> None:
    card = (folder / "README.md").read_text()
    assert 'datasets: ["a/b", "c/d"]\n' in card
    assert f"**{report['best_validation_loss']:.4f}** nats per character" in card
    assert "Cats & dogs." in card and "Knows <two> animals." in card
    assert [row["step"] for row in report["heads"]] == [0, 1, 3, 8]
    assert "at the end: not formed." in card
    for sample in report["samples"]:
        assert f"    the {sample['text']}".splitlines()[0] in card.splitlines()


def test_the_samples_can_be_written_again(folder: Path, report: Any) -> None:
    import model

    loaded = model.load(folder, dtype="float32")
    assert [sample["seed"] for sample in report["samples"]] == [1, 2, 3]
    for sample in report["samples"]:
        settings = {name: sample[name] for name in ("max_new_tokens", "temperature", "seed")}
        assert "".join(step.text for step in loaded.generate(sample["prompt"], **settings)) == sample["text"]
        assert "".join(step.text for step in loaded.generate(sample["prompt_tokens"], **settings)) == sample["text"]


def test_the_command_on_the_card_is_the_run(folder: Path, report: Any, tmp_path: Path) -> None:
    import argparse

    words = shlex.split(command(report, "out"))
    assert words[:5] == ["python", "-m", "model.train", "--out", "out"]
    parser = argparse.ArgumentParser()
    add_flags(parser)
    given = parser.parse_args(words[5:], argparse.Namespace(resume=False, out=tmp_path))
    settings = vars(parse_settings(given))
    about = ("title", "data_note", "limits", "dataset")
    assert {k: v for k, v in settings.items() if k not in about} == {
        k: v for k, v in report["settings"].items() if k not in about
    }


def test_a_card_is_regenerated_from_its_report(folder: Path, report: Any) -> None:
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    main([str(folder)])
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before
    assert set(before) >= {"loss.svg", "heads.svg"}


def test_a_sample_stays_in_its_block(report: Any) -> None:
    report["samples"][0]["text"] = "\n```\n# Heading\n\n<script>"
    card = model_card(report, "x")
    assert "\n    # Heading\n    \n    <script>\n" in card and "\n# Heading" not in card


def test_a_chart_is_drawn_to_scale_and_escapes_its_words() -> None:
    points = [(0, 1.0), (10, 0.5), (1000, 0.0)]
    for knee, places in ((0, [0.0, 0.01, 1.0]), (10, [0.0, 0.1502, 1.0])):
        root = ET.fromstring(chart("a < b", "c & d", [Curve("<e>", "#112233", points)], knee))
        (line,) = root.iter("{http://www.w3.org/2000/svg}polyline")
        drawn = [tuple(map(float, pair.split(","))) for pair in line.attrib["points"].split()]
        left, right = drawn[0][0], drawn[-1][0]
        assert [(x - left) / (right - left) for x, _ in drawn] == pytest.approx(places, abs=2e-4)
        top, bottom = drawn[0][1], drawn[-1][1]
        assert [(bottom - y) / (bottom - top) for _, y in drawn] == pytest.approx([1.0, 0.5, 0.0], abs=2e-3)
        assert "<e> 0.000" in "".join(root.itertext())
