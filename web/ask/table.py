"""All questions of Ask.

To add one: a function in ``model/lens``, tested against an independent computation; a declaration in the module here
that it belongs to (see ``question.py``), and its name below; and a module that draws the answer in
``web/js/look/ask/questions/``, named in ``question_list.mjs`` there.
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
