"""The description of a model that the API returns."""

from model import LoadedModel


def model_info(loaded: LoadedModel) -> dict[str, object]:
    config = loaded.config
    return {
        "id": loaded.name,
        "model_type": loaded.model_type,
        "n_layer": config.n_layer,
        "n_head": config.n_head,
        "n_kv_head": config.n_kv_head,
        "n_embd": config.n_embd,
        "vocab_size": config.vocab_size,
        "context_length": config.context_length,
        "n_parameters": config.n_parameters,
        "tokenizer": loaded.tokenizer.kind,
        "dtype": str(loaded.dtype).removeprefix("torch."),
        "sha256": loaded.sha256,
        "default_sampling": loaded.default_sampling,
    }
