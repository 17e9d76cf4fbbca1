"""What readers ask the search for, and the place that must come first."""


def api(room: str, name: str) -> str:
    """The place of a layer, on the page of its room."""
    return f"reference/api_{room}.html#transformer_layers.{name}"


# Each question with the page and the section, claim or name that answers it.
QUESTIONS = {
    "why sqrt d_k": "attention/scaled_dot_product_attention.html#why-divide-by-the-root-of-d-k",
    "kv cache": "gpt2/generation.html#without-reading-everything-again",
    "weight tying": "gpt2/model.html#one-matrix-twice",
    "pre-norm": "reference/glossary.html#term-post-norm-pre-norm",
    "layer norm eps": "normalization/batch_normalization.html",
    "bpe tokenizer": "reference/glossary.html#term-byte-pair-encoding",
    "Claim B130": "reference/published_bugs.html#claim-b130",
    "b130": "reference/published_bugs.html#claim-b130",
    "ε": "proofs/layer_normalization.html#where-stands",
    "RMSNorm": "proofs/rms_norm_and_gates.html#rmsnorm",
    "LayerNorm": "normalization/layer_normalization.html",
    "softmax temperature": "gpt2/generation.html#temperature",
    "top-p": "proofs/generation.html#what-top-p-keeps",
    "causal mask": "attention/masks.html#the-causal-mask",
    "padding mask": "attention/masks.html#padding",
    "fully masked row": "attention/masks.html#what-people-get-wrong",
    "dropout": "normalization/dropout.html",
    "unbiased variance": "reference/published_bugs.html#a-running-variance-a-quarter-too-small",
    "multi-head attention": "attention/multi_head_attention.html",
    "multihead": api("attention", "MultiHeadAttention"),
    "number of parameters": "gpt2/model.html#where-the-parameters-sit",
    "residual scaling": "proofs/residual_connections.html#what-gpt-2-does",
    "initialization": "transformers/norm_placement.html#back-to-the-sentence",
    "skip connection": "feed_forward/residual_connections.html",
    "positional encoding": "reference/api_layers.html#transformer_layers.sinusoidal_positions",
    "Conv1D": "feed_forward/conv1d.html",
    "load weights": "proofs/loading_weights.html",
    "L1 and L2": "normalization/penalties.html#l1-and-l2",
    "weight decay": "normalization/penalties.html#weight-decay",
    "decoupled weight decay": "proofs/penalties.html#weight-decay",
    "AdamW": "normalization/penalties.html#weight-decay",
    "lasso": "normalization/penalties.html#l1-and-l2",
    "encoder layer": "proofs/encoder_layer.html",
    "loss shifted": "reference/published_bugs.html#a-loss-for-repeating-the-input",
    "tanh gelu": api("layers", "gelu_tanh"),
    "nanoGPT gelu bug": "reference/published_bugs.html#the-other-gelu",
    "scaled_dot_product_attention": api("attention", "scaled_dot_product_attention"),
    "int8": "reference/speed.html#ready-for-inference",
    "how to read a proof": "reference/reading_the_proofs.html",
    "attention complexity": "attention/gpt2_attention.html",
    "latent attention": "llama/latent_attention.html",
    "attention sink": "llama/far_away.html#an-attention-sink",
    "ten models": "llama/ten_models.html",
    "longer than it was trained": "llama/longer_texts.html",
}
