"""What the lenses say about a model of each family, compared with hooks in transformers on the same folder."""

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import model
from helpers.models import max_difference, prompt_ids
from helpers.oracles.families import ONE_OF_EACH, one_of_each_kind, reference, write
from helpers.oracles.hooks import Hook, Theirs, contexts, hooked, inputs_of, replacing
from model.lens import one_head
from model.lens.attribution import attribution
from model.lens.composition import composition
from model.lens.head_roles import copying_scores
from model.lens.interventions.ablated_graph import Edge, Graph, edges_between
from model.lens.interventions.knockout import knockout
from model.lens.interventions.patch_run import patch_run
from model.lens.interventions.patching import patch
from model.lens.interventions.paths import cut_paths, patch_paths
from model.lens.interventions.reference import METHODS, NEEDS_REFERENCE
from model.lens.ledger import ledger
from model.lens.logit_lens import logit_lens
from model.lens.neurons import follow_neuron
from model.lens.text_pass import TextPass
from model.lens.token_circuits import vocabulary_circuit

TOLERANCE = 1e-4
EXACT = 1e-5
TOKEN, N_TOKENS = 7, 9


Both = tuple[Theirs, TextPass]


def opened(name: str, folder: Path, **changes: Any) -> Both:
    gpt = reference(name, **changes)
    loaded = model.load(write(gpt, folder), device="cpu", dtype="float32")
    return Theirs(gpt), TextPass(loaded.gpt, prompt_ids(N_TOKENS, loaded.config.vocab_size))


@pytest.fixture(params=one_of_each_kind(ONE_OF_EACH))
def both(request: pytest.FixtureRequest, tmp_path: Path) -> Both:
    return opened(request.param, tmp_path)


@torch.inference_mode()
def test_knockout_equals_hooks_on_transformers(both: Both) -> None:
    theirs, text = both
    plain, own = theirs.losses(text.ids), contexts(theirs, text.ids)
    for method in METHODS:
        shape = (text.config.n_layer, len(text.ids) if method == "resample" else 1, text.config.n_head, -1)
        random = torch.randn(shape[0] * shape[1] * shape[2], text.config.head_dim).view(shape)
        reference = random if method in NEEDS_REFERENCE else None
        ours = knockout(text, method=method, reference=reference)
        for layer in range(theirs.n_layer):
            for head in range(theirs.n_head):
                span = theirs.span(head)
                value = own[str(layer)][:, span].mean(0) * (method == "text_mean")
                value = value if reference is None else reference[layer, :, head]
                with hooked(theirs.output(layer), replacing(span, value), before=True):
                    changed = theirs.losses(text.ids)
                assert max_difference(ours.token_delta[layer, head], changed - plain) <= TOLERANCE


@torch.inference_mode()
def test_attribution_equals_hooks_on_transformers(both: Both) -> None:
    theirs, text = both
    modules = {"final": theirs.norm} | {f"mlp{i}": theirs.part_of(i, "first") for i in range(theirs.n_layer)}
    found, own = inputs_of(theirs, modules, text.ids), contexts(theirs, text.ids)
    logits = theirs(text.ids).logits[0]
    for position in (0, 5, N_TOKENS - 1):
        ours = attribution(text, position=position, token=TOKEN)
        stream = found["final"][position]
        for layer in range(theirs.n_layer):
            W_O, context = theirs.output(layer).weight, own[str(layer)][position]
            for head in range(theirs.n_head):
                added = theirs.adds(layer, W_O[:, theirs.span(head)] @ context[theirs.span(head)], context)
                part = theirs.part_of_logit(stream, added, TOKEN)
                assert float(ours.heads[layer, head]) == pytest.approx(part, abs=EXACT)
            added = theirs.part_of(layer, "post_2")(theirs.mlp(layer, found[f"mlp{layer}"][position]))
            assert float(ours.mlps[layer]) == pytest.approx(theirs.part_of_logit(stream, added, TOKEN), abs=EXACT)
        embedded = theirs.embedded(text.ids)[position]
        assert ours.embedding == pytest.approx(theirs.part_of_logit(stream, embedded, TOKEN), abs=EXACT)
        assert ours.logit == pytest.approx(float(logits[position, TOKEN]), abs=TOLERANCE)
        assert ours.difference <= EXACT


@torch.inference_mode()
def test_edges_and_ledger_equal_hooks_on_transformers(both: Both) -> None:
    theirs, text = both
    layer, head, position = 0, theirs.n_head - 1, 6
    answer = theirs(text.ids, output_attentions=True)
    stream = inputs_of(theirs, {"layer": theirs.layer(layer)}, text.ids)["layer"]
    value = theirs.part(layer, "v", theirs.part_of(layer, "norm_1")(stream))
    value = value[:, head * value.shape[1] // theirs.n_head]
    weights = answer.attentions[layer][0, head, position, : position + 1]
    plain = -float(answer.logits[0, position].log_softmax(-1)[TOKEN])
    ours = one_head.head(text, layer=layer, head=head, position=position, token=TOKEN)
    assert max_difference(ours.weight, weights) <= EXACT
    for key in range(position + 1):

        def cut(_module: object, given: tuple[Tensor, ...], key: int = key) -> tuple[Tensor, ...]:
            context = given[0].clone()
            context[0, position, theirs.span(head)] -= weights[key] * value[key]
            return (context,)

        with hooked(theirs.output(layer), cut, before=True):
            without = -float(theirs(text.ids).logits[0, position].log_softmax(-1)[TOKEN])
        assert float(ours.loss_change[key]) == pytest.approx(without - plain, abs=TOLERANCE)
    arithmetic = ledger(text, layer=layer, head=head, query=position, key=4, token=TOKEN)
    assert max(arithmetic.errors.values()) <= EXACT
    assert max_difference(arithmetic.weights, weights) <= EXACT
    assert max_difference(arithmetic.value, value[4]) <= EXACT
    own_layer = theirs.part_of(layer, "attention")
    before = theirs.part_of(layer, "norm_1")(stream)
    for which, at, final in (("q", position, arithmetic.query), ("k", 4, arithmetic.key)):
        vectors = theirs.part(layer, which, before)
        vector = vectors[at, head * vectors.shape[1] // theirs.n_head]
        stages = [getattr(stage, {"q": "query", "k": "key"}[which]) for stage in arithmetic.stages]
        assert max_difference([*stages, final][0], vector) <= EXACT
        if hasattr(own_layer, "q_norm"):
            norm = getattr(own_layer, f"{which}_norm")
            joined = vectors if len(norm.weight) == theirs.size else vectors.flatten(-2)
            vector = norm(joined).view_as(vectors)[at, head * vectors.shape[1] // theirs.n_head]
            assert [stage.before for stage in arithmetic.stages] == ["normalised", "rotated"]
            assert max_difference(stages[1], vector) <= EXACT
        if arithmetic.frequencies is None:
            assert max_difference(final, vector) <= EXACT
            continue
        n = len(arithmetic.frequencies)
        turned = torch.complex(vector[:n], vector[n : 2 * n]) * torch.exp(1j * at * arithmetic.frequencies)
        assert max_difference(final, torch.cat([turned.real, turned.imag, vector[2 * n :]])) <= EXACT
    assert max_difference(arithmetic.parts, ours.attribution) <= EXACT
    own = contexts(theirs, text.ids)[str(layer)][position, theirs.span(head)]
    assert max_difference(arithmetic.context, own) <= EXACT
    assert arithmetic.head_part + arithmetic.rest == pytest.approx(arithmetic.logit, abs=EXACT)


@torch.inference_mode()
def test_logit_lens_equals_hooks_on_transformers(both: Both) -> None:
    theirs, text = both
    answer = theirs(text.ids, output_hidden_states=True)
    ours = logit_lens(text, top=text.config.vocab_size)
    logprobs = torch.empty_like(ours.probabilities).scatter(-1, ours.ids, ours.probabilities.log())
    readings = [theirs.head(theirs.norm(x))[0] for x in answer.hidden_states[:-1]] + [answer.logits[0]]
    for i, logits in enumerate(readings):
        assert max_difference(logprobs[i], logits.log_softmax(-1)) <= TOLERANCE
        assert torch.equal(ours.ids[i, :, 0], logits.argmax(-1))


@torch.inference_mode()
def test_patching_equals_hooks_on_transformers(both: Both) -> None:
    theirs, text = both
    other = TextPass(text.gpt, prompt_ids(N_TOKENS, text.config.vocab_size, seed=1))
    ours = patch(text, other, answer=TOKEN, wrong=3)
    assert ours.heads is not None and ours.residual is not None

    def difference() -> float:
        logits = theirs(other.ids).logits[0, -1]
        return float(logits[TOKEN] - logits[3])

    clean = contexts(theirs, text.ids)
    assert ours.corrupted == pytest.approx(difference(), abs=TOLERANCE)
    streams = inputs_of(theirs, {str(i): theirs.layer(i) for i in range(theirs.n_layer)}, text.ids)
    for layer in range(theirs.n_layer):
        for head in range(theirs.n_head):
            span = theirs.span(head)
            with hooked(theirs.output(layer), replacing(span, clean[str(layer)][:, span]), before=True):
                assert float(ours.raw["heads"][layer, head]) == pytest.approx(difference(), abs=TOLERANCE)
        for position in (0, 4, N_TOKENS - 1):

            def put(
                _module: object, given: tuple[Tensor, ...], layer: int = layer, position: int = position
            ) -> tuple[Tensor, ...]:
                x = given[0].clone()
                x[0, position] = streams[str(layer)][position]
                return (x, *given[1:])

            with hooked(theirs.layer(layer), put, before=True):
                assert float(ours.raw["residual"][layer, position]) == pytest.approx(difference(), abs=TOLERANCE)


def projecting(theirs: Theirs, way: str, part: Tensor) -> Hook:
    """A hook that puts ``part`` ``(T, heads, head_dim)`` in place of all heads' queries, keys or values."""

    def replace(_module: object, _given: object, output: Tensor) -> Tensor:
        if not theirs.is_fused:
            return part.flatten(-2)[None]
        fused = output.unflatten(-1, (theirs.n_head, 3, theirs.size)).clone()
        fused[..., "qkv".index(way), :] = part
        return fused.flatten(-3)

    return replace


@torch.inference_mode()
@pytest.mark.parametrize("name", one_of_each_kind(ONE_OF_EACH))
def test_paths_equal_hooks_on_transformers(name: str, tmp_path: Path) -> None:
    """The attention of a head in layer 2 if its queries, or its keys, do not see one head of layer 0; and its output if
    its values do not.
    """
    theirs, text = opened(name, tmp_path, num_hidden_layers=3)
    layer, head, earlier = 2, 1, 2
    ours = cut_paths(text, layer=layer, head=head, method="text_mean").moved
    modules = {"x": theirs.layer(layer)}
    x = inputs_of(theirs, modules, text.ids)["x"]
    span = theirs.span(earlier)
    own = contexts(theirs, text.ids)
    whole = own["0"]
    context = whole[:, span]
    change = (context - context.mean(0)) @ theirs.output(0).weight[:, span].T
    seen = {"direct": x - theirs.adds(0, change, whole)}
    with hooked(theirs.output(0), replacing(span, context.mean(0)), before=True):
        seen["every"] = inputs_of(theirs, modules, text.ids)["x"]
        with hooked(theirs.output(1), replacing(slice(None), own["1"]), before=True):
            seen["mlps"] = inputs_of(theirs, modules, text.ids)["x"]
    assert max_difference(seen["direct"], seen["every"]) > 0.1  # the layers between make something of it
    writes = theirs.output(layer).weight[:, theirs.span(head)]

    def run() -> tuple[Tensor, Tensor]:
        """The head's attention weights and what it writes."""
        weights = theirs(text.ids, output_attentions=True).attentions[layer][0, head]
        return weights, theirs.adds(layer, contexts(theirs, text.ids)[str(layer)][:, theirs.span(head)] @ writes.T)

    plain, output = run()
    for route, stream in seen.items():
        for way in "qkv":
            part = theirs.part(layer, way, theirs.part_of(layer, "norm_1")(stream))
            with hooked(theirs.projection(layer, way), projecting(theirs, way, part)):
                changed, written = run()
            moved = float((changed - plain).abs().sum() / (2 * (N_TOKENS - 1)))
            if way == "v":
                moved = float(((written - output).norm(dim=-1) / output.norm(dim=-1)).mean())
            assert float(ours[route][way][0, earlier]) == pytest.approx(moved, abs=EXACT)


@torch.inference_mode()
def test_composition_equals_hooks_on_transformers(both: Both) -> None:
    """With the gain of the norm folded in and, where positions are rotary, for the query's own position as key."""
    theirs, text = both
    if text.config.qk_norm:
        with pytest.raises(model.InputError, match="normalises each query and key"):
            composition(text.gpt)
        return
    gain, earlier_gain = (theirs.gain(theirs.part_of(layer, "norm_1")).double() for layer in (1, 0))
    for distance in distances(theirs):
        ours = composition(text.gpt, distance=distance)
        for head, earlier in [(0, 1), (3, 2)]:
            write = theirs.output(0).weight[:, theirs.span(earlier)].double()
            W_OV = write @ (theirs.weight(0, "v", earlier).double() * earlier_gain)
            q, k, v = (theirs.weight(1, way, head).double() * gain for way in "qkv")
            W_QK = rotated(theirs, q, distance).T @ k
            out = theirs.output(1).weight[:, theirs.span(head)].double() @ v
            for way, product in (("q", W_OV.T @ W_QK), ("k", W_QK @ W_OV), ("v", out @ W_OV)):
                scale = W_OV.norm() * (out if way == "v" else W_QK).norm()
                found = float(ours.scores[way][1][head, 0, earlier])
                assert found == pytest.approx(float(product.norm() / scale), abs=EXACT)


def distances(theirs: Theirs) -> tuple[int, ...]:
    """From a query to its key, as far as a rotation tells them apart."""
    return (0, 3) if hasattr(theirs.body, "rotary_emb") else (0,)


def rotated(theirs: Theirs, weight: Tensor, distance: int) -> Tensor:
    """The weight of queries ``(head_dim, C)``, turned as transformers turns a query at the position ``distance``."""
    if not hasattr(theirs.body, "rotary_emb"):
        return weight
    cos, sin = theirs.body.rotary_emb(torch.zeros(1, 1, 1), torch.tensor([[distance]]))
    n = cos.shape[-1]
    turned, rest = weight[:n], weight[n:]
    half = torch.cat([-turned[n // 2 :], turned[: n // 2]])
    return torch.cat([turned * cos[0, 0, :, None] + half * sin[0, 0, :, None], rest])


@torch.inference_mode()
def test_copying_equals_hooks_on_transformers(both: Both) -> None:
    theirs, text = both
    ids = torch.arange(5, 25)
    scores = copying_scores(text.gpt, ids)
    x = theirs.part_of(0, "norm_1")(theirs.embedding(ids))
    read = theirs.head.weight[ids] * theirs.gain(theirs.norm)
    read = read - read.mean(-1, keepdim=True) if theirs.is_centred else read
    for head in range(theirs.n_head):
        added = x @ theirs.weight(0, "v", head).T @ theirs.output(0).weight[:, theirs.span(head)].T
        seen = theirs.adds(0, added) @ read.T
        below = (seen < seen.diagonal()[:, None]).float().sum(-1) / (len(ids) - 1)
        assert float(scores[0, head]) == pytest.approx(float(below.mean()), abs=1e-3)


def alone(theirs: Theirs, layer: int) -> Tensor:
    """Every token's embedding, plus the first MLP's output for it after the first layer, ``(V, C)``."""
    x = theirs.embedding(torch.arange(len(theirs.embedding.weight)))
    if layer == 0:
        return x
    return x + theirs.part_of(0, "post_2")(theirs.mlp(0, theirs.part_of(0, "norm_2")(x)))


def written(theirs: Theirs, layer: int, head: int) -> Tensor:
    """What a head writes for every token if it gives it all of its attention, apart from what is the same for all."""
    norm, x = theirs.part_of(layer, "norm_1"), alone(theirs, layer)
    seen = norm(x) - norm(torch.zeros_like(x))
    part = seen @ theirs.weight(layer, "v", head).T @ theirs.output(layer).weight[:, theirs.span(head)].T
    return theirs.adds(layer, part)


@torch.inference_mode()
def test_ov_circuits_equal_whole_matrices(both: Both) -> None:
    theirs, text = both
    theirs.gpt.double()
    for layer, head, earlier in ((0, 1, None), (1, 3, None), (1, 2, (0, 3))):
        ours = vocabulary_circuit(text.gpt, circuit="ov", layer=layer, head=head, earlier=earlier)
        added = written(theirs, layer, head)
        if earlier is not None:
            seen = theirs.gained(theirs.part_of(layer, "norm_1"), written(theirs, *earlier))
            part = seen @ theirs.weight(layer, "v", head).T @ theirs.output(layer).weight[:, theirs.span(head)].T
            added = theirs.adds(layer, part)
        whole = theirs.gained(theirs.norm, added) @ theirs.head.weight.T
        assert max_difference(ours.left @ ours.right.T, whole) <= EXACT * float(whole.abs().max())


@torch.inference_mode()
def test_qk_circuits_of_the_first_layer_equal_attention_of_two_tokens(both: Both) -> None:
    """The weights of a query on its key, one position earlier, and on itself: their ratio is that of the scores."""
    theirs, text = both
    theirs.gpt.double()
    if theirs.positions is not None:
        theirs.positions.zero_()  # a circuit over tokens has no positions
    n, head, away = text.config.vocab_size, 3, distances(theirs)[-1] // 3
    pairs = torch.cartesian_prod(torch.arange(n), torch.arange(n)).flip(1)  # [key, query]
    attention = theirs.gpt(pairs, output_attentions=True).attentions[0][:, head, 1]
    expected = (attention[:, 0] / attention[:, 1]).log().view(n, n)  # [query, key]
    one, none = (vocabulary_circuit(text.gpt, circuit="qk", layer=0, head=head, distance=d) for d in (away, 0))
    itself = (none.left * none.right).sum(-1, keepdim=True)
    assert max_difference(one.left @ one.right.T - itself, expected) <= TOLERANCE


@torch.inference_mode()
def test_composed_qk_circuits_equal_whole_matrices(both: Both) -> None:
    theirs, text = both
    asked: dict[str, Any] = {"circuit": "qk", "layer": 1, "head": 2, "earlier": (0, 1)}
    if text.config.qk_norm:
        with pytest.raises(model.InputError, match="cannot be told apart"):
            vocabulary_circuit(text.gpt, **asked, side="q")
        return
    theirs.gpt.double()
    norm, distance = theirs.part_of(1, "norm_1"), distances(theirs)[-1]
    direct, read = norm(alone(theirs, 1)), theirs.gained(norm, written(theirs, 0, 1))
    of_key = 2 * theirs.n_kv_head // theirs.n_head
    q, k = (theirs.part(1, way, direct)[:, of] for way, of in (("q", 2), ("k", of_key)))
    for side in "qk":
        ours = vocabulary_circuit(text.gpt, **asked, side=side, distance=distance)
        query, key = (read @ theirs.weight(1, way, 2).T if way == side else x for way, x in (("q", q), ("k", k)))
        whole = rotated(theirs, query.T, distance).T @ rotated(theirs, key.T, 0) * theirs.scale
        assert max_difference(ours.left @ ours.right.T, whole) <= EXACT * float(whole.abs().max())


@torch.inference_mode()
def test_neurons_equal_hooks_on_transformers(both: Both) -> None:
    theirs, text = both
    layer, index = 1, 7
    last = theirs.part_of(layer, "last")
    expected = inputs_of(theirs, {"neurons": last}, text.ids)["neurons"][:, index]
    found = follow_neuron(text.gpt, text.ids, layer=layer, neuron=index, top=5)
    assert max_difference(torch.tensor(found.highest[0].activations), expected[found.highest[0].start :]) <= EXACT
    assert found.highest[0].activation == pytest.approx(float(expected.max()), abs=EXACT)
    assert found.lowest[0].position == int(expected.argmin())
    written = last.weight[:, index] * theirs.gain(theirs.part_of(layer, "post_2"))
    logits = theirs.gained(theirs.norm, written) @ theirs.head.weight.T
    writes = found.writes
    assert max_difference(writes.raised, logits.topk(5).values) <= EXACT
    assert max_difference(writes.lowered, logits.topk(5, largest=False).values) <= EXACT


@torch.inference_mode()
@pytest.mark.parametrize("name", one_of_each_kind(ONE_OF_EACH))
def test_patched_paths_equal_hooks_on_transformers(name: str, tmp_path: Path) -> None:
    """From a head of layer 0 into three heads together, and into the logits."""
    theirs, text = opened(name, tmp_path, num_hidden_layers=3)
    other = TextPass(text.gpt, prompt_ids(N_TOKENS, text.config.vocab_size, seed=1))
    sender, receivers = 2, [(1, 0), (2, 1), (2, 3)]
    own, span = contexts(theirs, text.ids), theirs.span(sender)
    put = contexts(theirs, other.ids)["0"][:, span]
    modules = {1: theirs.layer(1), 2: theirs.layer(2), 3: theirs.norm}
    plain = inputs_of(theirs, {str(i): each for i, each in modules.items()}, text.ids)
    added = theirs.adds(0, (own["0"][:, span] - put) @ theirs.output(0).weight[:, span].T, own["0"])
    seen = {"direct": {layer: plain[str(layer)] - added for layer in modules}}
    with ExitStack() as stack:
        stack.enter_context(hooked(theirs.output(0), replacing(span, put), before=True))
        seen["every"] = {layer: inputs_of(theirs, {"x": each}, text.ids)["x"] for layer, each in modules.items()}
        for between in (1, 2):
            hook = replacing(slice(None), own[str(between)])
            stack.enter_context(hooked(theirs.output(between), hook, before=True))
        seen["mlps"] = {layer: inputs_of(theirs, {"x": each}, text.ids)["x"] for layer, each in modules.items()}

    def difference(logits: Tensor) -> float:
        return float(logits[TOKEN] - logits[3])

    options: Any = {"answer": TOKEN, "wrong": 3, "direction": "noise"}
    found = patch_paths(text, other, receivers=receivers, **options)
    into_logits = patch_paths(text, other, **options)
    assert found.receivers == receivers and not into_logits.receivers
    for route, streams in seen.items():
        logits = theirs.head(theirs.norm(streams[3]))[-1]
        ours = into_logits.effects[route]["logits"][0, sender]  # type: ignore[index]
        assert float(ours) == pytest.approx(difference(logits), abs=TOLERANCE)
        for way in "qkv":
            with ExitStack() as stack:
                for layer in (1, 2):  # the context vectors of its receivers, with the earlier ones in place
                    part = theirs.part(layer, way, theirs.part_of(layer, "norm_1")(streams[layer]))
                    with hooked(theirs.projection(layer, way), projecting(theirs, way, part)):
                        changed = contexts(theirs, text.ids)[str(layer)]
                    for at, head in receivers:
                        if at == layer:
                            hook = replacing(theirs.span(head), changed[:, theirs.span(head)])
                            stack.enter_context(hooked(theirs.output(layer), hook, before=True))
                logits = theirs(text.ids).logits[0, -1]
            ours = found.effects[route][way][0, sender]  # type: ignore[index]
            assert float(ours) == pytest.approx(difference(logits), abs=TOLERANCE)


@torch.inference_mode()
def test_circuits_equal_hooks_on_transformers(both: Both) -> None:
    """The logit difference with some edges between heads cut, one receiver after the other."""
    theirs, text = both
    theirs.gpt.double()
    other = TextPass(text.gpt, prompt_ids(N_TOKENS, text.config.vocab_size, seed=1))
    plain = contexts(theirs, other.ids)

    def given(stack: ExitStack, chosen: dict[int, Tensor]) -> None:
        for layer, context in chosen.items():
            stack.enter_context(hooked(theirs.output(layer), replacing(slice(None), context), before=True))

    def difference(edges: list[Edge]) -> float:
        values: dict[tuple[int, int], Tensor] = {}

        def reaching(layer: int, receiver: object, way: str | None) -> dict[int, Tensor]:
            chosen = {below: plain[str(below)].clone() for below in range(layer)}
            for edge in edges:
                if (edge.receiver, edge.way) == (receiver, way):
                    chosen[edge.sender[0]][:, theirs.span(edge.sender[1])] = values[edge.sender]
            return chosen

        for layer, head in sorted({edge.sender for edge in edges}):
            projected: dict[str, Tensor] = {}
            for way in "qkv":
                with ExitStack() as stack:
                    given(stack, reaching(layer, (layer, head), way))
                    seen = inputs_of(theirs, {"x": theirs.projections(layer)[0]}, text.ids)["x"]
                projected[way] = theirs.projection(layer, way)(seen)[None]
            with ExitStack() as stack:
                if theirs.is_fused:
                    parts = [projected[way].unflatten(-1, (theirs.n_head, 3, theirs.size)) for way in "qkv"]
                    values_of = [torch.stack([part[..., i, :] for i, part in enumerate(parts)], -2).flatten(-3)]
                else:
                    values_of = [projected[way] for way in "qkv"]
                for module, value in zip(theirs.projections(layer), values_of, strict=True):
                    stack.enter_context(hooked(module, lambda *_, value=value: value))
                values[layer, head] = contexts(theirs, text.ids)[str(layer)][:, theirs.span(head)]
        with ExitStack() as stack:
            given(stack, reaching(theirs.n_layer, None, None))
            logits = theirs(text.ids).logits[0, -1]
        return float(logits[TOKEN] - logits[3])

    edges = edges_between([(layer, head) for layer in range(theirs.n_layer) for head in range(theirs.n_head)])
    choices = torch.rand(2, len(edges), generator=torch.Generator().manual_seed(0)) < torch.tensor([[0.7], [0.2]])
    found = Graph(patch_run(text, other, answer=TOKEN, wrong=3, direction="noise")).with_edges(edges, choices)
    for ours, choice in zip(found.tolist(), choices.tolist(), strict=True):
        kept = [edge for edge, is_kept in zip(edges, choice, strict=True) if is_kept]
        assert ours == pytest.approx(difference(kept), abs=TOLERANCE)
