"""Two replicas of the API behind Ray Serve, one of which is killed."""

import json
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

import model
from helpers.files import DEPLOY, ROOT
from helpers.serve_once import free_port, wait_until_healthy

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:ray")

NAME = "two-layer-steps"
REPLICA = "x-headscope-replica"
LONG = {"prompt": "Once upon a time", "max_tokens": 20_000, "context_shift": True, "temperature": 0.8}
LONG |= {"logit_bias": {"0": -100}}  # which would end the text


@pytest.fixture(scope="module")
def ray() -> Any:
    """Import Ray on demand, since that takes a while."""
    return pytest.importorskip("ray", reason="ray is not installed: deploy/requirements-ray.txt")


@pytest.fixture(scope="module")
def url(ray: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the replicas of deploy/ray-serve.yaml, with the test's own port and model."""
    folder = tmp_path_factory.mktemp("ray")
    config = yaml.safe_load((DEPLOY / "ray-serve.yaml").read_text())
    config["http_options"] = {"host": "127.0.0.1", "port": free_port()}
    config["applications"][0]["runtime_env"]["env_vars"] |= {
        "HEADSCOPE_CHECKPOINT": NAME,
        "HEADSCOPE_MAX_NEW_TOKENS": str(LONG["max_tokens"]),
    }
    (folder / "serve.yaml").write_text(yaml.safe_dump(config))
    program = str(Path(sys.executable).with_name("serve"))
    url = f"http://127.0.0.1:{config['http_options']['port']}"
    with (
        tempfile.TemporaryDirectory(prefix="ray", ignore_cleanup_errors=True) as temporary,
        pytest.MonkeyPatch.context() as patched,
        (folder / "log").open("wb") as log,
    ):
        patched.setenv("RAY_TMPDIR", temporary)
        patched.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patched.setenv("PYTHONPATH", str(ROOT))
        # A separate cluster with an explicit address; otherwise Ray would join one that another test started.
        cluster = ray.init(address="local", namespace="serve", include_dashboard=False, log_to_driver=False)
        command = [program, "run", "--address", cluster.address_info["gcs_address"], str(folder / "serve.yaml")]
        process = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log)
        try:
            wait_until_healthy(url, process)
            answering: set[str] = set()
            while len(answering) < 2:  # the first replica answers before the second has loaded its model
                answer = ask(url, prompt="Once", max_tokens=1)
                answering |= {answer.headers[REPLICA]} if answer.status_code == 200 else set()
            yield url
        finally:
            process.terminate()
            process.wait(60)
            ray.shutdown()


def ask(url: str, **options: Any) -> httpx.Response:
    return httpx.post(f"{url}/v1/completions", json={"model": NAME, **options}, timeout=120)


class LongStream(threading.Thread):
    """A long text that is read to its end in the background."""

    def __init__(self, url: str) -> None:
        super().__init__(daemon=True)
        self.url, self.replica = url, ""
        self.has_begun = threading.Event()
        self.events: list[str] = []
        self.start()

    def run(self) -> None:
        body = {"model": NAME, **LONG, "stream": True}
        with httpx.stream("POST", f"{self.url}/v1/completions", json=body, timeout=120) as answer:
            assert answer.status_code == 200
            self.replica = answer.headers[REPLICA]
            for line in answer.iter_lines():
                if line:
                    self.events.append(line.removeprefix("data: "))
                    self.has_begun.set()


def test_the_api_is_the_same(url: str) -> None:
    loaded = model.load(ROOT / "checkpoints" / NAME, device="cpu", dtype="float32")
    answer = ask(url, prompt="Once upon a time", max_tokens=20, seed=3)
    steps = list(loaded.generate("Once upon a time", 20, seed=3))
    assert answer.json()["choices"][0]["text"] == "".join(step.text for step in steps)
    refused = ask(url, prompt="Once", colour="red")
    assert refused.status_code == 400 and refused.json()["error"]["param"] == "colour"
    attention = httpx.post(f"{url}/v1/attention", json={"prompt": "Once"}, timeout=60)
    assert attention.json()["model"] == NAME
    assert httpx.get(f"{url}/health").json()["models"] == [NAME]
    assert httpx.get(f"{url}/metrics").status_code == 404
    foreign = httpx.post(f"{url}/v1/completions", json={"prompt": "Once"}, headers={"Origin": "https://evil.example"})
    assert foreign.status_code == 403 and foreign.json()["error"]["code"] == "foreign_origin"
    for content in (b"x" * 10**6, iter([b"x" * 10**5] * 10)):  # the second has no Content-Length
        assert httpx.post(f"{url}/v1/completions", content=content).status_code == 413


def test_requests_are_spread(url: str) -> None:
    counts: Counter[str] = Counter()
    with ThreadPoolExecutor(8) as threads:
        for _ in range(10):  # on a busy machine, asking the replicas for their load may be slow
            answers = list(threads.map(lambda seed: ask(url, **LONG | {"max_tokens": 100, "seed": seed}), range(32)))
            assert {answer.status_code for answer in answers} == {200}
            counts.update(answer.headers[REPLICA] for answer in answers)
            if len(counts) == 2 and min(counts.values()) >= 4:
                return
    raise AssertionError(counts)


def test_one_replica_is_killed(ray: Any, url: str) -> None:
    streams = [LongStream(url)]
    while len({stream.replica for stream in streams}) < 2:
        streams.append(LongStream(url))
        for stream in streams:
            assert stream.has_begun.wait(60)
    n_streams = Counter(stream.replica for stream in streams)
    actors = {
        replica: ray.get_actor(f"SERVE_REPLICA::headscope#Replica#{replica}", namespace="serve")
        for replica in n_streams
    }

    def one_with_more() -> str:
        """The id of a replica that answers other requests during the streams."""
        while True:
            for replica, actor in actors.items():
                if ray.get(actor.get_num_ongoing_requests.remote()) > n_streams[replica]:
                    return replica

    with ThreadPoolExecutor(6) as threads:
        plain = [threads.submit(ask, url, **LONG | {"max_tokens": 5_000, "seed": seed}) for seed in range(6)]
        doomed = one_with_more()
        ray.kill(actors[doomed])
        answers = [each.result() for each in plain]
    assert [answer.status_code for answer in answers] == [200] * 6
    assert doomed not in {answer.headers[REPLICA] for answer in answers}
    for stream in streams:
        stream.join(120)
        *_, last, done = stream.events
        assert done == "[DONE]"
        if stream.replica == doomed:
            assert json.loads(last)["error"]["code"] == "replica_lost"
        else:
            assert json.loads(last)["choices"][0]["finish_reason"] == "length"
    retried = ask(url, **LONG | {"max_tokens": 5_000, "seed": 0}).json()["choices"][0]["text"]
    assert retried == answers[0].json()["choices"][0]["text"]


def test_a_client_who_leaves_ends_the_text(url: str) -> None:
    """Slots that were not freed would make later requests wait."""
    for _ in range(40):
        body = {"model": NAME, **LONG, "stream": True}
        with httpx.stream("POST", f"{url}/v1/completions", json=body, timeout=60) as answer:
            next(answer.iter_lines())
    assert ask(url, prompt="Once", max_tokens=5).elapsed.total_seconds() < 10
