"""Exports: pictures that contain the model's own weights, and the weights themselves."""

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import torch
from PIL import Image
from playwright.sync_api import expect
from safetensors import safe_open
from torch import Tensor

from helpers.page import expect_drawn, save, show_summaries, spoken, text, write
from helpers.server import CONTEXT, Server
from model import LoadedModel
from model.drawing.pictures import rollout
from web.assets import URL

SVG = "{http://www.w3.org/2000/svg}"
# The light ramp of palette.mjs.
RAMP = ("#f1f4f9", "#cfddf1", "#9fbfe6", "#629ad6", "#2f70bb", "#144c8f", "#06275a")
HOSTILE = "<script>a=1</script>]]>\"'&lt;${x}"


def open_picture(page: Any, name: str) -> None:
    page.get_by_role("button", name=re.compile(f"^{name},")).click()
    expect(page.get_by_role("region", name=f"Attention weights, {spoken(name)}")).to_be_visible()
    expect_drawn(page)


def shown_ids(page: Any, loaded: LoadedModel) -> list[int]:
    return loaded.tokenizer.encode(text(page).text_content())[:CONTEXT]


def colour(step: int) -> tuple[int, ...]:
    """A step of the ramp, as palette.mjs mixes it."""
    place = step / 255 * (len(RAMP) - 1)
    left = min(int(place), len(RAMP) - 2)
    ends = [[int(RAMP[i][c : c + 2], 16) for c in (1, 3, 5)] for i in (left, left + 1)]
    return tuple(round(a + (place - left) * (b - a)) for a, b in zip(*ends, strict=True))


def check_cells(cells: Image.Image, weights: Tensor) -> None:
    """One pixel for each cell, coloured by the square root of its weight; nothing above the diagonal."""
    n = len(weights)
    assert cells.size == (n, n)
    for query, key in ((0, 0), (1, 0), (n - 1, 0), (n - 1, n - 1), (n // 2, n // 3), (n - 1, n // 2)):
        near = {colour(min(max(round(255 * float(weights[query, key]) ** 0.5) + d, 0), 255)) for d in (-1, 0, 1)}
        assert cells.getpixel((key, query))[:3] in near, (query, key)
    assert cells.getpixel((n - 1, 0))[3] == 0


def pictures(svg: ElementTree.Element) -> list[ElementTree.Element]:
    """The groups of cells, which are paths of unit squares."""
    return [group for group in svg.iter(f"{SVG}g") if group.get("shape-rendering")]


def drawn(svg: ElementTree.Element, picture: int = 0) -> Image.Image:
    """The cells of a picture as an image."""
    assert not list(svg.iter(f"{SVG}image"))
    colours: dict[tuple[int, int], tuple[int, ...]] = {}
    for path in pictures(svg)[picture]:
        rgb = tuple(bytes.fromhex(path.attrib["fill"][1:]))
        for x, y in re.findall(r"M(\d+) (\d+)h1v1h-1z", path.attrib["d"]):
            colours[int(x), int(y)] = rgb
    image = Image.new("RGBA", (1 + max(x for x, _ in colours), 1 + max(y for _, y in colours)))
    for place, rgb in colours.items():
        image.putpixel(place, (*rgb, 255))
    return image


def words(svg: ElementTree.Element) -> list[str]:
    return [element.text or "" for element in svg.iter(f"{SVG}text")]


@pytest.mark.slow
def test_a_head_as_svg_and_png(page: Any, server: Server, tmp_path: Path) -> None:
    loaded = server.services.served.models["tiny"]
    open_picture(page, "2·1")
    page.get_by_role("button", name="Save this picture").focus()
    path = save(page, "Save this picture", "SVG", tmp_path)
    assert path.name == "tiny_L2H1.svg"
    svg = ElementTree.parse(path).getroot()
    trace = loaded.trace(shown_ids(page, loaded))
    weights = trace.attention[2, 1]
    check_cells(drawn(svg), weights)
    said = words(svg)
    assert {
        "tiny, head 1 of layer 2",
        "looks at that token (key) →",
        "this token (query) →",
        "attention weight",
    } <= set(said)
    tokens = [token.text.replace(" ", "·").replace("\n", "↵") for token in trace.tokens]
    assert [word for word in said if len(word) == 1 and word not in "01"].count("R") >= 2 * tokens.count("R")
    assert len(list(svg.iter(f"{SVG}path"))) <= 2 * 256  # one for each colour of the cells and of the legend

    path = save(page, "Save this picture", "PNG", tmp_path)
    assert path.name == "tiny_L2H1.png"
    png = Image.open(path).convert("RGB")
    assert min(png.size) >= 2400
    inner = pictures(svg)[0]
    outer = next(group for group in svg.iter(f"{SVG}g") if inner in list(group))
    left, top = (float(number) for number in re.findall(r"[\d.]+", outer.attrib["transform"]))
    x, y, scale, _ = (float(number) for number in re.findall(r"[\d.]+", inner.attrib["transform"]))
    cells = drawn(svg)
    n = len(weights)
    x, y, side = left + x, top + y, scale * n
    for query, key in ((0, 0), (3, 2), (n - 1, n - 2), (n - 1, 0)):
        middle = [round(2 * (corner + (i + 0.5) * side / n)) for corner, i in ((x, key), (y, query))]
        assert png.getpixel((middle[0], middle[1])) == cells.getpixel((key, query))[:3]
    assert png.getpixel((png.width - 3, 3)) == (255, 255, 255)


@pytest.mark.slow
def test_pictures_are_light_and_follow_the_scale(browser: Any, server: Server, tmp_path: Path) -> None:
    page = browser.new_page()
    page.goto(f"{server.url}?__theme=dark")
    expect_drawn(page)
    show_summaries(page)
    open_picture(page, "Mean of layer 0")
    page.get_by_label("Colour scale").select_option("linear")
    page.get_by_label("hide the first token").check()
    path = save(page, "Save this picture", "SVG", tmp_path)
    assert path.name == "tiny_L0-mean.svg"
    svg = ElementTree.parse(path).getroot()
    loaded = server.services.served.models["tiny"]
    weights = loaded.trace(shown_ids(page, loaded)).attention[0].mean(0)
    cells = drawn(svg)
    assert cells.getpixel((0, 5))[:3] == colour(0)
    near = [colour(round(255 * float(weights[1, 1])) + d) for d in (-1, 0, 1)]
    assert cells.getpixel((1, 1))[:3] in near
    assert any("colours: linear, first token hidden" in line for line in words(svg))
    assert svg.find(f"{SVG}rect").attrib["fill"] == "#ffffff"  # type: ignore[union-attr]


@pytest.mark.slow
def test_the_grid_as_svg_and_png(page: Any, server: Server, tmp_path: Path) -> None:
    show_summaries(page)
    path = save(page, "Save all heads", "SVG", tmp_path)
    assert path.name == "tiny_heads.svg"
    svg = ElementTree.parse(path).getroot()
    assert {"L0", "L2", "H0", "H3", "mean", "rollout", "mean of all heads"} <= set(words(svg))
    loaded = server.services.served.models["tiny"]
    weights = loaded.trace(shown_ids(page, loaded)).attention
    n = weights.shape[-1]
    for layer, head in ((0, 0), (2, 3), (1, 2)):
        cells = drawn(svg, layer * 6 + head)  # 4 heads, mean, rollout
        assert cells.size == (n, n)
        byte = round(255 * float(weights[layer, head, n - 1, 0]) ** 0.5)
        assert cells.getpixel((0, n - 1))[:3] in [colour(min(max(byte + d, 0), 255)) for d in (-1, 0, 1)]
    page.get_by_label("Order of the heads").select_option(label="highest first")
    svg = ElementTree.parse(save(page, "Save all heads", "SVG", tmp_path)).getroot()
    order = [word for word in words(svg) if re.fullmatch(r"\d·\d", word)]
    assert order == page.locator(".hs-grid .hs-caption").all_text_contents()
    png = save(page, "Save all heads", "PNG", tmp_path)
    assert png.name == "tiny_heads.png" and Image.open(png).width > 600


def test_exported_numbers_are_those_of_the_model(page: Any, server: Server, tmp_path: Path) -> None:
    loaded = server.services.served.models["tiny"]
    show_summaries(page)
    ids = shown_ids(page, loaded)
    trace = loaded.trace(ids)
    for name, layer, head, expected in [
        ("1·2", 1, 2, trace.attention[1, 2]),
        ("Mean of layer 1", 1, "mean", trace.attention[1].mean(0)),
        ("Rollout of layer 2", 2, "rollout", rollout(trace.attention.mean(1))),
        ("Mean of all heads", "all", "mean", trace.attention.mean((0, 1))),
    ]:
        open_picture(page, name)
        path = save(page, "Save this picture", "JSON", tmp_path)
        said = json.loads(path.read_text(encoding="utf-8"))
        torch.testing.assert_close(torch.tensor(said["attention"]), expected, atol=1e-5, rtol=0)
        assert said["tokens"] == [{"id": token.id, "text": token.text} for token in trace.tokens]
        assert (said["layer"], said["head"], said["model"]) == (layer, head, "tiny")
        assert (said["sha256"], said["n_prompt"]) == (loaded.sha256, len("ROMEO:"))

        path = save(page, "Save this picture", "safetensors", tmp_path)
        with safe_open(path, "pt") as file:
            assert torch.equal(file.get_tensor("attention"), torch.tensor(said["attention"], dtype=torch.float32))
            assert file.get_tensor("token_ids").tolist() == ids
            notes = file.metadata()
        assert (notes["layer"], notes["head"], notes["sha256"]) == (str(layer), str(head), loaded.sha256)
        assert json.loads(notes["tokens"]) == [token.text for token in trace.tokens]


def test_code_in_tokens_stays_text(page: Any, tmp_path: Path) -> None:
    write(page, HOSTILE)
    expect(page.get_by_text("tokens written")).to_be_visible()
    path = save(page, "Save this picture", "SVG", tmp_path)
    svg = ElementTree.parse(path).getroot()
    assert not list(svg.iter(f"{SVG}script"))
    assert {"<", ">", '"', "'", "&", "]"} <= set(words(svg))
    said = json.loads(save(page, "Save this picture", "JSON", tmp_path).read_text(encoding="utf-8"))
    assert "".join(token["text"] for token in said["tokens"]).startswith(HOSTILE)


def test_svg_holds_any_model_name_and_text(page: Any) -> None:
    """With a control character, half a surrogate pair and markup, the file is still valid XML."""
    hostile = "</text><script>pwned=1</script>]]>\u0001\ud83d\u00e9&\"'"
    module = f"{URL}/look/export/svg_context.mjs"
    written = page.evaluate(
        """async ([module, codes]) => {
          const { SvgContext } = await import(new URL(module, document.baseURI));
          const hostile = String.fromCharCode(...codes);
          const context = new SvgContext(10, 10);
          context.fillText(hostile, 0, 0);
          return context.text(hostile).toWellFormed();
        }""",
        [module, [ord(character) for character in hostile]],
    )
    svg = ElementTree.fromstring(written)
    expected = hostile.replace("\u0001", "\ufffd").replace("\ud83d", "\ufffd")
    assert words(svg) == [expected] and svg.findtext(f"{SVG}title") == expected


@pytest.mark.slow
def test_the_table_of_heads(page: Any, server: Server) -> None:
    show_summaries(page)
    page.get_by_role("button", name="Show heads as a table").click()
    table = page.get_by_role("table", name="All heads")
    names = table.locator("tbody th")
    assert names.all_text_contents()[:6] == ["0·0", "0·1", "0·2", "0·3", "Mean of layer 0", "Rollout of layer 0"]
    assert names.count() == 3 * 6 + 1
    loaded = server.services.served.models["tiny"]
    weights = loaded.trace(shown_ids(page, loaded)).attention[1, 2]
    row = table.get_by_role("row", name=re.compile("^1·2 "))
    cells = [float(cell.split()[0]) for cell in row.locator("td").all_text_contents()]
    assert abs(cells[2] - float(weights[1:, 0].mean())) < 0.001
    assert abs(cells[3] - float(weights.diagonal(-1).mean())) < 0.001
    row.get_by_role("button").press("Enter")
    expect(page.get_by_role("region", name="Attention weights, head 2 of layer 1")).to_be_visible()
    expect(row.get_by_role("button")).to_be_focused()
    expect(row.get_by_role("button")).to_have_attribute("aria-pressed", "true")
    page.get_by_label("Order of the heads").select_option(label="highest first")
    expect(names).to_have_count(12)
    assert names.all_text_contents() == page.locator(".hs-grid .hs-caption").all_text_contents()
    expect(table.get_by_role("columnheader", name="entropy")).to_have_attribute("aria-sort", "descending")


@pytest.mark.slow
def test_menus_and_panels_fit_a_phone(browser: Any, server: Server) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 844})
    page.goto(server.url)
    expect_drawn(page)
    show_summaries(page)
    open_picture(page, "Mean of all heads")
    page.get_by_role("button", name="Back to the heads").click()
    page.get_by_role("button", name="Show heads as a table").click()
    for menu in ("Save all heads", "Save this picture"):
        page.get_by_role("button", name=menu).click()
        box = page.get_by_role("menu").bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= 390
        page.keyboard.press("Escape")
    for top in page.locator(".hs-top:visible").all():
        assert top.evaluate("e => e.scrollWidth <= e.clientWidth")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
