"""An engine that sends what a test tells it to."""

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class ScriptedEngine:
    """An OpenAI-compatible engine in a thread: it sends ``pieces`` one by one and remembers what it was sent."""

    def __init__(self, port: int = 0) -> None:
        self.reset()
        self.server = ThreadingHTTPServer(("127.0.0.1", port), self.handler())
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def reset(self) -> None:
        """Send "abc" from now on, and forget all requests."""
        self.status, self.pieces, self.reason = 200, ["ab", "c"], "length"
        self.error: Any = None  # sent as the body of another status, or as a chunk at the end
        self.bodies: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.models: Any = None
        self.go_on: Callable[[], object] = lambda: None  # before the last piece

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}/v1"

    def chunks(self) -> Iterator[dict[str, Any]]:
        for piece in self.pieces:
            yield {"choices": [{"index": 0, "text": piece, "finish_reason": None}]}
        if self.error is not None:
            yield {"error": self.error}
        elif self.reason:
            yield {"choices": [{"index": 0, "text": "", "finish_reason": self.reason}]}

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    def handler(self) -> type[BaseHTTPRequestHandler]:
        engine = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.answer(200 if engine.models is not None else 500, engine.models)

            def do_POST(self) -> None:
                assert self.path == "/v1/completions", self.path
                engine.bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                engine.keys.append(self.headers["Authorization"])
                if engine.status != 200:
                    self.answer(engine.status, engine.error)
                    return
                self.send_response(200)
                self.end_headers()
                chunks = list(engine.chunks())
                for i, chunk in enumerate(chunks):
                    if i == len(chunks) - 1:
                        engine.go_on()
                    self.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())
                    self.wfile.flush()

            def answer(self, status: int, content: Any) -> None:
                body = json.dumps(content).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        return Handler
