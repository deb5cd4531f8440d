"""Serves the files under ``web/js``: modules, style sheets and data. All their addresses contain one version."""

import functools
import gzip
import hashlib
from pathlib import Path

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

FOLDER = Path(__file__).parent / "js"
FILES = sorted(path for path in FOLDER.rglob("*") if path.suffix in (".mjs", ".css", ".json"))
# In the path, not in a query: modules that import each other by relative names inherit it.
VERSION = hashlib.sha256(b"".join(path.read_bytes() for path in FILES)).hexdigest()[:12]
URL = f"js/{VERSION}"


class Assets(StaticFiles):
    """Serves ``FILES`` and nothing else. Addresses change with the content, so browsers may cache the files forever."""

    def __init__(self) -> None:
        super().__init__(directory=FOLDER)
        self.paths = {path.relative_to(FOLDER).as_posix() for path in FILES}

    async def get_response(self, path: str, scope: Scope) -> Response:
        if path not in self.paths:
            return Response("Not found", status_code=404, media_type="text/plain")
        response = await super().get_response(path, scope)
        if response.status_code == 200 and "gzip" in Headers(scope=scope).get("Accept-Encoding", ""):
            headers = {"Content-Encoding": "gzip", "ETag": response.headers["ETag"]}
            response = Response(compressed(path), headers=headers, media_type=response.media_type)
        response.headers["Cache-Control"] = "public, max-age=31536000, immutable"
        response.headers["Vary"] = "Accept-Encoding"
        return response


@functools.cache
def compressed(path: str) -> bytes:
    """A gzipped file of ``FILES``, about a third of its size: these files are most of what a first visit loads."""
    return gzip.compress((FOLDER / path).read_bytes(), mtime=0)


def asset_route() -> Mount:
    return Mount(f"/{URL}", Assets())
