"""All questions of Ask.

A question consists of a function in ``model/lens``, tested against an independent computation; a declaration in a
module of this folder (see ``question.py``), listed below; and a module in ``web/js/look/ask/questions/`` that draws the
answer, listed in ``question_list.mjs`` there.
"""

from .attribution import ATTRIBUTION, ATTRIBUTION_PROMPTS
from .circuits.circuit import CIRCUIT
from .circuits.composition import COMPOSITION
from .circuits.neuron import NEURON
from .circuits.paths import PATHS, PATHS_PROMPTS, ROLE_PATHS
from .circuits.tokens import TOKEN_CIRCUIT
from .difference import DIFFERENCE, DIFFERENCE_PROMPTS
from .head_roles import ROLES, TEXT_ROLES, TEXT_ROLES_PROMPTS
from .knockout import KNOCKOUT, KNOCKOUT_PROMPTS, REMOVAL, REMOVAL_PROMPTS
from .ledger import LEDGER
from .logit_lens import LOGIT_LENS
from .one_head import ONE_HEAD, ONE_HEAD_PROMPTS
from .passages import PASSAGES
from .patching import PATCH, PATCH_PROMPTS
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
    CIRCUIT,
    TOKEN_CIRCUIT,
    NEURON,
    DIFFERENCE,
    PASSAGES,
    TEXT_ROLES,
    KNOCKOUT_PROMPTS,
    REMOVAL_PROMPTS,
    ATTRIBUTION_PROMPTS,
    ONE_HEAD_PROMPTS,
    PATCH_PROMPTS,
    PATHS_PROMPTS,
    TEXT_ROLES_PROMPTS,
    DIFFERENCE_PROMPTS,
]
