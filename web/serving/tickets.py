"""Answers of Gradio's endpoints until they are sent.

Gradio keeps an answer as Python objects, many times the size of its JSON, for as long as nobody collects it, and walks
through all of them on the event loop. So an endpoint leaves its answer here and gives Gradio a ticket, in whose place
the JSON is put as it goes out (``web/edge/joins.py``).
"""

import re
import secrets
import threading
from collections.abc import Hashable
from dataclasses import dataclass, field

from .budget import Budget

TICKET = re.compile(rb'"headscope-answer-([0-9a-f]{32})"')


@dataclass
class Left:
    """What one session has left here."""

    client: Hashable
    answers: dict[str, bytes] = field(default_factory=dict)


class Tickets:
    """The answers that wait, by ticket. Any thread."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.sessions: dict[str, Left] = {}
        self.lock = threading.Lock()

    def leave(self, answer: bytes, session: str, client: Hashable) -> str:
        """Keep an answer in JSON for whoever follows the Gradio session; raises ``NoRoom``."""
        self.budget.take(len(answer), client)
        number = secrets.token_hex(16)
        with self.lock:
            self.sessions.setdefault(session, Left(client)).answers[number] = answer
        return f"headscope-answer-{number}"

    def redeem(self, content: bytes, session: str) -> bytes:
        """``content`` with the answers in the place of the tickets, which are used up."""
        return TICKET.sub(lambda match: self.take(match[1].decode(), session) or match[0], content)

    def take(self, number: str, session: str) -> bytes | None:
        with self.lock:
            left = self.sessions.get(session)
            if left is None or number not in left.answers:
                return None
            answer = left.answers.pop(number)
            if not left.answers:
                del self.sessions[session]
        self.budget.give_back(len(answer), left.client)
        return answer

    def forget(self, session: str) -> None:
        """Drop what nobody has collected."""
        with self.lock:
            left = self.sessions.pop(session, None)
        if left:
            self.budget.give_back(sum(map(len, left.answers.values())), left.client)
