"""/v1/lens/patch, composition, paths, role-paths, difference and passages: correct numbers, and invalid input."""

from typing import Any

import httpx
import pytest
import torch
from gradio_client import Client
from gradio_client.exceptions import AppError

from helpers.models import max_difference
from helpers.server import Server
from model import LoadedModel
from model.lens.composition import composition
from model.lens.difference import attention_difference
from model.lens.head_roles import N_TEXTS, repeated_tokens
from model.lens.interventions.patch_run import DIRECTIONS
from model.lens.interventions.patching import patch, patch_site
from model.lens.interventions.paths import cut_paths, patch_paths
from model.lens.interventions.reference import REFERENCE_NAME, contexts_of, mean_contexts, shipped_passages
from model.lens.interventions.role_paths import role_cuts
from model.lens.interventions.sites import SITES
from model.lens.neurons import follow_neuron
from model.lens.passages import PATTERNS, firing, mark_tokens, pattern_counts
from model.lens.text_pass import TextPass
from model.lens.token_circuits import eigenvalue_score, vocabulary_circuit
from web.ask.fields import MAX_LONG_TEXT_BYTES

CLEAN, CORRUPTED = "so it is", "so he is"
PATCH = {"corrupted": CORRUPTED, "answer": "a", "wrong": "b"}
LONG = 'Tom ran. "Hi!" said a big dog.\n' * 9


@pytest.fixture(scope="module")
def tiny(server: Server) -> LoadedModel:
    return server.served.models["tiny"]


def post(server: Server, name: str, **body: Any) -> httpx.Response:
    text = {} if {"text", "tokens"} & body.keys() else {"prompt": CLEAN}
    return httpx.post(f"{server.url}/v1/lens/{name}", json={"model": "tiny"} | text | body, timeout=60)


def get(server: Server, name: str, **query: Any) -> httpx.Response:
    return httpx.get(f"{server.url}/v1/lens/{name}", params={"model": "tiny"} | query, timeout=60)


def text_of(loaded: LoadedModel, text: str) -> TextPass:
    return TextPass(loaded.gpt, loaded.tokenizer.encode(text))


def same(found: Any, expected: torch.Tensor) -> bool:
    return max_difference(torch.tensor(found), expected) < 1e-5


def test_patching_equals_the_library(server: Server, tiny: LoadedModel) -> None:
    ids = {name: tiny.tokenizer.encode(name)[0] for name in "ab"}
    expected = patch(text_of(tiny, CLEAN), text_of(tiny, CORRUPTED), answer=ids["a"], wrong=ids["b"])
    found = post(server, "patch", **PATCH).json()
    assert (found["clean"], found["corrupted"]) == pytest.approx((expected.clean, expected.corrupted), abs=1e-5)
    assert same(found["raw"]["heads"], expected.raw["heads"]) and same(
        found["raw"]["residual"], expected.raw["residual"]
    )
    assert max_difference(torch.tensor(found["heads"]), expected.heads) < 1e-4
    assert max_difference(torch.tensor(found["residual"]), expected.residual) < 1e-4
    assert found["answer"] == {"id": ids["a"], "text": "a"} and found["wrong"]["text"] == "b"
    assert "".join(token["text"] for token in found["corrupted_tokens"]) == CORRUPTED
    likely = {name: tiny.trace(text).logits[-1].clone() for name, text in (("answer", CLEAN), ("wrong", CORRUPTED))}
    likely["wrong"][likely["answer"].argmax()] = -torch.inf
    guessed = post(server, "patch", corrupted=CORRUPTED).json()
    assert [guessed[name]["id"] for name in likely] == [int(logits.argmax()) for logits in likely.values()]
    by_id = {"answer": ids["a"], "wrong": ids["b"], "corrupted_tokens": tiny.tokenizer.encode(CORRUPTED)}
    assert post(server, "patch", **by_id).json() == found
    assert found["direction"] == "denoise" and found["joint"] is None and found["raw"]["joint"] is None


def test_patching_several_heads_and_the_reverse_direction(server: Server, tiny: LoadedModel) -> None:
    ids = {name: tiny.tokenizer.encode(name)[0] for name in "ab"}
    texts = text_of(tiny, CLEAN), text_of(tiny, CORRUPTED)
    heads = [[0, 1], [2, 3]]
    for direction in DIRECTIONS:
        expected = patch(*texts, answer=ids["a"], wrong=ids["b"], direction=direction, heads=[(0, 1), (2, 3)])
        found = post(server, "patch", **PATCH, direction=direction, heads=heads).json()
        assert found["direction"] == direction and same(found["raw"]["heads"], expected.raw["heads"])
        assert found["raw"]["joint"] == pytest.approx(expected.raw["joint"], abs=1e-5)
        assert found["joint"] == pytest.approx(expected.joint, abs=1e-4)
        alone = post(server, "patch", **PATCH, direction=direction, heads=heads, grid=False).json()
        assert alone["joint"] == found["joint"] and alone["heads"] is None and alone["raw"]["residual"] is None


@pytest.mark.parametrize(
    ("body", "param", "code", "message"),
    [
        ({"corrupted": "so he"}, "corrupted", "invalid_value", "prompt has 8, corrupted has 5"),
        ({"corrupted": CLEAN}, "corrupted", "invalid_value", "Both prompts are the same"),
        ({"corrupted": None}, "corrupted", "invalid_value", "needed"),
        ({"corrupted": "so hé is"}, "corrupted", "unknown_characters", "é"),
        ({"corrupted": ""}, "corrupted", "empty_prompt", ""),
        ({"answer": "ab"}, "answer", "invalid_value", "a single token, found 2: 'a', 'b'"),
        ({"wrong": ""}, "wrong", "invalid_value", "found none"),
        ({"wrong": 96}, "wrong", "invalid_value", "from 0 to 95"),
        ({"wrong": "a"}, "wrong", "invalid_value", "two different tokens"),
        ({"heads": [[0, 1], [3, 0]]}, "heads", "invalid_value", "found 'layer 3, head 0'"),
        ({"grid": False}, "grid", "invalid_value", "heads must name the heads to patch together"),
    ],
)
def test_impossible_patches_are_refused(
    server: Server, body: dict[str, Any], param: str, code: str, message: str
) -> None:
    answer = post(server, "patch", **PATCH | body)
    error = answer.json()["error"]
    assert (answer.status_code, error["param"], error["code"]) == (400, param, code) and message in error["message"]


@pytest.mark.parametrize("centred", [False, True])
def test_composition_equals_the_library(server: Server, tiny: LoadedModel, centred: bool) -> None:
    found = get(server, "composition", centred=centred).json()
    expected = composition(tiny.gpt, centred=centred)
    for way, layers in expected.scores.items():
        assert [len(layer[0]) for layer in found[way]] == [0, 1, 2]
        assert all(same(one, other) for one, other in zip(found[way][1:], layers[1:], strict=True))
        pairs = zip(found["deviations"][way][1:], expected.deviations[way][1:], strict=True)
        assert all(same(one, other) for one, other in pairs)
    assert found["chance"] == pytest.approx(expected.chance) and found["centred"] is centred
    assert found["distance"] == 0


def test_paths_equal_the_library(server: Server, tiny: LoadedModel) -> None:
    found = post(server, "paths", layer=2, head=1).json()
    reference = mean_contexts(tiny.gpt, shipped_passages(tiny))
    expected = cut_paths(text_of(tiny, CLEAN), layer=2, head=1, reference=reference).moved
    assert all(same(found[route][way], effect) for route, ways in expected.items() for way, effect in ways.items())
    assert found["method"] == "mean" and found["reference"]["name"] == REFERENCE_NAME and found["patched"] is None
    assert post(server, "paths", layer=0, head=1).json()["direct"]["k"] == []
    for wrong, field in (({"layer": 3, "head": 0}, "layer"), ({"layer": 0, "head": 4}, "head")):
        assert post(server, "paths", **wrong).json()["error"]["param"] == field


def test_path_patching_equals_the_library(server: Server, tiny: LoadedModel) -> None:
    ids = {name: tiny.tokenizer.encode(name)[0] for name in "ab"}
    texts = text_of(tiny, CLEAN), text_of(tiny, CORRUPTED)
    for direction in DIRECTIONS:
        found = post(server, "paths", layer=2, head=1, **PATCH, direction=direction).json()
        expected = patch_paths(*texts, layer=2, head=1, answer=ids["a"], wrong=ids["b"], direction=direction)
        for route, ways in (("direct", expected.direct), ("mlps", expected.mlps), ("every", expected.every)):
            assert all(same(found["patched"][route][way], each) for way, each in ways.items())
        moved = cut_paths(texts[0], layer=2, head=1, method="resample", reference=contexts_of(texts[1])).moved
        assert all(same(found[route][way], each) for route, ways in moved.items() for way, each in ways.items())
        assert found["method"] == "resample" and found["patched"]["direction"] == direction
    for body, param in (
        ({"corrupted": "so he"}, "corrupted"),
        ({"corrupted": None}, "answer"),
        ({"method": "zero"}, "method"),
        ({"wrong": "a"}, "wrong"),
    ):
        error = post(server, "paths", layer=2, head=1, **PATCH | body).json()["error"]
        assert (error["param"], error["code"]) == (param, "invalid_value")


@pytest.mark.parametrize("method", ["exact", "attribution", "both"])
def test_patching_a_site_equals_the_library(server: Server, tiny: LoadedModel, method: str) -> None:
    ids = {name: tiny.tokenizer.encode(name)[0] for name in "ab"}
    texts, neurons = (text_of(tiny, CLEAN), text_of(tiny, CORRUPTED)), [[0, 5], [2, 1]]
    for site, positions, more in (
        ("v", "all", {}),
        ("hook_mlp_out", "each", {}),
        ("mlp_post", "all", {"neurons": neurons}),
    ):
        found = post(server, "patch", **PATCH, site=site, positions=positions, method=method, **more).json()["site"]
        expected = patch_site(
            *texts,
            answer=ids["a"],
            wrong=ids["b"],
            site=site,
            positions=positions,
            neurons=[(0, 5), (2, 1)] if more else None,
            exact=method != "attribution",
            estimate=method != "exact",
        )
        for name, numbers in (("exact", expected.exact), ("estimate", expected.estimate)):
            if numbers is None:
                assert found[name] is None
            else:
                assert max_difference(torch.tensor(found[name]), numbers) < 1e-4
        assert found["axes"] == list(expected.axes) and (found["correlation"] is None) == (method != "both")
        assert found["name"] in SITES and found["hook"] == SITES[found["name"]].hook


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"site": "hook_nothing"}, "site"),
        ({"positions": "all"}, "positions"),
        ({"method": "both"}, "method"),
        ({"neurons": [[0, 1]]}, "neurons"),
        ({"site": "z", "neurons": [[0, 1]]}, "neurons"),
        ({"site": "mlp_post"}, "neurons"),
        ({"site": "mlp_post", "neurons": [[3, 0]]}, "neurons"),
    ],
)
def test_bad_sites_are_refused(server: Server, body: dict[str, Any], param: str) -> None:
    error = post(server, "patch", **PATCH | body).json()["error"]
    assert error["param"] == param and error["code"] == "invalid_value"


def test_role_paths_equal_the_library(server: Server, tiny: LoadedModel) -> None:
    found = get(server, "role-paths", layer=2, head=1, way="q").json()
    texts = [TextPass(tiny.gpt, ids) for ids in repeated_tokens(tiny, N_TEXTS, 32, 0).tolist()]
    expected = role_cuts(texts, layer=2, head=1, way="q")
    assert found["plain"] == pytest.approx(expected.plain, abs=1e-6)
    scores = get(server, "roles").json()["heads"][2][1]["scores"]  # the same number everywhere
    assert found["plain"] == pytest.approx({role: scores[role] for role in found["plain"]}, abs=1e-5)
    assert all(same(found[route][role], s) for route, roles in expected.cut.items() for role, s in roles.items())
    assert get(server, "role-paths", layer=2, head=9).json()["error"]["param"] == "head"


@pytest.mark.parametrize(
    "asked",
    [
        {"circuit": "ov"},
        {"circuit": "ov", "earlier": (1, 3), "token": 5, "top": 7},
        {"circuit": "qk", "earlier": (0, 2), "side": "k", "top": 1000},
    ],
    ids=str,
)
def test_token_circuits_equal_the_library(server: Server, tiny: LoadedModel, asked: dict[str, Any]) -> None:
    earlier = asked.get("earlier")
    query = {name: value for name, value in asked.items() if name != "earlier"}
    query |= {"earlier_layer": earlier[0], "earlier_head": earlier[1]} if earlier else {}
    found = get(server, "token-circuit", layer=2, head=1, **query).json()
    given = {name: value for name, value in asked.items() if name not in ("token", "top")}
    expected = vocabulary_circuit(tiny.gpt, layer=2, head=1, **given)
    pairs = expected.largest(asked.get("top", 20), asked.get("token"))
    assert [pair["value"] for pair in found["pairs"]] == pytest.approx(pairs.value.tolist(), abs=1e-5)
    assert [pair["source"]["id"] for pair in found["pairs"]] == pairs.source.tolist()
    texts = [tiny.tokenizer.decode([token]) for token in pairs.target.tolist()]
    assert [pair["target"]["text"] for pair in found["pairs"]] == texts
    eigenvalues = [complex(*each) for each in found["eigenvalues"]]
    assert eigenvalues == pytest.approx(expected.eigenvalues().tolist(), abs=1e-5)
    assert found["eigenvalue_score"] == pytest.approx(eigenvalue_score(expected.eigenvalues()), abs=1e-6)


@pytest.mark.parametrize(
    ("asked", "param"),
    [
        ({"layer": 3}, "layer"),
        ({"earlier_layer": 0}, "earlier_head"),
        ({"earlier_layer": 2, "earlier_head": 0}, "earlier_layer"),
        ({"side": "q"}, "side"),
        ({"distance": 1}, "distance"),
        ({"circuit": "vo"}, "circuit"),
        ({"token": 96}, "token"),
        ({"top": 1001}, "top"),
    ],
)
def test_impossible_token_circuits_are_refused(server: Server, asked: dict[str, Any], param: str) -> None:
    answer = get(server, "token-circuit", **{"layer": 2, "head": 1} | asked)
    assert answer.status_code == 400 and answer.json()["error"]["param"] == param


PAIRS = [
    {"prompt": CLEAN, "corrupted": CORRUPTED, "answer": "a", "wrong": "b"},
    {"prompt": "as it was here", "corrupted": "as he was here"},
]


@pytest.mark.slow
def test_circuits_equal_the_library(server: Server, tiny: LoadedModel) -> None:
    found = httpx.post(f"{server.url}/v1/lens/circuit", json={"model": "tiny", "prompts": PAIRS}, timeout=60).json()
    expected = tiny.circuit(PAIRS).to_dict()
    assert found["kept"] == pytest.approx(expected["kept"], abs=1e-5)
    assert found["without_heads"] == pytest.approx(expected["without_heads"], abs=1e-5)
    assert [edge["sender"] for edge in found["edges"]] == [list(edge["sender"]) for edge in expected["edges"]]
    assert [edge["lost"] for edge in found["edges"]] == pytest.approx([edge["lost"] for edge in expected["edges"]])
    for head, same_head in zip(found["heads"], expected["heads"], strict=True):
        assert [head[name] for name in ("layer", "head", "key")] == [
            same_head[each] for each in ("layer", "head", "key")
        ]
        assert head["reads"]["text"] == CLEAN[head["key"]]
        assert head["reads"] == same_head["reads"] and head["promoted"] == same_head["promoted"]
    for pair, same_pair in zip(found["pairs"], expected["pairs"], strict=True):
        assert (pair["answer"], pair["wrong"]) == (same_pair["answer"], same_pair["wrong"])
        assert pair["kept"] == pytest.approx(same_pair["kept"], abs=1e-5)
    assert list(found)[1] == "kept"  # after the model
    rows = [PAIRS[0] | {"wrong": "a"}, *PAIRS]  # whose first has no difference
    more = httpx.post(f"{server.url}/v1/lens/circuit", json={"model": "tiny", "prompts": rows}, timeout=60).json()
    assert more["kept"] == found["kept"] and [pair["row"] for pair in more["pairs"]] == [1, 2]
    assert more["left_out"] == [{"row": 0, "error": "answer and wrong must be two different tokens."}]


@pytest.mark.parametrize(
    ("rows", "param"),
    [
        ([PAIRS[0], {"prompt": CLEAN}], "prompts[1].corrupted"),
        ([PAIRS[0] | {"corrupted": "so"}], "prompts[0].corrupted"),
        ([PAIRS[0] | {"wrong": "a"}], "prompts"),
        ([PAIRS[0] | {"answer": "ab"}], "prompts[0].answer"),
        (["so it is"], "prompts[0].corrupted"),
        ([PAIRS[0], {**PAIRS[0], "answer": "b", "wrong": "a"}], "corrupted"),
        ([PAIRS[0]] * 101, "prompts"),
        ([], "prompts"),
    ],
)
def test_pairs_without_a_circuit_are_refused(server: Server, rows: list[Any], param: str) -> None:
    answer = httpx.post(f"{server.url}/v1/lens/circuit", json={"model": "tiny", "prompts": rows}, timeout=60)
    assert answer.status_code == 400 and answer.json()["error"]["param"] == param


def test_neurons_equal_the_library(server: Server, tiny: LoadedModel) -> None:
    found = post(server, "neuron", text=LONG, layer=1, neuron=5, top=3).json()
    ids = tiny.tokenizer.encode(LONG)
    expected = follow_neuron(tiny.gpt, ids, layer=1, neuron=5, top=3)
    for name, places in (("highest", expected.highest), ("lowest", expected.lowest)):
        assert [place["position"] for place in found[name]] == [place.position for place in places]
        for told, place in zip(found[name], places, strict=True):
            assert told["activation"] == pytest.approx(place.activation, abs=1e-5)
            assert told["activations"] == pytest.approx(place.activations, abs=1e-5)
            text = "".join(token["text"] for token in told["tokens"])
            assert text == LONG[told["start"] : told["start"] + len(text)] and len(text) == len(place.activations)
    writes = expected.writes
    assert [token["id"] for token in found["promotes"]] == writes.promoted.tolist()
    assert [token["logit"] for token in found["suppresses"]] == pytest.approx(writes.lowered.tolist(), abs=1e-5)
    assert found["n_tokens"] == len(ids) and found["mean"] == pytest.approx(expected.mean, abs=1e-6)
    for wrong, param in (({"neuron": 4_000}, "neuron"), ({"layer": 3}, "layer"), ({"text": "é"}, "text")):
        body = {"text": LONG, "layer": 1, "neuron": 5} | wrong
        assert post(server, "neuron", **body).json()["error"]["param"] == param


def test_difference_equals_the_library(server: Server, tiny: LoadedModel) -> None:
    found = post(server, "difference", other="so that is").json()
    expected = attention_difference(text_of(tiny, CLEAN), text_of(tiny, "so that is"))
    assert same(found["heads"], expected.heads) and found["most"] == expected.most.tolist()
    assert [tuple(pair) for pair in found["pairs"]] == expected.pairs
    assert [tuple(place) for place in found["largest"]] == expected.largest()
    assert post(server, "difference").json()["heads"] == [[0.0] * 4] * 3
    assert post(server, "difference", other_model="slow").json()["other_model"] == "slow"
    for body, param in (
        ({"other_model": "other"}, "other"),  # of another shape
        ({"other_model": "nobody"}, "other_model"),
        ({"other": "é"}, "other"),
        ({"other": "xyz"}, "other"),
    ):
        assert post(server, "difference", **body).json()["error"]["param"] == param


def test_passages_equal_the_library(server: Server, tiny: LoadedModel) -> None:
    found = post(server, "passages", text=LONG).json()
    ids = tiny.tokenizer.encode(LONG)
    marks = mark_tokens(tiny.tokenizer, ids)
    expected = firing(tiny.gpt, marks)
    assert found["n_tokens"] == len(ids) and found["patterns"] == list(PATTERNS)
    for measure, strongest in expected.strongest.items():
        shares = pattern_counts(strongest, marks)
        for layer in range(3):
            for head in range(4):
                told = found["heads"][layer][head][measure]
                assert told["histogram"] == strongest.histogram[layer, head].tolist()
                assert told["share"] == shares[layer, head].tolist()
                for i, passage in enumerate(told["passages"]):
                    assert passage["value"] == pytest.approx(float(strongest.value[layer, head, i]), abs=1e-6)
                    assert passage["query"] == strongest.query[layer, head, i]
                    window = found["windows"][passage["window"]]
                    assert window["start"] == strongest.window[layer, head, i]
                    inside = slice(window["start"], window["start"] + len(window["tokens"]))
                    assert window["tokens"] == ids[inside] and passage["query"] in range(*inside.indices(len(ids)))
    assert {int(token): text for token, text in found["texts"].items()} == {i: LONG[ids.index(i)] for i in set(ids)}
    assert len(found["map"]["points"]) == 3 and len(found["map"]["features"]) == len(found["map"]["axes"][0])


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("", "invalid_value", "at least two tokens"),
        ("é" * 9, "unknown_characters", "é"),
        ("a" * (MAX_LONG_TEXT_BYTES + 1), "invalid_value", "1,000,001 bytes"),
    ],
)
def test_texts_too_short_for_passages_are_refused(server: Server, text: str, code: str, message: str) -> None:
    answer = post(server, "passages", text=text)
    error = answer.json()["error"]
    assert (answer.status_code, error["param"], error["code"]) == (400, "text", code) and message in error["message"]


def test_only_passages_accept_longer_bodies(server: Server) -> None:
    """The body is larger than others may be, but is refused for its content."""
    for name, status in (("passages", 400), ("patch", 413)):
        assert post(server, name, text="é" * 200_000).status_code == status
    assert post(server, "passages", text="a" * (3 * MAX_LONG_TEXT_BYTES)).status_code == 413


def test_gradio_endpoints_give_the_same_answers(server: Server) -> None:
    client = Client(server.url, verbose=False)
    assert client.predict(CLEAN, **PATCH, api_name="/patch") == post(server, "patch", **PATCH).json()
    assert client.predict("tiny", api_name="/composition") == get(server, "composition").json()
    assert client.predict(CLEAN, layer=2, head=1, api_name="/paths") == post(server, "paths", layer=2, head=1).json()
    assert client.predict(CLEAN, "so he is", api_name="/difference")["heads"][0][0] >= 0
    assert client.predict(LONG, api_name="/passages")["n_tokens"] == len(LONG)
    with pytest.raises(AppError, match="single token"):
        client.predict(CLEAN, **PATCH | {"answer": "ab"}, api_name="/patch")
    client.close()
