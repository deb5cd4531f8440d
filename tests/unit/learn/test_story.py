"""The chances that Learn prints of the story about a kite, and what becomes of them without the heads that copy."""

import json
import re
from pathlib import Path

import pytest

from model.loaded import load

ROOT = Path(__file__).parents[3]
KITE = (ROOT / "web/js/learn/widgets/kite.mjs").read_text()
COPYING = [(4, 3), (4, 5), (5, 5), (5, 6), (6, 0), (7, 6), (7, 7)]


def printed(name: str) -> dict[str, float]:
    values = re.search(rf"const {name} = \{{([^}}]*)\}}", KITE)
    assert values
    return {word: float(chance) for word, chance in re.findall(r"(\w+): ([\d.]+)", values[1])}


@pytest.mark.parametrize(("name", "off"), [("NEXT", []), ("WITHOUT", COPYING)])
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
