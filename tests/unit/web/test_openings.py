"""What a model opens with."""

from helpers.models import scripted_model, tiny_bpe
from web.runs.openings import opening_prompt
from web.services import Services
from web.settings import OPENING_PROMPTS


def test_an_opening_of_what_the_model_knows(services: Services) -> None:
    tokenizer = tiny_bpe()
    for known in ("Once upon a time", "ROMEO:"):
        ids = tokenizer.encode(known)
        loaded = scripted_model(ids[1:] + [ids[0]] * 40, tokenizer)
        assert opening_prompt(loaded) == (known, ids)
    for name in ("tiny", "other"):  # random ones know nothing
        assert opening_prompt(services.served.models[name])[0] == OPENING_PROMPTS[0]
