"""The path that a request asks for."""

from starlette.types import Scope


def path_of(scope: Scope) -> str:
    """The path below the root path, as the routes see it."""
    root = scope.get("root_path", "").rstrip("/")
    path: str = scope["path"]
    return path[len(root) :] if root and path.startswith(f"{root}/") else path
