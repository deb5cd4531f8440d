"""How fast the page draws: Headscope in headless Chromium, compared with BertViz's head view of the same attention.

    pip install -r bench/requirements.txt && npm install --prefix bench
    python -m bench.page [--quick]

A first visit is measured from the request for the page, on a slow line and a slow processor; its requests are those
until Gradio has taken the page over. A draw ends with the frame that shows it. A hover lasts from the moment the page
receives the pointer's event to the end of the frame that shows its effect. BertViz loads three scripts from other
hosts, which are replaced with npm packages.
"""

import json
import statistics
import tempfile
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import app
import model
from bench.harness import (
    CHAR_SHAPE,
    GPT2_SHAPE,
    MANY_HEADS_SHAPE,
    ROOT,
    Row,
    arguments,
    chromium,
    need_browser,
    need_files,
    need_packages,
    random_checkpoint,
    report,
)
from model import LoadedModel
from web.runs.openings import Opening
from web.services import Services
from web.settings import Settings

PORT = 7859
LINE = {"offline": False, "latency": 150, "downloadThroughput": 200_000, "uploadThroughput": 200_000}  # ms, bytes/s
SLOWDOWN = 4  # of the processor
LIBRARIES = ROOT / "bench" / "node_modules"
# BertViz's scripts by the prefix of their names.
SCRIPTS = {"require": "requirejs/require.js", "d3": "d3/dist/d3.min.js", "jquery": "jquery/dist/jquery.min.js"}

# ``frame(f)`` calls f once the next frame is made; ``hovers`` are milliseconds from a pointer event to its frame's end.
PROBE = """
const frame = (f) => requestAnimationFrame(() => {
  const channel = new MessageChannel();
  channel.port1.onmessage = f;
  channel.port2.postMessage(0);
});
window.when = (ready) => new Promise((done) => {
  const look = () => (ready() ? frame(() => done(performance.now())) : requestAnimationFrame(look));
  look();
});
window.hovers = [];
for (const kind of ["pointermove", "mouseover"])
  addEventListener(kind, () => {
    const heard = performance.now();
    frame(() => hovers.push(performance.now() - heard));
  }, true);
"""
DETAILS = "localStorage['headscope-details'] = 'on';"  # the instrument is measured, where a visit is not
PLAYED = "localStorage['headscope-played'] = 'yes';"  # the opening stands at its end at once
WORDS = "Once upon a time there was a girl named Lily. She had a big red kite and a small dog. The wind took it. "
OURS_DRAWN = """(n) => when(() => {
  const board = document.querySelector(".hs-board");
  const thumbnail = document.querySelector(".hs-grid canvas");
  return board && board.dataset.count == n && thumbnail && thumbnail.width > 8;
})"""
IS_WRITING = "document.querySelector('.hs-written .hs-text').classList.contains('hs-growing')"
HAS_ENDED = "!document.querySelector('.hs-written .hs-text').classList.contains('hs-growing')"
DRAWN = """() => when(() =>
  document.querySelector(".hs-thread-strong") && document.querySelector(".hs-all-heads canvas")?.width > 8
)"""
TAKEN_OVER = "() => when(() => document.querySelector('.hs-page') && !document.getElementById('hs-early'))"
READABLE = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
FIRST_FETCH = "performance.getEntriesByType('resource').find((entry) => entry.name.includes('/rows')).startTime"
SHIFTED = """() => {
  window.shift = 0;
  const see = (list) => list.getEntries().forEach(({ value }) => (shift += value));
  new PerformanceObserver(see).observe({ type: "layout-shift" });
}"""
BERTVIZ_DRAWN = "() => when(() => document.querySelectorAll('svg .attn-line-group, svg #attention line').length > 0)"


@contextmanager
def served(folders: list[Path]) -> Iterator[tuple[str, Services]]:
    """Run the app with these checkpoints; yield its address and services."""
    demo, services = app.start(Settings(checkpoints=tuple(map(str, folders)), port=PORT))
    services.served.load()
    try:
        yield f"http://127.0.0.1:{PORT}/", services
    finally:
        services.engines.close()
        demo.close(verbose=False)


def opening(loaded: LoadedModel, n_tokens: int) -> Opening:
    """A text of ``n_tokens`` for the page to open with."""
    ids = [7 * i % min(loaded.config.vocab_size, 1000) for i in range(n_tokens)]
    settings = {"prompt": loaded.tokens(ids[:1])[0].text, "seed": 1, "max_new_tokens": n_tokens - 1}
    return Opening(settings, ids, 1, (0, 0), [])


class Wire:
    """Counts the bytes received by a page."""

    def __init__(self, page: Any) -> None:
        self.sizes: dict[str, float] = {}
        session = page.context.new_cdp_session(page)
        session.on("Network.responseReceived", lambda event: self.name(event["requestId"], event["response"]["url"]))
        session.on("Network.loadingFinished", lambda event: self.add(event["requestId"], event["encodedDataLength"]))
        session.send("Network.enable")
        self.names: dict[str, str] = {}

    def name(self, request: str, url: str) -> None:
        self.names[request] = url

    def add(self, request: str, size: float) -> None:
        self.sizes[request] = size

    def of(self, part: str) -> list[float]:
        """The megabytes of each response whose URL contains ``part``."""
        return [size / 1e6 for request, size in self.sizes.items() if part in self.names.get(request, "")]

    def megabytes(self, part: str = "") -> float:
        return sum(self.of(part))


def hover_ms(page: Any, selector: str, count: int) -> float:
    """Median milliseconds from a move of the pointer over an element to the end of its frame."""
    box = page.locator(selector).first.bounding_box()
    height = min(box["height"], 800 - box["y"])  # the visible part
    page.evaluate("hovers.length = 0")
    for i in range(count):
        page.mouse.move(box["x"] + 0.25 * box["width"], box["y"] + height * (0.4 + 0.5 * i / count))
        page.wait_for_function("(n) => hovers.length > n", arg=i, timeout=120_000)
    return float(statistics.median(page.evaluate("hovers")))


def measure_ours(browser: Any, url: str, n_tokens: int, rounds: int) -> dict[str, float]:
    """Seconds to load and to draw, megabytes, milliseconds to hover, seconds to open another head."""
    loads, draws, opens = [], [], []
    for _ in range(rounds):
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.set_default_timeout(120_000)
        page.add_init_script(PROBE + DETAILS)
        wire = Wire(page)
        page.goto(url)
        drawn = page.evaluate(OURS_DRAWN, n_tokens)
        loads.append(drawn / 1000)
        draws.append((drawn - page.evaluate(FIRST_FETCH)) / 1000)
        hover = hover_ms(page, ".hs-board", 10)
        opens += heads_opened(page, n_tokens)
        found = {"all": wire.megabytes(), "thumbnails": wire.megabytes("/rows")}
        page.close()
    times = {"load": statistics.median(loads), "draw": statistics.median(draws), "open": statistics.median(opens)}
    return {**found, **times, "hover": hover}


def first_visit(browser: Any, url: str) -> dict[str, float]:
    """Seconds until there is something to read and until the opening is drawn; requests until Gradio has started."""
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.set_default_timeout(120_000)
    page.add_init_script(PROBE + PLAYED)
    session = page.context.new_cdp_session(page)
    requests: list[str] = []
    session.on("Network.requestWillBeSent", lambda event: requests.append(event["request"]["url"]))
    session.send("Network.enable")
    session.send("Network.emulateNetworkConditions", LINE)
    session.send("Emulation.setCPUThrottlingRate", {"rate": SLOWDOWN})
    page.goto(url, wait_until="commit")
    drawn = page.evaluate(DRAWN)
    page.evaluate(TAKEN_OVER)
    found = {"requests": sum(each.startswith(url) for each in requests), "drawn": drawn / 1000}
    found["readable"] = page.evaluate(READABLE) / 1000
    page.close()
    return found


def watched_writing(browser: Any, url: str) -> dict[str, float]:
    """The tasks of the first page while a text is written, until its threads are drawn, and its layout shift."""
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.set_default_timeout(120_000)
    page.add_init_script(PROBE + PLAYED)
    page.goto(url)
    page.evaluate(DRAWN)
    page.evaluate(TAKEN_OVER)
    page.context.new_cdp_session(page).send("Emulation.setCPUThrottlingRate", {"rate": SLOWDOWN})
    page.get_by_role("button", name="Write your own").click()
    page.get_by_label("Your text").fill("Once upon a time")
    page.evaluate(SHIFTED)
    write = page.get_by_role("button", name="Let it write").element_handle()
    with traced(browser, page) as trace:
        write.dispatch_event("click")
        page.wait_for_function("document.querySelector('.hs-slot').hidden", polling=100)
        page.wait_for_function("!document.querySelector('.hs-slot').hidden", polling=500)
        page.wait_for_selector(".hs-threads path", state="attached")
    tasks, _ = tasks_and_paints(trace)
    times = [task["tdur"] / 1000 for task in tasks if "tdur" in task]  # those begun before have none
    found = {"tasks": sum(time > 50 for time in times), "longest": max(times), "shift": page.evaluate("shift")}
    page.close()
    return found


def heads_opened(page: Any, n_tokens: int) -> list[float]:
    """Seconds until each of three heads is drawn after a click on its tile."""
    seconds = []
    for head in (1, 2, 3):
        started = page.evaluate("performance.now()")
        page.get_by_role("button", name=f"L0 H{head},").dispatch_event("click")
        seconds.append((page.evaluate(OURS_DRAWN, n_tokens) - started) / 1000)
    return seconds


def opened(browser: Any, url: str) -> Any:
    """The page, once its opening is drawn."""
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.set_default_timeout(300_000)
    page.add_init_script(PROBE + DETAILS)
    page.goto(url)
    page.wait_for_selector(".hs-board[data-count]")
    page.wait_for_function("!document.getElementById('hs-early')")
    return page


def prompt_for(page: Any, prompt: str, n_new: int) -> None:
    page.get_by_label("Prompt").fill(prompt)
    page.get_by_role("button", name="Settings").click()
    page.get_by_label("length, as a number").fill(str(n_new))
    page.keyboard.press("Escape")


@contextmanager
def traced(browser: Any, page: Any) -> Iterator[list[Any]]:
    """Yield a list that has the events of the page, once the block has ended."""
    events: list[Any] = []
    browser.start_tracing(page=page, categories=["devtools.timeline", "toplevel"])
    yield events
    events += json.loads(browser.stop_tracing())["traceEvents"]


def tasks_and_paints(trace: list[Any]) -> tuple[list[Any], list[float]]:
    """The tasks of the thread that paints, and when it painted."""
    events = [each for each in trace if "dur" in each]
    threads = Counter((each["pid"], each["tid"]) for each in events if each["name"] == "Paint")
    (main_thread, _), *_ = threads.most_common(1)
    own = [each for each in events if (each["pid"], each["tid"]) == main_thread]
    tasks = [each for each in own if each["name"] == "ThreadControllerImpl::RunTask"]
    return tasks, sorted(each["ts"] for each in own if each["name"] == "Paint")


def frames_ms(browser: Any, page: Any) -> list[float]:
    """Milliseconds of processor time of each frame painted while a text is written: script, layout, paint."""
    with traced(browser, page) as trace:
        page.get_by_role("button", name="Write", exact=True).click()
        page.wait_for_function(IS_WRITING)
        page.wait_for_function(HAS_ENDED, polling=500)  # polling in every frame would make frames of its own
    tasks, paints = tasks_and_paints(trace)
    return [
        task["tdur"] / 1000
        for task in tasks
        if bisect_left(paints, task["ts"]) < bisect_left(paints, task["ts"] + task["dur"])
    ]


def measure_long(browser: Any, url: str, loaded: LoadedModel, n_prompt: int, n_new: int) -> dict[str, float]:
    """Frames while a long text is written, the thumbnails of its prompt, heads opened, and the memory of the tab."""
    page = opened(browser, url)
    wire = Wire(page)
    ids = loaded.tokenizer.encode(WORDS * n_prompt)[:n_prompt]
    prompt_for(page, loaded.tokenizer.decode(ids), n_new)
    frames = frames_ms(browser, page)
    processes = browser.new_browser_cdp_session().send("SystemInfo.getProcessInfo")["processInfo"]
    memory = max(private_mb(each["id"]) for each in processes if each["type"] == "renderer")
    seconds = heads_opened(page, n_prompt + n_new)
    page.close()
    return {
        "frame": statistics.quantiles(frames, n=20)[-1],
        "thumbnails": max(wire.of("/rows")),
        "open": statistics.median(seconds),
        "memory": memory,
    }


def private_mb(process: int) -> float:
    """The megabytes that a process shares with no other."""
    lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private")) / 1024


def alone(loaded: LoadedModel, ids: list[int], n_new: int) -> float:
    """Tokens per second after the first token, without recording and without a viewer."""
    steps = loaded.generate(ids, n_new, seed=1)
    next(steps)
    started = time.perf_counter()
    written = sum(1 for _ in steps)
    return written / (time.perf_counter() - started)


def measure_writing(
    browser: Any, url: str, services: Services, loaded: LoadedModel, n: int, rounds: int
) -> tuple[float, float]:
    """Tokens per second with all heads on the page, and without a page: ``n`` tokens after a prompt of ``n``."""
    page = opened(browser, url)
    ids = opening(loaded, n).ids
    prompt_for(page, loaded.tokenizer.decode(ids), n)
    watched, unwatched = [], []
    for _ in range(rounds + 1):
        unwatched.append(alone(loaded, ids, n))
        page.get_by_role("button", name="Write", exact=True).click()
        page.wait_for_selector(".hs-workspace:is([data-state=waiting], [data-state=writing])")
        page.wait_for_selector(".hs-workspace[data-state=done]")
        watched.append(services.runs.cache.values()[-1].tokens_per_second)
    page.close()
    return statistics.median(watched[1:]), statistics.median(unwatched[1:])  # the first round warms up


def fulfil(path: Path, route: Any) -> None:
    route.fulfill(path=path)


def measure_bertviz(browser: Any, loaded: LoadedModel, ids: list[int]) -> dict[str, float]:
    """The same for BertViz, with a page that shows the same attention."""
    from bertviz import head_view

    trace = loaded.trace(ids)
    tokens = [str(token.id) for token in trace.tokens]  # the texts of this vocabulary cannot be displayed
    html = head_view([layer[None] for layer in trace.attention], tokens, html_action="return").data
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bertviz.html"
        scripts = '<script src="https://cdnjs.cloudflare.com/ajax/libs/require.js/2.3.6/require.min.js"></script>'
        path.write_text(f"<!doctype html><meta charset=utf-8><body>{scripts}{html}", encoding="utf-8")
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.set_default_timeout(120_000)
        page.add_init_script(PROBE + DETAILS)
        for name, path_in_package in SCRIPTS.items():
            page.route(f"**/{name}*.js", partial(fulfil, LIBRARIES / path_in_package))
        started = time.perf_counter()
        page.goto(path.as_uri(), wait_until="commit")
        page.evaluate(BERTVIZ_DRAWN)
        seconds = time.perf_counter() - started
        hover = hover_ms(page, "#left", 3)
        page.close()
        return {"load": seconds, "hover": hover, "all": path.stat().st_size / 1e6}


def main() -> None:
    rounds = 2 if arguments(__doc__ or "").quick else 5
    need_packages("bertviz")
    need_files(LIBRARIES, *SCRIPTS.values(), advice="; npm install --prefix bench installs them")
    path = need_browser()
    char, gpt2 = random_checkpoint("char-random", CHAR_SHAPE), random_checkpoint("gpt2-124m-random", GPT2_SHAPE)
    rows = []
    with chromium(path) as browser, served([char, gpt2]) as (url, services):
        models = services.served.models
        small, large = models[char.name], models[gpt2.name]
        made = services.openings.written.entries
        made[char.name] = opening(small, 256)
        ours = measure_ours(browser, url, 256, rounds)
        theirs = measure_bertviz(browser, small, made[char.name].ids)
        case = "48 heads x 256 tokens"
        rows += [
            Row(f"{case}, first full draw", "s (bar 0.5)", ours["draw"], "less"),
            Row(f"{case}, page opened to drawn", "s", ours["load"], "less", {"BertViz": theirs["load"]}),
            Row(f"{case}, hover", "ms", ours["hover"], "less", {"BertViz": theirs["hover"]}),
            Row(f"{case}, hover", "ms (bar 16)", ours["hover"], "less"),
            Row(f"{case}, on the wire", "MB", ours["all"], "less", {"BertViz": theirs["all"]}),
            Row(f"{case}, on the wire", "MB (bar 1.7)", ours["all"], "less"),
        ]
        services.served.shared.pop(char.name)  # the page opens with the first
        made[gpt2.name] = opening(large, 1024)
        ours = measure_ours(browser, url, 1024, 1)
        case = "144 heads x 1,024 tokens"
        rows += [
            Row(f"{case}, thumbnails", "MB (bar 1)", ours["thumbnails"], "less"),
            Row(f"{case}, one head opened", "s (bar 0.3)", ours["open"], "less"),
            Row(f"{case}, hover", "ms", ours["hover"], "less"),
        ]
        watched, unwatched = measure_writing(browser, url, services, large, 200, rounds)
        case = "144 heads x 400 tokens, writing while all are recorded and shown"
        rows.append(Row(case, "tokens/s", watched, "more", {"no page open": unwatched}, bar=0.9))
    stories = ROOT / "checkpoints" / "stories-bpe"
    with chromium(path) as browser, served([stories]) as (url, _):
        visits = [first_visit(browser, url) for _ in range(rounds + 1)][1:]  # the server compresses in the first
        case = "first visit at 1.6 Mbit/s, 150 ms, processor / 4"
        for what, unit in {
            "requests": "requests (bar 60)",
            "readable": "s until readable (bar 2)",
            "drawn": "s until drawn (bar 3.5)",
        }.items():
            rows.append(Row(case, unit, statistics.median(visit[what] for visit in visits), "less"))
        frames = []
        for _ in range(rounds):
            page = opened(browser, url)
            frames += frames_ms(browser, page)
            page.close()
        case = "stories-bpe, frame while writing, p95"
        rows.append(Row(case, "ms of processor time (bar 16)", statistics.quantiles(frames, n=20)[-1], "less"))
    with chromium(path) as browser, served([stories]) as (url, _):
        texts = [watched_writing(browser, url) for _ in range(rounds)]
        case = "stories-bpe, a text written and watched, processor / 4"
        for what, unit in {
            "tasks": "tasks over 50 ms of processor time (bar 0)",
            "longest": "ms, the longest task",
            "shift": "layout shift (bar 0.02)",
        }.items():
            rows.append(Row(case, unit, statistics.median(text[what] for text in texts), "less"))
    many = random_checkpoint("llama-480-heads-random", MANY_HEADS_SHAPE, model.load(stories).tokenizer)
    with chromium(path) as browser, served([many]) as (url, services):
        long = measure_long(browser, url, services.served.models[many.name], 2_000, 100)
        case = "480 heads x 2,000 tokens"
        rows += [
            Row(f"{case}, thumbnails", "MB (bar 2)", long["thumbnails"], "less"),
            Row(f"{case}, frame while writing, p95", "ms of processor time (bar 16)", long["frame"], "less"),
            Row(f"{case}, one head opened", "s", long["open"], "less"),
            Row(f"{case}, memory of the tab", "MB", long["memory"], "less"),
        ]
    report("page", rows)


if __name__ == "__main__":
    main()
