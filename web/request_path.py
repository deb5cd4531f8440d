"""The path that a request asks for, on a server that may be below a path of a site."""

from starlette.types import ASGIApp, Receive, Scope, Send


def path_of(scope: Scope) -> str:
    """The path below the root path, as the routes see it."""
    root = scope.get("root_path", "").rstrip("/")
    path: str = scope["path"]
    return path[len(root) :] if root and path.startswith(f"{root}/") else path


class RootPathMiddleware:
    """Completes the paths of requests with ``root``, such as ``/heads``, unless a proxy has passed it on.

    Behind this, every path begins with the root path, as ASGI requires, whether the proxy strips it or not.
    """

    def __init__(self, app: ASGIApp, root: str) -> None:
        self.app, self.root = app, root

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self.root and scope["type"] == "http":
            path = scope["path"]
            if path == self.root:
                path += "/"
            elif not path.startswith(f"{self.root}/"):
                path = self.root + path
            scope = {**scope, "root_path": self.root, "path": path}
        await self.app(scope, receive, send)
