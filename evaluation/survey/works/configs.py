"""Configurations that works want to be built with."""

from types import SimpleNamespace
from typing import Any


def gpt2_config(d_model: int, num_heads: int = 1, dropout: float = 0.1, **more: Any) -> Any:
    """Of a GPT-2 of `transformers`."""
    from transformers import GPT2Config

    return GPT2Config(**_sizes(d_model, num_heads, dropout), **more)


def gpt1_config(d_model: int, num_heads: int = 1, dropout: float = 0.1) -> Any:
    """Of a GPT-1 of `transformers`."""
    from transformers import OpenAIGPTConfig

    return OpenAIGPTConfig(**_sizes(d_model, num_heads, dropout))


def _sizes(d_model: int, num_heads: int, dropout: float) -> dict[str, Any]:
    dropouts = dict.fromkeys(("attn_pdrop", "resid_pdrop", "embd_pdrop"), dropout)
    return {"n_embd": d_model, "n_head": num_heads, **dropouts}


def nano_config(d_model: int, num_heads: int = 1, dropout: float = 0.1) -> Any:
    """Of nanoGPT, and of minGPT, which has other names for dropout."""
    return SimpleNamespace(
        n_embd=d_model,
        n_head=num_heads,
        dropout=dropout,
        attn_pdrop=dropout,
        resid_pdrop=dropout,
        bias=True,
        block_size=64,
        n_layer=2,
    )


C_ATTN = {
    "c_attn__weight": "c_attn.weight.T",
    "c_attn__bias": "c_attn.bias",
    "c_proj__weight": "c_proj.weight.T",
    "c_proj__bias": "c_proj.bias",
}


# The same names as ours, and the same layout.
OURS = {
    f"{name}__{kind}": f"{name}.{kind}"
    for name in ("c_attn", "c_proj")
    for kind in ("weight", "bias")
}


def first_of(module: Any, x: Any) -> Any:
    """Calls a module that returns more than its result, which is the first of it."""
    return module(x)[0]
