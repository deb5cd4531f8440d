"""Learn's exercises on the visitor's sentence: an answer computed from the numbers as shown is accepted."""

import json
import math
import random
import re
import shutil
import subprocess
from collections.abc import Callable
from typing import Any

import orjson
import pytest

from helpers.files import ROOT
from model.ladder.bigram import BigramTraining
from web.learn.lessons import LESSONS
from web.learn.notebooks.tasks_of_models import what_followed
from web.serving.served_models import ServedModels
from web.serving.snapshots import Snapshots
from web.settings import Settings

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="Node runs the page's modules")

SENTENCES = [
    "Your journey starts with one step",
    "Hello shiny sun",
    "I",
    "to to to to",
    "a b a b a b",
    "What is in a name? <|endoftext|> é",
    "The cat that chased the mice was tired and slept",
    "Ein Käfer läuft über die Straße.",
    "1 + 1 = 2, or is it 10?",
    "no no no yes no no",
    "🙂 smiles 🙂",
    "the quick brown fox jumps over the lazy dog in the garden today",
]
OWN = """
import { readFileSync } from "node:fs";
import { RUNGS } from "./web/js/learn/main.mjs";
const pose = ([key, data, lesson]) => RUNGS.find((rung) => rung.key === key).own(data, lesson);
process.stdout.write(JSON.stringify(JSON.parse(readFileSync(0, "utf8")).map(pose)));
"""
NUMBER = r"[−-]?\d[\d,]*(?:\.\d+)?(?:e[−-]?\d+)?"


def dot(shown: list[float]) -> float:
    half = len(shown) // 2
    return sum(a * b for a, b in zip(shown[:half], shown[half:], strict=True))


# By rung: the answer from the numbers in the question, in their order.
ANSWERS: dict[str, Callable[[list[float]], float]] = {
    "tokens": lambda shown: shown[0] - shown[1],
    "windows": lambda shown: (shown[0] - shown[1] - 1) // shown[2] + 1,
    "untrained-bigram": lambda shown: -math.log(shown[0]),
    "averages": lambda shown: (shown[1] + shown[2]) / 2,
    "self-attention": dot,
    "trainable-weights": dot,
    "causal-masking": lambda shown: shown[0] / (shown[0] + shown[1]),
    "many-heads": lambda shown: shown[1] * shown[3] + shown[4] * shown[5],
    "block": lambda shown: (shown[0] - shown[3]) / math.sqrt(shown[4] + 1e-5),
    "whole-model": lambda shown: math.exp(shown[0] - shown[1]),
    "induction": lambda shown: shown[3] - shown[0] + 1,
}
SETTINGS: dict[str, list[dict[str, Any]]] = {
    "tokens": [{}, {"merges": 0}, {"allow_end_of_text": True}],
    "windows": [{}, {"context_length": 2, "stride": 3}],
    "averages": [{"lecture": True}, {"lecture": False}],
    "self-attention": [{}, {"swapped": True}],
    "trainable-weights": [{"kind": kind} for kind in ("parameters", "linear", "reader", "reader_linear")],
    "block": [{"scale": scale} for scale in (0.1, 1, 100)],
}


@pytest.fixture(scope="module")
def snapshots() -> Snapshots:
    served = ServedModels(Settings(checkpoints=("stories-bpe", "two-layer-steps"), device="cpu"))
    served.load()
    return Snapshots(served)


def pose(*asked: tuple[str, Any, dict[str, Any]]) -> list[dict[str, Any] | None]:
    """The exercise that the page shows for each: a rung, the server's answer, and the open lesson."""
    node = ["node", "--input-type=module", "-e", OWN]
    posed = subprocess.run(node, input=orjson.dumps(asked), cwd=ROOT, capture_output=True, timeout=60)
    assert posed.returncode == 0, posed.stderr.decode()[-2000:]
    found: list[dict[str, Any] | None] = json.loads(posed.stdout)
    return found


def numbers_in(exercise: dict[str, Any]) -> list[float]:
    """The numbers that the question shows, those in quoted words left out."""
    found = re.findall(NUMBER, re.sub("“[^”]*”", "“”", exercise["ask"]))
    return [float(number.replace("−", "-").replace(",", "")) for number in found]


def accepts(exercise: dict[str, Any], answer: float) -> bool:
    rights = [exercise["right"], *exercise.get("alsoRight", ())]
    return any(abs(answer - right) <= exercise["tolerance"] for right in rights)


@pytest.mark.parametrize("rung", ANSWERS)
def test_the_answer_from_the_numbers_as_shown_is_accepted(rung: str, snapshots: Snapshots) -> None:
    lesson, asked = LESSONS[rung], []
    follows_model = rung in ("whole-model", "induction")  # which takes longer
    for sentence in SENTENCES[3:8] if follows_model else SENTENCES:
        for settings in SETTINGS.get(rung, [{}]):
            for vectors in ("auto",) if follows_model else ("auto", "random"):
                request = lesson.request.model_validate({"sentence": sentence, "vectors": vectors} | settings)
                asked.append((rung, lesson.answer(snapshots, request), {"sentence": sentence, "kept": {}}))
    posed = [exercise for exercise in pose(*asked) if exercise]
    assert len(posed) >= 0.8 * len(asked)
    for exercise in posed:
        answer = round(ANSWERS[rung](numbers_in(exercise)), 4)
        assert accepts(exercise, answer), (answer, exercise)
        assert not accepts(exercise, answer + 0.2), exercise
        assert exercise["mistakes"] and exercise["second"] and exercise["second"] != exercise["hint"]
        assert all(mistake["number"] is not None for mistake in exercise["mistakes"]), exercise
        assert not re.search(r"NaN|undefined|\b1 (?:bytes|tokens)\b", json.dumps(exercise))


def test_the_reader_s_code_multiplies_a_key_by_a_query(snapshots: Snapshots) -> None:
    lesson = LESSONS["trainable-weights"]
    asked = []
    for kind in ("parameters", "reader"):
        request = lesson.request.model_validate({"sentence": SENTENCES[0], "kind": kind})
        asked.append(("trainable-weights", lesson.answer(snapshots, request), {}))
    for (_, data, _), exercise, (first, second) in zip(
        asked, pose(*asked), (("query", "key"), ("key", "query")), strict=True
    ):
        assert exercise
        named = re.findall(r"The (\w+) of “journey” .* and the (\w+) of “Your”", exercise["ask"])
        assert named == [(first, second)]
        assert numbers_in(exercise) == [round(value, 4) for value in [*data[first][1], *data[second][0]]]


LOOK_BACK = """
import { readFileSync } from "node:fs";
import { sheetOf } from "./web/js/learn/teach/worksheet_tables.mjs";
const data = JSON.parse(readFileSync(0, "utf8"));
const { rows } = sheetOf({ table: "lookBack", text: "" }, data, "");
process.stdout.write(JSON.stringify(rows.map(([at, , places]) => [at, places])));
"""
RANDOM = "".join(random.Random(11).choices("abcd ", k=15))


@pytest.mark.parametrize("sentence", ["Your journey starts with one step", "to to to to", RANDOM])
def test_key_exercise_and_notebook_agree_on_where_an_induction_head_looks(sentence: str, snapshots: Snapshots) -> None:
    lesson = LESSONS["induction"]
    data = json.loads(orjson.dumps(lesson.answer(snapshots, lesson.request(sentence=sentence))))
    ids, n = data["ids"], data["n"]
    node = ["node", "--input-type=module", "-e", LOOK_BACK]
    read = subprocess.run(node, input=orjson.dumps(data), cwd=ROOT, capture_output=True, check=True)
    key = {int(at.split()[0]): [int(place) for place in places.split(" or ")] for at, places in json.loads(read.stdout)}
    assert key == {at: what_followed(ids, at) for at in key}
    assert any(len(places) > 1 for places in key.values())
    [exercise] = pose(("induction", data, {}))
    assert exercise
    assert [place for place in range(2 * n) if accepts(exercise, place)] == what_followed(ids, n + 2)


def test_after_a_training_the_exercise_is_about_the_trained_table(snapshots: Snapshots) -> None:
    lesson, sentence = LESSONS["untrained-bigram"], "the cat sat"
    training = BigramTraining("the cat sat on the mat. " * 20, 20, 0.01, 1)
    training.begin()
    training.advance(float("inf"))
    end = training.end(sentence)
    data = lesson.answer(snapshots, lesson.request(sentence=sentence))
    kept = {"events": [{"stage": "training"}, end], "sentence": sentence}
    lecture, own, other = pose(
        ("untrained-bigram", data, {"sentence": sentence, "kept": {}}),
        ("untrained-bigram", data, {"sentence": sentence, "kept": kept}),
        ("untrained-bigram", data, {"sentence": sentence, "kept": kept | {"sentence": "another"}}),
    )
    assert lecture and own and lecture == other
    assert "Karpathy’s table" in lecture["ask"] and "your table" in own["ask"]
    assert numbers_in(own)[0] in [round(rated["probability"] or 0, 4) for rated in end["sentence"]]
