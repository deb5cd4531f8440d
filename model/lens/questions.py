"""The questions of Ask as methods of a loaded model: the analyses of ``lens``, given texts instead of passes over them.

The names are those of ``/v1/lens``. A text is a string, token ids, or a trace, which also brings its head mask.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple, Union

from torch import Tensor

from ..config import MAX_VOCAB_SIZE, check_int
from ..drawing.trace import Trace
from ..errors import InputError, NotOneToken
from ..gpt import GPT
from ..head_tensors import Head
from ..tokenizer import Token, Tokenizer
from . import neurons
from .alignment import Reading, align_readings, check_same_tokens
from .attribution import LIKELIEST, Attribution, Likeliest, attribution
from .composition import Composition, Way, composition
from .difference import AttentionDifference, attention_difference
from .float32 import in_float32
from .head_roles import HeadRoles, TextRoles, head_roles, random_texts, roles_in_text
from .interventions.circuit import MAX_LOST, FoundCircuit, HeadMethod, circuit_of
from .interventions.knockout import Knockout, Removal, knockout, removal
from .interventions.patching import Direction, Patching, SitePatching, patch_site, patching
from .interventions.paths import Cuts, PathPatching, RoleCuts, cut_paths, patch_paths, role_cuts
from .interventions.reference import Method, check_texts, contexts_of, mean_contexts, shipped_passages
from .interventions.sites import activations, find_site, of_one_text
from .ledger import Ledger, ledger
from .logit_lens import LogitLens, logit_lens
from .one_head import HeadMeasures, head_measures
from .passages import Firing, firing, mark_tokens, read_long_text
from .progress import Progress
from .prompts import AboutPrompts, Numbers, OverPrompts, average, check_columns, check_question, each_row, in_row
from .text_pass import TextPass
from .token_circuits import Circuit, CircuitSummary, Side, token_circuit

Prompt = str | Sequence[int]
Text = Prompt | Trace
Row = Text | Mapping[str, Any]  # a prompt, or a prompt with the columns corrupted, answer and wrong


class Float32Model(NamedTuple):
    gpt: GPT
    tokenizer: Tokenizer


class Questions(ABC):
    """Every method computes in float32 with the weights as they are, and returns an ``Answer``: a dataclass with
    tensors, ``show()`` and ``to_dict()``. Token ids and positions count from 0; by default a question is about the last
    position and the most probable next token there. Raises ``InputError`` for what the model or the text does not have.
    """

    gpt: GPT
    tokenizer: Tokenizer

    @abstractmethod
    def parse_prompt(self, prompt: Prompt) -> list[int]: ...

    @abstractmethod
    def tokens(self, ids: Sequence[int]) -> list[Token]: ...

    @cached_property
    def float32(self) -> Float32Model:
        return Float32Model(in_float32(self.gpt), self.tokenizer)

    def text_pass(self, text: Text) -> TextPass:
        """A pass over a text in float32, which any function of ``lens`` takes."""
        return TextPass(self.float32.gpt, self.parse_text(text), text.head_mask if isinstance(text, Trace) else None)

    def parse_text(self, text: Text) -> list[int]:
        if not isinstance(text, Trace):
            return self.parse_prompt(text)
        ids = [token.id for token in text.tokens]
        check_same_tokens(text.traced_by.tokenizer, self.tokenizer, ids, "text")
        return self.parse_prompt(ids)

    def parse_token(self, token: str | int | None, name: str = "token") -> int | None:
        """The id of a token given as text, see ``Tokenizer.token_of``. Raises ``InputError`` about ``name``."""
        if not isinstance(token, str):
            return token
        try:
            return self.parse_prompt([self.tokenizer.token_of(token)])[0]
        except NotOneToken as error:
            raise NotOneToken(error.pieces, name) from None
        except InputError as error:
            raise InputError(name, f"{name}: {error}", error.code) from None

    def replacement(self, text: TextPass, method: Method, reference: Sequence[Text] | None) -> Tensor | None:
        """What ``method`` replaces removed heads with: taken from the texts of ``reference``, or the shipped ones."""
        given = None if reference is None else [self.parse_text(each) for each in reference]
        check_texts(method, given, len(text.ids))
        if method == "resample" and given:
            return contexts_of(TextPass(text.gpt, given[0], text.head_mask), len(text.ids))
        if method != "mean":
            return None
        return mean_contexts(text.gpt, given or shipped_passages(self.float32), text.head_mask)

    # ---- About a text ------------------------------------------------------------------------------------------------

    def knockout(self, text: Text, *, method: Method = "zero", reference: Sequence[Text] | None = None) -> Knockout:
        """How much worse the text is predicted without each head; ``method`` says what replaces it."""
        read = self.text_pass(text)
        return knockout(read, method=method, reference=self.replacement(read, method, reference))

    def removal(
        self, text: Text, heads: Sequence[Head], *, method: Method = "zero", reference: Sequence[Text] | None = None
    ) -> Removal:
        """How much worse the text is predicted without several heads at once."""
        read = self.text_pass(text)
        return removal(read, heads, method=method, reference=self.replacement(read, method, reference))

    def attribution(
        self,
        text: Text,
        *,
        position: int | None = None,
        token: str | int | None = None,
        against: str | int | Likeliest | None = None,
    ) -> Attribution:
        """What each head and MLP, the embedding and the biases add to the logit of a next token.

        With ``against``, another token, it is the difference between the two logits; "likeliest" is the most probable
        other one.
        """
        chosen = self.parse_token(token)
        other = against if against == LIKELIEST else self.parse_token(against, "against")
        answer = attribution(self.text_pass(text), position=position, token=chosen, against=other)
        return answer.with_texts(self.tokenizer)

    def head(
        self, text: Text, layer: int, head: int, *, position: int | None = None, token: str | int | None = None
    ) -> HeadMeasures:
        """What one head takes from each token for one prediction, in four measures."""
        chosen = self.parse_token(token)
        answer = head_measures(self.text_pass(text), layer=layer, head=head, position=position, token=chosen)
        return answer.with_texts(self.tokenizer)

    def ledger(
        self,
        text: Text,
        layer: int,
        head: int,
        *,
        query: int | None = None,
        key: int | None = None,
        token: str | int | None = None,
    ) -> Ledger:
        """Every number between one query, one key and the logit of the next token."""
        chosen = self.parse_token(token)
        answer = ledger(self.text_pass(text), layer=layer, head=head, query=query, key=key, token=chosen)
        return answer.with_texts(self.tokenizer)

    def logit_lens(self, text: Text, *, top: int = 5) -> LogitLens:
        """What each layer would have predicted at each position if it had been the last."""
        check_int("top", top, MAX_VOCAB_SIZE)
        return logit_lens(self.text_pass(text), k=top).with_texts(self.tokenizer)

    def text_roles(self, text: Text) -> TextRoles:
        """How well each head fits each role in this text, instead of random tokens."""
        return roles_in_text(self.text_pass(text))

    def paths(
        self,
        text: Text,
        layer: int,
        head: int,
        *,
        method: Method = "mean",
        reference: Sequence[Text] | None = None,
    ) -> Cuts:
        """How a head changes if it does not see the output of one earlier head."""
        read = self.text_pass(text)
        replaced = self.replacement(read, method, reference)
        return cut_paths(read, layer=layer, head=head, method=method, reference=replaced)

    def activations(self, text: Text, sites: Sequence[str], layers: Sequence[int] | None = None) -> dict[str, Tensor]:
        """The activations of a text at sites of some layers, all by default: the tensors of ``/v1/activations``.

        Names and shapes are those of TransformerLens's cache of one text: ``blocks.3.attn.hook_z`` is
        ``(T, n_head, head_dim)``, a pattern ``(n_head, T, T)``.
        """
        chosen, n_layer = [find_site(name, "sites") for name in sites], self.gpt.config.n_layer
        wanted = range(n_layer) if layers is None else layers
        for layer in wanted:
            check_int("layers", layer, n_layer - 1, least=0)
        read, found = self.text_pass(text), dict[str, Tensor]()
        for layer in wanted:
            here = activations(read, layer)
            found |= {f"blocks.{layer}.{site.hook}": of_one_text(site, here[site.name]) for site in chosen}
        return found

    def passages(self, text: str) -> Firing:
        """Where in a text of any length each head acts most strongly, and a map of heads that behave alike."""
        marks = mark_tokens(self.tokenizer, read_long_text(self.tokenizer, text))
        return firing(self.float32.gpt, marks).with_texts(self.tokenizer)

    def neuron(self, text: str, layer: int, neuron: int, *, top: int = 20) -> neurons.Neuron:
        """Where in a text of any length an MLP neuron is excited most, and which tokens it promotes and suppresses."""
        ids = read_long_text(self.tokenizer, text)
        return neurons.neuron(self.float32.gpt, ids, layer=layer, neuron=neuron, k=top).with_texts(self.tokenizer)

    # ---- About two texts ---------------------------------------------------------------------------------------------

    def difference(
        self, text: Text, other: Text | None = None, other_model: Union["Questions", None] = None
    ) -> AttentionDifference:
        """How differently each head attends in two texts, or in two models; by default both read the same text.

        ``other_model`` reads the second text with its own vocabulary. A text without another one must be a string if
        its token ids are other tokens there.
        """
        second = other_model or self
        read = self.text_pass(text)
        if other is None and not isinstance(text, str):
            check_same_tokens(self.tokenizer, second.tokenizer, read.ids, "text")
        compared = second.text_pass(text if other is None else other)
        pieces = align_readings(Reading(read.ids, self.tokenizer), Reading(compared.ids, second.tokenizer)).pieces
        return attention_difference(read, compared, pieces=pieces)

    def patch(
        self,
        text: Text,
        corrupted: Text,
        *,
        answer: str | int | None = None,
        wrong: str | int | None = None,
        direction: Direction = "denoise",
        heads: Sequence[Head] = (),
        grid: bool = True,
    ) -> Patching:
        """Which heads and positions carry the difference between two prompts; ``heads`` are also patched together."""
        return patching(
            self.text_pass(text),
            self.text_pass(corrupted),
            answer=self.parse_token(answer, "answer"),
            wrong=self.parse_token(wrong, "wrong"),
            direction=direction,
            together=heads,
            grid=grid,
        ).with_texts(self.tokenizer)

    def patch_site(
        self,
        text: Text,
        corrupted: Text,
        site: str,
        *,
        answer: str | int | None = None,
        wrong: str | int | None = None,
        direction: Direction = "denoise",
        each_position: bool = True,
        neurons: Sequence[tuple[int, int]] | None = None,
        exact: bool = True,
        estimate: bool = False,
    ) -> SitePatching:
        """Which activations of a site carry the difference; ``estimate`` approximates them by attribution patching."""
        return patch_site(
            self.text_pass(text),
            self.text_pass(corrupted),
            answer=self.parse_token(answer, "answer"),
            wrong=self.parse_token(wrong, "wrong"),
            site=site,
            direction=direction,
            each_position=each_position,
            neurons=neurons,
            exact=exact,
            estimate=estimate,
        ).with_texts(self.tokenizer)

    def patch_paths(
        self,
        text: Text,
        corrupted: Text,
        layer: int,
        head: int,
        *,
        answer: str | int | None = None,
        wrong: str | int | None = None,
        direction: Direction = "denoise",
    ) -> PathPatching:
        """The effect on the answer of each path from an earlier head into this one (path patching)."""
        return patch_paths(
            self.text_pass(text),
            self.text_pass(corrupted),
            layer=layer,
            head=head,
            answer=self.parse_token(answer, "answer"),
            wrong=self.parse_token(wrong, "wrong"),
            direction=direction,
        ).with_texts(self.tokenizer)

    def circuit(
        self, prompts: Sequence[Row], *, max_lost: float = MAX_LOST, method: HeadMethod = "exact"
    ) -> FoundCircuit:
        """The heads, and the edges between them, that carry the difference between pairs of prompts.

        A row is that of ``over_prompts``, with the column ``corrupted``.
        """
        rows = self.parse_rows(prompts, ("corrupted", "answer", "wrong"), ("corrupted",))
        return circuit_of(rows, self.text_pass, max_lost=max_lost, method=method).with_texts(self.tokenizer)

    # ---- About many prompts ------------------------------------------------------------------------------------------

    def over_prompts(self, question: AboutPrompts, prompts: Sequence[Row], **options: Any) -> OverPrompts:
        """A question about one text or two, asked of many prompts: every row, the mean, and its standard error.

        ``question`` is the name of the method, and ``options`` are its other arguments. A row is a text, or a
        dictionary with ``prompt`` and, where the question reads them, ``corrupted`` (another prompt), and ``answer``
        and ``wrong`` (the tokens that the two prompts lead to). Patches are at all positions at once, and the method
        "resample" without a ``reference`` takes each row's corrupted prompt for one.
        Raises ``InputError``, which names the row, before anything is computed if a row cannot be read.
        """
        about = check_question(question)
        rows = self.parse_rows(prompts, about.reads, about.required, options.get("other_model"))
        ask = getattr(self, question)

        def numbers(row: dict[str, Any], _progress: Progress) -> Numbers:
            return about.numbers(ask(row["prompt"], **about.arguments(row, {**about.fixed, **options})).content())

        return average(list(each_row(rows, numbers)))

    def parse_rows(
        self,
        prompts: Sequence[Row],
        columns: Collection[str],
        required: Sequence[str],
        other_model: Union["Questions", None] = None,
    ) -> list[dict[str, Any]]:
        """Rows as dictionaries with the prompt and ``columns``, in which a token is its id, and each text can be read:
        ``corrupted`` by ``other_model``, if there is one."""
        parsed = []
        readers = {"corrupted": other_model or self}
        for index, row in enumerate(prompts):
            given = row if isinstance(row, Mapping) else {"prompt": row}
            try:
                check_columns(given, required)
                parsed.append(
                    {name: readers.get(name, self).parse_column(name, given.get(name)) for name in ("prompt", *columns)}
                )
            except InputError as error:
                raise in_row(index, error) from None
        return parsed

    def parse_column(self, name: str, value: Any) -> Any:
        if name in ("answer", "wrong"):
            return self.parse_token(value, name)
        try:
            if value is not None:
                self.parse_text(value)
        except InputError as error:
            raise InputError(name, str(error), error.code) from None
        return value

    # ---- About the model ---------------------------------------------------------------------------------------------

    def roles(self) -> HeadRoles:
        """What each head looks at on random tokens that are repeated once, and whether it copies."""
        return head_roles(self.float32)

    def role_paths(self, layer: int, head: int, *, way: Way = "k") -> RoleCuts:
        """How well a head keeps its role if it does not see the output of one earlier head."""
        return role_cuts(
            [TextPass(self.float32.gpt, ids) for ids in random_texts(self.float32)], layer=layer, head=head, way=way
        )

    def composition(self, *, centred: bool = False, distance: int = 0) -> Composition:
        """How strongly each head's weights read from the output of each earlier head."""
        return composition(self.float32.gpt, centred=centred, distance=distance)

    def token_circuit(
        self,
        layer: int,
        head: int,
        circuit: Circuit = "ov",
        *,
        earlier: Head | None = None,
        side: Side | None = None,
        distance: int = 0,
        token: str | int | None = None,
        top: int = 20,
    ) -> CircuitSummary:
        """What a head's weights, or those of two composed heads, do to the vocabulary, or to one ``token``."""
        chosen = self.parse_token(token)
        found = token_circuit(
            self.float32.gpt, circuit=circuit, layer=layer, head=head, earlier=earlier, side=side, distance=distance
        )
        return found.summary(top, chosen).with_texts(self.tokenizer)
