"""What Learn computes, without a server."""

import gc
import weakref

from helpers.models import tiny_model
from web.learn.lesson_request import LessonRequest
from web.learn.lessons import answer
from web.serving.served_models import ServedModels
from web.settings import Settings


def serve_tiny(name: str) -> ServedModels:
    served = ServedModels(Settings(checkpoints=()))
    loaded = tiny_model()
    loaded.name = name
    served.shared[name] = loaded
    served.ready.set_result(None)
    return served


def test_a_model_that_is_no_longer_served_is_freed() -> None:
    served = serve_tiny("forgotten")
    for lesson in ("5", "6", "8", "10", "cell", "number"):
        assert answer(served, lesson, LessonRequest(sentence="To be", model="forgotten", stage="x"))
    of_model = weakref.ref(served.shared["forgotten"])
    weights = weakref.ref(served.shared["forgotten"].gpt)
    assert of_model() and weights()
    served.shared.clear()
    gc.collect()
    assert of_model() is None and weights() is None
