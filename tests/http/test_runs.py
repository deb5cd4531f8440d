"""The page's routes for a run, for a run that was dropped, and for one that never existed."""

from dataclasses import replace
from typing import Any

import httpx
import numpy as np
import pytest
import torch

from helpers.runs import PROMPT, frame, lower, written
from helpers.server import Server
from model.drawing.recording import Recording
from model.drawing.weight_buffer import triangle
from web.runs import routes
from web.runs import run as run_module
from web.serving.budget import Budget, NoRoom


@pytest.mark.parametrize("n_new", [1, 20, 49])
def test_rows_equal_the_trace(server: Server, n_new: int) -> None:
    loaded = server.services.served.models["tiny"]
    run = written(server.services.runs, loaded, n_new)
    header, thumbnails = frame(httpx.get(f"{server.url}/look/{run.id}/rows?start=0").content)
    assert header["ids"] == run.ids and len(header["ids"]) == len(PROMPT) + n_new
    assert "".join(header["tokens"]).startswith(PROMPT)
    assert header["rows"] == len(run.ids)  # the last token was also read
    attention = loaded.trace(run.ids).attention
    expected = Recording(3, 4, len(run.ids))
    expected.extend(attention)
    difference = np.frombuffer(thumbnails, np.uint8).astype(int) - np.frombuffer(expected.thumbnails()[3], np.uint8)
    assert abs(difference).max() <= 1  # rows computed singly or together differ in the last bits
    np.testing.assert_allclose(header["metrics"], expected.metrics().numpy(), atol=1e-5)
    for layer, head, start in ((0, 0, 0), (2, 3, 5), (1, 2, len(run.ids) - 1)):
        answer = httpx.get(f"{server.url}/look/{run.id}/heads/{layer}/{head}?start={start}")
        found = torch.from_numpy(np.frombuffer(answer.content, np.float32).copy())
        torch.testing.assert_close(found, lower(attention[layer, head])[triangle(start) :], atol=1e-5, rtol=0)


def test_evicted_run_is_recomputed(server: Server) -> None:
    loaded = server.services.served.models["tiny"]
    ids = loaded.parse_prompt(PROMPT)
    assert httpx.get(f"{server.url}/look/no-such-run/rows").status_code == 404
    body = {"sha256": loaded.sha256, "ids": ids, "n_prompt": 3}
    header, _ = frame(httpx.post(f"{server.url}/look/again/rows?start=2", json=body).content)
    assert header["ids"] == ids[2:] and header["rows"] == len(ids)
    answer = httpx.post(f"{server.url}/look/again/heads/1/1?start=3", json=body)
    expected = lower(loaded.trace(ids).attention[1, 1])[triangle(3) :]
    np.testing.assert_allclose(np.frombuffer(answer.content, np.float32), expected, atol=1e-6)


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"sha256": "0" * 64}, 410),
        ({"ids": []}, 400),
        ({"ids": [10_000]}, 400),
        ({"ids": ["a"]}, 422),
        ({"n_prompt": -1}, 422),
        ({"sha256": "x" * 65}, 422),
    ],
)
def test_impossible_recomputations_are_refused(server: Server, change: dict[str, Any], status: int) -> None:
    body = {"sha256": server.services.served.models["tiny"].sha256, "ids": [1, 2], "n_prompt": 1} | change
    assert httpx.post(f"{server.url}/look/again/rows", json=body).status_code == status


def test_logits_of_every_step_equal_the_trace(server: Server) -> None:
    loaded = server.services.served.models["tiny"]
    run = written(server.services.runs, loaded, 5)
    expected = loaded.trace(run.ids).logits
    body = {"sha256": loaded.sha256, "ids": run.ids, "n_prompt": len(PROMPT)}
    for position in (0, 7, len(run.ids) - 1):
        answer = httpx.get(f"{server.url}/look/{run.id}/logits/{position}")
        again = httpx.post(f"{server.url}/look/again/logits/{position}", json=body)
        np.testing.assert_allclose(np.frombuffer(answer.content, np.float32), expected[position], atol=1e-5)
        assert again.content == answer.content
        several = httpx.get(f"{server.url}/look/{run.id}/logits/{position}?count=3")
        rows = np.frombuffer(several.content, np.float32).reshape(-1, expected.shape[-1])
        assert len(rows) == min(3, len(run.ids) - position)  # fewer at the end of the text
        np.testing.assert_allclose(rows, expected[position : position + 3], atol=1e-5)
    for position in (-1, len(run.ids)):
        assert httpx.get(f"{server.url}/look/{run.id}/logits/{position}").status_code == 400


@pytest.mark.parametrize("path", ["heads/4/0", "heads/0/6", "heads/-1/0", "heads/3/3"])
def test_unknown_heads_get_404(server: Server, path: str) -> None:
    run = written(server.services.runs, server.services.served.models["tiny"], 2)
    assert httpx.get(f"{server.url}/look/{run.id}/{path}").status_code == 400


@pytest.mark.parametrize("limit", [run_module.MAX_RUN_BYTES, 100])
def test_query_rows_of_every_picture(server: Server, limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_module, "MAX_RUN_BYTES", limit)
    loaded = server.services.served.models["tiny"]
    run = written(server.services.runs, loaded, 9)
    whole = Recording(3, 4, len(run.ids))
    whole.extend(loaded.trace(run.ids).attention)
    body = {"sha256": loaded.sha256, "ids": run.ids, "n_prompt": len(PROMPT)}
    for q in (0, 7, len(run.ids) - 1):
        answer = httpx.get(f"{server.url}/look/{run.id}/queries/{q}")
        again = httpx.post(f"{server.url}/look/again/queries/{q}", json=body)
        expected = np.frombuffer(whole.query(q, torch.zeros), np.float32)
        for content in (answer.content, again.content):
            np.testing.assert_allclose(np.frombuffer(content, np.float32), expected, atol=1e-5)
    for q in (-1, len(run.ids)):
        assert httpx.get(f"{server.url}/look/{run.id}/queries/{q}").status_code == 400


def test_vocabulary_is_sent(server: Server) -> None:
    loaded = server.services.served.models["tiny"]
    answer = httpx.get(f"{server.url}/look/vocabulary/{loaded.sha256}.json")
    assert answer.json() == [loaded.tokenizer.decode([i]) for i in range(loaded.config.vocab_size)]
    assert "immutable" in answer.headers["cache-control"]
    assert httpx.get(f"{server.url}/look/vocabulary/{'0' * 64}.json").status_code == 410


def test_a_text_as_an_html_file(server: Server) -> None:
    loaded = server.served.models["tiny"]
    ids, mask = loaded.parse_prompt("To be </script>"), [[1.0, 0.5, 1.0, 1.0]] * 3
    body = {
        "sha256": loaded.sha256,
        "ids": ids,
        "n_prompt": 5,
        "head_mask": mask,
        "settings": {"temperature": 0.8, "prompt": "To be"},
    }
    answer = httpx.post(f"{server.url}/look/file", json=body)
    assert answer.status_code == 200 and answer.headers["content-type"] == "application/octet-stream"
    trace = replace(loaded.trace(ids, head_mask=mask), n_prompt=5, settings={"temperature": 0.8})
    assert answer.text == trace.html()
    for change, said in (({"ids": []}, "empty"), ({"ids": [10_000]}, "10000"), ({"head_mask": [[1.0]]}, "head_mask")):
        refused = httpx.post(f"{server.url}/look/file", json=body | change)
        assert refused.status_code == 400 and said in refused.json()["detail"]


def test_a_saved_text_counts_towards_the_budget(server: Server) -> None:
    loaded, snapshots = server.served.models["tiny"], server.services.snapshots
    text = routes.SavedRun(sha256=loaded.sha256, ids=loaded.parse_prompt("To be"), n_prompt=5)
    needed = 4 * (12 * 5**2 + 5 * loaded.config.vocab_size)
    budget = Budget(2 * needed)
    assert routes.saved_file(snapshots, text, budget, "a") and budget.highest == needed and not budget.held
    with pytest.raises(NoRoom):
        routes.saved_file(snapshots, text, Budget(2 * needed - 2), "a")


def test_a_text_with_too_many_weights_is_not_saved(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routes, "MAX_FILE_WEIGHTS", 12 * 25 - 1)
    loaded = server.served.models["tiny"]
    body = {"sha256": loaded.sha256, "ids": loaded.parse_prompt("To be"), "n_prompt": 5}
    refused = httpx.post(f"{server.url}/look/file", json=body)
    assert refused.status_code == 400 and "300 attention weights; at most 299" in refused.json()["detail"]
