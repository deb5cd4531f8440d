"""What Learn prints of the story about a kite: chances, what becomes of them without the heads that copy, and a layer.

``PYTHONPATH=.:tests python tests/unit/learn/test_story.py`` writes the numbers of that layer again; then format them.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import torch

from model.ladder.block import BlockStages, block_layers, final_norm
from model.lens.text_pass import TextPass
from model.loaded import LoadedModel, load
from web.learn.kite import COPYING, by_the_lessons
from web.learn.lessons import LESSONS
from web.serving.served_models import ServedModels
from web.serving.snapshots import Snapshots
from web.settings import Settings

ROOT = Path(__file__).parents[3]
KITE = (ROOT / "web/js/learn/widgets/kite.mjs").read_text()
ANSWER = (ROOT / "web/js/learn/content/11_induction.mjs").read_text()


def printed(name: str) -> dict[str, float]:
    values = re.search(rf"const {name} = \{{([^}}]*)\}}", KITE)
    assert values
    return {word: float(chance) for word, chance in re.findall(r"(\w+): ([\d.]+)", values[1])}


@pytest.mark.parametrize(("name", "off"), [("NEXT", []), ("WITHOUT", [*COPYING])])
def test_the_chances_of_the_next_word_are_those_of_the_model(name: str, off: list[tuple[int, int]]) -> None:
    loaded = load(ROOT / "checkpoints/stories-bpe", device="cpu")
    prompt = json.loads((ROOT / "checkpoints/stories-bpe/opening.json").read_text())["prompt"]
    parts = re.search(r'const STORY =\n\s+"(.*)" \+\n\s+"(.*)";', KITE)
    assert parts and "".join(parts.groups()).replace("“", '"') == prompt
    mask = [[0.0 if (layer, head) in off else 1.0 for head in range(8)] for layer in range(8)]
    trace = loaded.trace(prompt, head_mask=mask)
    for word, chance in printed(name).items():
        (token,) = loaded.parse_prompt(f"{prompt} {word}")[len(loaded.parse_prompt(prompt)) :]
        assert loaded.attribution(trace, token=token).probability == pytest.approx(chance, abs=6e-4)


@pytest.fixture(scope="module")
def snapshots() -> Snapshots:
    served = ServedModels(Settings(checkpoints=("stories-bpe",), device="cpu"))
    served.load()
    return Snapshots(served)


def told(snapshots: Snapshots, *muted: tuple[int, int]) -> Any:
    lesson = LESSONS["kite"]
    return lesson.answer(snapshots, lesson.request.model_validate({"muted": muted}))


def test_the_steps_of_the_lessons_give_the_same_chances(snapshots: Snapshots) -> None:
    for muted, name in (((), "NEXT"), (COPYING, "WITHOUT")):
        found = told(snapshots, *muted)
        assert found["error"] < 1e-5
        chances = {word: found["chances"][1][word] for word in printed(name)}
        assert chances == pytest.approx(printed(name), abs=6e-4)
        assert found["best"]["text"] == (" new" if muted else " kite")
    assert all(each["weight"] > 0.3 for each in told(snapshots)["heads"])


def test_the_stream_says_what_the_page_prints(snapshots: Snapshots) -> None:
    """The last words that the recorded rows and the model give, and that the story of rung 9 is told of them."""
    found = told(snapshots)["notebook"]
    rows = re.findall(r'layer: (\d), part: "(\w+)", word: "(\w+)", chance: ([\d.]+)', KITE)
    assert len(found) == 16 and len(rows) == 9
    for (layer, part, word, chance), theirs in zip(rows, found[-9:], strict=True):
        assert (int(layer), part, word) == (theirs["layer"], theirs["part"], theirs["word"])
        assert theirs["chance"] == pytest.approx(float(chance), abs=6e-4)
    assert {row["word"] for row in found[:-9]} == {"my"}
    loaded = snapshots.served.models["stories-bpe"]
    ids = loaded.parse_prompt(json.loads((ROOT / "checkpoints/stories-bpe/opening.json").read_text())["prompt"])
    stream = TextPass(loaded.gpt, ids).stream
    assert stream[-1][0][-1].norm() / stream[0][0][-1].norm() == pytest.approx(8, abs=0.5)
    assert found[-1]["chance"] == pytest.approx(told(snapshots)["chances"][0]["kite"])


def test_without_any_one_head_kite_stays_as_likely_as_the_page_says(snapshots: Snapshots) -> None:
    chances = [told(snapshots, head)["chances"][1]["kite"] for head in COPYING]
    least, most = re.findall(r"becomes (\d+)% to (\d+)%", ANSWER)[0]
    assert [round(100 * chance) for chance in (min(chances), max(chances))] == [int(least), int(most)]


@pytest.mark.parametrize(("end", "n_looking"), [("Look at your", 7), ("I want to", 4)])
def test_the_heads_look_for_a_word_that_fits_rather_than_for_what_followed(end: str, n_looking: int) -> None:
    loaded = load(ROOT / "checkpoints/stories-bpe", device="cpu")
    prompt = json.loads((ROOT / "checkpoints/stories-bpe/opening.json").read_text())["prompt"]
    ids = loaded.parse_prompt(prompt.replace("Look at my", end))
    (kite,) = loaded.parse_prompt(" kite")
    places = [i for i, token in enumerate(ids) if token == kite]
    stages = by_the_lessons(loaded, ids)
    weights = [stages[layer].weights[head, -1, places].sum().item() for layer, head in COPYING]
    assert sum(weight > 0.4 for weight in weights) == n_looking
    assert sum(weight < 0.15 for weight in weights) == 7 - n_looking


@pytest.mark.parametrize(("noun", "n_looking"), [("ball", 4), ("dog", 4), ("book", 6), ("car", 6)])
def test_the_heads_look_at_another_thing_in_the_place_of_the_kite(noun: str, n_looking: int) -> None:
    loaded = load(ROOT / "checkpoints/stories-bpe", device="cpu")
    prompt = json.loads((ROOT / "checkpoints/stories-bpe/opening.json").read_text())["prompt"]
    ids = loaded.parse_prompt(prompt.replace("kite", noun))
    stages = by_the_lessons(loaded, ids)
    looked_at = [ids[int(stages[layer].weights[head, -1].argmax())] for layer, head in COPYING]
    assert looked_at.count(*loaded.parse_prompt(f" {noun}")) == n_looking


def test_another_model_of_that_name_is_not_taken_for_it(snapshots: Snapshots, monkeypatch: pytest.MonkeyPatch) -> None:
    assert told(Snapshots(ServedModels(Settings(checkpoints=())))) == {"model": None}
    monkeypatch.setitem(snapshots.served.shared_sources, "stories-bpe", ROOT / "checkpoints")
    assert told(snapshots) == {"model": None}


NUMBERS = ROOT / "web/js/learn/widgets/story_numbers.mjs"
HEADER = (
    "// Layer 5 of stories-bpe on the story about a kite. tests/unit/learn/test_story.py computes and writes it.\n\n"
)
LAYER = 5
SAYS = {5: (" favorite", " big", " kite"), 6: (" small", " big", " kite")}  # by the layer of the MLP


def block_of_story() -> dict[str, Any]:
    """The second "kite" and the last three tokens in layer 5, by the steps of the lessons, three numbers of each."""
    loaded = load(ROOT / "checkpoints/stories-bpe", device="cpu")
    ids = loaded.parse_prompt(json.loads((ROOT / "checkpoints/stories-bpe/opening.json").read_text())["prompt"])
    (kite,) = loaded.parse_prompt(" kite")
    rows = [max(i for i, token in enumerate(ids) if token == kite), *range(len(ids) - 3, len(ids))]
    stages = by_the_lessons(loaded, ids)
    stage, block = stages[LAYER], loaded.gpt.blocks[LAYER]
    layers, attn = block_layers(block), block.attn
    projection = layers.attended.weight[:3].reshape(3, attn.n_head, attn.head_dim)

    def norm(layer: torch.nn.LayerNorm, read: torch.Tensor) -> dict[str, Any]:
        return {
            "mean": read[rows].mean(-1).tolist(),
            "variance": read[rows].var(-1, correction=0).tolist(),
            "weight": layer.weight[:3].tolist(),
            "bias": layer.bias[:3].tolist(),
        }

    names = ("x", "normed", "attended", "resid_mid", "mlp_input", "mlp_output", "after")
    return {
        "layer": LAYER,
        "tokens": [loaded.tokens([ids[row]])[0].text.strip() for row in rows],
        "width": loaded.config.n_embd,
        "inner": stage.hidden.shape[-1],
        "eps": layers.normed.eps,
        "norm": norm(layers.normed, stage.x),
        "second_norm": norm(layers.mlp_input, stage.resid_mid),
        "by_head": torch.einsum("htd,chd->tch", stage.context[:, rows], projection).tolist(),
        "attended_bias": layers.attended.bias[:3].tolist(),
        "hidden": torch.stack([stage.hidden[-1, :6], stage.activated[-1, :6]], -1).tolist(),
        "negative": (stage.hidden[-1] < 0).float().mean().item(),
        "mlp_bias": layers.mlp_output.bias[:3].tolist(),
        "says": [{"layer": at, "words": added_logits(loaded, stages[at], words)} for at, words in SAYS.items()],
        **{name: getattr(stage, name)[rows, :3].tolist() for name in names},
    }


def added_logits(loaded: LoadedModel, stage: BlockStages, words: tuple[str, ...]) -> list[dict[str, Any]]:
    """What the MLP of a layer adds to the logits at the last token, with the scale of the last layer norm after it."""
    norm, added = final_norm(loaded.gpt), stage.mlp_output[-1]
    scaled = (added - added.mean()) / (stage.after[-1].var(correction=0) + norm.eps).sqrt() * norm.weight
    tokens = {word.strip(): loaded.parse_prompt(word)[-1] for word in words}
    return [{"label": word, "value": (loaded.gpt.lm_head.weight[at] @ scaled).item()} for word, at in tokens.items()]


def rounded(found: Any) -> Any:
    if isinstance(found, dict):
        return {name: each if name == "eps" else rounded(each) for name, each in found.items()}
    return (
        [rounded(each) for each in found]
        if isinstance(found, list)
        else round(found, 5)
        if isinstance(found, float)
        else found
    )


@torch.no_grad()
def test_the_layer_of_rung_9_is_the_model_s() -> None:
    found, text = block_of_story(), NUMBERS.read_text()
    printed = json.loads(
        re.sub(r",(\s*[\]}])", r"\1", re.sub(r"(\w+):", r'"\1":', text[text.index("{") :].rstrip(";\n")))
    )

    def compare(one: Any, other: Any) -> None:
        if isinstance(one, dict | list):
            assert len(one) == len(other)
            for key in one if isinstance(one, dict) else range(len(one)):
                compare(one[key], other[key])
        else:
            assert one == (other if isinstance(one, str) else pytest.approx(other, abs=1e-4))

    compare(found, printed)
    for says in found["says"]:  # they add to "kite", but more to "big"
        values = {word["label"]: word["value"] for word in says["words"]}
        assert values["big"] > values["kite"] > 0


if __name__ == "__main__":
    with torch.no_grad():
        NUMBERS.write_text(f"{HEADER}export const STORY_BLOCK = {json.dumps(rounded(block_of_story()))};\n")
