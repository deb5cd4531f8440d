"""The files in deploy/: they name only what exists, and agree with the app."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from helpers.files import DEPLOY, ROOT, copied, dockerfile
from web import settings

YAML_FILES = sorted(DEPLOY.rglob("*.yaml"))
PORT = 7860


def documents(path: Path) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(path.read_text()))


def test_the_image_holds_all_that_the_app_needs() -> None:
    assert set(copied()) == {"requirements.txt", "app.py", "LICENSE", "model", "web", "checkpoints"}
    assert all((ROOT / source).exists() for source in copied())
    let_in = {line[1:] for line in (DEPLOY / "Dockerfile.dockerignore").read_text().split() if line.startswith("!")}
    assert let_in == set(copied())


def test_the_variables_are_flags_of_the_app() -> None:
    (line,) = (rest for name, rest in dockerfile() if name == "ENV")
    given = dict(each.split("=", 1) for each in shlex.split(line))
    chosen = settings.parse([], given)
    assert chosen.host == "0.0.0.0" and chosen.port == PORT
    assert ("EXPOSE", str(PORT)) in dockerfile()


@pytest.mark.parametrize("path", YAML_FILES, ids=lambda path: path.name)
def test_yaml_can_be_read_and_names_files_that_exist(path: Path) -> None:
    assert documents(path)
    for mount in re.findall(r"(\./[\w./-]+):", path.read_text()):
        assert (path.parent / mount).is_file(), mount


def test_compose() -> None:
    (content,) = documents(DEPLOY / "compose.yaml")
    build = content["services"]["headscope"]["build"]
    assert (DEPLOY / build["context"]).resolve() == ROOT and (ROOT / build["dockerfile"]).is_file()
    assert f"{PORT}:{PORT}" in content["services"]["headscope"]["ports"]
    (scraped,) = documents(DEPLOY / "prometheus.yaml")[0]["scrape_configs"]
    assert scraped["static_configs"][0]["targets"] == [f"headscope:{PORT}"]


def test_a_copy_has_time_to_end_its_texts() -> None:
    grace = settings.Limits().grace_seconds
    (compose,) = documents(DEPLOY / "compose.yaml")
    assert int(compose["services"]["headscope"]["stop_grace_period"].removesuffix("s")) > grace
    deployment, service = documents(DEPLOY / "kubernetes.yaml")
    pod = deployment["spec"]["template"]
    assert pod["spec"]["terminationGracePeriodSeconds"] > grace
    assert service["spec"]["selector"] == deployment["spec"]["selector"]["matchLabels"] == pod["metadata"]["labels"]
    (container,) = pod["spec"]["containers"]
    for probe in ("startupProbe", "readinessProbe"):
        assert container[probe]["httpGet"] == {"path": "/health", "port": PORT}
    assert service["spec"]["ports"][0]["targetPort"] == PORT


def test_the_board_asks_for_metrics_that_exist() -> None:
    source = (ROOT / "web/prometheus.py").read_text() + (ROOT / "web/gauges.py").read_text()
    exported = set(re.findall(r'"(headscope_\w+)"', source))
    board = json.loads((DEPLOY / "grafana" / "headscope.json").read_text())
    asked = {
        name for panel in board["panels"] for t in panel["targets"] for name in re.findall(r"headscope_\w+", t["expr"])
    }
    assert asked and {re.sub("_(total|bucket)$", "", name) for name in asked} <= exported
