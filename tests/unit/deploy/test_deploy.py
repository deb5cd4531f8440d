"""The files in deploy/: they name only what exists, and agree with the app."""

import faulthandler
import json
import re
import shlex
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import gradio.http_server
import pytest
import yaml

import model
from helpers import run_async
from helpers.files import DEPLOY, ROOT, copied, dockerfile
from web import settings
from web.edge import server
from web.edge.middleware import allowed_hosts
from web.edge.origins import HostMiddleware
from web.edge.server import configured_server
from web.page.link_preview import FILE
from web.prometheus import Metrics
from web.serving.budget import budget_for

YAML_FILES = sorted(DEPLOY.rglob("*.yaml"))
PORT = 7860
PICTURE = FILE.relative_to(ROOT).as_posix()


class Loader(yaml.SafeLoader):
    """Reads Compose's tag for a value that replaces one of an earlier file."""


Loader.add_constructor("!override", lambda loader, node: loader.construct_sequence(node))


def documents(path: Path) -> list[dict[str, Any]]:
    return list(yaml.load_all(path.read_text(), Loader))


def test_the_image_holds_all_that_the_app_needs() -> None:
    requirements = {"requirements.txt", "deploy/requirements.lock"}
    assert set(copied()) == requirements | {"app.py", "LICENSE", "model", "web", "checkpoints", PICTURE}
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
    for name in ("prometheus.yaml", "prometheus.key.yaml"):
        (scraped,) = documents(DEPLOY / name)[0]["scrape_configs"]
        assert scraped["static_configs"][0]["targets"] == [f"headscope:{PORT}"]


def environment(name: str) -> dict[str, str]:
    """The variables of the app in a Compose file for ``demo.example.org``."""
    (content,) = documents(DEPLOY / name)
    of_app: dict[str, str] = content["services"]["headscope"]["environment"]
    return {variable: re.sub(r"\$\{DOMAIN\b.*?\}", "demo.example.org", value) for variable, value in of_app.items()}


def pod(namespace: str) -> dict[str, str]:
    """The variables of a pod in ``namespace``; Kubernetes fills in ``$(NAME)`` from those before."""
    deployment, *_ = documents(DEPLOY / "kubernetes.yaml")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    filled = {}
    for each in container["env"]:
        if each["name"] == "NAMESPACE":
            assert each["valueFrom"]["fieldRef"]["fieldPath"] == "metadata.namespace"
        elif "value" in each:
            filled[each["name"]] = each["value"].replace("$(NAMESPACE)", namespace)
    return filled


def ray() -> dict[str, str]:
    (content,) = documents(DEPLOY / "ray-serve.yaml")
    variables: dict[str, str] = content["applications"][0]["runtime_env"]["env_vars"]
    return variables


COMPOSE = environment("compose.yaml")
PUBLIC = COMPOSE | environment("compose.tls.yaml")
WITH_KEY = COMPOSE | environment("compose.key.yaml")


def test_the_variables_in_the_manifests_are_flags() -> None:
    known = {flag.variable for flag in settings.flags({})}
    for environ in (COMPOSE, PUBLIC, WITH_KEY, pod("demo"), ray()):
        assert environ.keys() <= known
        settings.parse([], environ | {"HEADSCOPE_API_KEY_FILE": ""})
    assert settings.parse([], PUBLIC).trusted_proxies == 1


def test_kubernetes_adds_no_variables_that_look_like_flags() -> None:
    deployment, service, *_ = documents(DEPLOY / "kubernetes.yaml")
    variable = f"{service['metadata']['name'].upper()}_PORT"  # what it sets to tcp://ADDRESS:PORT for the Service
    assert variable in {flag.variable for flag in settings.flags({})}
    assert deployment["spec"]["template"]["spec"]["enableServiceLinks"] is False


POD = "10.1.2.3:7860"  # probes and scrapes call a pod by its address


@pytest.mark.parametrize(
    ("environ", "served", "refused"),
    [
        (COMPOSE, ["headscope:7860", "localhost:7860", "192.0.2.7:7860"], ["evil:7860", "demo.example.org"]),
        (PUBLIC, ["headscope:7860", "demo.example.org"], ["example.org", "evil"]),
        (
            pod("demo"),
            [POD, "headscope", "headscope.demo", "headscope.demo.svc", "headscope.demo.svc.cluster.local:80"],
            ["headscope.other", "evil"],
        ),
        (ray(), ["headscope:8000", "127.0.0.1:8000"], ["evil:8000"]),
    ],
)
def test_the_names_in_the_manifests_are_served(environ: dict[str, str], served: list[str], refused: list[str]) -> None:
    async def app(*_: Any) -> None: ...

    guard = HostMiddleware(app, allowed_hosts(settings.parse([], environ)))
    assert [host for host in served + refused if guard.is_allowed(host)] == served


def test_every_container_is_confined() -> None:
    (compose,), (tls,) = documents(DEPLOY / "compose.yaml"), documents(DEPLOY / "compose.tls.yaml")
    services = compose["services"] | {"caddy": tls["services"]["caddy"]}
    assert services.keys() == {"headscope", "prometheus", "grafana", "caddy"}
    for name, service in services.items():
        assert service["read_only"] and service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert service["mem_limit"] and service["pids_limit"], name


def test_prometheus_sends_the_key_that_the_app_requires() -> None:
    (compose,) = documents(DEPLOY / "compose.key.yaml")
    (scraped,) = documents(DEPLOY / "prometheus.key.yaml")[0]["scrape_configs"]
    assert scraped["authorization"] == {"credentials_file": WITH_KEY["HEADSCOPE_API_KEY_FILE"]}
    (secret,) = compose["secrets"]
    assert all(service["secrets"] == [secret] for service in compose["services"].values())
    assert scraped["authorization"]["credentials_file"] == f"/run/secrets/{secret}"
    (plain,) = documents(DEPLOY / "prometheus.yaml")
    assert documents(DEPLOY / "prometheus.key.yaml") == [
        plain | {"scrape_configs": [plain["scrape_configs"][0] | {"authorization": scraped["authorization"]}]}
    ]


def test_the_operator_of_prometheus_sends_the_key_of_the_pods() -> None:
    deployment, *_ = documents(DEPLOY / "kubernetes.yaml")
    (monitor,) = documents(DEPLOY / "kubernetes.metrics.yaml")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    (key,) = (each["valueFrom"]["secretKeyRef"] for each in container["env"] if each["name"] == "HEADSCOPE_API_KEY")
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    assert monitor["spec"]["selector"] == deployment["spec"]["selector"]
    assert endpoint["authorization"]["credentials"] == {name: key[name] for name in ("name", "key")}
    assert {"name": endpoint["port"], "containerPort": PORT} in container["ports"]


def test_the_watchdog_of_the_image_reaches_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "suppress_repeats", lambda: None)  # pytest's handlers must still capture the log
    (line,) = (rest for name, rest in dockerfile() if name == "ENV")
    chosen = settings.parse([], dict(each.split("=", 1) for each in shlex.split(line)))
    with configured_server(chosen, budget_for(chosen.limits), Metrics()):
        config = gradio.http_server.uvicorn.Config(app=None, port=0)  # type: ignore[attr-defined]
    assert config.callback_notify is not None and config.timeout_notify < chosen.watchdog_seconds
    loop_is_alive(config.callback_notify)


def loop_is_alive(notify: Callable[[], Awaitable[None]]) -> None:
    """Call ``notify`` as uvicorn does, and assert that it postpones the end of the process."""
    with pytest.MonkeyPatch.context() as patch:
        postponed: list[tuple[float, bool]] = []
        patch.setattr(
            faulthandler, "dump_traceback_later", lambda seconds, exit, file: postponed.append((seconds, exit))
        )
        run_async(notify())
    assert postponed == [(65, True)]


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
    template = deployment["spec"]["template"]
    assert template["spec"]["terminationGracePeriodSeconds"] > grace
    labels = template["metadata"]["labels"]
    assert service["spec"]["selector"] == deployment["spec"]["selector"]["matchLabels"] == labels
    assert disruption["spec"]["selector"] == deployment["spec"]["selector"]
    (container,) = template["spec"]["containers"]
    for probe in ("startupProbe", "readinessProbe"):
        assert container[probe]["httpGet"] == {"path": "/health", "port": PORT}
    assert service["spec"]["ports"][0]["targetPort"] == PORT


def test_the_board_and_the_alerts_ask_for_metrics_that_exist() -> None:
    source = (ROOT / "web/prometheus.py").read_text() + (ROOT / "web/gauges.py").read_text()
    exported = set(re.findall(r'"(headscope_\w+)"', source))
    of_process = {"process_resident_memory_bytes", "process_open_fds", "process_max_fds"}
    assert all(f"\n{name} " in Metrics().text().decode() for name in of_process)
    board = json.loads((DEPLOY / "grafana" / "headscope.json").read_text())
    expressions = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    (alerts,) = documents(DEPLOY / "alerts.yaml")
    expressions += [rule["expr"] for group in alerts["groups"] for rule in group["rules"]]
    asked = {name for expression in expressions for name in re.findall(r"(?:headscope|process)_\w+", expression)}
    assert asked and {re.sub("_(total|bucket)$", "", name) for name in asked} <= exported | of_process
    shown = {"headscope_budget_held_bytes", "headscope_connections", "headscope_event_loop_lag_seconds"} | of_process
    assert shown <= asked
