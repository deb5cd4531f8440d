"""Routes for programs and for whoever watches over the server."""

from fastapi import APIRouter
from fastapi.responses import JSONResponse

from .shelf import Shelf


def api_routes(shelf: Shelf) -> APIRouter:
    router = APIRouter()

    @router.get("/health")
    async def health() -> JSONResponse:
        """200 once models are served; 503 while they load, and when not one could be loaded."""
        if not shelf.ready.done():
            return JSONResponse({"status": "loading"}, status_code=503)
        status = "ok" if shelf.models else "error"
        body = {"status": status, "models": list(shelf.models), "failed": shelf.failures}
        return JSONResponse(body, status_code=200 if shelf.models else 503)

    return router
