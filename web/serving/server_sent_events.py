"""Streams of server-sent events: the media type, the headers, and each event."""

import orjson

EVENT_STREAM = "text/event-stream"
DONE = b"data: [DONE]\n\n"  # the last event of OpenAI's streams
STREAM_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}  # a proxy must not hold the stream back


def server_sent_event(content: object) -> bytes:
    """An event with ``content`` as JSON."""
    return event_of_json(orjson.dumps(content))


def event_of_json(json: bytes) -> bytes:
    return b"data: " + json + b"\n\n"
