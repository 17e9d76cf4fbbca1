"""Lines of layers that are wrong, for tests that no wrong version of a whole layer makes fail."""

from tests.against_wrong_versions.wrongs import Change, Function

_gelu = Function("activations:gelu")
_causal_self_attention = Function("gpt2/attention:CausalSelfAttention.forward")
_transformer_encoder_layer = Function("encoder:TransformerEncoderLayer.forward")
_fused_attention = Function("attention/kernel:fused_attention")
_key_value_cache_init = Function("gpt2/cache:KeyValueCache.__init__")
_append = Function("gpt2/cache:KeyValueCache.append")
_require_size = Function("validation:require_size")
_require_dtype = Function("validation:require_dtype")
_at_least_float32 = Function("precision:at_least_float32")

LAYERS: dict[str, tuple[Change, ...]] = {
    "activations": (
        _gelu(
            "float32 computed in bfloat16",
            "wide = ",
            "wide = x.bfloat16() if x.dtype == torch.float32 else ",
        ),
        _gelu(
            "1 + erf", "torch.erfc(-wide / math.sqrt(2))", "(1 + torch.erf(wide / math.sqrt(2)))"
        ),
        _gelu("sign of the argument lost", "-wide", "wide"),
    ),
    "annotations": (
        _gelu(
            "any dtype in, as far as the annotation goes",
            ': Float[Tensor, "*shape"]',
            ": torch.Tensor",
        ),
        _gelu(
            "any shape out, as far as the annotation goes",
            '[Tensor, "*shape"]:',
            '[Tensor, "..."]:',
        ),
        _gelu("integers not refused", 'require_floating("x", x)\n    ', ""),
    ),
    "attention/definition": (
        Change(
            "attention/definition:attention_weights",
            "view of strides",
            "(key)",
            "(key.view(key.numel()).view(key.shape))",
        ),
        Change(
            "attention/inputs:require_mask_of_scores",
            "mask that fits in two ways guessed",
            "if offset",
            "if not offset",
        ),
        Change(
            "attention/inputs:_expands",
            "mask enlarges the scores",
            " for size",
            " or target_size == 1 for size",
        ),
    ),
    "gpt2/attention": (
        _causal_self_attention(
            "past counted after the new keys", "=past", "=cache is None or cache.length"
        ),
        _causal_self_attention("no mask where there is a past", "> 0 and seq > 1", "< 0"),
    ),
    "encoder": (
        _transformer_encoder_layer(
            "later positions weigh more",
            "= self",
            "= x * x.new_ones(x.shape[-2], 1).cumsum(0)\n        x = self",
        ),
        _transformer_encoder_layer(
            "sequences of a batch meet",
            "(x + self.feed_forward(x))",
            "(x + self.feed_forward(x)) + 0 * x.sum()",
        ),
        _transformer_encoder_layer(
            "low precision returned as float32",
            "return self.norm2(x + self.feed_forward(x))",
            "y = self.norm2(x + self.feed_forward(x))\n"
            "        return y.float() if y.itemsize < 4 else y",
        ),
        Change(
            "encoder:PreNormTransformerEncoderLayer.forward",
            "no gradient through the feed-forward network",
            "(self.norm2(x))",
            "(self.norm2(x)).detach()",
        ),
        Change(
            "attention/inputs:require_heads", "heads not checked", "% num_heads != 0", "< num_heads"
        ),
        Change(
            "positionwise_feed_forward:PositionwiseFeedForward.__init__",
            "dropout fixed",
            "(dropout)",
            "(0.1)",
        ),
    ),
    "attention/kernel": (
        _fused_attention("dead rows left to the kernel", " | dead", ""),
        _fused_attention("dead rows attend to all", ".masked_fill(dead, 0.0)", ""),
        _fused_attention("heads and sequences of a mask exchanged", "batch, 1", "1, batch"),
        _fused_attention("is_causal ignored", "is_causal=is_causal", ""),
        _fused_attention("one leading axis", "shape[:-3]", "shape[:1]"),
        _fused_attention("batch left to be guessed", "math.prod(query.shape[:-3])", "-1"),
        _fused_attention("mask beside is_causal dropped", "and is_causal", "and mask.ndim == 0"),
        _fused_attention("three axes for the kernel", "for x", "if query.ndim > 3 else x for x"),
        _fused_attention(
            "scores in the input's dtype",
            "attend(is_causal=is_causal)",
            "(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])).softmax(-1) @ v",
        ),
        _fused_attention(
            "result rounded to bfloat16", ".masked_fill", ".bfloat16().to(q.dtype).masked_fill"
        ),
    ),
    "gpt2/model": (
        Change(
            "gpt2/model:GPT2.last_hidden_state",
            "sequences of a batch meet",
            "ln_f(x)",
            "ln_f(x - x.mean(dim=0))",
        ),
        Change("gpt2/model:GPT2.loss", "int64 only", ".long()", ""),
        Change(
            "gpt2/model:GPT2._embed",
            "view of strides",
            "(ids)",
            "(ids.view(ids.numel()).view(ids.shape))",
        ),
        _key_value_cache_init(
            "sizes not checked",
            'require_size("max_seq", max_seq, minimum=0)',
            "max_seq = abs(max_seq)",
        ),
    ),
    "attention/heads": (
        Change(
            "attention/heads:split_heads",
            "features dealt out one by one",
            "(-1, (num_heads, d_k)).transpose(-3, -2)",
            "(-1, (d_k, num_heads)).movedim(-1, -3)",
        ),
        Change(
            "attention/heads:merge_heads",
            "features of the heads interleaved",
            "transpose(-3, -2)",
            "movedim(-3, -1)",
        ),
    ),
    "gpt2/cache": (
        _append(
            "keys written from the first position",
            "_keys[:, :, self.length : end]",
            "_keys[:, :, :seq]",
        ),
        _append("keys for values", "] = value", "] = key"),
        _append("not counted", "= end", "= seq"),
        _append("copies returned", "[:, :, :end],", "[:, :, :end].clone(),"),
        _append("room not checked", "> self.max_seq", "< 0"),
        _append(
            "counted before the check",
            "if end",
            "self.length, past = end, self.length\n        if end",
        ),
        _append("shape of the values not checked", "== value.shape ==", "=="),
        _append("dtype of the values not checked", "== value.dtype ==", "=="),
        _key_value_cache_init("size not checked", '("d_k", d_k)', ""),
    ),
    "attention/masks": (
        Change(
            "attention/masks:padding_mask",
            "lengths not looked at",
            "(lengths < 0) | (lengths > seq)",
            "lengths < 0",
        ),
    ),
    "attention/multi_head": (
        Change(
            "attention/multi_head:MultiHeadAttention.forward",
            "view of strides",
            "(query)",
            "(query.view(query.numel()).view(query.shape))",
        ),
        Change(
            "attention/inputs:require_mask_of_batch",
            "mask of a batch enlarges one sequence",
            "leading and shape in",
            "shape[1:] == (1, kv_seq) or leading and shape in",
        ),
    ),
    "positions": (
        Change(
            "positions:sinusoidal_positions",
            "float32 whatever the default",
            "get_default_dtype()",
            "float32",
        ),
    ),
    "rms_norm": (
        Change(
            "rms_norm:RMSNorm.forward",
            "divided by the largest element first",
            "at_least_float32(x)",
            "at_least_float32(x)\n        wide = wide / wide.abs().amax(dim=-1, keepdim=True)",
        ),
    ),
    "validation": (
        _require_size("minimum refused", "value <", "value <="),
        Change("validation:require_positive", "NaN is positive", "not value >", "value <="),
        Change("validation:require_not_negative", "NaN is not negative", "not value >=", "value <"),
        _require_size("True is a size", " or isinstance(value, bool)", ""),
        Change(
            "validation:require_floating",
            "complex numbers pass",
            "x.is_floating_point()",
            "(x.is_floating_point() or x.is_complex())",
        ),
        _require_dtype(
            "low precision meets float32 in every layer", "low_precision_input and x", "x"
        ),
        _require_dtype(
            "the error names the wrong dtype", 'f"{name} is {x', 'f"{name} is {parameter'
        ),
        Change(
            "validation:require_last_axis",
            "the error prints the wrong size",
            'size}, got {found}: its shape is "',
            'x.ndim}, got {found}: its shape is "',
        ),
        _at_least_float32("float16 stays", ".float32", ".float16"),
        _at_least_float32("always float64", ".float32", ".float64"),
    ),
}
