"""Hundreds of clients that connect and drop leave nothing behind."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from helpers.api import open_post, post
from helpers.server import Server

EXCHANGES = 200  # requests within which the server must have closed the connections that clients dropped


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def n_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_five_hundred_that_connect_and_drop_leave_nothing(server: Server) -> None:
    def connect_and_drop(i: int) -> None:
        connection = open_post(server, max_tokens=50, stream=i % 2 == 0, n=1 + i % 3)
        if i % 5 == 0:
            connection.recv(100)
        connection.close()

    connect_and_drop(0)
    server.wait_until_idle()
    threads, files, memory = threading.active_count(), n_files(), resident()
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(connect_and_drop, range(500)))
    # Each exchange makes the server's event loop run, which closes connections.
    assert any(post(server, max_tokens=1).status_code == 200 and n_files() <= files + 5 for _ in range(EXCHANGES))
    server.wait_until_idle()
    engine = server.services.engines.engine_for(server.served.models["tiny"])
    assert not engine.active and not engine.queue
    assert resident() <= memory + 50_000_000
    assert threading.active_count() <= threads + 45  # the pool that blocking routes share grows to 40 and stays
