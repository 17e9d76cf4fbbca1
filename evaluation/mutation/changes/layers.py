"""Lines of layers that are wrong, for tests that no wrong version of a whole layer makes fail."""

from evaluation.mutation.wrongs import Change, Function

_gelu = Function("feed_forward/activations:gelu")
_causal_attention = Function("attention/causal:causal_attention")
_rmsnorm_init = Function("norms/rms_norm:RMSNorm.__init__")
_transformer_encoder_layer = Function("blocks/encoder:TransformerEncoderLayer.forward")
_fused_attention = Function("attention/kernel:fused_attention")
_key_value_cache_init = Function("attention/cache:KeyValueCache.__init__")
_require_caches = Function("attention/cache:require_caches")
_all_grown_or_none = Function("attention/cache:all_grown_or_none")
_reset_parameters = Function("models/gpt2/model:GPT2.reset_parameters")
_batch_norm1d = Function("norms/batch_norm:BatchNorm1d.forward")
_append = Function("attention/cache:KeyValueCache.append")
_multi_head_attention = Function("attention/multi_head:MultiHeadAttention.forward")
_require_size = Function("validation:require_size")
_require_dtype = Function("validation:require_dtype")
_dtype_taken_by = Function("validation:dtype_taken_by")
_at_least_float32 = Function("precision:at_least_float32")
_conv1_d = Function("models/gpt2/conv1d:Conv1D.forward")

LAYERS: dict[str, tuple[Change, ...]] = {
    "feed_forward/activations": (
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
    "models/gpt2/attention": (
        _causal_attention(
            "the kernel's own mask after a past", "cache.mask(seq), False", "None, True"
        ),
        _causal_attention(
            "no mask where there is a past",
            "mask, is_causal = cache.mask(seq),",
            "is_causal =",
        ),
    ),
    "construction": (
        Change(
            "models/gpt2/conv1d:Conv1D.__init__",
            "drawn in float32 first",
            ", dtype=dtype)\n        )",
            ").to(dtype)\n        )",
        ),
        _rmsnorm_init("device and dtype by position", "*,\n        device", "device"),
        _rmsnorm_init("float32 whatever the default", "=dtype", "=dtype or torch.float32"),
        Change(
            "norms/layer_norm:LayerNorm.reset_parameters",
            "weight reset only beside a bias",
            "nn.init.ones_(self.weight)\n        if self.bias is not None:",
            "if self.bias is not None:\n            nn.init.ones_(self.weight)",
        ),
        Change(
            "norms/batch_norm:BatchNorm1d.reset_parameters",
            "running variance not reset",
            "running_var.fill_(1)",
            "running_mean.fill_(0)",
        ),
        Change(
            "norms/batch_norm:BatchNorm1d.__init__",
            "count made on the default device",
            "0, device=device",
            "0",
        ),
        Change(
            "models/gpt2/block:GPT2Block.reset_parameters",
            "second norm not reset",
            "        self.ln_2.reset_parameters()\n",
            "",
        ),
        Change(
            "models/gpt2/block:GPT2Block.__init__",
            "dtype not handed on",
            "=dropout, device=device, dtype=dtype",
            "=dropout, device=device",
        ),
        Change(
            "attention/multi_head:MultiHeadAttention.reset_parameters",
            "projections drawn in another order",
            "query_proj",
            "key_proj.reset_parameters(), self.query_proj",
        ),
        Change(
            "validation:require_floating_dtype",
            "parameters of complex numbers",
            "is_floating_point",
            "is_floating_point and not dtype.is_complex",
        ),
    ),
    "blocks/encoder": (
        _transformer_encoder_layer(
            "later positions weigh more",
            "= self",
            "= x * x.new_ones(x.shape[-2], 1).cumsum(0)\n        x = self",
        ),
        _transformer_encoder_layer(
            "sequences of a batch meet", "feed_forward(x))", "feed_forward(x)) + 0 * x.sum()"
        ),
        _transformer_encoder_layer(
            "low precision returned as float32",
            "return self.norm2(x + self.feed_forward(x))",
            "y = self.norm2(x + self.feed_forward(x))\n"
            "        return y.float() if y.itemsize < 4 else y",
        ),
        Change(
            "blocks/encoder:PreNormTransformerEncoderLayer.forward",
            "no gradient through the feed-forward network",
            "norm2(x))",
            "norm2(x)).detach()",
        ),
        Change(
            "attention/inputs:require_heads", "heads not checked", "% num_heads != 0", "< num_heads"
        ),
        Change(
            "feed_forward/positionwise:PositionwiseFeedForward.__init__",
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
    "models/gpt2/model": (
        Change(
            "models/gpt2/model:GPT2._last_hidden_state",
            "sequences of a batch meet",
            "ln_f(x)",
            "ln_f(x - x.mean(dim=0))",
        ),
        Change("generation/loss:next_token_loss", "int64 only", ".long()", ""),
        Change(
            "generation/decoder:embedded",
            "view of strides",
            "table(ids)",
            "table(ids.view(ids.numel()).view(ids.shape))",
        ),
        _key_value_cache_init(
            "sizes not checked",
            'require_size("max_seq", max_seq, minimum=0)',
            "max_seq = abs(max_seq)",
        ),
        _require_caches(
            "order of the caches not checked",
            "order != list(range(blocks))",
            "len(set(order)) != blocks",
        ),
        _require_caches(
            "one cache for two blocks", "if order", "if len(set(order)) == blocks and order"
        ),
        _require_caches("an empty cache bound to a block", "length == 0 or ", ""),
        _require_caches(
            "keys written by hand belong to all blocks", "0 or cache.block is None", "0"
        ),
        _all_grown_or_none("grown up to the block that refused", "cache.length = length", "pass"),
        _all_grown_or_none("grown after an interrupt", "BaseException", "Exception"),
        _reset_parameters("matrices left as they are", "Conv1D | nn", "nn"),
        _reset_parameters("gains left as they are", " | nn.LayerNorm", ""),
        _reset_parameters("embeddings left as they are", "        self._initialize()\n", ""),
        Change("models/gpt2/model:GPT2.__init__", "dtype left out", "to(dtype=dtype)", "to()"),
        Change(
            "models/gpt2/model:GPT2.new_caches",
            "caches of float32",
            "self.wte.weight,",
            "self.wte.weight.float(),",
        ),
        Change(
            "models/gpt2/model:GPT2.extra_repr",
            "sizes not shown",
            'f"{count:,} parameters, {sizes}"',
            'f"{sizes}"',
        ),
    ),
    "norms/layer_norm": (
        Change(
            "norms/layer_norm:LayerNorm.forward",
            "rounding of the mean left",
            "        centered = centered - centered.mean(dim=-1, keepdim=True)  # what "
            "rounding left of it\n",
            "",
        ),
    ),
    "norms/batch_norm": (
        _batch_norm1d("rounding of the mean left", " - rest", ""),
        _batch_norm1d("running mean without the rest", "(mean + rest)", "mean"),
    ),
    "attention/heads": (
        Change(
            "attention/heads:split_heads",
            "features dealt out one by one",
            "(num_heads, d_k)).transpose(-3, -2)",
            "(d_k, num_heads)).movedim(-1, -3)",
        ),
        Change(
            "attention/heads:merge_heads",
            "features of the heads interleaved",
            "transpose(-3, -2)",
            "movedim(-3, -1)",
        ),
    ),
    "attention/cache": (
        _append("keys written from the first position", "self.length : end] = key", ":seq] = key"),
        _append("keys for values", "] = value", "] = key"),
        _append("not counted", "= end", "= seq"),
        _append("copies returned", "end],", "end].clone(),"),
        _append("room not checked", "> self.max_seq", "< 0"),
        _append(
            "counted before the check",
            "if end",
            "self.length, past = end, self.length\n        if end",
        ),
        _append("shape of the values not checked", "== value.shape ==", "=="),
        _append("dtype of the values not checked", "== value.dtype ==", "=="),
        _key_value_cache_init("size not checked", '("d_k", d_k)', ""),
        _key_value_cache_init("padding of any shape", "shape != (batch,)", "ndim != 1"),
        Change(
            "attention/cache:KeyValueCache.mask",
            "padding attended to",
            " & (places >= self.padding[:, None, None])",
            "",
        ),
        Change(
            "attention/cache:KeyValueCache.__repr__",
            "room shown for what is held",
            "length",
            "max_seq",
        ),
    ),
    "attention/masks": (
        Change(
            "attention/masks:padding_mask",
            "lengths not looked at",
            "(wide < 0) | (wide > seq)",
            "wide < 0",
        ),
    ),
    "attention/multi_head": (
        _multi_head_attention(
            "view of strides", "(query)", "(query.view(query.numel()).view(query.shape))"
        ),
        Change(
            "attention/inputs:require_mask_of_batch",
            "mask of a batch enlarges one sequence",
            "return\n    if leading",
            "return\n    if shape[1:] == (1, kv_seq) or leading",
        ),
    ),
    "positions/sinusoidal": (
        Change(
            "positions/sinusoidal:sinusoidal_positions",
            "float32 whatever the default",
            "get_default_dtype()",
            "float32",
        ),
    ),
    "norms/rms_norm": (
        Change(
            "norms/rms_norm:RMSNorm.forward",
            "divided by the largest element first",
            "\n        mean_square",
            "\n        wide = wide / wide.abs().amax(dim=-1, keepdim=True)\n        mean_square",
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
        _dtype_taken_by(
            "a hook before the layer ignored",
            "    if layer._forward_pre_hooks:\n        return None\n",
            "",
        ),
        _dtype_taken_by(
            "integers are a layer's dtype",
            " if dtype is not None and dtype.is_floating_point else None",
            "",
        ),
        _dtype_taken_by("parameters of a wrapped layer looked at", "recurse=False", ""),
        _require_dtype("the error names the wrong dtype", 'f"{name} is {x.', 'f"{name} is {'),
        Change(
            "validation:require_last_axis",
            "the error prints the wrong size",
            'size}, got {found}: its shape is "',
            'x.ndim}, got {found}: its shape is "',
        ),
        _at_least_float32("float16 stays", ".float32", ".float16"),
        _at_least_float32("always float64", ".float32", ".float64"),
    ),
    "wrapping": (
        _conv1_d("weight looked at before it is used", "bias.dtype", "weight.dtype"),
        _conv1_d(
            "the first parameter is the weight",
            "self.weight",
            "next(self.parameters()).reshape(self.in_features, self.out_features)",
        ),
        Change(
            "models/gpt2/attention:CausalSelfAttention.forward",
            "projected by its weight",
            "self.c_attn(x)",
            "(x @ self.c_attn.weight + self.c_attn.bias)",
        ),
        _multi_head_attention(
            "dtype of the projection's weight",
            "dtype_taken_by(self.query_proj)",
            "self.query_proj.weight.dtype",
        ),
        _multi_head_attention(
            "dtype of the last parameter",
            "dtype_taken_by(self.query_proj)",
            "list(self.query_proj.parameters())[-1].dtype",
        ),
        _multi_head_attention("query converted back", "(query)", "(query).to(query.dtype)"),
        Change(
            "feed_forward/positionwise:PositionwiseFeedForward.forward",
            "projected by its weights",
            "self.linear2(self.activation(self.linear1(x)))",
            "self.activation(x @ self.linear1.weight.T + self.linear1.bias) @ "
            "self.linear2.weight.T + self.linear2.bias",
        ),
        _batch_norm1d("eps outside the root", "torch.sqrt(var", "(torch.sqrt(var)"),
    ),
}
