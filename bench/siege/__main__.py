"""A public server under attack: ten minutes of well-behaved visitors during all attacks, on a fresh server.

    python -m bench.siege [--quick]

Linux only: attackers and visitors come from different addresses of the loopback network. ``--quick`` takes two minutes.
"""

import asyncio
import time
from collections.abc import Sequence

from bench.harness import Row, free_port, parser, report
from bench.load import at_quantile
from bench.process import MB, Server, serving, wait_for_loops
from web.settings import Limits

from .attacks import ATTACKS, Attack
from .targets import besieged_command, files_left_by_a_killed_server
from .visitors import Noticed, visit, warm_up

MAX_DESCRIPTORS = 1_024
LIMITS = Limits()
VISITORS = 2
RECOVERY = 40.0  # seconds after the last attack


async def besiege(server: Server, seconds: float, attacks: Sequence[Attack]) -> tuple[Noticed, int]:
    """Run each attack for its share of the time, twice if time allows, with well-behaved visitors throughout.

    Returns what they noticed, and the most memory that trainings had.
    """
    noticed, ended = Noticed(), asyncio.Event()
    visiting = [asyncio.create_task(visit(server.port, noticed, ended.is_set)) for _ in range(VISITORS)]
    watching = asyncio.create_task(watch_trainings(server, ended))
    each = seconds / len(attacks)
    for attack in attacks:
        until = time.monotonic() + each
        while time.monotonic() < until:
            try:
                await attack(server.port, min(each, 20.0))
            except ConnectionError as error:
                noticed.lost.append(f"{attack.__name__}: {error}")
    ended.set()
    await asyncio.gather(*visiting)
    return noticed, await watching


async def watch_trainings(server: Server, ended: asyncio.Event) -> int:
    highest = 0
    while not ended.is_set():
        highest = max(highest, server.trainings)
        await asyncio.sleep(1.0)
    return highest


async def recovered(server: Server, before: int) -> int:
    """The memory without cached texts, once it has been released, or after a time limit."""
    until = time.monotonic() + RECOVERY
    while server.resident - server.cached > before + 50 * MB and time.monotonic() < until:
        await asyncio.sleep(1.0)
    return server.resident - server.cached


def main() -> None:
    options = parser(__doc__ or "").parse_args()
    port = free_port()
    with serving(besieged_command(port), port, max_descriptors=MAX_DESCRIPTORS) as server:
        wait_for_loops(port)
        idle = server.resident
        asyncio.run(warm_up(port))
        before, log = server.resident, server.log_bytes
        server.forget_highest()
        noticed, trainings = asyncio.run(besiege(server, 70.0 if options.quick else 600.0, list(ATTACKS.values())))
        highest = server.highest
        after = asyncio.run(recovered(server, before))
        rows = [
            Row("good requests served", "requests", noticed.served, "more"),
            Row("good requests lost", "requests", len(noticed.lost), "less", bar=0),
            Row("first token of the good, p95", "s", at_quantile(noticed.first_token, 0.95), "less", bar=2),
            Row("memory, idle after the start", "MB", idle / MB, "less"),
            Row("memory, everything used once", "MB", before / MB, "less"),
            Row(
                "memory at its highest",
                "MB",
                highest / MB,
                "less",
                bar=round(before / MB) + LIMITS.memory_budget_mb + 200,
            ),
            Row("memory of trainings at its highest", "MB", trainings / MB, "less", bar=LIMITS.max_training_megabytes),
            Row("memory after, without cached texts", "MB", after / MB, "less", bar=round(before / MB) + 100),
            Row("descriptors after", "", server.descriptors, "less"),
            Row("log", "bytes", server.log_bytes - log, "less"),
        ]
    rows.append(Row("files left by a killed server", "", files_left_by_a_killed_server(), "less", bar=0))
    for lost in sorted(set(noticed.lost)):
        print(f"lost: {lost} ({noticed.lost.count(lost)} times)")
    report("siege", rows)


if __name__ == "__main__":
    main()
