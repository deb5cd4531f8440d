"""All questions of Ask.

A question consists of a function in ``model/lens``, tested against an independent computation; a declaration in a
module of this folder (see ``question.py``), listed below; and a module in ``web/js/look/ask/questions/`` that draws the
answer, listed in ``question_list.mjs`` there.
"""

from .attribution import ATTRIBUTION
from .composition import COMPOSITION
from .difference import DIFFERENCE
from .head_roles import ROLES
from .knockout import KNOCKOUT, REMOVAL
from .ledger import LEDGER
from .logit_lens import LOGIT_LENS
from .one_head import ONE_HEAD
from .passages import PASSAGES
from .patching import PATCH
from .paths import PATHS, ROLE_PATHS
from .question import Question

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
