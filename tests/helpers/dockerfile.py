"""What deploy/Dockerfile says."""

import re

from .files import ROOT

DEPLOY = ROOT / "deploy"


def dockerfile() -> list[tuple[str, str]]:
    """The instructions of the Dockerfile: ``("COPY", "app.py ./")``."""
    text = re.sub(r"\\\n\s*", "", (DEPLOY / "Dockerfile").read_text())
    lines = (line.split(maxsplit=1) for line in text.splitlines() if line and not line.startswith("#"))
    return [(name, rest) for name, rest in lines]


def copied() -> list[str]:
    """What the image holds of the repository."""
    return [source for name, rest in dockerfile() if name == "COPY" for source in rest.split()[:-1]]
