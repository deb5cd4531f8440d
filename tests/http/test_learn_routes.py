"""The Learn tab's routes: values on both sides of the limits, clear errors, and training line by line."""

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
import torch

from helpers.files import ROOT
from helpers.oracles.published import assert_close
from helpers.server import Server
from model import SamplingSettings, ladder
from model.sampling import probabilities, random_generator, sample
from web.assets import FILES, URL, scripts
from web.learn.bigram import MAX_ALPHABET
from web.learn.lesson_request import MAX_BIGRAM_STEPS, MAX_SENTENCE_CHARACTERS, MAX_TRAINING_TEXT_CHARACTERS
from web.learn.routes import MAX_BIGRAMS, MAX_WAITING_BIGRAMS
from web.learn.source_code import COMPILED, DEFINITIONS


def post(server: Server, path: str, /, **body: Any) -> httpx.Response:
    return httpx.post(f"{server.url}/learn/{path}", json={"sentence": "To be or not"} | body, timeout=60)


def train(server: Server, **body: Any) -> list[dict[str, Any]]:
    response = post(server, "bigram", **body)
    assert response.status_code == 200, response.text
    return [json.loads(line) for line in response.text.splitlines()]


@pytest.mark.parametrize("lesson", DEFINITIONS)
def test_sentence_length_is_limited(server: Server, lesson: str) -> None:
    most = MAX_SENTENCE_CHARACTERS
    assert post(server, lesson, sentence="a" * most).status_code == 200
    refused = post(server, lesson, sentence="a" * (most + 1))
    assert refused.status_code == 400
    assert re.match(rf"The sentence has {most + 1:,} characters[,;] at most {most:,} ", refused.json()["detail"])


@pytest.mark.parametrize(("lesson", "settings"), [("tokens", {}), ("bigram", {"steps": 1})])
def test_training_text_length_is_limited(server: Server, lesson: str, settings: dict[str, int]) -> None:
    most = MAX_TRAINING_TEXT_CHARACTERS
    assert post(server, lesson, training_text="ab " * (most // 3), **settings).status_code == 200
    refused = post(server, lesson, training_text="a" * (most + 1))
    assert refused.status_code == 400 and f"at most {most:,} " in refused.json()["detail"]


def test_a_sentence_added_to_the_text_is_known(server: Server) -> None:
    before = post(server, "tokens").json()
    assert not all(token["known"] for token in before["words"]["tokens"])
    text = f"{before['training_text']}\nTo be or not"
    after = post(server, "tokens", training_text=text).json()
    assert all(token["known"] for token in after["words"]["tokens"])
    assert after["words"]["decoded"] == "To be or not"


def test_bigram_training_limits(server: Server) -> None:
    alphabet = "".join(map(chr, range(300, 300 + MAX_ALPHABET)))
    assert train(server, training_text=alphabet, steps=1)[-1]["stage"] == "after"
    for text, problem in ((alphabet + "a", "The text has 257 different"), ("a", "type at least two characters.")):
        assert problem in post(server, "bigram", training_text=text).json()["detail"]
    assert train(server, training_text="ab", steps=1)[0]["floor"] == 0
    assert post(server, "bigram", training_text="ab", steps=MAX_BIGRAM_STEPS + 1).status_code == 422
    refused = post(server, "bigram", training_text="", model="nobody")
    assert refused.json()["detail"].startswith("There is no model 'nobody'")


def test_training_text_is_accepted_as_lesson(server: Server) -> None:
    assert post(server, "tokens", lesson="abc abd").json() == post(server, "tokens", training_text="abc abd").json()
    assert train(server, lesson="ab", steps=1)[0]["n"] == 2


def test_bigram_training_reports(server: Server) -> None:
    text = "the cat sat on the mat. " * 30
    first, *middle, last = train(server, training_text=text, sentence="the dog", steps=600, seed=3)
    tokenizer = ladder.CharacterTokenizer(text)
    assert (first["stage"], first["characters"], first["n"]) == ("before", tokenizer.characters, len(text))
    assert {line["stage"] for line in middle} == {"training"}
    assert [line["step"] for line in middle] == sorted(line["step"] for line in middle)
    assert middle[-1]["step"] == 600 and len([p for line in middle for p in line["points"]]) == 200
    assert first["loss"] > first["uniform"] > last["loss"] > first["floor"]
    probabilities = [judged["probability"] for judged in last["sentence"]]
    known = [judged["known"] for judged in last["sentence"]]
    assert known == [True, True, True, True, False, True, False]  # no d, no g
    assert [p is None for p in probabilities] == [True, False, False, False, True, True, True]
    assert probabilities[1] > 0.3  # h after t


def test_model_writes_the_training_text(server: Server) -> None:
    lines = train(server, steps=1)
    written = [line for line in lines if line["stage"] == "writing"]
    assert written and written[-1]["model"] == "tiny"
    before = next(line for line in lines if line["stage"] == "before")
    assert before["n"] == len(written[-1]["text"]) > 300
    assert not server.running


def test_disconnecting_ends_the_training(server: Server) -> None:
    body = {"training_text": "to be or not to be " * 100, "sentence": "a", "steps": MAX_BIGRAM_STEPS}
    for _ in range(MAX_BIGRAMS + 1):  # more than fit into the queue
        with httpx.stream("POST", f"{server.url}/learn/bigram", json=body, timeout=60) as response:
            assert response.status_code == 200
            assert json.loads(next(response.iter_lines()))["stage"] == "before"
    assert train(server, training_text="to be or not", steps=2)[-1]["stage"] == "after"


def test_settings_out_of_range_are_refused(server: Server) -> None:
    assert httpx.post(f"{server.url}/learn/scale", json={"head_dim": 0}).status_code == 422
    assert post(server, "causal-masking", dropout=1).status_code == 422
    assert post(server, "causal-masking", flipped=[[0, 10]]).status_code == 422
    assert "n_head must divide 256" in httpx.post(f"{server.url}/learn/times", json={"n_head": 3}).json()["detail"]
    assert post(server, "whole-model", layer=3, head=0).json() == {
        "detail": "layer must be an integer from 0 to 2, found 3",
        "field": "layer",
    }
    assert post(server, "cell", query=2, key=3).json()["detail"] == "There is no cell for query 2 and key 3."
    assert post(server, "whole-model", model="nobody").json()["detail"].startswith("There is no model 'nobody'")
    assert post(server, "11").status_code == 404


def test_a_setting_of_another_lesson_is_refused_by_name(server: Server) -> None:
    for lesson, field in (("trainable-weights", "head_dim"), ("tokens", "dropout"), ("scale", "sentence")):
        refused = post(server, lesson, **{field: 1})
        assert refused.status_code == 422
        assert refused.json()["detail"] == f"{field}: there is no such field."


def test_cell_equals_the_models_attention(server: Server) -> None:
    attention = server.services.served.models["tiny"].trace("To be or not").attention
    cell = post(server, "cell", model="tiny", layer=2, head=3, query=9, key=4).json()
    assert cell["model_weight"] == pytest.approx(float(attention[2, 3, 9, 4]), abs=1e-6)
    assert cell["weight"] == pytest.approx(cell["model_weight"], abs=1e-6)
    assert sum(cell["products"]) == pytest.approx(cell["score"], abs=1e-4)
    assert cell["scaled"] == pytest.approx(cell["score"] * 8**-0.5, abs=1e-5)


@pytest.mark.parametrize("name", [*DEFINITIONS, COMPILED])
def test_shown_source_code_is_that_of_the_files(server: Server, name: str) -> None:
    sources = httpx.get(f"{server.url}/learn/sources/{name}.json").json()["sources"]
    root = ROOT
    for source in sources:
        lines = (root / source["file"]).read_text().splitlines()
        first, second = source["code"].splitlines()[:2]
        assert lines[source["line"] - 1].strip() == first
        assert source["name"].split(".")[-1] in (second if first.startswith("@") else first)


def test_files_of_the_page_are_served_by_name_only(server: Server) -> None:
    expected = {name: path.read_bytes() for name, path in FILES.items()}
    expected |= {name: script.encode() for name, script in scripts().items()}
    for name, content in expected.items():
        response = httpx.get(f"{server.url}/{URL}/{name}")
        assert response.status_code == 200 and "immutable" in response.headers["cache-control"]
        assert response.headers["content-encoding"] in ("br", "gzip") and response.content == content
    assert httpx.get(f"{server.url}/{URL}/look.mjs", headers={"Accept-Encoding": "br"}).content == expected["look.mjs"]
    for path in ("learn/routes.py", "../settings/__init__.py", "learn/", "../../app.py", "look", "none.css"):
        assert httpx.get(f"{server.url}/{URL}/{path}").status_code == 404
    assert httpx.get(f"{server.url}/learn/sources/11.json").status_code == 404


def test_lessons_need_the_key(launch: Callable[..., Server], checkpoints: Path) -> None:
    server = launch(checkpoints / "tiny", api_key="open-sesame")
    assert post(server, "self-attention").status_code == 401
    headers = {"Authorization": "Bearer open-sesame"}
    answer = httpx.post(f"{server.url}/learn/self-attention", json={"sentence": "a b"}, headers=headers)
    assert answer.status_code == 200


def test_full_training_queue_answers_429_with_retry_after(server: Server) -> None:
    with ExitStack() as trainings:
        lines: list[Iterator[str]] = []  # a forgotten one would be closed
        body = {"training_text": "to be or not to be " * 100, "sentence": "a", "steps": MAX_BIGRAM_STEPS}
        for i in range(MAX_BIGRAMS + MAX_WAITING_BIGRAMS):
            stream = httpx.stream("POST", f"{server.url}/learn/bigram", json=body, timeout=60)
            lines.append(trainings.enter_context(stream).iter_lines())
            if i < MAX_BIGRAMS:
                next(lines[-1])
        refused = post(server, "bigram", **body)
        assert refused.status_code == 429 and int(refused.headers["retry-after"]) > 0
        with httpx.Client(transport=httpx.HTTPTransport(local_address="127.0.0.9"), timeout=60) as elsewhere:
            asked = body | {"steps": 1}
            with elsewhere.stream("POST", f"{server.url}/learn/bigram", json=asked) as answer:
                assert answer.status_code == 200
                assert json.loads(next(lines[-1]))["stage"] == "failed"  # the newest of the address with the most


def test_words_and_punctuation_marks_are_counted_apart(server: Server) -> None:
    note = post(server, "self-attention", sentence="one two, " * 8).json()["note"]
    assert note.startswith("Your sentence has 24 tokens: 16 words and 8 punctuation marks; the pictures show the first")


def test_arithmetic_of_every_number_adds_up(server: Server) -> None:
    """The terms of each stage add up to the numbers that the rung shows."""
    place = {"model": "tiny", "layer": 1, "head": 2, "query": 5}
    whole = post(server, "whole-model", **place).json()
    assert max(whole["errors"].values()) <= 1e-4 and whole["error"] <= 1e-4
    shown = whole["vectors"] | whole["of_head"] | {"last_x": whole["end"]["x"], "last_norm": whole["end"]["normed"]}
    shown |= {name: whole["embedding"][name] for name in ("token", "position")}
    assert len(shown) == 18
    for stage, values in shown.items():
        for index in (0, len(values) - 1):
            found = post(server, "number", **place, stage=stage, index=index).json()
            assert found["total"] == pytest.approx(values[index], abs=1e-4), stage
            if found["kind"] == "dot":
                parts = sum(found["products"]) + (found["rest"] or 0) + (found["bias"] or 0)
                assert parts == pytest.approx(found["total"], abs=1e-4)
    for token in whole["end"]["next"]:
        for stage, expected in (("logit", token["logit"]), ("probability", token["p"])):
            found = post(server, "number", **place, stage=stage, index=token["id"]).json()
            assert found["total"] == pytest.approx(expected, abs=1e-4)
    assert "There is no stage" in post(server, "number", **place, stage="nothing").json()["detail"]
    size = whole["vocab_size"]
    refused = post(server, "number", **place, stage="logit", index=size)
    assert refused.json()["detail"] == f"index must be an integer from 0 to {size - 1}, found {size}"


def test_shown_probabilities_are_the_models(server: Server) -> None:
    loaded = server.services.served.models["tiny"]
    trace = loaded.trace("To be or not")
    end = post(server, "whole-model", model="tiny", query=4).json()["end"]
    probabilities = trace.logits[4].softmax(dim=-1)
    assert end["next"][0]["id"] == int(probabilities.argmax())
    for token in end["next"]:
        assert token["p"] == pytest.approx(float(probabilities[token["id"]]), abs=1e-6)
    assert end["follower"] == trace.tokens[5].id
    assert end["surprise"] == pytest.approx(-float(probabilities[end["follower"]].log()), abs=1e-4)


def test_three_numbers_say_how_much_of_the_similarity_they_keep(server: Server) -> None:
    trained = post(server, "self-attention", vectors="trained", model="tiny").json()
    x = torch.tensor(trained["x"])
    wte = server.services.served.models["tiny"].gpt.wte.weight
    tokenizer = server.services.served.models["tiny"].tokenizer
    means = [wte[torch.tensor(tokenizer.encode(word))].mean(dim=0) for word in trained["words"]]
    whole = torch.stack([2 * mean / mean.norm() for mean in means])
    i, j = divmod(int(((x @ x.T) - whole @ whole.T).abs().fill_diagonal_(0).argmax()), len(x))
    a, b = trained["words"][i], trained["words"][j]
    here, there = float(x[i] @ x[j]), float(whole[i] @ whole[j])
    changed = f"“{a}” · “{b}”, which changes most, is {here:.3f} here and {there:.3f} with all numbers."
    assert changed.replace("-", "−") in trained["reduced"]
    assert f"keep {float(x.square().sum()) / len(x) / 4:.0%} of" in trained["reduced"]
    assert post(server, "self-attention", vectors="random").json()["reduced"] == ""


def test_end_of_text_is_one_token_only_if_allowed(server: Server) -> None:
    plain, allowed = (
        post(server, "tokens", sentence="one<|endoftext|>two", allow_end_of_text=is_allowed).json()["pairs"]
        for is_allowed in (False, True)
    )
    special = allowed["end_of_text"]
    assert special["id"] == allowed["vocab_size"] - 1 and special["pieces"] > 1
    assert [token["id"] for token in allowed["tokens"]].count(special["id"]) == 1
    assert special["id"] not in [token["id"] for token in plain["tokens"]]
    assert plain["n"] == allowed["n"] - 1 + special["pieces"]


def test_masked_scores_of_wide_heads_lead_to_their_weights(server: Server) -> None:
    found = post(server, "many-heads", d_out=16).json()
    for scores, weights in zip(found["splits_scores"], found["splits_weights"], strict=True):
        masked = torch.tensor([[-torch.inf if score is None else score for score in row] for row in scores])
        torch.testing.assert_close((masked * 8**-0.5).softmax(dim=-1), torch.tensor(weights))


def test_a_trained_model_is_compared_with_counted_pairs(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    assert post(server, "whole-model", model="tiny").json()["story"]["bigram"] is None
    report = {"best_validation_loss": 1.5, "bigram_validation_loss": 2.5}
    monkeypatch.setattr("web.learn.whole_model.read_report", lambda _: report)
    story = post(server, "whole-model", model="tiny").json()["story"]
    assert (story["model"], story["bigram"]) == (1.5, 2.5)


@pytest.mark.parametrize(
    "settings", [{}, {"temperature": 0.5, "top_k": 5}, {"temperature": 1.7, "top_p": 0.6}, {"temperature": 0}]
)
def test_tokens_are_drawn_as_the_model_writes(server: Server, settings: dict[str, float]) -> None:
    loaded = server.services.served.models["tiny"]
    ids = loaded.tokenizer.encode("To be or not")
    for seed in range(5):
        [step] = loaded.generate(ids, 1, seed=seed, **settings)
        found = post(server, "draw", model="tiny", seed=seed, **settings).json()
        # A text is drawn by the generator of its first prompt and choice, which is that of the seed.
        assert found["drawn"]["id"] == step.token_id
        assert found["continued"] == "To be or not" + step.text
    logits = loaded.trace(ids).logits[-1]
    expected = probabilities(logits, SamplingSettings(**settings))
    many = post(server, "draw", model="tiny", draws=1_000, **settings).json()
    generator, counts = random_generator(1), Counter()
    for _ in range(1_000):
        counts[sample(logits, SamplingSettings(**settings), generator)] += 1
    assert [token["n"] for token in many["tokens"]] == [counts[token["id"]] for token in many["tokens"]]
    assert many["others"]["n"] == 1_000 - sum(token["n"] for token in many["tokens"])
    assert many["n_possible"] == int((expected > 0).sum())
    for token in many["tokens"]:
        assert token["drawn_with"] == pytest.approx(float(expected[token["id"]]), abs=1e-6)
    for token_id in (token["id"] for token in many["tokens"]):
        expected[token_id] = 0
    assert many["others"]["drawn_with"] == pytest.approx(float(expected.sum()), abs=1e-6)
    within = post(server, "draw", query=3).json()
    assert within["continued"] is None
    shown, end = within["tokens"], post(server, "whole-model", query=3).json()["end"]
    assert [token["id"] for token in shown] == [token["id"] for token in end["next"]]
    assert end["follower"] in [token["id"] for token in shown]
    assert sum(token["p"] for token in shown) + within["others"]["p"] == pytest.approx(1, abs=1e-5)
    assert post(server, "draw", sentence="a" * 64).json()["continued"] is None  # the context is full


def test_tokens_that_cannot_be_drawn_have_exactly_no_probability(server: Server) -> None:
    for top_k in range(1, 11):
        others = post(server, "draw", top_k=top_k, temperature=0.9).json()["others"]
        assert others["drawn_with"] == 0 < others["p"], top_k  # not 1 minus a sum, which is rounded


def test_swapped_words_take_their_numbers_along(server: Server) -> None:
    first, swapped = (post(server, "self-attention", swapped=swapped).json() for swapped in (False, True))
    assert (first["pair"], first["swapped"]) == ([1, 3], False)
    assert swapped["words"] == ["To", "not", "or", "be"] and swapped["order_error"] < 1e-6
    assert [swapped["x"][i] for i in (0, 3, 2, 1)] == first["x"]
    marked = post(server, "self-attention", sentence="Oh no!", swapped=True).json()
    assert marked["words"] == ["no", "Oh", "!"]
    single = post(server, "self-attention", sentence="Oh!", swapped=True).json()
    assert (single["words"], single["pair"], single["swapped"]) == (["Oh", "!"], None, False)


def test_scores_in_place_of_the_zeros(server: Server) -> None:
    equal = post(server, "averages", lecture=False).json()
    assert equal["edited_scores"] == 0
    assert_close(equal["softmax_weights"], equal["weights"], atol=1e-6)
    scores = [[9.0] * 4, [0, 1, 9, 9], [0] * 4, [0] * 4]
    changed = post(server, "averages", lecture=False, scores=scores).json()
    assert changed["edited_scores"] == 2  # those of the future are masked
    assert changed["masked"][1] == [0, 1, None, None]
    assert changed["softmax_weights"][1] == pytest.approx([1 / (1 + math.e), math.e / (1 + math.e), 0, 0])
    assert (changed["by_loop"], changed["weights"]) == (equal["by_loop"], equal["weights"])
    assert post(server, "averages", lecture=False, scores=[[1.0]]).json() == equal  # of another sentence
    assert post(server, "averages", lecture=False, scores=[[11.0]]).status_code == 422


def test_a_changed_mask_is_used(server: Server) -> None:
    causal = post(server, "causal-masking").json()
    assert causal["mask"] == [[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1]]
    # A word always sees itself, and a sentence may be shorter than the one before.
    flipped = [[0, 2], [3, 1], [2, 2], [9, 0]]
    found = post(server, "causal-masking", flipped=flipped).json()
    assert found["mask"] == [[1, 0, 1, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 0, 1, 1]]
    scores, mask = torch.tensor(found["scores"]), torch.tensor(found["mask"])
    expected = (found["scale"] * scores).exp() * mask
    torch.testing.assert_close(torch.tensor(found["weights"]), expected / expected.sum(dim=1, keepdim=True))
    assert found["error"] < 1e-6
    assert [found["weights"][row] == causal["weights"][row] for row in range(4)] == [False, True, True, False]


def test_changed_numbers_are_used(server: Server) -> None:
    assert post(server, "self-attention", x=[[1, 2, 3]] * 3).json()["detail"] == "x must be 4 rows of 3 numbers"
    assert post(server, "self-attention", x=[[1, 2, 11]] * 4).status_code == 422
    changed = post(server, "self-attention", x=[[1, 2, 3]] * 4).json()
    assert changed["edited"] == 12 and changed["scores"] == [[14.0] * 4] * 4
