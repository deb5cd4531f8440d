"""The requests of a comparison: reading a text again, and the heads that attend differently."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
import torch

from helpers.links import encode_ids
from helpers.models import tiny_model
from helpers.runs import PROMPT, frame, lower, write_text
from helpers.server import Server, save_tiny
from model import load
from model.checkpoint.write import write_snapshot
from model.tokenizer import BPETokenizer

MASK = [[1.0, 0.0, 1.0, 1.0], [1.0, 1.0, 0.5, 1.0], [1.0, 1.0, 1.0, 1.0]]


def read(server: Server, **changes: Any) -> httpx.Response:
    loaded = server.served.models["tiny"]
    body = {"sha256": loaded.sha256, "ids": loaded.parse_prompt(PROMPT), "n_prompt": 5, "model": "tiny"}
    return httpx.post(f"{server.url}/look/read", json=body | changes)


def weights(server: Server, pointer: dict[str, Any], layer: int, head: int) -> torch.Tensor:
    content = httpx.get(f"{server.url}/look/{pointer['run']}/heads/{layer}/{head}").content
    return torch.from_numpy(np.frombuffer(content, np.float32).copy())


def test_text_read_with_scaled_heads(server: Server) -> None:
    loaded = server.served.models["tiny"]
    pointer = read(server, head_mask=MASK).json()
    assert (pointer["state"], pointer["n_prompt"], pointer["head_mask"]) == ("read", 5, MASK)
    trace = loaded.trace(PROMPT, head_mask=MASK)
    body = {"sha256": loaded.sha256, "ids": loaded.parse_prompt(PROMPT), "n_prompt": 5, "head_mask": MASK}
    for layer, head in ((0, 1), (1, 0), (2, 3)):
        expected = lower(trace.attention[layer, head])
        torch.testing.assert_close(weights(server, pointer, layer, head), expected, atol=5e-6, rtol=0)
        again = httpx.post(f"{server.url}/look/again/heads/{layer}/{head}", json=body).content
        np.testing.assert_allclose(np.frombuffer(again, np.float32), expected, atol=5e-6)
    logits = httpx.get(f"{server.url}/look/{pointer['run']}/logits/7").content
    np.testing.assert_allclose(np.frombuffer(logits, np.float32), trace.logits[7], atol=1e-5)
    assert read(server).json()["run"] != pointer["run"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"sha256": "0" * 64}, "no longer served"),
        ({"model": "nobody"}, "There is no model 'nobody'"),
        ({"model": "tiny@7"}, "tiny has no snapshots"),
        ({"ids": []}, "empty"),
        ({"ids": [10_000]}, "10000"),
        ({"head_mask": [[0.0]]}, "(n_layer, n_head) = (3, 4)"),
    ],
)
def test_unreadable_texts_are_refused(server: Server, changes: dict[str, Any], said: str) -> None:
    answer = read(server, **changes)
    assert answer.status_code == 400 and said in answer.json()["detail"]


def test_text_given_by_a_visitor_is_read(server: Server) -> None:
    loaded = server.served.models["tiny"]
    pointer = read(server, ids=[], text="now or never").json()
    assert (pointer["state"], pointer["n_prompt"], pointer["tokens"]) == ("read", 5, 12)
    header, _ = frame(httpx.get(f"{server.url}/look/{pointer['run']}/rows").content)
    assert header["ids"] == loaded.parse_prompt("now or never")
    assert (read(server, text="no").json()["n_prompt"], read(server, text="n").json()["n_prompt"]) == (1, 1)
    context_length = loaded.config.context_length
    assert read(server, text="a" * context_length).json()["tokens"] == context_length
    for text, said in (
        ("", "empty"),
        ("a" * (context_length + 1), f"{context_length + 1} tokens, but this model reads at most {context_length}"),
        ("café", "has never seen 'é'"),
        ("a" * (server.services.limits.max_prompt_characters + 1), "characters; at most"),
    ):
        answer = read(server, text=text)
        assert answer.status_code == 400 and said in answer.json()["detail"], text[:10]


def test_texts_of_two_models_are_compared(launch: Callable[..., Server], tmp_path: Path) -> None:
    tokenizer = BPETokenizer.train([PROMPT, "afeard of nothing"] * 3, 270)
    tiny_model(3, tokenizer, n_embd=32, context_length=4).save(tmp_path / "pieces")
    save_tiny(tmp_path / "tiny", n_layer=3, n_head=4)
    other = load(save_tiny(tmp_path / "other", seed=5, n_layer=3, n_head=4))
    write_snapshot(tmp_path / "tiny", 16, other.config, other.gpt.state_dict())
    early = load(tmp_path / "tiny@000016")
    server = launch(tmp_path / "tiny", tmp_path / "pieces")
    header, _ = frame(httpx.get(f"{server.url}/look/{read(server, model='pieces').json()['run']}/rows").content)
    assert PROMPT.startswith("".join(header["tokens"])) and len(header["tokens"]) == 4  # as many as fit
    assert header["ids"] == tokenizer.encode(PROMPT)[:4]
    n_prompt = read(server, model="pieces").json()["n_prompt"]
    assert len(tokenizer.decode(header["ids"][:n_prompt])) >= 5 > len(tokenizer.decode(header["ids"][: n_prompt - 1]))
    pointer = read(server, model="tiny@16").json()
    assert pointer["model"] == "tiny@16"
    expected = lower(early.trace(server.served.models["tiny"].parse_prompt(PROMPT)).attention[1, 1])
    torch.testing.assert_close(weights(server, pointer, 1, 1), expected, atol=1e-5, rtol=0)
    ids = server.served.models["tiny"].parse_prompt(PROMPT)
    sides = [
        {"sha256": server.served.models[name].sha256, "ids": given, "n_tokens": 99, "n_prompt": 1}
        for name, given in (("tiny", ids), ("pieces", tokenizer.encode(PROMPT)[:4]))
    ]
    found = aligned(server, a=sides[0], b=sides[1]).json()
    lengths = [len(token.text) for token in server.served.models["pieces"].tokens(sides[1]["ids"])]
    starts = [sum(lengths[:i]) for i in range(4)]
    pieces = [[a, b, n_a, n_b] for a, b, n_a, n_b, _, count in found["pieces"] for _ in range(count)]
    assert [n_a for _, _, n_a, _ in pieces] == [n for n in lengths if n] and found["divergence"] is None, starts
    # Its weights are found by hash and by name, though they are no longer in memory.
    server.services.snapshots.cache.entries.clear()
    ids = server.served.models["tiny"].parse_prompt(PROMPT)
    query = {"model": "tiny@16", "sha256": pointer["sha256"][:16], "ids": encode_ids(ids), "prompt": 5}
    found = httpx.get(f"{server.url}/look/landing", params=query).json()
    assert (found["pointer"]["state"], found["pointer"]["model"]) == ("linked", "tiny@16")


def aligned(server: Server, **body: Any) -> httpx.Response:
    return httpx.post(f"{server.url}/look/alignment", json=body)


def test_alignment_route_equals_the_library(server: Server) -> None:
    loaded = server.served.models["tiny"]
    ids = loaded.parse_prompt(PROMPT)
    run = read(server).json()["run"]
    a = {"run": run, "sha256": loaded.sha256, "n_prompt": 5, "n_tokens": len(ids)}
    b = {"run": "gone", "sha256": loaded.sha256, "n_prompt": 5, "ids": ids[:3] + ids[4:], "n_tokens": len(ids) - 1}
    found = aligned(server, a=a, b=b, is_given=True).json()
    assert found == {"pieces": [[0, 0, 1, 1, 1, 3], [4, 3, 1, 1, 1, len(ids) - 4]], "divergence": 3}
    growing = aligned(server, a=a, b=b, is_growing=True).json()
    assert growing["divergence"] == 3 and sum(piece[-1] for piece in growing["pieces"]) == len(ids) - 1
    assert aligned(server, a=a | {"n_tokens": 2}, b=b).json() == {"pieces": [[0, 0, 1, 1, 1, 2]], "divergence": None}
    lost = aligned(server, a=a | {"run": "gone"}, b=b)
    assert lost.status_code == 404 and "no longer kept" in lost.json()["detail"]
    elsewhere = aligned(server, a=a, b=b | {"sha256": "0" * 64})
    assert elsewhere.status_code == 410 and "no longer served" in elsewhere.json()["detail"]


def test_differences_route_equals_the_library(server: Server) -> None:
    loaded = server.served.models["tiny"]
    ids = loaded.parse_prompt(PROMPT)
    side = {"sha256": loaded.sha256, "ids": ids, "n_prompt": 5, "run": "gone"}
    pieces = [[i, i + 1, i, i + 1, True] for i in range(len(ids))]
    body = {"a": side, "b": side | {"head_mask": MASK}, "pieces": pieces, "first": 2}
    heads = httpx.post(f"{server.url}/look/differences", json=body).json()["heads"]
    difference = loaded.trace(PROMPT, head_mask=MASK).attention - loaded.trace(PROMPT).attention
    expected = difference.abs().sum(-1)[..., 2:].mean(-1) / 2
    torch.testing.assert_close(torch.tensor(heads), expected, atol=1e-6, rtol=0)
    refused = httpx.post(
        f"{server.url}/look/differences", json=body | {"pieces": [[1, 2, 1, 2, True], [1, 2, 2, 3, True]]}
    )
    assert refused.status_code == 400 and "pieces must" in refused.json()["detail"]


def test_link_to_two_texts_restores_both(server: Server) -> None:
    loaded, other = server.served.models["tiny"], server.served.models["other"]
    ids = loaded.parse_prompt("to be or not")
    query = {"model": "tiny", "sha256": loaded.sha256[:16], "ids": encode_ids(ids), "prompt": 5}

    def second(**words: str) -> Any:
        return httpx.get(f"{server.url}/look/landing", params=query | words).json()

    assert second()["second"] is None
    muted = second(b_mask="0-1_1-2x50")
    assert muted["pointer"]["head_mask"] is None and muted["second"]["head_mask"] == MASK
    assert muted["second"]["tokens"] == len(ids) and muted["second"]["model"] == "tiny"
    elsewhere = second(b_model="other", b_sha256=other.sha256[:16], b_ids=encode_ids(ids[:7]), b_seed="9")["second"]
    assert (elsewhere["model"], elsewhere["tokens"], elsewhere["settings"]) == ("other", 7, {"seed": 9})
    settings = {"temperature": 0.8, "top_k": 0, "top_p": 1, "min_p": 0, "seed": 1}
    first = {"b_sha256": loaded.sha256[:16], "length": "20", **{word: str(value) for word, value in settings.items()}}
    written = second(**first, b_seed="9", b_temperature="0.5", b_length="7")
    assert written["settings"].items() >= (settings | {"max_new_tokens": 20}).items()
    own = {"temperature": 0.5, "seed": 9, "max_new_tokens": 7}
    assert written["second"]["settings"] == settings | own
    refused = second(**first, b_seed="9", b_temperature="99")
    assert refused["second"]["settings"] == {} and "settings" in refused["pointer"]["notices"][0]
    bad_masks = ("9-0", "0-9", "9", "0-1_", "0-1x7e9", "0-1x0.5", "9.0", "0.1_", "0.1x7e9")
    for broken in (*({"b_mask": mask} for mask in bad_masks), {"b_sha256": "0" * 16}, {"b_ids": ""}):
        found = second(**broken)
        assert found["second"] is None and "second text of this link" in found["pointer"]["notices"][0], broken
        assert found["pointer"]["state"] == "linked"
    masks = {"0-1_1-2x50": MASK, "2_0-1x150": [[1, 1.5, 1, 1], [1] * 4, [0] * 4], "all": None}
    masks["0.1_1.2x0.5"] = MASK  # in earlier links
    for mask, expected in masks.items():
        assert second(mask=mask)["pointer"]["head_mask"] == expected


def test_text_is_written_with_scaled_heads(server: Server) -> None:
    loaded = server.served.models["tiny"]
    pointers = write_text(server, head_mask=MASK)
    assert pointers[-1]["head_mask"] == MASK
    steps = loaded.generate("But soft", 12, temperature=0.8, seed=1, head_mask=MASK)
    header, _ = frame(httpx.get(f"{server.url}/look/{pointers[-1]['run']}/rows").content)
    assert "".join(header["tokens"]) == "But soft" + "".join(step.text for step in steps)


def test_logits_with_scaled_heads(server: Server) -> None:
    loaded = server.served.models["tiny"]
    ids = loaded.parse_prompt(PROMPT)
    body = {"sha256": loaded.sha256, "ids": ids, "n_prompt": 5, "head_mask": MASK}
    n_runs = len(server.services.runs.cache)
    answer = httpx.post(f"{server.url}/look/scaled/6", json=body).content
    expected = loaded.trace(PROMPT, head_mask=MASK).logits[6]
    np.testing.assert_allclose(np.frombuffer(answer, np.float32), expected, atol=1e-5)
    assert len(server.services.runs.cache) == n_runs  # nothing of it is kept
    for changes, status in (
        ({"head_mask": [[1.0]]}, 400),
        ({"ids": ids[:6]}, 400),
        ({"sha256": "0" * 64}, 410),
    ):
        assert httpx.post(f"{server.url}/look/scaled/6", json=body | changes).status_code == status
