"""Writes to a connection within one turn of the event loop become one."""

import asyncio
from typing import Any

from web.seams.uvicorn import WRITE_AHEAD, GatheredWrites


class Transport:
    """Records what is written and whether it is closed."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.is_closed = False

    def write(self, data: bytes) -> None:
        self.written.append(data)

    def close(self) -> None:
        self.is_closed = True

    def is_closing(self) -> bool:
        return self.is_closed

    def get_write_buffer_size(self) -> int:
        return 5


def after_a_turn(use: Any) -> Transport:
    """What a transport has got after ``use`` of it and one turn of the event loop."""
    transport = Transport()

    async def run() -> None:
        use(GatheredWrites(transport, asyncio.get_running_loop()))
        await asyncio.sleep(0)

    asyncio.run(run())
    return transport


def test_writes_of_one_turn_are_sent_together_and_in_order() -> None:
    def use(writes: GatheredWrites) -> None:
        writes.write(b"head")
        writes.write(b"body")
        assert not writes.transport.written and writes.get_write_buffer_size() == 5 + 8

    assert after_a_turn(use).written == [b"headbody"]


def test_many_bytes_are_sent_at_once() -> None:
    def use(writes: GatheredWrites) -> None:
        writes.write(b"a")
        writes.write(b"b" * WRITE_AHEAD)
        assert writes.transport.written == [b"a" + b"b" * WRITE_AHEAD] and writes.get_write_buffer_size() == 5
        writes.write(b"c")

    assert after_a_turn(use).written == [b"a" + b"b" * WRITE_AHEAD, b"c"]


def test_closing_sends_what_was_written() -> None:
    def use(writes: GatheredWrites) -> None:
        writes.write(b"last")
        writes.close()

    transport = after_a_turn(use)
    assert transport.written == [b"last"] and transport.is_closed


def test_nothing_is_sent_on_a_lost_connection() -> None:
    def use(writes: GatheredWrites) -> None:
        writes.write(b"late")
        writes.transport.is_closed = True

    assert after_a_turn(use).written == []
