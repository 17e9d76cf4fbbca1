"""Lines of layers that are wrong, for tests that no wrong version of a whole layer makes fail."""

from tests.against_wrong_versions.wrongs import Change

LAYERS: dict[str, tuple[Change, ...]] = {
    "activations": (
        Change(
            "activations",
            "float32 computed in bfloat16",
            "    wide = at_least_float32(x)\n    # 1 + erf",
            "    wide = x.bfloat16() if x.dtype == torch.float32 else at_least_float32(x)\n    # ",
        ),
        Change(
            "activations",
            "1 + erf",
            "torch.erfc(-wide / math.sqrt(2))",
            "(1 + torch.erf(wide / math.sqrt(2)))",
        ),
        Change("activations", "sign of the argument lost", "erfc(-wide", "erfc(wide"),
    ),
    "annotations": (
        Change(
            "activations",
            "any dtype in, as far as the annotation goes",
            'def gelu(x: Float[Tensor, "*shape"])',
            "def gelu(x: torch.Tensor)",
        ),
        Change(
            "activations",
            "any shape out, as far as the annotation goes",
            'def gelu(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]',
            'def gelu(x: Float[Tensor, "*shape"]) -> Float[Tensor, "..."]',
        ),
        Change(
            "activations",
            "integers not refused",
            'require_floating("x", x)\n    wide = at_least_float32(x)\n    #',
            "wide = at_least_float32(x)\n    #",
        ),
    ),
    "attention": (
        Change(
            "attention",
            "view of strides",
            "scores = scaled @ at_least_float32(key)",
            "scores = scaled @ at_least_float32(key.view(key.numel()).view(key.shape))",
        ),
        Change(
            "_attention_checks",
            "mask that fits in two ways guessed",
            "if offset and any(size != 1 for size in leading) and",
            "if not offset and any(size != 1 for size in leading) and",
        ),
        Change(
            "_attention_checks",
            "mask enlarges the scores",
            "return all(size in (target_size, 1)",
            "return all(size in (target_size, 1) or target_size == 1",
        ),
    ),
    "causal_self_attention": (
        Change(
            "causal_self_attention",
            "past counted after the new keys",
            "is_causal=past == 0",
            "is_causal=cache is None or cache.length == 0",
        ),
        Change(
            "causal_self_attention",
            "no mask where there is a past",
            "if past > 0 and seq > 1 else None",
            "if past < 0 else None",
        ),
    ),
    "dropout": (
        Change("dropout", "layer draws in evaluation", "self.p, self.training)", "self.p)"),
        Change(
            "dropout",
            "draws in the input's dtype",
            ", dtype=torch.promote_types(x.dtype, torch.float32)",
            "",
        ),
    ),
    "encoder": (
        Change(
            "encoder",
            "later positions weigh more",
            "x = self.norm1(x + self.dropout(",
            "x = x * x.new_ones(x.shape[-2], 1).cumsum(0)\n"
            "        x = self.norm1(x + self.dropout(",
        ),
        Change(
            "encoder",
            "sequences of a batch meet",
            "return self.norm2(x + self.feed_forward(x))",
            "return self.norm2(x + self.feed_forward(x)) + 0 * x.sum()",
        ),
        Change(
            "encoder",
            "low precision returned as float32",
            "return self.norm2(x + self.feed_forward(x))",
            "y = self.norm2(x + self.feed_forward(x))\n"
            "        return y.float() if y.itemsize < 4 else y",
        ),
        Change(
            "encoder",
            "no gradient through the feed-forward network",
            "return x + self.feed_forward(self.norm2(x))",
            "return x + self.feed_forward(self.norm2(x)).detach()",
        ),
        Change(
            "_attention_checks",
            "heads not checked",
            "if d_model % num_heads != 0:",
            "if d_model < num_heads:",
        ),
        Change(
            "positionwise_feed_forward",
            "dropout fixed",
            "self.dropout = Dropout(dropout)",
            "self.dropout = Dropout(0.1)",
        ),
    ),
    "fused_attention": (
        Change(
            "fused_attention",
            "dead rows left to the kernel",
            "attend(attn_mask=mask | dead)",
            "attend(attn_mask=mask)",
        ),
        Change(
            "fused_attention",
            "dead rows attend to all",
            ".masked_fill(dead, 0.0)",
            "",
        ),
        Change(
            "fused_attention",
            "heads and sequences of a mask exchanged",
            "mask.reshape(batch, 1, *mask.shape[-2:])",
            "mask.reshape(1, batch, *mask.shape[-2:])",
        ),
        Change("fused_attention", "is_causal ignored", "attend(is_causal=is_causal)", "attend()"),
        Change("fused_attention", "one leading axis", "query.shape[:-3]", "query.shape[:1]"),
        Change("fused_attention", "batch left to be guessed", "math.prod(query.shape[:-3])", "-1"),
        Change("fused_attention", "dropout ignored", ", dropout_p=dropout_p", ""),
        Change(
            "fused_attention",
            "mask beside is_causal dropped",
            "if mask is not None and is_causal:",
            "if mask is not None and mask.ndim == 0:",
        ),
        Change(
            "fused_attention",
            "three axes for the kernel",
            "for x in (query, key, value))",
            "if query.ndim > 3 else x for x in (query, key, value))",
        ),
        Change(
            "fused_attention",
            "scores in the input's dtype",
            "output = attend(is_causal=is_causal)",
            "output = (q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])).softmax(-1) @ v",
        ),
        Change(
            "fused_attention",
            "result rounded to bfloat16",
            "attend(attn_mask=mask | dead)",
            "attend(attn_mask=mask | dead).bfloat16().to(q.dtype)",
        ),
    ),
    "gpt2": (
        Change(
            "gpt2",
            "sequences of a batch meet",
            "return self.ln_f(x)",
            "return self.ln_f(x - x.mean(dim=0))",
        ),
        Change(
            "gpt2",
            "int64 only",
            "ids[..., 1:].flatten().long()",
            "ids[..., 1:].flatten()",
        ),
        Change(
            "gpt2",
            "view of strides",
            "return self.wte(ids)",
            "return self.wte(ids.view(ids.numel()).view(ids.shape))",
        ),
        Change(
            "key_value_cache",
            "sizes not checked",
            'require_size("max_seq", max_seq, minimum=0)',
            "max_seq = abs(max_seq)",
        ),
    ),
    "heads": (
        Change(
            "heads",
            "features dealt out one by one",
            "x.unflatten(-1, (num_heads, d_k)).transpose(-3, -2)",
            "x.unflatten(-1, (d_k, num_heads)).movedim(-1, -3)",
        ),
        Change(
            "heads",
            "features of the heads interleaved",
            "x.transpose(-3, -2).flatten(-2)",
            "x.movedim(-3, -1).flatten(-2)",
        ),
    ),
    "key_value_cache": (
        Change(
            "key_value_cache",
            "keys written from the first position",
            "self._keys[:, :, self.length : end] = key",
            "self._keys[:, :, :seq] = key",
        ),
        Change(
            "key_value_cache",
            "keys for values",
            "self._values[:, :, self.length : end] = value",
            "self._values[:, :, self.length : end] = key",
        ),
        Change("key_value_cache", "not counted", "self.length = end", "self.length = seq"),
        Change(
            "key_value_cache",
            "copies returned",
            "return self._keys[:, :, :end]",
            "return self._keys[:, :, :end].clone()",
        ),
        Change("key_value_cache", "dtype ignored", "d_k, dtype=dtype, device", "d_k, device"),
        Change("key_value_cache", "device ignored", "dtype=dtype, device=device", "dtype=dtype"),
        Change("key_value_cache", "room not checked", "if end > self.max_seq:", "if end < 0:"),
        Change(
            "key_value_cache",
            "counted before the check",
            "        if end > self.max_seq:",
            "        self.length, past = end, self.length\n        if end > self.max_seq:",
        ),
        Change(
            "key_value_cache",
            "shape of the values not checked",
            "if not key.shape == value.shape ==",
            "if not key.shape ==",
        ),
        Change(
            "key_value_cache",
            "dtype of the values not checked",
            "if not key.dtype == value.dtype ==",
            "if not key.dtype ==",
        ),
        Change("key_value_cache", "size not checked", 'require_size("d_k", d_k)', "require_size"),
    ),
    "masks": (
        Change("masks", "device ignored", "dtype=torch.bool, device=device", "dtype=torch.bool"),
        Change(
            "masks",
            "lengths not looked at",
            "if has_values and ((lengths < 0) | (lengths > seq)).any():",
            "if has_values and (lengths < 0).any():",
        ),
    ),
    "multi_head_attention": (
        Change(
            "multi_head_attention",
            "view of strides",
            "self.query_proj(query)",
            "self.query_proj(query.view(query.numel()).view(query.shape))",
        ),
        Change(
            "_attention_checks",
            "mask of a batch enlarges one sequence",
            "if leading and shape in (",
            "if shape[1:] == (1, kv_seq) or leading and shape in (",
        ),
    ),
    "positions": (
        Change(
            "positions",
            "float32 whatever the default",
            "torch.get_default_dtype() if dtype is None",
            "torch.float32 if dtype is None",
        ),
    ),
    "rms_norm": (
        Change(
            "rms_norm",
            "divided by the largest element first",
            "wide = at_least_float32(x)",
            "wide = at_least_float32(x)\n"
            "        wide = wide / wide.abs().amax(dim=-1, keepdim=True)",
        ),
    ),
    "validation": (
        Change("_validation", "minimum refused", "if value < minimum:", "if value <= minimum:"),
        Change("_validation", "zero is positive", "if not value > 0:", "if not value >= 0:"),
        Change("_validation", "NaN is positive", "if not value > 0:", "if value <= 0:"),
        Change("_validation", "NaN is not negative", "if not value >= 0:", "if value < 0:"),
        Change(
            "_validation",
            "probability of 1 refused",
            "if not 0 <= value <= 1:",
            "if not 0 <= value < 1:",
        ),
        Change(
            "_validation",
            "True is a size",
            " or isinstance(value, bool):",
            ":",
        ),
        Change(
            "_validation",
            "complex numbers pass",
            "if not x.is_floating_point():",
            "if not (x.is_floating_point() or x.is_complex()):",
        ),
        Change(
            "_validation",
            "low precision meets float32 in every layer",
            "if low_precision_input and x.dtype in",
            "if x.dtype in",
        ),
        Change(
            "_validation",
            "the error names the wrong dtype",
            'f"{name} is {x.dtype} but',
            'f"{name} is {parameter.dtype} but',
        ),
        Change(
            "_validation",
            "the error prints the wrong size",
            "{size_name} = {size}",
            "{size_name} = {x.ndim}",
        ),
        Change("_precision", "float16 stays", "x.dtype, torch.float32", "x.dtype, torch.float16"),
        Change("_precision", "always float64", "x.dtype, torch.float32", "x.dtype, torch.float64"),
    ),
}
