"""What is refused before a question is queued: options that do not fit together, and too large answers.

Each check raises ``InputError``.
"""

from model import InputError
from model.errors import InvalidValue
from model.lens.head_roles import check_repeats
from model.lens.interventions.circuit import MAX_PAIRS
from model.lens.interventions.knockout import check_two_tokens
from model.lens.interventions.patch_run import check_prompts
from model.lens.interventions.patching import check_neurons
from model.lens.interventions.paths import check_other_prompt, chosen_receivers
from model.lens.interventions.reference import check_texts
from model.lens.interventions.sites import find_site, n_components
from model.lens.neurons import check_neuron
from model.lens.prompts import in_row
from model.lens.token_circuits import check_circuit

from ..settings import Limits
from .inquiry import Inquiry

MAX_STREAM_BYTES = 256_000_000  # of all pairs of a circuit together
STREAM_COPIES = 4  # of the stream, roughly, that are kept for each token: of both prompts, and of ablated heads
MLP_COPIES = 2  # more, if MLPs are nodes


def nothing(_inquiry: Inquiry, _limits: Limits) -> None:
    pass


def reference(inquiry: Inquiry, _limits: Limits) -> None:
    """That the reference fits the method and the text."""
    check_texts(inquiry.values["method"], inquiry.values["reference"], len(inquiry.ids))


def removal(inquiry: Inquiry, limits: Limits) -> None:
    check_two_tokens(inquiry.ids)
    reference(inquiry, limits)


def knockout(inquiry: Inquiry, limits: Limits) -> None:
    removal(inquiry, limits)
    config = inquiry.loaded.config
    n_numbers = config.n_layer * config.n_head * (len(inquiry.ids) - 1)
    if inquiry.values["per_token"] and n_numbers > limits.max_json_weights:
        sent = f"there would be {n_numbers:,} numbers, and at most {limits.max_json_weights:,} are sent"
        raise InvalidValue("per_token", True, f"false for this text: {sent}")


def logit_lens(inquiry: Inquiry, limits: Limits) -> None:
    top = min(inquiry.values["top"], inquiry.loaded.config.vocab_size)
    n_tokens = (inquiry.loaded.config.n_layer + 1) * len(inquiry.ids) * top
    if n_tokens > limits.max_json_weights:
        sent = f"there would be {n_tokens:,} tokens, and at most {limits.max_json_weights:,} are sent"
        raise InvalidValue("top", top, f"smaller for this text: {sent}")


def ledger(inquiry: Inquiry, _limits: Limits) -> None:
    query, key = inquiry.values["query"], inquiry.values["key"]
    if query is not None and key is not None and key > query:
        raise InvalidValue("key", key, f"an integer from 0 to {query}, the position of the query")


def patch(inquiry: Inquiry, limits: Limits) -> None:
    values = inquiry.values
    check_prompts(inquiry.ids, values["corrupted"])
    if values["site"] is None:
        for name, default in (("positions", "each"), ("neurons", None), ("method", "exact")):
            if values[name] != default:
                raise InputError(name, f"{name} needs a site.")
        if not values["grid"] and not values["heads"]:
            raise InputError("grid", "If grid is false, heads must name the heads to patch together.")
        return
    config = inquiry.loaded.config
    site, _ = find_site(config, values["site"])
    check_neurons(config, site, values["neurons"], values["method"] != "attribution")
    places = config.n_layer * n_components(site, config) if values["neurons"] is None else len(values["neurons"])
    n_numbers = 2 * places * (len(inquiry.ids) if values["positions"] == "each" else 1)
    if n_numbers > limits.max_json_weights:
        message = (
            f"The answer would have up to {n_numbers:,} numbers, and at most {limits.max_json_weights:,} are sent: "
            "patch all positions at once, or fewer neurons."
        )
        raise InputError("positions", message)


def paths(inquiry: Inquiry, limits: Limits) -> None:
    options = {name: inquiry.values[name] for name in ("corrupted", "method", "reference", "answer", "wrong")}
    check_other_prompt(inquiry.ids, **options)
    if options["corrupted"] is None:
        reference(inquiry, limits)


def patch_paths(inquiry: Inquiry, _limits: Limits) -> None:
    check_prompts(inquiry.ids, inquiry.values["corrupted"])
    chosen_receivers(inquiry.loaded.config, *(inquiry.values[name] for name in ("layer", "head", "receivers")))


def role_paths(inquiry: Inquiry, _limits: Limits) -> None:
    check_repeats(inquiry.loaded.config)


def composition(inquiry: Inquiry, limits: Limits) -> None:
    n_layer, n_head = inquiry.loaded.config.n_layer, inquiry.loaded.config.n_head
    n_numbers = 6 * n_head**2 * n_layer * (n_layer - 1) // 2
    if n_numbers > limits.max_json_weights:
        most = f"at most {limits.max_json_weights:,} are sent"
        raise InputError("model", f"The answer would have {n_numbers:,} numbers; {most}.")


def token_circuit(inquiry: Inquiry, _limits: Limits) -> None:
    values = inquiry.values
    names = ("circuit", "layer", "head", "earlier", "side", "distance")
    check_circuit(inquiry.loaded.config, **{name: values[name] for name in names})


def neuron(inquiry: Inquiry, _limits: Limits) -> None:
    check_neuron(inquiry.loaded.config, inquiry.values["layer"], inquiry.values["neuron"])


def circuit(inquiry: Inquiry, _limits: Limits) -> None:
    prompts, config = inquiry.values["prompts"], inquiry.loaded.config
    if len(prompts) > MAX_PAIRS:
        raise InputError("prompts", f"There are {len(prompts):,} pairs; at most {MAX_PAIRS} are read together.")
    for index, row in enumerate(prompts):
        try:
            check_prompts(row["prompt"], row["corrupted"])
        except InputError as error:
            raise in_row(index, error) from None
    n_tokens = sum(len(row["prompt"]) for row in prompts)
    copies = STREAM_COPIES + (MLP_COPIES if inquiry.values["mlps"] else 0)
    most = MAX_STREAM_BYTES // (4 * copies * config.n_embd * (config.n_layer + 1))
    if n_tokens > most:
        raise InputError("prompts", f"The prompts have {n_tokens:,} tokens; at most {most:,} are read in this model.")
