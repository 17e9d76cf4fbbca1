"""Configurations of whole models, under every name that others have for their sizes."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from layer_checks.kit.matching import HEADS

# What other works call the sizes that configurations of whole models have.
_OF_MODELS: Mapping[frozenset[str], frozenset[str]] = {
    frozenset(ours.split()): frozenset(theirs.split())
    for ours, theirs in (
        ("vocab_size", "n_vocab vocabulary_size padded_vocab_size num_tokens n_tokens vocab"),
        (
            "hidden_size n_embd",
            "d_model dim emb_dim n_embd hidden_size embed_dim model_dim n_state embedding_dim "
            "width embed_size dim_model",
        ),
        (
            "intermediate_size",
            "d_ff hidden_dim ffn_dim n_inner ffn_hidden inner_dim mlp_dim ff_dim d_hidden ffn_size "
            "dim_feedforward ffn_hidden_size mlp_hidden_dim",
        ),
        (
            "num_hidden_layers n_layer",
            "n_layers num_layers n_layer depth num_blocks n_blocks layers num_hidden_layers blocks",
        ),
        ("num_attention_heads n_head", " ".join(HEADS) + " n_q_heads num_query_heads"),
        (
            "num_key_value_heads",
            "n_kv_heads num_kv_heads n_kv_groups num_kv_groups n_query_groups kv_heads n_kv_head",
        ),
        ("head_dim", "d_k head_size d_head dim_head"),
        ("sliding_window", "window window_size attention_window local_window"),
        (
            "max_position_embeddings n_positions",
            "max_seq_len block_size context_length n_ctx max_len max_length max_seq seq_len "
            "context_len max_seq_length ctx_len context_size max_position_embeddings",
        ),
        (
            "rms_norm_eps layer_norm_epsilon",
            "eps epsilon norm_eps layer_norm_eps ln_eps layernorm_eps rms_eps rms_norm_eps",
        ),
        ("rope_theta", "rope_base theta rotary_base base rope_freq_base rope_freq"),
        ("tie_word_embeddings", "tie_weights weight_tying tie_embeddings tied tied_embeddings"),
        ("dropout", "drop_rate dropout_rate drop p_drop resid_pdrop embd_pdrop attn_pdrop pdrop"),
    )
}
# What the book's configurations call the eps of norms.
EPS = frozenset({"rms_norm_eps", "layer_norm_epsilon"})
# Sizes that each model has.
_NEEDED = frozenset({"vocab_size", "hidden_size", "n_embd", "num_hidden_layers", "n_layer"})
_NEEDED |= {"num_attention_heads", "n_head", "intermediate_size"}
_LIMITS = {"max_batch_size": 32}  # a default may be smaller than what is asked
# What configurations of whole models must tell, and what does not matter here.
_OF_MODELS_WANTED: Mapping[str, object] = {
    "dtype": None,
    **_LIMITS,
    "multiple_of": 1,
    "ffn_dim_multiplier": None,
}
# The attribute of a model that tells which options of its configuration were read.
READ = "_options_that_were_read"


def known_by_all_names(config: Any, theirs: Any = None) -> tuple[Any, set[str]]:
    """A model's configuration that has each size under every name that others have for it.

    It stays one of its class. It can be read like a dictionary, too, and notes what is read.

    Args:
        config: The configuration.
        theirs: The reader's class of configurations, whose defaults are taken where ours has no
            such option.

    Returns:
        The configuration, and the names of its options that were read, which fills later.
    """
    read: set[str] = set()
    left_over = _left_over(config, theirs)

    def noted(self: Any, name: str) -> Any:
        read.add(name)
        return object.__getattribute__(self, name)

    def missing(self: Any, name: str) -> Any:
        sizes = _sizes_of_model(self)
        for ours, others in _OF_MODELS.items():
            known = ours & sizes.keys()
            if known and (name in others or (name, ours) == left_over):
                read.update(known)
                return sizes[next(iter(known))]
        found = getattr(theirs, name, _OF_MODELS_WANTED.get(name, sizes.get(name, missing)))
        if isinstance(found, int) and isinstance(least := _LIMITS.get(name), int):
            found = max(found, least)
        if found is missing or name.startswith("__"):
            raise AttributeError(
                f"the configuration has no {name!r}: pass a function that takes our "
                f"{type(config).__name__}, and builds it"
            )
        return found

    def item(self: Any, name: str) -> Any:
        try:
            return getattr(self, name)
        except AttributeError as error:
            raise KeyError(name) from error

    def get(self: Any, name: str, default: Any = None) -> Any:
        return getattr(self, name, default)

    class_ = type(config)
    also = type(
        class_.__name__,
        (class_,),
        {
            "__getattribute__": noted,
            "__getattr__": missing,
            "__getitem__": item,
            "get": get,
        },
    )
    found: Any = object.__new__(also)
    vars(found).update(vars(config) | _told(config))
    read.clear()
    return found, read


def _left_over(config: Any, theirs: Any) -> tuple[str, frozenset[str]] | None:
    """The one size of theirs of no known name, and the one of ours that none of theirs is.

    None where there are several, or none.
    """
    if not is_dataclass(theirs):
        return None
    names = {each.name: each for each in fields(theirs)}
    known = frozenset().union(*_OF_MODELS, *_OF_MODELS.values(), _OF_MODELS_WANTED)
    strange = [name for name, each in names.items() if each.type in (int, "int")]
    strange = [name for name in strange if name not in known]
    needed = [ours for ours in _OF_MODELS if ours & _NEEDED & vars(config).keys()]
    unnamed = [ours for ours in needed if not (ours | _OF_MODELS[ours]) & names.keys()]
    return (strange[0], unnamed[0]) if len(strange) == len(unnamed) == 1 else None


def _told(config: Any) -> dict[str, Any]:
    """Sizes of a configuration that follow from others where it does not tell them."""
    told = {"head_dim": "d_k", "num_key_value_heads": "kv_heads"}
    return {name: getattr(config, its) for name, its in told.items() if name in vars(config)}


def _sizes_of_model(config: Any) -> dict[str, Any]:
    """The sizes and options of a configuration, with those that GPT-2 has for good."""
    sizes = dict(vars(config))
    if "n_embd" in sizes:
        sizes |= {"intermediate_size": 4 * sizes["n_embd"], "bias": True, "qkv_bias": True}
    return sizes
