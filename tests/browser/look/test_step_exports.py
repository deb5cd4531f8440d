"""Exports of one step: its rows, and the lines of a head."""

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import torch
from PIL import Image
from playwright.sync_api import expect

from helpers.page import readout, save, text
from helpers.server import Server

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.slow
def test_this_step_as_numbers_and_pictures(page: Any, server: Server, tmp_path: Path) -> None:
    page.get_by_role("button", name="This step", exact=True).click()
    page.locator(".hs-writing .hs-token").nth(21).click()
    expect(page.locator(".hs-strips[data-query='20']")).to_be_visible()
    path = save(page, "Save this step", "JSON", tmp_path)
    assert path.name == "tiny_step-21.json"
    said = json.loads(path.read_text(encoding="utf-8"))
    trace = server.services.served.models["tiny"].trace(text(page).text_content())
    assert (said["query"], len(said["tokens"]), len(said["attention"])) == (20, 21, 12)
    expected = trace.attention[:, :, 20, :21].flatten(0, 1)
    torch.testing.assert_close(torch.tensor(said["attention"]), expected, atol=1e-5, rtol=0)
    svg = ElementTree.parse(save(page, "Save this step", "SVG", tmp_path)).getroot()
    words = [line.text for line in svg.iter(f"{SVG}text")]
    assert {"0·0", "2·3"} <= set(words)
    assert sum(path.attrib["d"].count("M") for path in svg.iter(f"{SVG}path")) >= 12 * 21  # a cell for each weight
    assert Image.open(save(page, "Save this step", "PNG", tmp_path)).width > 600


@pytest.mark.slow
def test_lines_are_saved_as_lines(page: Any, tmp_path: Path) -> None:
    page.get_by_role("button", name="Lines", exact=True).click()
    page.locator(".hs-writing .hs-token").nth(9).click(modifiers=["Shift"])
    page.mouse.move(5, 5)
    svg = ElementTree.parse(save(page, "Save this picture", "SVG", tmp_path)).getroot()
    curves = [path for path in svg.iter(f"{SVG}path") if "C" in path.attrib["d"]]
    assert 1 <= len(curves) <= 10  # one for each key of that token, but the faintest
    assert all(0 < float(path.attrib["opacity"]) <= 1 for path in curves)
    starts = {re.match(r"M[\d.]+ ([\d.]+)", path.attrib["d"])[1] for path in curves}  # type: ignore[index]
    assert len(starts) == 1


@pytest.mark.slow
def test_a_locked_number_stays_while_another_is_read(page: Any) -> None:
    board = page.locator(".hs-board")
    board.focus()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    locked = page.locator(".hs-number").text_content()
    query, key, _ = readout(page)
    expect(page.locator(".hs-pinned")).to_be_hidden()  # it is the one that is read
    before = page.locator(".hs-readouts").bounding_box()["y"]
    for _ in range(3):
        page.keyboard.press("ArrowUp")
    assert readout(page)[0] == query - 3
    pinned = page.locator(".hs-pinned")
    expect(pinned).to_contain_text(f" {query}, query")
    expect(pinned).to_contain_text(f" {key}, key")
    expect(page.locator(".hs-pinned-number")).to_have_text(locked)
    assert abs(pinned.bounding_box()["y"] - before) < 1
