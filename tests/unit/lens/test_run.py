"""Runs with hooks: batches, names, gradients, what hooks may return, and edits of a model."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import model
from helpers.models import max_difference, prompt_ids, tiny_model
from model import InputError, LoadedModel
from model.points import points

ROWS = [prompt_ids(n, seed=n) for n in (9, 4, 1, 7)]
SHAPES: dict[str, dict[str, Any]] = {
    "gpt2": {},
    "llama": {
        "rotary": model.config.RotaryConfig(n_dim=4),
        "n_kv_head": 1,
        "norm": "RMSNorm",
        "gated_mlp": True,
        "activation_function": "silu",
        "qk_norm": True,
    },
    "neox": {"rotary": model.config.RotaryConfig(n_dim=2), "parallel": True},
}


@pytest.fixture(params=SHAPES)
def loaded(request: pytest.FixtureRequest) -> LoadedModel:
    return tiny_model(**SHAPES[request.param])


def test_a_batch_equals_one_text_at_a_time(loaded: LoadedModel) -> None:
    found = loaded.run(ROWS, names="*")
    assert list(found.cache) == points(loaded.config) and found.lengths.tolist() == list(map(len, ROWS))
    for row, ids in enumerate(ROWS):
        n, alone = len(ids), loaded.run(ids, names="*")
        assert found.ids[row, :n].tolist() == ids
        assert max_difference(found.logits[row, :n], loaded.trace(ids).logits) < 1e-5
        assert not found.logits[row, n:].any()
        for name, x in found.cache.items():
            heads_first = name.endswith(("scores", "pattern"))
            own, padding = (x[row, :, :n, :n], x[row, :, n:]) if heads_first else (x[row, :n], x[row, n:])
            assert max_difference(own, alone.cache[name][0]) < 1e-5, name
            assert (padding == (1 if name.endswith("scale") else 0)).all(), name


def test_one_text_and_several_in_every_form(loaded: LoadedModel) -> None:
    ids = loaded.tokenizer.encode("To be")
    one = loaded.run("To be").logits
    for text in (ids, tuple(ids), torch.tensor(ids), torch.tensor([ids]), np.array(ids), list(np.array(ids))):
        assert torch.equal(loaded.run(text).logits, one)
        assert max_difference(loaded.trace(text).logits, one[0]) < 1e-5
    both = loaded.run(["To be", "or not"])
    for texts in ([ids, "or not"], [torch.tensor(ids), np.array(loaded.tokenizer.encode("or not"))]):
        assert torch.equal(loaded.run(texts).logits, both.logits)
    mask = torch.tensor([[0.0, 1.0], [2.0, 1.0]])
    masked = loaded.run([loaded.trace("To be", head_mask=mask), "or not"]).logits
    assert max_difference(masked[0, :5], loaded.trace("To be", head_mask=mask).logits) < 1e-5
    assert max_difference(masked[1], both.logits[1]) < 1e-5
    for texts, message in (
        ([], "at least one"),
        ([[]], "empty"),
        ("é", "é"),
        ([[0.5]], "found 0.5"),
        ([ids, [65]], "65"),
    ):
        with pytest.raises(InputError, match=message):
            loaded.run(texts)
    with pytest.raises(InputError, match="integers"):
        loaded.trace(torch.tensor([0.5]))
    with pytest.raises(InputError, match=r"found \(2, 3\)|found torch.Size"):
        loaded.trace(torch.zeros(2, 3, dtype=torch.long))


def test_names_patterns_and_predicates() -> None:
    loaded = tiny_model()
    both = ["blocks.0.attn.hook_z", "blocks.1.attn.hook_z"]
    for names in (
        "z",
        "hook_z",
        "attn.hook_z",
        "blocks.*.attn.hook_z",
        "head output",
        ["blocks.0.z", "blocks.1.hook_z"],
        ["*.1.*hook_z", both[0]],
        lambda name: name in both,
    ):
        assert list(loaded.run("To", names=names).cache) == both
    assert list(loaded.run("To", names="blocks.1.attn.hook_z").cache) == both[1:]
    assert list(loaded.activations("To", "z", layers=[1])) == list(loaded.activations("To", both[1])) == both[1:]
    assert list(loaded.activations("To", ["hook_embed", "ln_final.*"])) == [
        "hook_embed",
        "ln_final.hook_scale",
        "ln_final.hook_normalized",
    ]
    for name in ("hook_rot_q", "nothing.*", "", lambda name: False):
        with pytest.raises(InputError, match="names must be one of resid_pre, .*hook_embed, .*blocks.LAYER"):
            loaded.run("To", names=[name])
        with pytest.raises(InputError, match="hooks must be one of resid_pre, "):
            loaded.run("To", hooks=[(name, lambda x, name: x)])
    with pytest.raises(InputError, match="names must be a name of a point, or a function of one, found 3"):
        loaded.run("To", names=[3])  # type: ignore[list-item]


def test_hooks_see_and_change(loaded: LoadedModel) -> None:
    plain = loaded.run("To be").logits
    seen: list[str] = []

    def look(x: Tensor, name: str) -> None:
        seen.append(name)

    assert max_difference(loaded.run("To be", hooks={"*": look}).logits, plain) < 1e-5
    assert seen == points(loaded.config)
    for point in points(loaded.config):  # every activation is the one that is used
        hooks = {point: lambda x, _: x * torch.linspace(1, 2, x.numel()).view(x.shape)}
        changed = loaded.run("To be", hooks=hooks).logits
        assert max_difference(changed, plain) > 1e-4, point
    mask = torch.ones(2, 2)
    mask[1] = 0
    expected = loaded.trace("To be", head_mask=mask)
    zero = {"blocks.1.attn.hook_z": lambda x, _: torch.zeros_like(x)}
    assert max_difference(loaded.run("To be", hooks=zero).logits[0], expected.logits) < 1e-5
    trace = loaded.trace("To be", hooks=zero)
    assert max_difference(trace.logits, expected.logits) < 1e-5
    assert max_difference(trace.attention, expected.attention) < 1e-5
    kept = loaded.run("To be", hooks=zero, names="z").cache  # what was kept is what the hooks left
    assert not kept["blocks.1.attn.hook_z"].any() and kept["blocks.0.attn.hook_z"].any()
    options: dict[str, Any] = {"max_new_tokens": 12, "seed": 3, "record": True}
    steered, masked = (
        loaded.generate("To be", hooks=zero, **options),
        loaded.generate("To be", head_mask=mask, **options),
    )
    for ours, theirs in zip(steered, masked, strict=True):
        assert ours.token_id == theirs.token_id and ours.attention is not None and theirs.attention is not None
        assert max_difference(ours.attention, theirs.attention) < 1e-5
    assert max_difference(steered.trace().logits, masked.trace().logits) < 1e-5


@pytest.mark.parametrize("returned", [lambda x: x[:, :1], lambda x: 3, lambda x: x.flatten()])
def test_what_a_hook_may_not_return(returned: Any) -> None:
    loaded = tiny_model()
    hooks = {"resid_post": lambda x, _: returned(x)}
    with pytest.raises(
        InputError, match=r"A hook at blocks.0.hook_resid_post must return None or a tensor \(1, 5, 16\)"
    ):
        loaded.run("To be", hooks=hooks)
    with pytest.raises(InputError, match="A hook at"):
        next(loaded.generate("To be", hooks=hooks))
    with pytest.raises(InputError, match="hooks must be a function"):
        loaded.generate("To be", hooks={"z": 3})  # type: ignore[dict-item]


def test_gradients_of_activations_and_weights(loaded: LoadedModel) -> None:
    run = loaded.run(ROWS, names=["resid_post", "pattern"], grad=True)
    loss = sum(run.logits[row, n - 1].log_softmax(-1)[3] for row, n in enumerate(run.lengths.tolist()))
    assert isinstance(loss, Tensor)
    name, weight = "blocks.0.hook_resid_post", loaded.gpt.h[1].mlp.c_proj.weight
    at_activation, at_weight = torch.autograd.grad(loss, [run.cache[name], weight])
    assert at_weight.isfinite().all() and at_weight.any()
    step = 1e-2

    def moved(sign: int) -> float:
        def push(x: Tensor, _: str) -> Tensor:
            pushed = x.clone()
            pushed[0, 2, 5] += sign * step
            return pushed

        again = loaded.run(ROWS, hooks={name: push}).logits
        return float(sum(again[row, n - 1].log_softmax(-1)[3] for row, n in enumerate(run.lengths.tolist())))

    assert float(at_activation[0, 2, 5]) == pytest.approx((moved(1) - moved(-1)) / (2 * step), abs=2e-3)
    assert not at_activation[1, 4:].any()  # nothing after the end of a text
    assert not loaded.run(ROWS).logits.requires_grad and not loaded.knockout(ROWS[0]).delta.requires_grad
    assert not loaded.trace(ROWS[0]).attention.requires_grad


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_gradients_change_no_later_answer(tmp_path: Path, dtype: str) -> None:
    tiny_model(n_embd=32).save(tmp_path)
    loaded, pair = model.load(tmp_path, dtype=dtype, device="cpu"), ("To be or not", "No be or not")

    def answers() -> list[Tensor | None]:
        patched = loaded.patch_site(*pair, site="z", estimate=True)
        steps = list(loaded.generate("To", 3, seed=1))
        kept = loaded.run(list(pair), names="z", hooks={"resid_mid": lambda x, _: 2 * x})
        found = [loaded.trace("To be").logits, loaded.knockout("To be").delta, loaded.roles().scores["induction"]]
        return [*found, patched.exact, patched.estimate, kept.logits, *kept.cache.values(), *(x.logits for x in steps)]

    before = answers()
    loaded.run("To be", grad=True).logits.sum().backward()
    for one, other in zip(before, answers(), strict=True):
        assert one is not None and other is not None and torch.equal(one, other) and not other.requires_grad
    loaded.gpt.requires_grad_(False)
    loaded.gpt.h[0].mlp.c_proj.weight[0] = 0


def test_nothing_is_an_inference_tensor() -> None:
    loaded, text = tiny_model(), "To be or not"
    answers = [
        loaded.trace(text).logits,
        loaded.embed(text),
        loaded.knockout(text).delta,
        loaded.attribution(text).heads,
        loaded.logit_lens(text).ids,
        loaded.roles().scores["induction"],
        loaded.composition().scores["q"][1],
        loaded.patch(text, "No be or not").heads,
        loaded.text_pass(text).stream[0],
        *loaded.activations(text, "*").values(),
    ]
    assert all(isinstance(x, Tensor) and not x.is_inference() for x in answers)
    x = loaded.activations(text, "blocks.1.hook_resid_post")["blocks.1.hook_resid_post"]
    nn.Linear(x.shape[-1], 2)(x).sum().backward()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8"])
def test_an_edit_of_weights_reaches_every_answer(tmp_path: Path, dtype: str) -> None:
    tiny_model(n_embd=32).save(tmp_path)
    loaded = model.load(tmp_path, dtype=dtype, device="cpu")

    def answers() -> list[Tensor]:
        found = loaded.attribution("To be")
        assert (
            abs(found.difference) < 1e-3
            and abs(found.logit - float(loaded.trace("To be").logits[-1, found.token])) < 1e-4
        )
        return [loaded.trace("To be").logits, torch.tensor(loaded.knockout("To be").loss), loaded.run("To be").logits]

    before = answers()
    loaded.gpt.h[1].mlp.c_proj.weight.data.zero_()
    assert all(max_difference(one, other) > 1e-4 for one, other in zip(before, answers(), strict=True))


@pytest.mark.parametrize("before", [True, False])
def test_a_hook_of_torch_is_refused_by_name(before: bool) -> None:
    loaded = tiny_model()
    loaded.knockout("To be")
    module = loaded.gpt.h[1].attn
    handle = (
        module.register_forward_pre_hook(lambda *_: None) if before else module.register_forward_hook(lambda *_: None)
    )
    for ask in (loaded.knockout, loaded.trace, loaded.run, loaded.attribution):
        with pytest.raises(InputError, match="gpt.h.1.attn has a hook of torch's"):
            ask("To be")
    handle.remove()
    loaded.knockout("To be")


def test_a_run_is_described_in_a_few_lines() -> None:
    shown = repr(tiny_model(n_layer=4).run("To be", names="*"))
    assert "logits (1, 5, 65)" in shown and shown.count("\n") < 25


@pytest.mark.parametrize(
    ("dtype", "named"),
    [
        ("float32", "float32"),
        ("bfloat16", "float32 with weights in bfloat16"),
        ("int8", "float32 with weights in int8"),
    ],
)
def test_answers_name_their_precision(tmp_path: Path, dtype: str, named: str) -> None:
    tiny_model(n_embd=32).save(tmp_path)
    loaded = model.load(tmp_path, dtype=dtype, device="cpu")
    answers = [loaded.attribution("To be"), loaded.logit_lens("To be"), loaded.roles()]
    answers.append(loaded.over_prompts("knockout", ["To be", "or not"]))
    for answer in (*answers, loaded.trace("To be"), loaded.run("To be")):
        assert answer.precision == named and f"in {named}\n" in repr(answer)
    assert all(f", in {named}</b>" in answer._repr_html_() for answer in answers)
    assert "precision" not in answers[0].to_dict()
    assert loaded.trace_with(loaded.gpt, "To be").precision == dtype


def test_what_was_left_out_is_counted() -> None:
    loaded = tiny_model(n_layer=2)
    row = {"prompt": "so it is", "corrupted": "so he is", "answer": "a", "wrong": "b"}
    rows = [row, row | {"wrong": "a"}, row | {"answer": "c"}, row | {"answer": "b"}]
    for answer in (loaded.circuit(rows), loaded.over_prompts("patch_site", rows, site="z")):
        assert "2 of 4 rows left out, such as row 1: " in str(answer)
    for answer in (loaded.circuit(rows[:1]), loaded.over_prompts("patch_site", rows[:1], site="z")):
        assert "left out" not in str(answer)


def test_long_work_shows_a_bar(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    loaded, fractions = tiny_model(), list[float]()
    loaded.knockout("To be")
    assert not capsys.readouterr().err
    monkeypatch.setattr("model.lens.progress.BAR_AFTER", 0)
    loaded.knockout("To be", progress=fractions.append)
    assert fractions and not capsys.readouterr().err
    loaded.knockout("To be")
    assert "knockout:   0%" in capsys.readouterr().err
    with pytest.raises(InputError):
        loaded.knockout("T")


def test_arguments_are_read_alike_and_answers_are_short() -> None:
    loaded, text = tiny_model(n_layer=3), "To be or not"
    by_text, by_id = (loaded.attribution(text, token="a", against=each) for each in ("b", loaded.parse_token("b")))
    assert by_text.against == by_id.against == loaded.parse_token(torch.tensor([by_id.against]))
    assert loaded.removal(text, (1, 0)).delta == loaded.removal(text, [(1, 0)]).delta
    for token in ("be", 65, True, torch.tensor([1, 2])):
        with pytest.raises(InputError, match="^wrong"):
            loaded.parse_token(token, "wrong")
    rows = [{"prompt": text, "corrupted": "No be or not"}, {"prompt": "or not", "corrupted": "or bot"}]
    assert loaded.over_prompts("patch", rows).mean["heads"].shape == (3, 2)
    answers = [loaded.knockout(text), loaded.logit_lens(text), loaded.patch(text, "No be or not"), loaded.roles()]
    assert all(repr(answer).count("\n") < 30 and len(repr(answer)) < 2000 for answer in answers)


def test_former_names_stay() -> None:
    loaded = tiny_model()
    assert loaded.float32 is loaded.lens


def test_an_unknown_option_is_named_with_those_there_are() -> None:
    loaded = tiny_model()
    with pytest.raises(TypeError, match="knockout: .* 'heads'. It takes text, method, reference, progress."):
        loaded.knockout("To be", heads=[])  # type: ignore[call-arg]
    row = {"prompt": "To be", "corrupted": "No be"}
    with pytest.raises(TypeError, match="patch_site: .* 'position'. It takes clean, .*positions"):
        loaded.over_prompts("patch_site", [row], site="z", position="all")
    with pytest.raises(InputError, match="positions must be 'each' or 'all'"):
        loaded.patch_site("To be", "No be", "z", positions="one")  # type: ignore[arg-type]


def test_every_activation_of_a_site_is_drawn_with_its_token() -> None:
    loaded = tiny_model()
    found = loaded.patch_site("To be", "No be", "z", estimate=True, answer="a", wrong="b")
    html = found._repr_html_()
    assert html.count("<table>") == 3  # the corrupted tokens, and both grids
    assert html.count("<tr><th>L1 H1</th>") == 2 and html.count("<th>T</th><th>o</th><th>·</th>") == 3
    assert all(each in html for each in ("answer: a", "wrong: b", "attn.hook_z", "correlation"))
    nested = loaded.patch("To be", "No be", answer="a", wrong="b", site="z", positions="all")
    assert "site exact" in nested._repr_html_() and "<tr><th>L1</th>" in nested._repr_html_()


def test_a_single_layer_and_some_neurons_keep_their_numbers() -> None:
    loaded, given = tiny_model(), {"answer": "a", "wrong": "b", "positions": "all"}
    one = loaded.patch_site("To be", "No be", "blocks.1.attn.hook_z", **given)  # type: ignore[arg-type]
    assert "<tr><th>L1</th>" in one._repr_html_() and "<tr><th>L0</th>" not in one._repr_html_()
    some = loaded.patch_site("To be", "No be", "mlp_post", neurons=[(1, 7), (0, 3)], **given)  # type: ignore[arg-type]
    assert "<th>L1 N7</th><th>L0 N3</th>" in some._repr_html_()


def test_tokens_are_drawn_as_texts_and_pairs_as_rows() -> None:
    loaded = tiny_model()
    found = loaded.token_circuit(1, 0, top=3)
    source, target = (loaded.tokenizer.decode([int(each[0])]) for each in (found.source, found.target))
    html = found._repr_html_()
    assert html.index("<b>pairs</b>") < html.index("<b>eigenvalues</b>") and f"raises {target} most" in repr(found)
    assert f"<td>{source}</td><td>{target}</td>" in html.replace("·", " ").replace("↵", "\n")


def test_an_answer_writes_a_file(tmp_path: Path) -> None:
    found = tiny_model().knockout("To &be")
    found.to_html(tmp_path / "answer.html")
    written = (tmp_path / "answer.html").read_text(encoding="utf-8")
    assert found._repr_html_() in written and "&amp;" in written and "<script" not in written


def test_a_change_in_place_leaves_what_was_computed_before() -> None:
    loaded, before, here = tiny_model(), "blocks.0.hook_resid_post", "blocks.1.hook_resid_pre"
    plain = loaded.run("To be", names=[before, here])
    changed = loaded.run("To be", names=[before, here], hooks={here: lambda x, name: x.zero_()})
    assert torch.equal(changed.cache[before], plain.cache[before]) and changed.cache[here].abs().max() == 0
    assert not torch.equal(changed.logits, plain.logits)


def test_what_repr_says() -> None:
    loaded = tiny_model()
    shown = repr(loaded.patch_site("To be", "No be", "z", answer="a", wrong="b", estimate=True, positions="all"))
    token = loaded.parse_token("a")
    assert f"answer: a ({token})" in shown and "correlation: " in shown and "exact: tensor (2, 2)" in shown
    assert "null" not in repr(loaded.knockout("To be")) and "reference: None" in repr(loaded.knockout("To be"))
    assert "method: 'zero'" in repr(loaded.knockout("To be"))
    assert repr(loaded).startswith("LoadedModel 'tiny': 2 layers of 2 heads, n_embd") and "\n" not in repr(loaded)


def test_a_wrong_name_of_a_point_is_told_apart() -> None:
    loaded = tiny_model()
    for name, said in (
        ("blocks.30.attn.hook_z", "a point of a layer from 0 to 1, found 'blocks.30.attn.hook_z'"),
        ("blocks.1.attn.hook_zz", "such as blocks.1.attn.hook_z,"),
    ):
        with pytest.raises(InputError, match=said):
            loaded.run("To be", hooks={name: lambda x, name: x})


def test_a_cache_finds_an_activation_by_any_name_that_means_it() -> None:
    loaded = tiny_model(n_layer=3)
    cache = loaded.run("To be", names=["blocks.1.attn.hook_z", "resid_post"]).cache
    for name in ("z", "attn.hook_z", "hook_z", "blocks.1.z", "head output"):
        assert cache[name] is cache["blocks.1.attn.hook_z"]
    assert cache["blocks.2.resid_post"] is cache["blocks.2.hook_resid_post"]
    alone = loaded.activations("To be", "z", layers=[2])
    assert alone["z"] is alone["blocks.2.attn.hook_z"]
    assert cache["z", 1] is cache["blocks.1.attn.hook_z"] and cache["resid_post", -1] is cache["blocks.2.resid_post"]
    stacked = cache["resid_post"]
    assert stacked.shape == (3, 1, 5, 16) and torch.equal(stacked[1], cache["resid_post", 1])
    for name, named in (
        ("*", r"'\*' means several activations in the cache: blocks.0.hook_resid_post, .*"),
        (("z", 2), r"one of blocks.0.hook_resid_post, .* found \('z', 2\)"),
        ("blocks.2.z", "one of blocks.0.hook_resid_post, blocks.1.attn.hook_z, .* found 'blocks.2.z'"),
        ("nothing", "one of blocks.0.hook_resid_post, .* found 'nothing'"),
    ):
        with pytest.raises(InputError, match=named):
            cache[name]
    some = loaded.run("To be", names=["blocks.0.z", "blocks.2.z"]).cache
    with pytest.raises(InputError, match="'z' means several activations in the cache: blocks.0.attn.hook_z, blocks.2"):
        some["z"]
    with pytest.raises(InputError, match="cache must be a name that was in names: none was, found 'z'"):
        loaded.run("To be").cache["z"]


def test_a_hook_with_other_arguments_is_refused_by_its_signature() -> None:
    loaded = tiny_model()
    for hook, shown in ((lambda x: x, r"\(x\)"), (lambda x, *, hook: x, r"\(x, \*, hook\)"), (lambda: None, r"\(\)")):
        with pytest.raises(InputError, match=rf"called as f\(tensor, name\), but one of these functions takes {shown}"):
            loaded.run("To be", hooks={"blocks.0.hook_resid_post": hook})  # type: ignore[dict-item]
    for allowed in (lambda x, name: x, lambda x, name, more=1: x, lambda *given: given[0]):
        loaded.run("To be", hooks={"blocks.0.hook_resid_post": allowed})


def test_a_tensor_of_another_width_is_refused_with_both_shapes() -> None:
    loaded, name = tiny_model(), "blocks.0.hook_resid_post"
    x = loaded.run("To be", names=name).cache[name]
    wider = (*x.shape[:-1], x.shape[-1] + 1)
    with pytest.raises(InputError) as raised:
        loaded.run("To be", hooks={name: lambda x, _: torch.zeros(wider)})
    assert f"A hook at {name} must return None or a tensor {tuple(x.shape)}, found {wider}." in str(raised.value)


def test_wrong_calls_say_what_to_write() -> None:
    loaded = tiny_model()
    with pytest.raises(InputError, match="one text; BatchWriter"):
        loaded.generate(["To be", "or not"], 5)  # type: ignore[list-item]
    for name, near in (("resid_pots", "resid_post"), ("atn_out", "attn_out"), ("hook_resid_pots", "hook_resid_post")):
        with pytest.raises(InputError, match=f"such as {near}, found"):
            loaded.run("To be", names=name)
    assert list(loaded.run("To be", names=["post"]).cache) == list(loaded.run("To be", names="mlp_post").cache)
    assert loaded.patch_site("To be", "No be", "post", neurons=[(0, 1)], answer="a", wrong="b").site.name == "mlp_post"
    with pytest.raises(TypeError, match="patch_site: there is no argument 'sites'. It takes .*site"):
        loaded.over_prompts("patch_site", [{"prompt": "To be", "corrupted": "No be"}], sites="z")
    assert repr(loaded.activations("To", "blocks.0.z")) == "blocks.0.attn.hook_z (2, 2, 8)"
    shown = repr(loaded.patch_site("To be", "No be", "z", answer="a", wrong="b"))
    assert "places" not in shown and "drawn_axes" not in shown
