"""The files in deploy/: they name only what exists, and agree with the app."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

import model
from helpers.files import DEPLOY, ROOT, copied, dockerfile
from web import settings

YAML_FILES = sorted(DEPLOY.rglob("*.yaml"))
PORT = 7860


class Loader(yaml.SafeLoader):
    """Reads Compose's tag for a value that replaces one of an earlier file."""


Loader.add_constructor("!override", lambda loader, node: loader.construct_sequence(node))


def documents(path: Path) -> list[dict[str, Any]]:
    return list(yaml.load_all(path.read_text(), Loader))


def test_the_image_holds_all_that_the_app_needs() -> None:
    requirements = {"requirements.txt", "deploy/requirements.lock"}
    assert set(copied()) == requirements | {"app.py", "LICENSE", "model", "web", "checkpoints"}
    assert all((ROOT / source).exists() for source in copied())
    let_in = {line[1:] for line in (DEPLOY / "Dockerfile.dockerignore").read_text().split() if line.startswith("!")}
    assert let_in == set(copied())


def test_the_variables_are_flags_of_the_app() -> None:
    (line,) = (rest for name, rest in dockerfile() if name == "ENV")
    given = dict(each.split("=", 1) for each in shlex.split(line))
    chosen = settings.parse([], given)
    assert chosen.host == "0.0.0.0" and chosen.port == PORT and chosen.watchdog_seconds
    assert ("EXPOSE", str(PORT)) in dockerfile()


@pytest.mark.parametrize("path", YAML_FILES, ids=lambda path: path.name)
def test_yaml_can_be_read_and_names_files_that_exist(path: Path) -> None:
    assert documents(path)
    for mount in re.findall(r"(\./[\w./-]+):", path.read_text()):
        assert (path.parent / mount).is_file(), mount


def test_compose_file_is_valid() -> None:
    (content,) = documents(DEPLOY / "compose.yaml")
    build = content["services"]["headscope"]["build"]
    assert (DEPLOY / build["context"]).resolve() == ROOT and (ROOT / build["dockerfile"]).is_file()
    assert f"{PORT}:{PORT}" in content["services"]["headscope"]["ports"]
    (scraped,) = documents(DEPLOY / "prometheus.yaml")[0]["scrape_configs"]
    assert scraped["static_configs"][0]["targets"] == [f"headscope:{PORT}"]


def test_the_variables_in_the_manifests_are_flags() -> None:
    (compose,) = documents(DEPLOY / "compose.yaml")
    (tls,) = documents(DEPLOY / "compose.tls.yaml")
    deployment, *_ = documents(DEPLOY / "kubernetes.yaml")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    in_pods = {each["name"]: each["value"] for each in container["env"] if "value" in each}
    public = tls["services"]["headscope"]["environment"] | {"HEADSCOPE_ALLOWED_HOSTS": "demo.example.org"}
    for environ in (compose["services"]["headscope"]["environment"], public, in_pods):
        known = {flag.variable for flag in settings.flags({})}
        assert environ.keys() <= known
        settings.parse([], environ)
    assert settings.parse([], public).trusted_proxies == 1


def test_images_are_pinned() -> None:
    text = "\n".join(path.read_text() for path in (*YAML_FILES, DEPLOY / "Dockerfile"))
    images = re.findall(r"^(?: *image: |FROM )(\S+)", text, re.MULTILINE)
    assert len(images) >= 6 and all(re.search(r":v?\d+\.\d+", image) for image in images)
    assert f"headscope:{model.__version__}" in images


def test_grace_period_covers_running_texts() -> None:
    grace = settings.Limits().grace_seconds
    (compose,) = documents(DEPLOY / "compose.yaml")
    assert int(compose["services"]["headscope"]["stop_grace_period"].removesuffix("s")) > grace
    deployment, service, disruption = documents(DEPLOY / "kubernetes.yaml")
    pod = deployment["spec"]["template"]
    assert pod["spec"]["terminationGracePeriodSeconds"] > grace
    assert service["spec"]["selector"] == deployment["spec"]["selector"]["matchLabels"] == pod["metadata"]["labels"]
    assert disruption["spec"]["selector"] == deployment["spec"]["selector"]
    (container,) = pod["spec"]["containers"]
    for probe in ("startupProbe", "readinessProbe"):
        assert container[probe]["httpGet"] == {"path": "/health", "port": PORT}
    assert service["spec"]["ports"][0]["targetPort"] == PORT


def test_the_board_and_the_alerts_ask_for_metrics_that_exist() -> None:
    source = (ROOT / "web/prometheus.py").read_text() + (ROOT / "web/gauges.py").read_text()
    exported = set(re.findall(r'"(headscope_\w+)"', source))
    board = json.loads((DEPLOY / "grafana" / "headscope.json").read_text())
    expressions = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    (alerts,) = documents(DEPLOY / "alerts.yaml")
    expressions += [rule["expr"] for group in alerts["groups"] for rule in group["rules"]]
    asked = {name for expression in expressions for name in re.findall(r"headscope_\w+", expression)}
    assert asked and {re.sub("_(total|bucket)$", "", name) for name in asked} <= exported
