"""All questions of Ask.

A question consists of a function in ``model/lens`` that declares and answers it (see ``question.py`` there), tested
against an independent computation; a line below; and a module in ``web/js/look/ask/questions/`` that draws the answer,
listed in ``question_list.mjs`` there.
"""

from model.lens.answer import Answer
from model.lens.attribution import attribution
from model.lens.composition import composition
from model.lens.difference import difference
from model.lens.head_roles import roles, text_roles
from model.lens.interventions.circuit import circuit
from model.lens.interventions.knockout import knockout, removal
from model.lens.interventions.patching import patch
from model.lens.interventions.paths import patch_paths, paths
from model.lens.interventions.role_paths import role_paths
from model.lens.ledger import ledger
from model.lens.logit_lens import logit_lens
from model.lens.neurons import neuron
from model.lens.one_head import head
from model.lens.passages import passages
from model.lens.token_circuits import token_circuit

from . import checks
from .head_roles import answer_roles
from .prompts import of_many
from .question import OnRequest, Question, question

PER_TOKEN = OnRequest("Also return the change for every token.", ("token_loss", "token_delta"))

KNOCKOUT = question(
    "knockout",
    knockout,
    order="prompt model method per_token head_mask reference",
    check=checks.knockout,
    on_request={"per_token": PER_TOKEN},
)
REMOVAL = question("removal", removal, order="heads prompt model method head_mask reference", check=checks.removal)
ATTRIBUTION = question("attribution", attribution)
HEAD = question("head", head, endpoint="head_lenses")
LOGIT_LENS = question("logit-lens", logit_lens, check=checks.logit_lens)
PATCH = question(
    "patch",
    patch,
    order="prompt corrupted answer wrong model direction heads grid head_mask site positions neurons method",
    check=checks.patch,
    less="shorter prompts, or patch all positions of a site at once",
)
PATHS = question(
    "paths",
    paths,
    order="prompt model layer head head_mask method reference corrupted answer wrong direction",
    check=checks.paths,
    less="a shorter text or an earlier layer",
    encode=Answer.to_dict,
)
DIFFERENCE = question("difference", difference, less="shorter texts")
TEXT_ROLES = question("text-roles", text_roles, encode=Answer.to_dict)

QUESTIONS: list[Question] = [
    question("roles", roles, compute=answer_roles, less="a smaller model"),
    KNOCKOUT,
    REMOVAL,
    ATTRIBUTION,
    HEAD,
    LOGIT_LENS,
    question("ledger", ledger, check=checks.ledger),
    PATCH,
    question("composition", composition, check=checks.composition, less="a smaller model", encode=Answer.to_dict),
    PATHS,
    question(
        "patch-paths",
        patch_paths,
        order="prompt corrupted layer head receivers model answer wrong direction head_mask",
        check=checks.patch_paths,
        less="shorter prompts or earlier heads",
    ),
    question(
        "role-paths",
        role_paths,
        check=checks.role_paths,
        less="an earlier layer or a smaller model",
        encode=Answer.to_dict,
    ),
    question("circuit", circuit, check=checks.circuit, less="fewer or shorter prompts"),
    question("token-circuit", token_circuit, check=checks.token_circuit, less="a single token"),
    question("neuron", neuron, check=checks.neuron),
    DIFFERENCE,
    question("passages", passages),
    TEXT_ROLES,
    of_many(KNOCKOUT, "knockout"),
    of_many(REMOVAL, "removal"),
    of_many(ATTRIBUTION, "attribution"),
    of_many(HEAD, "head"),
    of_many(LOGIT_LENS, "logit_lens"),
    of_many(PATCH, "patch", defaults={"site": "z"}),  # without a site, heads are patched
    of_many(PATHS, "patch_paths"),
    of_many(TEXT_ROLES, "text_roles"),
    of_many(DIFFERENCE, "difference"),
]
