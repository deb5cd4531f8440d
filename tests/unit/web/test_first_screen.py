"""The first screens that checkpoints keep match their weights and openings, and are safe inside the page's HTML."""

import base64
import json
import shutil
from pathlib import Path
from typing import Any

import gradio as gr
import numpy as np
import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from helpers import run_async
from helpers.runs import frame
from helpers.serve_once import ROOT
from web.page.first_screen import FirstScreenMiddleware, leads_to, main, prepare, read_prepared
from web.page.link_preview import SENTENCE
from web.runs.openings import FIRST_SCREEN
from web.services import Services, make_services
from web.settings import Settings

SHIPPED = sorted(path.parent for path in (ROOT / "checkpoints").glob(f"*/{FIRST_SCREEN}"))
MAX_OFF = 1e-4  # of a weight or a logit, on another machine


def serve(folder: Path, **changes: Any) -> Services:
    return make_services(Settings(**{"checkpoints": (str(folder),), "kernels": False, "device": "cpu"} | changes))


@pytest.mark.parametrize("folder", SHIPPED, ids=lambda folder: folder.name)
def test_a_shipped_first_screen_is_what_the_model_computes(folder: Path) -> None:
    """If this fails: ``python -m web.page.first_screen checkpoints/*``."""
    services = serve(folder)
    kept = read_prepared(services, folder.name)
    services.served.load()
    made = run_async(prepare(services, folder.name))
    services.close()
    assert kept
    assert kept["vocabulary"] == made["vocabulary"] and kept["answers"].keys() == made["answers"].keys()
    heads = [pointer.pop("suggested_heads") for pointer in (kept["pointer"], made["pointer"])]
    assert [each["head"] for each in heads[0]] == [list(each["head"]) for each in heads[1]]
    assert kept["pointer"] == json.loads(json.dumps(made["pointer"]))
    assert kept["attribution"]["token"] == made["attribution"]["token"]
    assert np.allclose(kept["attribution"]["heads"], made["attribution"]["heads"], atol=10 * MAX_OFF)
    labels = [[[head["label"] for head in layer] for layer in screen["roles"]] for screen in (kept, made)]
    assert labels[0] == labels[1]
    for path in kept["answers"]:
        a, b = (base64.b64decode(screen["answers"][path]) for screen in (kept, made))
        if path.startswith("rows"):
            (header_a, rest_a), (header_b, rest_b) = frame(a), frame(b)
            assert header_a["ids"] == header_b["ids"] and header_a["rows"] == header_b["rows"]
            assert len(rest_a) == len(rest_b)
        else:
            assert np.allclose(np.frombuffer(a, "f4"), np.frombuffer(b, "f4"), atol=MAX_OFF)


def test_it_belongs_to_its_weights(checkpoints: Path, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    shutil.copytree(checkpoints / "tiny", folder)
    assert read_prepared(serve(folder), "mine") is None
    assert main([str(folder)]) == 0
    kept = read_prepared(serve(folder), "mine")
    assert kept and kept["pointer"]["run"] == "prepared" and kept["pointer"]["model"] == "mine"
    assert read_prepared(serve(folder, dtype="bfloat16"), "mine") is None
    shutil.copyfile(checkpoints / "other" / "model.safetensors", folder / "model.safetensors")
    assert read_prepared(serve(folder), "mine") is None
    (folder / FIRST_SCREEN).write_text('{"pointer": 1}')
    assert read_prepared(serve(folder), "mine") is None


def test_text_cannot_end_the_script(checkpoints: Path, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    shutil.copytree(checkpoints / "tiny", folder)
    main([str(folder)])
    kept = json.loads((folder / FIRST_SCREEN).read_text())
    kept["vocabulary"][0] = evil = "</script><script>alert(1)</script><!--"
    (folder / FIRST_SCREEN).write_text(json.dumps(kept))
    demo: Any = type("Demo", (), {"config": {"theme_hash": "0"}})
    html = FirstScreenMiddleware(lambda *_: None, serve(folder), demo, True).make("mine")  # type: ignore[arg-type]
    assert html.count("</script>") == 2 and "<!--" not in html
    data = html.split('id="hs-start">')[1].split("</script>")[0]
    assert json.loads(data)["screen"]["vocabulary"][0] == evil


def test_the_first_words_are_read_before_anything_else_is_there(checkpoints: Path) -> None:
    """The script is asked for at once, and no style sheet stands before the words; Gradio's element comes last."""
    services = serve(checkpoints / "tiny")
    with gr.Blocks() as demo:
        pass
    app = gr.mount_gradio_app(FastAPI(), demo, "/")
    app.add_middleware(FirstScreenMiddleware, services=services, demo=demo, with_training=True)
    html = TestClient(app).get("/", headers={"Accept-Encoding": "identity"}).text
    order = ["modulepreload", "<script", "</head>", SENTENCE, 'rel="stylesheet"', 'id="hs-start"', "<gradio-app"]
    places = [html.index(part, html.index("</title>") if part != SENTENCE else html.index("<body")) for part in order]
    assert places == sorted(places), html


@pytest.mark.parametrize(
    ("query", "leads"),
    [("", True), ("__theme=dark", True), ("model=a", True), ("model=b", False), ("model=", False), ("ids=AA", False),
     ("sha256=", False), ("model=a&model=a", False), ("%ff=%ff", True)],
)  # fmt: skip
def test_which_addresses_lead_to_it(query: str, leads: bool) -> None:
    assert leads_to({"query_string": query.encode()}, "a") is leads
