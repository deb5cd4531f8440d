"""The controls of the page's settings, and the words for them in links."""

from ..serving.inputs import OPTIONS, SLIDERS

WORDS = {name: "length" if name == "max_new_tokens" else name for name in (*SLIDERS, "seed")}


def describe_control(name: str) -> dict[str, object]:
    """A setting as the browser needs it; the seed has no slider."""
    slider = SLIDERS[name]._asdict() if name in SLIDERS else {}
    return {"name": name, "word": WORDS[name], "help": OPTIONS[name].help, **slider}


CONTROLS = [describe_control(name) for name in WORDS]
