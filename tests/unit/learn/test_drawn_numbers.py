"""What the rungs draw of the server's numbers, by the page's modules in node: they are the published ones."""

import json
import re
import shutil
import subprocess
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import orjson
import pytest
import torch

from helpers.files import ROOT
from helpers.learn_page import number
from helpers.models import tiny_model
from helpers.oracles import published
from helpers.oracles.published import assert_close
from model.ladder.text import split_words
from web.learn.lessons import LESSONS
from web.serving.served_models import ServedModels
from web.serving.snapshots import Snapshots
from web.settings import Settings

pytestmark = pytest.mark.skipif(
    shutil.which("node") is None or not (ROOT / "node_modules/happy-dom").exists(),
    reason="node draws with the page's modules, in the DOM of happy-dom",
)

BOOK = " ".join(published.SENTENCE)
DRAW = """
import { readFileSync } from "node:fs";
import { openWindow } from "./tests/js/widgets/small_dom.mjs";
openWindow("");
const { RUNGS } = await import("./web/js/learn/main.mjs");
const shownIn = (cell) => (cell.firstElementChild ?? cell).title || cell.textContent;
const textsOf = (css) => [...document.querySelectorAll(css)].map((element) => element.textContent);
function draw([key, data, { options, sentence, kept, clicks }]) {
  const rung = RUNGS.find((each) => each.key === key);
  const diagram = { follow: () => () => {}, mark() {}, count() {} };
  const lesson = {
    sentence, diagram, kept: { ...rung.choices?.(), ...kept }, options: { ...rung.options(), ...options },
    shared: {}, about: {}, body: {}, rung: 1, rephrase() {}, renew() {}, set() {}, share() {},
  };
  const built = rung.build(lesson);
  document.body.replaceChildren(...Object.values(built.parts).flat(), built.explanation ?? "");
  built.update(data);
  const tables = [...document.querySelectorAll("table")];
  const named = (name) => tables.find((table) => table.getAttribute("aria-label") === name);
  const unfolded = clicks.map(([name, r, c]) => {
    named(name).querySelectorAll("tbody tr")[r].querySelectorAll("td")[c].querySelector("button").click();
    const terms = [...built.explanation.querySelectorAll(".hl-term")];
    return {
      terms: terms.map((term) => [...term.querySelectorAll("small, span")].map((part) => part.textContent)),
      total: built.explanation.querySelector("output")?.textContent ?? "",
      words: built.explanation.textContent,
    };
  });
  const rowsOf = (table) => [...table.querySelectorAll("tbody tr")].map(
    (row) => [...row.querySelectorAll("td:not(.hl-sum-of-row)")].map(shownIn));
  return {
    tables: Object.fromEntries(tables.map((table) => [table.getAttribute("aria-label"), rowsOf(table)])),
    stamps: textsOf(".hl-stamp"), said: textsOf("p").join(" "), unfolded,
  };
}
process.stdout.write(JSON.stringify(JSON.parse(readFileSync(0, "utf8")).map(draw)), () => process.exit());
"""


@dataclass(frozen=True)
class Case:
    lesson: str
    options: dict[str, Any] = field(default_factory=dict)
    sentence: str = BOOK
    kept: dict[str, Any] = field(default_factory=dict)
    clicks: list[tuple[str, int, int]] = field(default_factory=list)


VERDICT = "Two hands of the old clock, which nobody had wound for years, pointed at ten past midnight -- again."
SCORES, WEIGHTS = "Attention scores", "Attention weights"
SOFTMAXES = [("Softmax by its definition", 1, 2), ("Stable softmax", 1, 2)]
CASES = {
    "windows": Case("windows"),
    "stride 1": Case("windows", {"stride": 1}, VERDICT),
    "stride 4": Case("windows", {"stride": 4}, VERDICT),
    "softmax": Case("averages", {"lecture": True}, clicks=[("Averages", 4, 0)]),
    "loop": Case("averages", {"lecture": True}, kept={"way": "by_loop"}),
    "matrix": Case("averages", {"lecture": True}, kept={"way": "by_matrix"}),
    "toy": Case("averages", {"toy": "tril"}),
    "book": Case("self-attention", clicks=[(SCORES, 1, 2), (SCORES, 5, 0), (SCORES, 3, 3), *SOFTMAXES]),
    "large": Case("self-attention", {"factor": 1000}, clicks=SOFTMAXES[:1]),
    "negative": Case("self-attention", {"factor": -1000}),
    "shiny": Case("self-attention", {}, "Hello shiny sun"),
    "parameters": Case("trainable-weights", clicks=[(SCORES, 1, 1)]),
    "linear": Case("trainable-weights", {"kind": "linear"}),
    "reader": Case("trainable-weights", {"kind": "reader"}),
    "reader_linear": Case("trainable-weights", {"kind": "reader_linear"}),
    "causal": Case("causal-masking", {"kind": "linear"}),
    "nothing dropped": Case("causal-masking", {"kind": "linear", "dropout": 0}),
    "ones": Case("causal-masking", {"dropped": "ones"}),
    "heads": Case("many-heads", clicks=[("After the output projection", 1, 0)]),
}
READER_V2 = [[-0.5284, -0.1061], [-0.5283, -0.1063], [-0.5283, -0.1063], [-0.528, -0.1063], [-0.5281, -0.1062]]


class Drawn(NamedTuple):
    tables: dict[str, list[list[str]]]
    stamps: list[str]
    said: str
    unfolded: list[dict[str, Any]]

    def numbers(self, name: str) -> list[list[float]]:
        return [[number(cell) for cell in row] for row in self.tables[name]]

    def agree(self, *, within: float = 1e-6) -> bool:
        """Whether all stamps say that the ways of computing agree."""
        shown = [stamp for stamp in self.stamps if stamp]
        found = [re.search(r"(?:agree|= model), max difference ([\d.e−]+)", stamp) for stamp in shown]
        return bool(shown) and all(each and number(each[1]) <= within for each in found)


@pytest.fixture(scope="module")
def drawn() -> dict[str, Drawn]:
    served = ServedModels(Settings(checkpoints=()))
    served.shared["tiny"] = tiny_model()
    served.ready.set_result(None)
    asked = []
    for case in CASES.values():
        lesson = LESSONS[case.lesson]
        request = lesson.request.model_validate(case.options | {"sentence": case.sentence})
        answer = orjson.loads(orjson.dumps(lesson.answer(Snapshots(served), request)))
        asked.append((case.lesson, answer, asdict(case)))
    node = ["node", "--input-type=module", "-e", DRAW]
    done = subprocess.run(node, input=orjson.dumps(asked), cwd=ROOT, capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    return {name: Drawn(**found) for name, found in zip(CASES, json.loads(done.stdout), strict=True)}


def test_embeddings_are_looked_up_and_added(drawn: dict[str, Drawn]) -> None:
    found = drawn["windows"]
    token, position, x = (found.numbers(name) for name in ("Token embedding", "Position embedding", "Their sum"))
    assert_close(token[2], published.EMBEDDING_ROW_3)
    assert_close(torch.tensor(token) + torch.tensor(position), x, atol=2e-4)
    assert found.tables["Batch inputs"] == [["0", "1", "3", "5"], ["1", "3", "5", "2"]]
    assert found.tables["Batch targets"] == [["1", "3", "5", "2"], ["3", "5", "2", "4"]]


@pytest.mark.parametrize(
    ("stride", "rows"), [(1, published.VERDICT_STRIDE_1_ROWS), (4, published.VERDICT_STRIDE_4_ROWS)]
)
def test_windows_take_the_published_places(drawn: dict[str, Drawn], stride: int, rows: list[list[int]]) -> None:
    """The page's tokens are words and the published ones byte pairs, but the positions in the text are the same."""
    words = split_words(VERDICT)
    found = drawn[f"stride {stride}"]
    assert f"{(len(words) - 5) // stride + 1} windows of 4 from {len(words)} tokens" in found.said
    for window, row in enumerate(rows):
        places = [published.VERDICT_FIRST_IDS.index(token_id) for token_id in row]
        inputs, targets = ([re.sub(r"\d+$", "", cell) for cell in line] for line in found.tables[f"Window {window}"])
        assert inputs == [words[at] for at in places] and targets == [words[at + 1] for at in places]


def test_three_ways_average_the_past(drawn: dict[str, Drawn]) -> None:
    for way in ("softmax", "loop", "matrix"):
        assert_close(drawn[way].numbers("Averages"), published.AVERAGE_XBOW0)
        assert drawn[way].agree()
    assert_close(drawn["softmax"].numbers("The tokens x"), published.AVERAGE_X0)
    [average] = drawn["softmax"].unfolded
    assert_close(sum(number(term[1]) for term in average["terms"]), number(average["total"]), atol=3e-4)
    assert_close(number(average["total"]), published.AVERAGE_XBOW0[4][0])
    assert drawn["book"].agree()
    assert drawn["toy"].numbers("a · b") == [[2, 7], [8, 11], [14, 16]]


def test_attention_without_weights(drawn: dict[str, Drawn]) -> None:
    found = drawn["book"]
    assert_close(found.numbers("The words x"), published.INPUTS)
    assert_close(found.numbers(SCORES), published.SIMPLE_SCORES)
    assert_close(found.numbers("Plain normalisation")[1], published.SIMPLE_SUM_NORMALISED_1)
    for name in (WEIGHTS, "Softmax by its definition", "Stable softmax"):
        assert_close(found.numbers(name), published.SIMPLE_WEIGHTS)
    assert_close(found.numbers("Context vectors"), published.SIMPLE_CONTEXT)
    for (_, query, key), dot in zip(CASES["book"].clicks[:3], found.unfolded, strict=False):
        factors = [[number(factor) for factor in term[0].split(" × ")] for term in dot["terms"]]
        assert [list(each) for each in zip(*factors, strict=True)] == [published.INPUTS[query], published.INPUTS[key]]
        assert_close([a * b for a, b in factors], [number(term[1]) for term in dot["terms"]])
        assert_close(number(dot["total"]), published.SIMPLE_SCORES[query][key])
    assert [each["total"] for each in found.unfolded[3:]] == [f"{published.SIMPLE_WEIGHTS[1][2]:.4f}"] * 2


def test_only_the_stable_softmax_survives_large_scores(drawn: dict[str, Drawn]) -> None:
    for name, failure in (("large", "exp overflows"), ("negative", "exp underflows")):
        assert re.search(rf"The score farthest from 0 is −?[\d.]+: {failure}", drawn[name].said)
        assert_close(torch.tensor(drawn[name].numbers("Stable softmax")).sum(dim=1), [1.0] * 6, atol=3e-4)
    assert set(drawn["large"].tables["Softmax by its definition"][1]) == {"NaN"}
    [weight] = drawn["large"].unfolded
    assert "∞" in weight["words"] and weight["total"] == "NaN"


def test_the_second_worked_example(drawn: dict[str, Drawn]) -> None:
    assert_close(drawn["shiny"].numbers(SCORES)[1], published.SHINY_SCORES)
    assert_close(drawn["shiny"].numbers(WEIGHTS)[1], published.SHINY_WEIGHTS)
    assert_close(drawn["shiny"].numbers("Context vectors")[1], published.SHINY_CONTEXT, atol=5e-4)


def test_trainable_weights(drawn: dict[str, Drawn]) -> None:
    found = drawn["parameters"]
    assert_close(found.numbers("Queries")[1], published.TRAINABLE_QUERY_1)
    assert_close(found.numbers(SCORES)[1], published.TRAINABLE_SCORES_1)
    assert_close(found.numbers(WEIGHTS)[1], published.TRAINABLE_WEIGHTS_1)
    assert_close(found.numbers("Context vectors"), published.SELF_ATTENTION_V1)
    assert number(found.unfolded[0]["total"]) == pytest.approx(published.TRAINABLE_SCORE_11, abs=1.01e-4)
    assert_close(drawn["linear"].numbers(WEIGHTS), published.V2_WEIGHTS)
    assert_close(drawn["linear"].numbers("Context vectors"), published.SELF_ATTENTION_V2)
    assert_close(drawn["reader"].numbers("Context vectors")[0], [0.2867, 0.3880])
    assert_close(drawn["reader_linear"].numbers("Context vectors")[:5], READER_V2)


def test_causal_masking_and_dropout(drawn: dict[str, Drawn]) -> None:
    found = drawn["causal"]
    masked = found.numbers("Masked scores")
    assert_close(masked[5], published.V2_SCORES_MASKED_ROW_5)
    assert masked[0][1:] == [float("-inf")] * 5
    assert found.numbers("The mask") == torch.ones(6, 6).tril().tolist()
    for name in ("1b, divided by the sum of the rest", WEIGHTS):
        assert_close(found.numbers(name), published.CAUSAL_WEIGHTS)
    assert_close(found.numbers("Weights without the mask"), published.V2_WEIGHTS)
    assert found.tables["Scores + triu × −∞"][5] == ["NaN"] * 6
    for text in (0, 1):
        assert_close(found.numbers(f"Context vectors, text {text}"), published.CAUSAL_ATTENTION)
    lecture = found.numbers("Attention weights, not scaled")[7]
    assert_close(lecture, published.ONE_HEAD_WEIGHTS0_ROW_7, atol=6e-4)  # a wide table
    assert re.search(r"In: \(4, 8, 32\).* Out: \(4, 8, 16\)", found.said)
    dropped = torch.tensor(found.numbers("After dropout"))
    doubled = 2 * torch.tensor(published.CAUSAL_WEIGHTS)
    assert_close(torch.where(dropped == 0, 0, doubled), dropped, atol=3e-4)
    assert ((dropped == 0) & (doubled > 0)).any()
    assert "Kept weights × 1." in drawn["nothing dropped"].said
    assert_close(drawn["nothing dropped"].numbers("After dropout"), published.CAUSAL_WEIGHTS)
    assert {value for row in drawn["ones"].numbers("After dropout") for value in row} == {0.0, 2.0}


def test_many_heads(drawn: dict[str, Drawn]) -> None:
    found = drawn["heads"]
    for name in ("Context vectors", "Weight splits"):
        assert_close(found.numbers(name), published.STACKED_HEADS)
    w_out, output = torch.tensor(found.numbers("W out")), torch.tensor(found.numbers("Output"))
    mixed = output - torch.tensor(published.STACKED_HEADS) @ w_out
    assert_close(mixed, mixed[:1].expand(6, 4), atol=4e-4)  # the bias, the same for every word
    assert_close(found.numbers("After the output projection"), published.WEIGHT_SPLITS)
    for head in (0, 1):
        assert_close(found.numbers(f"Head {head}"), published.HEADS_A[0][head])
        assert_close(found.numbers(f"Head {head} × itself, transposed"), published.HEADS_A_PRODUCT[0][head])
    [projected] = found.unfolded
    assert projected["terms"][-1][0] == "bias" and len(projected["terms"]) == 3
    assert_close(number(projected["total"]), published.WEIGHT_SPLITS[1][0])
