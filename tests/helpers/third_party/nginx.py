"""A real nginx in front of the app, with the recipe of docs/deployment.md."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ..files import ROOT
from ..serve_once import free_port, wait_until_healthy

UPSTREAM = "http://127.0.0.1:7860"
# One process, which ends with the test and needs no folder but its own.
CONFIG = """
daemon off;
master_process off;
pid nginx.pid;
error_log stderr;
events {{}}
http {{
    access_log off;
    client_body_temp_path temp;
    proxy_temp_path temp;
    fastcgi_temp_path temp;
    uwsgi_temp_path temp;
    scgi_temp_path temp;
    {servers}
}}
"""


@contextmanager
def below_a_path(upstream: str, folder: Path) -> Iterator[dict[str, str]]:
    """The addresses of an app that was started with ``--root-path /heads``, behind an nginx that strips this path and
    one that passes it on. ``folder`` is for nginx's own files.
    """
    program = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None:
        pytest.skip("nginx is not installed")
    (recipe,) = re.findall(r"```nginx\n(.*?)```", (ROOT / "docs" / "deployment.md").read_text(), re.DOTALL)
    assert f"{UPSTREAM};" in recipe
    ports = {"strips": free_port(), "passes": free_port()}
    recipes = {"strips": recipe.replace(UPSTREAM, f"{upstream}/"), "passes": recipe.replace(UPSTREAM, upstream)}
    servers = "".join(f"server {{ listen 127.0.0.1:{port}; {recipes[way]} }}\n" for way, port in ports.items())
    (folder / "nginx.conf").write_text(CONFIG.format(servers=servers))
    with subprocess.Popen([program, "-p", str(folder), "-c", "nginx.conf", "-e", "stderr"]) as process:
        try:
            urls = {way: f"http://127.0.0.1:{port}/heads" for way, port in ports.items()}
            for url in urls.values():
                wait_until_healthy(url, process)
            yield urls
        finally:
            process.terminate()
