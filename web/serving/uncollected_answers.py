"""Answers of Gradio's endpoints that have not been sent yet.

Gradio keeps an answer as Python objects, many times the size of its JSON, until a client collects it, and traverses
them all on the event loop. So an endpoint stores its answer here and gives Gradio a placeholder, which
``web/edge/gradio_queue.py`` replaces with the JSON when the response is sent.
"""

import re
import secrets
import threading
from collections.abc import Hashable

from .budget import Budget

PLACEHOLDER = re.compile(rb'"headscope-answer-([0-9a-f]{32})"')


class UncollectedAnswers:
    """The uncollected answers of all sessions. Thread-safe.

    ``sessions`` has each session's answers, as JSON, by the number in their placeholder. Each is kept with its client,
    since a browser may change between IPv4 and IPv6 within a session.
    """

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.sessions: dict[str, dict[str, tuple[bytes, Hashable]]] = {}
        self.lock = threading.Lock()

    def store(self, answer: bytes, session: str, client: Hashable) -> str:
        """Keep a JSON answer for the client of the Gradio session, and return its placeholder. Raises ``NoRoom``."""
        self.budget.take(len(answer), client)
        number = secrets.token_hex(16)
        with self.lock:
            self.sessions.setdefault(session, {})[number] = answer, client
        return f"headscope-answer-{number}"

    def fill_in(self, content: bytes, session: str) -> bytes:
        """Replace placeholders in ``content`` with this session's answers, and remove these answers from here."""
        return PLACEHOLDER.sub(lambda match: self.take(match[1].decode(), session) or match[0], content)

    def take(self, number: str, session: str) -> bytes | None:
        with self.lock:
            pending = self.sessions.get(session)
            if pending is None or number not in pending:
                return None
            answer, client = pending.pop(number)
            if not pending:
                del self.sessions[session]
        self.budget.give_back(len(answer), client)
        return answer

    def drop(self, session: str) -> None:
        """Remove the uncollected answers of a session."""
        with self.lock:
            pending = self.sessions.pop(session, {})
        for answer, client in pending.values():
            self.budget.give_back(len(answer), client)
