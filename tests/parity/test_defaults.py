"""The values of fields that a config.json leaves out are those of transformers."""

import pytest
from transformers import AutoConfig

from model.checkpoint.folder_format import FAMILIES

ROPE = {"rope_theta": "rope_theta", "rotary_emb_base": "rope_theta", "rotary_pct": "partial_rotary_factor"}
# transformers derives the first three from others where they are None, and the next from ``use_sliding_window``; the
# last are features that only some of these families have.
ELSEWHERE = {"num_key_value_heads", "head_dim", "word_embed_proj_dim", "sliding_window", "layer_types"}
ELSEWHERE |= {"attention_bias", "mlp_bias"}


@pytest.mark.parametrize("model_type", FAMILIES)
def test_fields_that_are_left_out(model_type: str) -> None:
    theirs = AutoConfig.for_model(model_type)
    rope = getattr(theirs, "rope_parameters", {})
    found = vars(theirs) | {name: rope.get("full_attention", rope).get(key) for name, key in ROPE.items()}
    if "sliding_attention" in rope:
        found["rope_local_base_freq"] = rope["sliding_attention"]["rope_theta"]
        found["sliding_window_pattern"] = theirs._sliding_window_pattern
    ours = {name: value for name, value in FAMILIES[model_type].defaults.items() if name not in ELSEWHERE}
    assert ours == {name: found[name] for name in ours}
