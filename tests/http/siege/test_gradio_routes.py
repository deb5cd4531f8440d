"""Gradio's routes that nothing here needs are closed."""

import socket

import httpx
import pytest

from helpers.server import Server

FILE = {"files": ("a.bin", b"z" * 100)}


@pytest.mark.parametrize(
    "path",
    [
        "gradio_api/upload",
        "gradio_api/component_server",
        "gradio_api/stream/x",
        "gradio_api/process_recording",
        "gradio_api/vibe-edit",
        "gradio_api/run/generate",
        "gradio_api/api/generate",
    ],
)
def test_gradio_upload_and_run_routes_are_closed(server: Server, path: str) -> None:
    for answer in (
        httpx.post(f"{server.url}/{path}", files=FILE),
        httpx.post(f"{server.url}/{path}", json={"data": []}),
    ):
        assert answer.status_code == 404, answer.text


@pytest.mark.parametrize(
    "path",
    [
        "gradio_api/proxy=http://a%00",
        "gradio_api/proxy=https://x.hf.space/",
        "gradio_api/file=http://example.com/x",
        "gradio_api/file=/etc/passwd",
        "gradio_api/heartbeat/x",
        "gradio_api/upload_progress?upload_id=x",
        "gradio_api/deep_link",
        "gradio_api/custom_component/x/y/z/w",
    ],
)
def test_gradio_proxy_routes_are_closed(server: Server, path: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert httpx.get(f"{server.url}/{path}").status_code == 404
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize("path", ["login", "look/write", "v1/completions", "gradio_api/queue/join", "train/written"])
def test_multipart_forms_are_refused(server: Server, path: str) -> None:
    assert httpx.post(f"{server.url}/{path}", files=FILE).status_code == 415


@pytest.mark.parametrize("head", ["GET /health HTTP/1.0", "GET / HTTP/1.0", "GET /config HTTP/1.0"])
def test_http_1_0_requests_without_a_host_are_answered(
    server: Server, head: str, capfd: pytest.CaptureFixture[str]
) -> None:
    host, port = server.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        connection.sendall(f"{head}\r\nOrigin: http://elsewhere.example\r\n\r\n".encode())
        assert b" 200 OK" in connection.recv(1_000)
    assert "Traceback" not in capfd.readouterr().err
