"""What readers ask the search for, and the place that must come first."""


def api(room: str, name: str) -> str:
    """The place of a layer, on the page of its room."""
    return f"reference/api_{room}.html#transformer_layers.{name}"


# Each question with the page and the section, claim or name that answers it.
QUESTIONS = {
    "why sqrt d_k": "attention/scaled_dot_product_attention.html#why-divide",
    "kv cache": "gpt2/generation.html#without-reading-everything-again",
    "weight tying": "gpt2/model.html#one-matrix-twice",
    "pre-norm": "transformers/norm_placement.html",
    "layer norm eps": "normalization/layer_normalization.html",
    "bpe tokenizer": "reference/glossary.html#term-byte-pair-encoding",
    "Claim B130": "reference/published_bugs.html#claim-b130",
    "b130": "reference/published_bugs.html#claim-b130",
    "ε": "proofs/layer_normalization.html#where-stands",
    "RMSNorm": api("layers", "RMSNorm"),
    "LayerNorm": "normalization/layer_normalization.html",
    "softmax temperature": "reference/glossary.html#term-temperature",
    "top-p": "reference/glossary.html#term-nucleus",
    "causal mask": "attention/masks.html",
    "padding mask": "attention/masks.html#padding",
    "fully masked row": "attention/masks.html",
    "dropout": "normalization/dropout.html",
    "unbiased variance": "reference/published_bugs.html#a-running-variance-a-quarter-too-small",
    "multi-head attention": "attention/multi_head_attention.html",
    "multihead": api("attention", "MultiHeadAttention"),
    "number of parameters": "gpt2/model.html#where-the-parameters-sit",
    "residual scaling": "proofs/residual_connections.html#what-gpt-2-does",
    "initialization": "feed_forward/residual_connections.html",
    "skip connection": "feed_forward/residual_connections.html",
    "positional encoding": "transformers/positions.html",
    "Conv1D": "feed_forward/conv1d.html",
    "load weights": "gpt2/loading_weights.html",
    "L1 and L2": "normalization/penalties.html",
    "weight decay": "normalization/penalties.html",
    "decoupled weight decay": "normalization/penalties.html#weight-decay",
    "AdamW": "normalization/penalties.html#weight-decay",
    "lasso": "normalization/penalties.html",
    "encoder layer": "transformers/encoder_layer.html",
    "loss shifted": "proofs/model.html#the-loss-that-looks-like-success",
    "tanh gelu": api("layers", "gelu_tanh"),
    "nanoGPT gelu bug": "proofs/equality.html#a-bug-leaves-the-noise",
    "scaled_dot_product_attention": api("attention", "scaled_dot_product_attention"),
    "int8": "reference/speed.html#ready-for-inference",
    "how to read a proof": "reference/reading_the_proofs.html#proofs-are-folded",
    "attention complexity": "attention/scaled_dot_product_attention.html",
}
