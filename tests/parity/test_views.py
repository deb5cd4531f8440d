"""Attention weights as transformers returns them: of an encoder, a decoder, an encoder-decoder and its generate."""

import pytest
import torch
from transformers import BertConfig, BertModel, GPT2Config, GPT2LMHeadModel, T5Config, T5ForConditionalGeneration

import model

IDS = torch.tensor([[5, 9, 2, 7, 11, 3]])
WORDS = [f" {token}" for token in IDS[0].tolist()]
EAGER = {"attn_implementation": "eager"}


def test_encoder() -> None:
    shape = {"hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 32}
    config = BertConfig(vocab_size=50, **shape, **EAGER)
    attentions = BertModel(config).eval()(IDS, output_attentions=True).attentions
    shown = model.view(attentions, WORDS)
    assert shown.sees_all and torch.equal(shown.attention, torch.cat(attentions))


def test_decoder_and_what_it_wrote() -> None:
    shape = {"n_positions": 32, "n_embd": 16, "n_layer": 2, "n_head": 4}
    config = GPT2Config(vocab_size=50, eos_token_id=None, pad_token_id=0, **shape, **EAGER)
    gpt = GPT2LMHeadModel(config).eval()
    attentions = gpt(IDS, output_attentions=True).attentions
    shown = model.view(attentions, WORDS)
    assert not shown.sees_all and torch.equal(shown.attention, torch.cat(attentions))
    options = {"max_new_tokens": 5, "do_sample": False, "return_dict_in_generate": True, "output_attentions": True}
    written = gpt.generate(IDS, **options)
    ids = written.sequences[:, :-1]  # the last token was not read
    found = model.view(written.attentions, [f" {token}" for token in ids[0].tolist()]).attention
    assert torch.allclose(found, torch.cat(gpt(ids, output_attentions=True).attentions), atol=1e-6)


def test_encoder_decoder() -> None:
    shape = {"d_model": 16, "d_kv": 4, "d_ff": 32, "num_layers": 2, "num_heads": 4}
    config = T5Config(vocab_size=50, decoder_start_token_id=0, **shape, **EAGER)
    out = T5ForConditionalGeneration(config).eval()(input_ids=IDS, decoder_input_ids=IDS[:, :4], output_attentions=True)
    assert model.view(out.encoder_attentions, WORDS).sees_all
    assert not model.view(out.decoder_attentions, WORDS[:4]).sees_all
    crossed = model.view(out.cross_attentions, WORDS[:4], WORDS)
    assert torch.equal(crossed.attention, torch.cat(out.cross_attentions))


def test_a_whole_output_and_a_text_of_a_batch() -> None:
    shape = {"d_model": 16, "d_kv": 4, "d_ff": 32, "num_layers": 2, "num_heads": 4}
    config = T5Config(vocab_size=50, decoder_start_token_id=0, **shape, **EAGER)
    t5, two = T5ForConditionalGeneration(config).eval(), torch.cat([IDS, IDS.flip(1)])
    out = t5(input_ids=two, decoder_input_ids=two[:, :4], output_attentions=True)
    crossed = model.view(out, WORDS[:4], WORDS, batch=1)
    assert torch.equal(crossed.attention, torch.cat([layer[1:] for layer in out.cross_attentions]))
    with pytest.raises(ValueError, match="has encoder_attentions and decoder_attentions: give one of them"):
        model.view(out, WORDS, batch=1)
    bert = BertModel(BertConfig(vocab_size=50, hidden_size=16, num_hidden_layers=1, num_attention_heads=4, **EAGER))
    out = bert.eval()(two, output_attentions=True)
    assert torch.equal(model.view(out, WORDS, batch=0).attention[0], out.attentions[0][0])
    with pytest.raises(ValueError, match="the output's attentions is None: the model kept no attention weights"):
        model.view(bert(IDS), WORDS)
    with pytest.raises(ValueError, match="the output's cross_attentions is None"):
        model.view(out, WORDS, WORDS, batch=0)
