"""A step of all texts on a GPU, in Triton: five kernels a layer for one slot, seven for several.

Every program computes whole sums, in the same order whatever else is in the batch. Numbers are added up in float32, as
is the residual stream; what is multiplied has the precision of the weights. On recent NVIDIA GPUs (``EARLY``), a kernel
is launched while the one before it ends. For one slot, it also loads weights until it has to ``wait`` for the other's
results.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor, nn
from triton.language.extra import cuda

from ..gpt import GPT

MANY_OUTPUTS = 8192  # of a product: enough for all multiprocessors, even if each program computes more of them
# How many outputs a program computes, with fewer outputs and with MANY_OUTPUTS, and how wide a part of the sums it
# reads at once. Those of products were timed with GPT-2's shape on an H200.
ROW_OUTPUTS, ROW_WIDTH = (4, 16), 1024  # for one slot
TILE_OUTPUTS, TILE_WIDTH, TILE_SLOTS = (32, 64), 128, 64  # for several
VOCABULARY_WIDTH, KEYS_WIDTH = 8192, 4096


class FusedStep:
    """Reads a token of each of ``n_slots`` texts, whose cache is ``keys`` and ``values``.

    ``inputs`` ``(2, n_slots)`` holds their ids and places; the last place of the cache means nothing to read. Results
    are written to ``logits`` ``(n_slots, vocab_size)`` and ``summary`` ``(n_slots, 3)``: the most probable token, its
    logit and log-sum-exp. All stay where they are, so that the step can be captured as a graph.
    """

    def __init__(self, gpt: GPT, inputs: Tensor, keys: Tensor, values: Tensor, logits: Tensor, summary: Tensor) -> None:
        config, n_slots, like = gpt.config, inputs.shape[1], gpt.lm_head.weight
        self.gpt, self.n_slots = gpt, n_slots
        self.inputs, self.keys, self.values, self.logits, self.summary = inputs, keys, values, logits, summary
        self.early = bool(torch.version.cuda) and torch.cuda.get_device_capability(like.device) >= (9, 0)
        self.places = torch.zeros(n_slots, dtype=torch.long, device=like.device)
        self.stream = torch.zeros(n_slots, config.n_embd, device=like.device)
        self.normed = like.new_zeros(n_slots, config.n_embd)
        self.qkv = like.new_zeros(n_slots, sum(config.qkv_dims))
        self.context = like.new_zeros(n_slots, config.n_head * config.head_dim)
        self.neurons = like.new_zeros(n_slots, config.inner_dim)

    @torch.inference_mode()
    def __call__(self) -> None:
        gpt = self.gpt
        width = power_of_2(min(gpt.config.n_embd, ROW_WIDTH))
        self.launch(
            embed, (self.n_slots,), self.inputs, self.places, gpt.wte.weight,
            None if gpt.wpe is None else gpt.wpe.weight, self.stream,
            N_EMBD=gpt.config.n_embd, LAST=gpt.config.context_length - 1, WIDTH=width,
        )  # fmt: skip
        for block in gpt.blocks:
            mlp = block.mlp
            first: dict[str, Any] = {"activation": mlp.activation, "gated": mlp.is_gated}
            self.product(self.stream, block.attn.c_attn, self.qkv, block.ln_1)
            if block.parallel:
                self.product(self.stream, mlp.c_fc, self.neurons, block.ln_2, **first)
            self.attend(block.attn, block.layer)
            self.product(self.context, block.attn.c_proj, self.stream, add=True)
            if not block.parallel:
                self.product(self.stream, mlp.c_fc, self.neurons, block.ln_2, **first)
            self.product(self.neurons, mlp.c_proj, self.stream, add=True)
        self.product(self.stream, gpt.lm_head, self.logits, gpt.ln_f)
        n_vocab = gpt.config.vocab_size
        width = min(VOCABULARY_WIDTH, power_of_2(n_vocab))
        self.launch(summarise, (self.n_slots,), self.logits, self.summary, n_vocab, WIDTH=width, num_warps=16)

    def product(
        self, x: Tensor, linear: nn.Linear, out: Tensor, norm: nn.Module | None = None, add: bool = False,
        activation: str = "", gated: bool = False,
    ) -> None:  # fmt: skip
        """``linear(norm(x))``, then the activation, to ``out`` or added to it."""
        n_in, n_out = linear.in_features, out.shape[1]
        has_many = n_out >= MANY_OUTPUTS
        weight, bias = getattr(norm, "weight", None), getattr(norm, "bias", None)
        epsilon, centred = getattr(norm, "eps", 0.0), isinstance(norm, nn.LayerNorm)
        width = power_of_2(min(n_in, ROW_WIDTH))
        options: dict[str, Any] = {"N_IN": n_in, "ACTIVATION": activation, "GATED": gated, "ADD": add}
        if self.n_slots == 1:
            outputs = ROW_OUTPUTS[has_many]
            self.launch(
                product_of_row, (triton.cdiv(n_out, outputs),), x, weight, bias, epsilon, linear.weight,
                linear.bias, out, n_out, CENTRED=centred, OUTPUTS=outputs, WIDTH=width, **options,
            )  # fmt: skip
            return
        if norm is not None:
            self.launch(
                normalise, (self.n_slots,), x, weight, bias, self.normed, epsilon,
                N_IN=n_in, CENTRED=centred, WIDTH=width,
            )  # fmt: skip
            x = self.normed
        rows, outputs = min(TILE_SLOTS, power_of_2(self.n_slots)), TILE_OUTPUTS[has_many]
        self.launch(
            product, (triton.cdiv(n_out, outputs), triton.cdiv(self.n_slots, rows)), x, linear.weight,
            linear.bias, out, self.n_slots, n_out, ROWS=rows, OUTPUTS=outputs, WIDTH=min(width, TILE_WIDTH),
            num_warps=8, **options,
        )  # fmt: skip

    def attend(self, attention: Any, layer: int) -> None:
        rotary, head_dim = attention.rotary, attention.head_dim
        cos, sin = (None, None) if rotary is None else rotary.table(self.stream.device)
        width = power_of_2(head_dim)
        self.launch(
            attend, (self.n_slots, attention.n_head), self.qkv, self.places, self.keys[layer],
            self.values[layer], self.context, getattr(attention.q_norm, "weight", None),
            getattr(attention.k_norm, "weight", None), cos, sin, attention.scale, getattr(attention.q_norm, "eps", 0.0),
            N_HEAD=attention.n_head, N_KV_HEAD=attention.n_kv_head, HEAD_DIM=head_dim,
            N_ROTATED=0 if rotary is None else rotary.config.n_dim, LENGTH=self.keys.shape[3], WIDTH=width,
            LANES=max(16, KEYS_WIDTH // width), num_warps=4,
        )  # fmt: skip

    def launch(self, kernel: Any, grid: tuple[int, ...], *args: Any, **options: Any) -> None:
        options |= {"EARLY": self.early} | ({"launch_pdl": True} if self.early else {})
        kernel[grid](*args, **options)


def power_of_2(n: int) -> int:
    """The smallest power of 2 that is at least ``n``, and at least 16."""
    return max(16, triton.next_power_of_2(n))


@triton.jit
def wait(EARLY: tl.constexpr):
    """Wait until the kernel before this one has ended, and let the next one be launched."""
    if EARLY:
        cuda.gdc_wait()
        cuda.gdc_launch_dependents()


@triton.jit
def embed(
    inputs, places, tokens, positions, stream, N_EMBD: tl.constexpr, LAST: tl.constexpr, WIDTH: tl.constexpr,
    EARLY: tl.constexpr,
):  # fmt: skip
    """Write the embedding of each slot's token to the ``stream`` ``(slots, N_EMBD)``, and its place to ``places``.

    ``inputs`` ``(2, slots)`` holds tokens and places; ``LAST`` is the last position of the context.
    """
    wait(EARLY)
    slot, n_slots = tl.program_id(0), tl.num_programs(0)
    token, place = tl.load(inputs + slot), tl.load(inputs + n_slots + slot)
    tl.store(places + slot, place)
    for start in tl.static_range(0, N_EMBD, WIDTH):
        columns = start + tl.arange(0, WIDTH)
        inside = columns < N_EMBD
        x = tl.load(tokens + token * N_EMBD + columns, inside).to(tl.float32)
        if positions is not None:
            x += tl.load(positions + tl.minimum(place, LAST) * N_EMBD + columns, inside).to(tl.float32)
        tl.store(stream + slot * N_EMBD + columns, x, inside)


@triton.jit
def activated(x, ACTIVATION: tl.constexpr):
    """See ``MLP.nonlinear``."""
    if ACTIVATION == "gelu_new":
        x = x * tl.sigmoid(1.5957691216057308 * (x + 0.044715 * x * x * x))  # (1 + tanh(u)) / 2 = sigmoid(2 u)
    if ACTIVATION == "gelu":
        x = 0.5 * x * (1 + tl.erf(x * 0.7071067811865476))
    if ACTIVATION == "silu":
        x = x * tl.sigmoid(x)
    if ACTIVATION == "relu":
        x = tl.where(x < 0, 0.0, x)
    return x


@triton.jit
def norm_of(x, epsilon, N_IN: tl.constexpr, CENTRED: tl.constexpr, WIDTH: tl.constexpr):
    """The mean of a row, 0 unless ``CENTRED``, and the factor that normalises it."""
    columns = tl.arange(0, WIDTH)
    mean = 0.0
    if CENTRED:
        total = tl.zeros([WIDTH], tl.float32)
        for start in tl.static_range(0, N_IN, WIDTH):
            total += tl.load(x + start + columns, start + columns < N_IN, other=0.0)
        mean = tl.sum(total) / N_IN
    squares = tl.zeros([WIDTH], tl.float32)
    for start in tl.static_range(0, N_IN, WIDTH):
        off = tl.load(x + start + columns, start + columns < N_IN, other=mean) - mean
        squares += off * off
    return mean, 1 / tl.sqrt(tl.sum(squares) / N_IN + epsilon)


@triton.jit
def normalised(x, weight, bias, mean, factor, columns, N_IN: tl.constexpr):
    """The numbers ``x`` in the ``columns`` of a row, normalised."""
    inside = columns < N_IN
    numbers = (tl.load(x, inside, other=0.0) - mean) * factor
    numbers *= tl.load(weight + columns, inside, other=0.0).to(tl.float32)
    if bias is not None:
        numbers += tl.load(bias + columns, inside, other=0.0).to(tl.float32)
    return numbers


@triton.jit
def product_of_row(
    x, norm_weight, norm_bias, epsilon, weight, bias, out, n_out,
    N_IN: tl.constexpr, CENTRED: tl.constexpr, ACTIVATION: tl.constexpr, GATED: tl.constexpr, ADD: tl.constexpr,
    OUTPUTS: tl.constexpr, WIDTH: tl.constexpr, EARLY: tl.constexpr,
):  # fmt: skip
    """``product`` for a single slot, as sums of products. ``x`` is normalised first if there is a ``norm_weight``."""
    outputs = (tl.program_id(0) * OUTPUTS + tl.arange(0, OUTPUTS)).to(tl.int64)
    columns = tl.arange(0, WIDTH)
    is_output = outputs[:, None] < n_out
    tile = weight + outputs[:, None] * N_IN + columns[None]
    found = tl.load(tile, is_output & (columns[None] < N_IN), other=0.0)
    if GATED:
        found_up = tl.load(tile + n_out * N_IN, is_output & (columns[None] < N_IN), other=0.0)
    wait(EARLY)
    if norm_weight is not None:
        mean, factor = norm_of(x, epsilon, N_IN, CENTRED, WIDTH)
    sums = tl.zeros([OUTPUTS, WIDTH], tl.float32)
    ups = tl.zeros([OUTPUTS, WIDTH], tl.float32)
    for start in tl.static_range(0, N_IN, WIDTH):
        place = start + columns
        if norm_weight is not None:
            numbers = normalised(x + place, norm_weight, norm_bias, mean, factor, place, N_IN)
        else:
            numbers = tl.load(x + place, place < N_IN, other=0.0)
        numbers = numbers.to(weight.dtype.element_ty).to(tl.float32)
        inside = is_output & (place[None] < N_IN)
        if start:
            found = tl.load(tile + start, inside, other=0.0)
        sums += found.to(tl.float32) * numbers[None]
        if GATED:
            if start:
                found_up = tl.load(tile + n_out * N_IN + start, inside, other=0.0)
            ups += found_up.to(tl.float32) * numbers[None]
    result = tl.sum(sums, 1)
    seen = outputs < n_out
    if bias is not None:
        result += tl.load(bias + outputs, seen, other=0.0).to(tl.float32)
    result = activated(result, ACTIVATION)
    if GATED:
        up = tl.sum(ups, 1)
        if bias is not None:
            up += tl.load(bias + n_out + outputs, seen, other=0.0).to(tl.float32)
        result *= up
    if ADD:
        result += tl.load(out + outputs, seen, other=0.0)
    tl.store(out + outputs, result.to(out.dtype.element_ty), seen)


@triton.jit
def normalise(
    x, weight, bias, out, epsilon, N_IN: tl.constexpr, CENTRED: tl.constexpr, WIDTH: tl.constexpr, EARLY: tl.constexpr
):
    """Each row of ``x`` ``(slots, N_IN)``, normalised, to ``out``. Its mean is subtracted if ``CENTRED``."""
    wait(EARLY)
    slot, columns = tl.program_id(0), tl.arange(0, WIDTH)
    x += slot * N_IN
    mean, factor = norm_of(x, epsilon, N_IN, CENTRED, WIDTH)
    for start in tl.static_range(0, N_IN, WIDTH):
        place = start + columns
        numbers = normalised(x + place, weight, bias, mean, factor, place, N_IN)
        tl.store(out + slot * N_IN + place, numbers.to(out.dtype.element_ty), place < N_IN)


@triton.jit
def product(
    x, weight, bias, out, n_slots, n_out,
    N_IN: tl.constexpr, ACTIVATION: tl.constexpr, GATED: tl.constexpr, ADD: tl.constexpr,
    ROWS: tl.constexpr, OUTPUTS: tl.constexpr, WIDTH: tl.constexpr, EARLY: tl.constexpr,
):  # fmt: skip
    """The product of ``x`` ``(slots, N_IN)`` and ``weight``, a row for each output: ``out`` ``(slots, n_out)``.

    The ``bias`` and ``ACTIVATION`` come after. In a ``GATED`` MLP ``weight`` has twice as many rows, and the second
    half's outputs multiply the first's. The result is written to ``out``, or added to it with ``ADD``.
    """
    outputs = (tl.program_id(0) * OUTPUTS + tl.arange(0, OUTPUTS)).to(tl.int64)
    slots = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    columns = tl.arange(0, WIDTH)
    is_output, is_slot = outputs[:, None] < n_out, slots[:, None] < n_slots
    wait(EARLY)
    sums = tl.zeros([ROWS, OUTPUTS], tl.float32)
    ups = tl.zeros([ROWS, OUTPUTS], tl.float32)
    for start in range(0, N_IN, WIDTH):
        inside = start + columns[None] < N_IN
        numbers = tl.load(x + slots[:, None] * N_IN + start + columns[None], is_slot & inside, other=0.0)
        tile = weight + outputs[:, None] * N_IN + start + columns[None]
        found = tl.load(tile, is_output & inside, other=0.0)
        sums = tl.dot(numbers, tl.trans(found), sums, input_precision="ieee")
        if GATED:
            found = tl.load(tile + n_out * N_IN, is_output & inside, other=0.0)
            ups = tl.dot(numbers, tl.trans(found), ups, input_precision="ieee")
    seen = outputs[None] < n_out
    if bias is not None:
        sums += tl.load(bias + outputs[None], seen, other=0.0).to(tl.float32)
    sums = activated(sums, ACTIVATION)
    if GATED:
        if bias is not None:
            ups += tl.load(bias + n_out + outputs[None], seen, other=0.0).to(tl.float32)
        sums *= ups
    places = out + slots[:, None].to(tl.int64) * n_out + outputs[None]
    if ADD:
        sums += tl.load(places, is_slot & seen, other=0.0)
    tl.store(places, sums.to(out.dtype.element_ty), is_slot & seen)


@triton.jit
def head_vector(
    x, norm_weight, cos, sin, place, epsilon,
    HEAD_DIM: tl.constexpr, N_ROTATED: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """A query or key at ``place``, normalised and rotated where the model does that; see ``Rotary.rotate``."""
    columns = tl.arange(0, WIDTH)
    numbers = tl.load(x + columns, columns < HEAD_DIM, other=0.0).to(tl.float32)
    factor = 1.0
    if norm_weight is not None:
        factor = 1 / tl.sqrt(tl.sum(numbers * numbers) / HEAD_DIM + epsilon)
        numbers *= factor * tl.load(norm_weight + columns, columns < HEAD_DIM, other=0.0).to(tl.float32)
    if N_ROTATED:
        half: tl.constexpr = N_ROTATED // 2
        is_rotated = columns < N_ROTATED
        other = tl.where(columns < half, columns + half, columns - half)
        partner = tl.load(x + other, is_rotated, other=0.0).to(tl.float32)
        if norm_weight is not None:
            partner *= factor * tl.load(norm_weight + other, is_rotated, other=0.0).to(tl.float32)
        angle = place * half + columns % half
        c, s = tl.load(cos + angle, is_rotated, other=1.0), tl.load(sin + angle, is_rotated, other=0.0)
        numbers = numbers * c + tl.where(columns < half, -partner, partner) * s
    return numbers.to(x.dtype.element_ty)


@triton.jit
def attend(
    qkv, places, keys, values, context, q_norm, k_norm, cos, sin, scale, epsilon,
    N_HEAD: tl.constexpr, N_KV_HEAD: tl.constexpr, HEAD_DIM: tl.constexpr, N_ROTATED: tl.constexpr,
    LENGTH: tl.constexpr, WIDTH: tl.constexpr, LANES: tl.constexpr, EARLY: tl.constexpr,
):  # fmt: skip
    """The ``context`` ``(slots, N_HEAD, HEAD_DIM)`` of each new token, whose keys and values are stored.

    ``keys`` and ``values`` ``(slots, N_KV_HEAD, LENGTH, HEAD_DIM)`` hold those of the tokens before it. A softmax goes
    along with each of ``LANES`` sums of values (Milakov & Gimelshein 2018), which are added up at the end.
    """
    wait(EARLY)
    slot, head = tl.program_id(0), tl.program_id(1)
    place = tl.load(places + slot)
    if place < LENGTH - 1:  # the last position of the cache belongs to slots with nothing to read
        kv_head = head // (N_HEAD // N_KV_HEAD)
        columns, lanes = tl.arange(0, WIDTH), tl.arange(0, LANES)
        inside = columns < HEAD_DIM
        new = qkv + slot * (N_HEAD + 2 * N_KV_HEAD) * HEAD_DIM
        new_key = new + (N_HEAD + kv_head) * HEAD_DIM
        query = head_vector(
            new + head * HEAD_DIM, q_norm, cos, sin, place, epsilon, HEAD_DIM, N_ROTATED, WIDTH
        ).to(tl.float32) * scale  # fmt: skip
        key = head_vector(new_key, k_norm, cos, sin, place, epsilon, HEAD_DIM, N_ROTATED, WIDTH)
        value = tl.load(new_key + N_KV_HEAD * HEAD_DIM + columns, inside, other=0.0)
        texts = (slot.to(tl.int64) * N_KV_HEAD + kv_head) * LENGTH * HEAD_DIM
        if head % (N_HEAD // N_KV_HEAD) == 0:
            tl.store(keys + texts + place * HEAD_DIM + columns, key, inside)
            tl.store(values + texts + place * HEAD_DIM + columns, value, inside)

        most = tl.full([LANES], float("-inf"), tl.float32)
        total = tl.zeros([LANES], tl.float32)
        sums = tl.zeros([LANES, WIDTH], tl.float32)
        for start in range(0, place, LANES):
            seen = start + lanes < place
            tile = texts + (start + lanes)[:, None] * HEAD_DIM + columns[None]
            k = tl.load(keys + tile, seen[:, None] & inside[None], other=0.0).to(tl.float32)
            v = tl.load(values + tile, seen[:, None] & inside[None], other=0.0).to(tl.float32)
            scores = tl.where(seen, tl.sum(k * query[None], 1), float("-inf"))
            higher = tl.maximum(most, scores)
            shift = tl.where(higher == float("-inf"), 0.0, higher)
            before, now = tl.exp(most - shift), tl.exp(scores - shift)
            total = total * before + now
            sums = sums * before[:, None] + v * now[:, None]
            most = higher
        score = tl.sum(query * key.to(tl.float32))
        highest = tl.maximum(tl.max(most), score)
        lane, own = tl.exp(most - highest), tl.exp(score - highest)
        whole = tl.sum(total * lane) + own
        result = (tl.sum(sums * lane[:, None], 0) + own * value.to(tl.float32)) / whole
        place_of = context + (slot * N_HEAD + head) * HEAD_DIM + columns
        tl.store(place_of, result.to(context.dtype.element_ty), inside)


@triton.jit
def summarise(logits, summary, n_vocab, WIDTH: tl.constexpr, EARLY: tl.constexpr):
    """``summary`` ``(slots, 3)``: the first of the largest ``logits`` ``(slots, n_vocab)``, itself, and log-sum-exp."""
    wait(EARLY)
    slot = tl.program_id(0)
    columns = tl.arange(0, WIDTH)
    row = logits + slot.to(tl.int64) * n_vocab
    most = tl.full([WIDTH], float("-inf"), tl.float32)
    total = tl.zeros([WIDTH], tl.float32)
    best = tl.zeros([WIDTH], tl.int32)
    for start in range(0, n_vocab, WIDTH):
        x = tl.load(row + start + columns, start + columns < n_vocab, other=float("-inf"))
        best = tl.where(x > most, start + columns, best)
        higher = tl.maximum(most, x)
        shift = tl.where(higher == float("-inf"), 0.0, higher)
        total = total * tl.exp(most - shift) + tl.exp(x - shift)
        most = higher
    highest = tl.max(most)
    whole = tl.sum(total * tl.exp(most - highest))
    first = tl.min(tl.where(most == highest, best, n_vocab))
    tl.store(summary + 3 * slot, first.to(tl.float64))
    tl.store(summary + 3 * slot + 1, highest.to(tl.float64))
    tl.store(summary + 3 * slot + 2, (highest + tl.log(whole)).to(tl.float64))
