"""The pointer contains everything needed to write the text again."""

from helpers import run_async
from web.page.pointers import opening_pointer, pointer
from web.services import Services
from web.serving.inputs import parse_request, settings_of


def test_the_pointer_names_the_settings_that_a_text_is_written_from(services: Services) -> None:
    served = services.served
    asked = {"prompt": "ab", "max_new_tokens": 9, "temperature": 0.5, "top_k": 3, "top_p": 0.9, "min_p": 0.1, "seed": 4}
    loaded, request = parse_request(served, asked | {"model": "tiny"})
    assert settings_of(request, "ab") == asked
    run = services.runs.new(loaded, request.prompt, 9)
    run.end()
    assert pointer(run, "done", settings_of(request, "ab"))["settings"] == asked
    _, request = parse_request(served, asked | {"model": "tiny", "top_k": None, "seed": None})
    free = settings_of(request, "ab")
    assert free["top_k"] == 0 and isinstance(free["seed"], int)  # no seed given: the one that was taken
    opened = run_async(opening_pointer(services, "tiny"))
    assert opened["settings"].keys() == asked.keys()
    settings = opened["settings"] | {"top_k": None}
    ids = served.models["tiny"].parse_prompt(settings.pop("prompt"))
    steps = served.models["tiny"].generate(ids, **settings)
    opening = services.openings.written.entries["tiny"].ids  # cut where the next token is an open choice
    assert (ids + [step.token_id for step in steps])[: len(opening)] == opening
