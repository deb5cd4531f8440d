"""Properties that hold for any input, each built for one subject and run with few or many examples."""

import contextlib
import json
import random
import re
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import model
from helpers.models import tiny_bpe, tiny_model
from web.page.controls import WORDS
from web.page.link import BadLink, Link, decode_ids, parse_link, parse_settings
from web.serving.served_models import ServedModels
from web.serving.snapshots import Snapshots

from ..api import GOOD_BODY, Document, bodies, check_answer, error_of
from ..links import GOOD_QUERY, LINK_SETTINGS, RANGES, encode_ids

Property = Callable[[], None]
COMMON: dict[str, Any] = {"deadline": None, "database": None, "suppress_health_check": list(HealthCheck)}


def few(check: Property) -> None:
    """A few examples, the same in every run."""
    settings(max_examples=40, derandomize=True, **COMMON)(check)()


def many(check: Property, n_examples: int = 2_000) -> None:
    """Thousands of examples, different in every run."""
    settings(max_examples=n_examples, print_blob=True, **COMMON)(check)()


# ---- HTTP ------------------------------------------------------------------------------------------------------------


def whatever_comes_in_is_answered(client: httpx.Client, path: str, schema: Any) -> Property:
    @given(bodies(schema))
    def check(body: Any) -> None:
        check_answer(client.post(f"/v1/{path}", content=json.dumps(body, allow_nan=True)))

    return check


# Rules that no schema can express: they depend on the model, or on several numbers together.
MODEL_CODES = {"model_not_found", "unknown_characters", "unknown_token", "context_length_exceeded", "too_many_texts"}
MODEL_FIELDS = {
    "head_mask": r"the shape \(n_layer",
    "prompt": "at least two tokens",
    "other": "Only the first tokens correspond|share no tokens",
    "corrupted": "same number of tokens|Both prompts are the same|Both prompts give",
    "reference": "as the prompt",
    "best_of": "must equal n",
    **dict.fromkeys(("layers", "heads", "logit_bias", "stop_token_ids"), "from 0 to"),
}


def the_document_is_as_strict_as_the_server(
    client: httpx.Client, document: Document, path: str, schema: Any
) -> Property:
    allowed = document.body_of(f"/{path}")

    @given(bodies(schema))
    def check(body: Any) -> None:
        content = json.dumps(body)
        answer = client.post(f"/v1/{path}", content=content)
        document.check_answer(f"/{path}", "post", answer)
        error = error_of(answer) if answer.status_code != 200 else {"code": None, "param": None, "message": ""}
        of_the_model = error["code"] in MODEL_CODES
        if allowed.is_valid(json.loads(content)):
            of_the_model |= bool(re.search(MODEL_FIELDS.get(error["param"], "nothing"), error["message"]))
            assert answer.status_code == 200 or of_the_model, error
        else:
            assert answer.status_code == 400 or error["code"] == "model_not_found", answer.text

    return check


def still_serves(client: httpx.Client) -> bool:
    """Assert that the server still works."""
    answers = client.post("/v1/completions", json=GOOD_BODY), client.get("/health")
    return all(answer.status_code == 200 for answer in answers)


# ---- Checkpoints -----------------------------------------------------------------------------------------------------

FILES = ("config.json", "tokenizer.json", "model.safetensors")
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from([0, 1, 10**400]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=5,
)


class Damaged:
    """A checkpoint whose files can be replaced and are restored afterwards."""

    def __init__(self, folder: Path, bpe: bool) -> None:
        tokenizer = tiny_bpe(258) if bpe else None
        tiny_model(tokenizer=tokenizer, n_layer=1, n_embd=4, context_length=8).save(folder)
        self.folder = folder
        self.content = {name: (folder / name).read_bytes() for name in FILES}

    def check(self, name: str, content: bytes) -> str:
        """Load with ``content`` in the file: "refused" or "loaded"; any other exception fails the test."""
        (self.folder / name).write_bytes(content)
        try:
            loaded = model.load(self.folder, device="cpu")
            try:
                assert len(list(loaded.generate([0], 3, seed=0))) >= 1
            except FloatingPointError:  # finite weights, but so large that the logits are not
                assert max(p.abs().max() for p in loaded.gpt.parameters()) > 1e6
            assert loaded.trace([0, 1]).logits.shape == (2, loaded.config.vocab_size)
            text = loaded.tokenizer.decode(range(loaded.tokenizer.vocab_size))
            with contextlib.suppress(model.UnknownTokens):  # tokens for which the model has no row
                loaded.tokenizer.encode(text)
            return "loaded"
        except model.CheckpointError as error:
            assert error.file == str(self.folder / name) or name != "model.safetensors"
            assert error.found and error.expected and len(str(error)) < 3000
            assert str(error).encode()
            return "refused"
        finally:
            (self.folder / name).write_bytes(self.content[name])


def paths_of(content: Any, path: tuple = ()) -> list[tuple]:
    """Every place in a JSON value, at most a few of each long list or vocabulary."""
    found = [path] if path else []
    items = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    for key, value in list(items)[:40]:
        found += paths_of(value, (*path, key))
    return found


def header_of(content: bytes) -> tuple[dict[str, Any], bytes]:
    (length,) = struct.unpack("<Q", content[:8])
    return json.loads(content[8 : 8 + length]), content[8 + length :]


def any_value_in_any_place(damaged: Damaged, name: str) -> Property:
    @given(data=st.data())
    def check(data: st.DataObject) -> None:
        content = json.loads(damaged.content[name])
        for _ in range(data.draw(st.integers(1, 2))):
            places = paths_of(content)
            *parents, last = data.draw(st.sampled_from(places))
            place = content
            for parent in parents:
                place = place[parent]
            if data.draw(st.booleans()) or isinstance(place, list):
                place[last] = data.draw(ANY_JSON)
            else:
                del place[last]
            if not isinstance(content, dict) or not paths_of(content):
                break
        damaged.check(name, json.dumps(content).encode())

    return check


def damaged_bytes(damaged: Damaged, name: str) -> Property:
    @given(seed=st.integers(0, 2**32), kind=st.sampled_from(["flip", "cut", "insert", "delete", "double"]))
    def check(seed: int, kind: str) -> None:
        rng = random.Random(seed)
        content = bytearray(damaged.content[name])
        # In the weights most bytes are numbers; the header is where the structure is.
        limit = len(content) if name != "model.safetensors" or rng.random() < 0.3 else 1200
        at = rng.randrange(min(limit, len(content)))
        if kind == "flip":
            for _ in range(rng.randint(1, 4)):
                content[rng.randrange(min(limit, len(content)))] = rng.randrange(256)
        elif kind == "cut":
            del content[at:]
        elif kind == "insert":
            content[at:at] = rng.randbytes(rng.randint(1, 20))
        elif kind == "delete":
            del content[at : at + rng.randint(1, 20)]
        else:
            content *= 2
        damaged.check(name, bytes(content))

    return check


def any_value_in_the_safetensors_header(damaged: Damaged) -> Property:
    @given(data=st.data())
    def check(data: st.DataObject) -> None:
        header, body = header_of(damaged.content["model.safetensors"])
        tensor = header[data.draw(st.sampled_from(sorted(set(header) - {"__metadata__"})))]
        key = data.draw(st.sampled_from(["dtype", "shape", "data_offsets"]))
        dtypes = st.sampled_from(["F64", "I8", "F16", "BF16", "U8", "F8_E4M3", "x"])
        numbers = st.lists(st.integers(-1, 2**64), max_size=3)
        tensor[key] = data.draw(ANY_JSON | (dtypes if key == "dtype" else numbers))
        text = json.dumps(header).encode()
        damaged.check("model.safetensors", struct.pack("<Q", len(text)) + text + body)

    return check


# ---- Links -----------------------------------------------------------------------------------------------------------


def ids_survive() -> Property:
    @given(st.lists(st.integers(0, 2**35 - 1), min_size=1, max_size=50))
    def check(ids: list[int]) -> None:
        assert decode_ids(encode_ids(ids), 50) == ids

    return check


def ids_that_nobody_wrote() -> Property:
    @given(st.text() | st.text("AZaz09-_/+=", max_size=40))
    def check(text: str) -> None:
        try:
            ids = decode_ids(text, 8)
        except BadLink as error:
            assert str(error).isprintable()
        else:
            assert 1 <= len(ids) <= 8 and all(0 <= number < 2**35 for number in ids)

    return check


def a_query_that_nobody_wrote(served: ServedModels) -> Property:
    """``served`` has a model of the name and the hash of ``helpers.links.GOOD_QUERY``."""
    snapshots = Snapshots(served)

    @given(st.dictionaries(st.sampled_from([*GOOD_QUERY, *LINK_SETTINGS]), st.text(max_size=30)))
    def check(changes: dict[str, str]) -> None:
        query = GOOD_QUERY | LINK_SETTINGS | changes
        try:
            link = parse_link(snapshots, query)
        except BadLink as error:
            assert str(error).isprintable()
        else:
            assert link is not None and link.loaded.name in served.models and 1 <= link.n_prompt <= len(link.ids)
        read = Link(served.models[GOOD_QUERY["model"]], [1, 2], 2, None)
        settings, notices = parse_settings(served, read, query, WORDS)
        assert bool(settings) != bool(notices)
        assert all(least <= settings[field] <= most for field, (least, most) in RANGES.items() if settings)

    return check
