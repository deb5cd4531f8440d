"""All questions of Ask.

A question consists of a function in ``model/lens``, tested against an independent computation; a declaration in a
module of this folder (see ``question.py``), listed below; and a module in ``web/js/look/ask/questions/`` that draws the
answer, listed in ``question_list.mjs`` there.
"""

from .circuits import COMPOSITION, DIFFERENCE, PATCH, PATHS, ROLE_PATHS
from .passages import PASSAGES
from .prediction import ATTRIBUTION, LEDGER, LOGIT_LENS, ONE_HEAD
from .question import Question
from .removal import KNOCKOUT, REMOVAL
from .roles import ROLES

QUESTIONS: list[Question] = [
    ROLES,
    KNOCKOUT,
    REMOVAL,
    ATTRIBUTION,
    ONE_HEAD,
    LOGIT_LENS,
    LEDGER,
    PATCH,
    COMPOSITION,
    PATHS,
    ROLE_PATHS,
    DIFFERENCE,
    PASSAGES,
]
