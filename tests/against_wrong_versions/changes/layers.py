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
    "attention/definition": (
        Change(
            "attention/definition",
            "view of strides",
            "scores = scaled @ at_least_float32(key)",
            "scores = scaled @ at_least_float32(key.view(key.numel()).view(key.shape))",
        ),
        Change(
            "attention/inputs",
            "mask that fits in two ways guessed",
            "if offset and any(size != 1 for size in leading) and",
            "if not offset and any(size != 1 for size in leading) and",
        ),
        Change(
            "attention/inputs",
            "mask enlarges the scores",
            "return all(size in (target_size, 1)",
            "return all(size in (target_size, 1) or target_size == 1",
        ),
    ),
    "gpt2/attention": (
        Change(
            "gpt2/attention",
            "the kernel's own mask after a past",
            "mask, is_causal = cache.mask(x.shape[-2]), False",
            "mask, is_causal = None, True",
        ),
        Change(
            "gpt2/attention",
            "no mask where there is a past",
            "mask, is_causal = cache.mask(x.shape[-2]), False",
            "is_causal = False",
        ),
    ),
    "construction": (
        Change(
            "gpt2/conv1d",
            "drawn in float32 first",
            "torch.empty(in_features, out_features, device=device, dtype=dtype)",
            "torch.empty(in_features, out_features, device=device).to(dtype)",
        ),
        Change(
            "rms_norm",
            "device and dtype by position",
            "        *,\n        device",
            "        device",
        ),
        Change(
            "rms_norm",
            "float32 whatever the default",
            "device=device, dtype=dtype)",
            "device=device, dtype=dtype or torch.float32)",
        ),
        Change(
            "layer_norm",
            "weight reset only beside a bias",
            "        nn.init.ones_(self.weight)\n        if self.bias is not None:\n",
            "        if self.bias is not None:\n            nn.init.ones_(self.weight)\n",
        ),
        Change(
            "batch_norm",
            "running variance not reset",
            "        self.running_var.fill_(1)\n",
            "        self.running_mean.fill_(0)\n",
        ),
        Change(
            "batch_norm",
            "count made on the default device",
            "torch.tensor(0, device=device)",
            "torch.tensor(0)",
        ),
        Change(
            "gpt2/block",
            "second norm not reset",
            "        self.ln_2.reset_parameters()\n",
            "",
        ),
        Change(
            "gpt2/block",
            "dtype not handed on",
            "FeedForward(d_model, dropout=dropout, device=device, dtype=dtype)",
            "FeedForward(d_model, dropout=dropout, device=device)",
        ),
        Change(
            "attention/multi_head",
            "projections drawn in another order",
            "self.query_proj.reset_parameters()",
            "self.key_proj.reset_parameters(), self.query_proj.reset_parameters()",
        ),
        Change(
            "validation",
            "parameters of complex numbers",
            "if dtype is not None and not dtype.is_floating_point:",
            "if dtype is not None and not dtype.is_floating_point and not dtype.is_complex:",
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
            "attention/inputs",
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
    "attention/kernel": (
        Change(
            "attention/kernel",
            "dead rows left to the kernel",
            "attend(attn_mask=mask | dead)",
            "attend(attn_mask=mask)",
        ),
        Change(
            "attention/kernel",
            "dead rows attend to all",
            ".masked_fill(dead, 0.0)",
            "",
        ),
        Change(
            "attention/kernel",
            "heads and sequences of a mask exchanged",
            "mask.reshape(batch, 1, *mask.shape[-2:])",
            "mask.reshape(1, batch, *mask.shape[-2:])",
        ),
        Change("attention/kernel", "is_causal ignored", "attend(is_causal=is_causal)", "attend()"),
        Change("attention/kernel", "one leading axis", "query.shape[:-3]", "query.shape[:1]"),
        Change("attention/kernel", "batch left to be guessed", "math.prod(query.shape[:-3])", "-1"),
        Change("attention/kernel", "dropout ignored", ", dropout_p=dropout_p", ""),
        Change(
            "attention/kernel",
            "mask beside is_causal dropped",
            "if mask is not None and is_causal:",
            "if mask is not None and mask.ndim == 0:",
        ),
        Change(
            "attention/kernel",
            "three axes for the kernel",
            "for x in (query, key, value))",
            "if query.ndim > 3 else x for x in (query, key, value))",
        ),
        Change(
            "attention/kernel",
            "scores in the input's dtype",
            "output = attend(is_causal=is_causal)",
            "output = (q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])).softmax(-1) @ v",
        ),
        Change(
            "attention/kernel",
            "result rounded to bfloat16",
            "attend(attn_mask=mask | dead)",
            "attend(attn_mask=mask | dead).bfloat16().to(q.dtype)",
        ),
    ),
    "gpt2/model": (
        Change(
            "gpt2/model",
            "sequences of a batch meet",
            "return self.ln_f(x)",
            "return self.ln_f(x - x.mean(dim=0))",
        ),
        Change(
            "gpt2/model",
            "int64 only",
            "ids[..., 1:].flatten().long()",
            "ids[..., 1:].flatten()",
        ),
        Change(
            "gpt2/model",
            "view of strides",
            "return self.wte(ids)",
            "return self.wte(ids.view(ids.numel()).view(ids.shape))",
        ),
        Change(
            "gpt2/cache",
            "sizes not checked",
            'require_size("max_seq", max_seq, minimum=0)',
            "max_seq = abs(max_seq)",
        ),
        Change(
            "gpt2/cache",
            "order of the caches not checked",
            "if order != list(range(blocks)):",
            "if len(set(order)) != blocks:",
        ),
        Change(
            "gpt2/cache",
            "one cache for two blocks",
            "if order != list(range(blocks)):",
            "if len(set(order)) == blocks and order != list(range(blocks)):",
        ),
        Change(
            "gpt2/cache",
            "an empty cache bound to a block",
            "if length == 0 or cache.block is None:",
            "if cache.block is None:",
        ),
        Change(
            "gpt2/cache",
            "keys written by hand belong to all blocks",
            "if length == 0 or cache.block is None:",
            "if length == 0:",
        ),
        Change(
            "gpt2/model",
            "grown up to the block that refused",
            "                cache.length = past\n",
            "                pass\n",
        ),
        Change(
            "gpt2/model", "grown after an interrupt", "except BaseException:", "except Exception:"
        ),
        Change(
            "gpt2/model",
            "matrices left as they are",
            "                layer.weight.normal_(std=0.02)\n",
            "",
        ),
        Change("gpt2/model", "biases left as they are", "layer.bias.zero_()", "pass"),
        Change(
            "gpt2/model",
            "gains left as they are",
            "                layer.reset_parameters()\n",
            "                pass\n",
        ),
        Change(
            "gpt2/model",
            "embeddings left as they are",
            "        self._initialize()\n\n    @torch.no_grad()\n    def _initialize",
            "\n    @torch.no_grad()\n    def _initialize",
        ),
        Change("gpt2/model", "dtype ignored", "        self.to(dtype=dtype)\n", ""),
        Change(
            "gpt2/model",
            "device ignored",
            "nullcontext() if device is None else torch.device(device)",
            "nullcontext()",
        ),
        Change("gpt2/model", "sizes not shown", "{count:,} parameters, {sizes}", "{sizes}"),
    ),
    "layer_norm": (
        Change(
            "layer_norm",
            "rounding of the mean left",
            "        centered = centered - centered.mean(dim=-1, keepdim=True)"
            "  # what rounding left of it\n",
            "",
        ),
    ),
    "batch_norm": (
        Change(
            "batch_norm",
            "rounding of the mean left",
            "centered = wide - mean - rest",
            "centered = wide - mean",
        ),
        Change(
            "batch_norm",
            "running mean without the rest",
            "(mean + rest).detach()",
            "mean.detach()",
        ),
    ),
    "attention/heads": (
        Change(
            "attention/heads",
            "features dealt out one by one",
            "x.unflatten(-1, (num_heads, d_k)).transpose(-3, -2)",
            "x.unflatten(-1, (d_k, num_heads)).movedim(-1, -3)",
        ),
        Change(
            "attention/heads",
            "features of the heads interleaved",
            "x.transpose(-3, -2).flatten(-2)",
            "x.movedim(-3, -1).flatten(-2)",
        ),
    ),
    "gpt2/cache": (
        Change(
            "gpt2/cache",
            "keys written from the first position",
            "self._keys[:, :, self.length : end] = key",
            "self._keys[:, :, :seq] = key",
        ),
        Change(
            "gpt2/cache",
            "keys for values",
            "self._values[:, :, self.length : end] = value",
            "self._values[:, :, self.length : end] = key",
        ),
        Change("gpt2/cache", "not counted", "self.length = end", "self.length = seq"),
        Change(
            "gpt2/cache",
            "copies returned",
            "return self._keys[:, :, :end]",
            "return self._keys[:, :, :end].clone()",
        ),
        Change("gpt2/cache", "dtype ignored", "d_k, dtype=dtype, device", "d_k, device"),
        Change("gpt2/cache", "device ignored", "dtype=dtype, device=device", "dtype=dtype"),
        Change("gpt2/cache", "room not checked", "if end > self.max_seq:", "if end < 0:"),
        Change(
            "gpt2/cache",
            "counted before the check",
            "        if end > self.max_seq:",
            "        self.length, past = end, self.length\n        if end > self.max_seq:",
        ),
        Change(
            "gpt2/cache",
            "shape of the values not checked",
            "if not key.shape == value.shape ==",
            "if not key.shape ==",
        ),
        Change(
            "gpt2/cache",
            "dtype of the values not checked",
            "if not key.dtype == value.dtype ==",
            "if not key.dtype ==",
        ),
        Change("gpt2/cache", "size not checked", 'require_size("d_k", d_k)', "require_size"),
        Change(
            "gpt2/cache",
            "padding of any shape",
            "if padding is not None and padding.shape != (batch,):",
            "if padding is not None and padding.ndim != 1:",
        ),
        Change(
            "gpt2/cache",
            "padding attended to",
            "return causal & (places >= self.padding[:, None, None])",
            "return causal",
        ),
        Change(
            "gpt2/cache", "room shown for what is held", "{self.length} of ", "{self.max_seq} of "
        ),
    ),
    "attention/masks": (
        Change(
            "attention/masks",
            "device ignored",
            "dtype=torch.bool, device=device",
            "dtype=torch.bool",
        ),
        Change(
            "attention/masks",
            "lengths not looked at",
            "if has_values and ((lengths < 0) | (lengths > seq)).any():",
            "if has_values and (lengths < 0).any():",
        ),
    ),
    "attention/multi_head": (
        Change(
            "attention/multi_head",
            "view of strides",
            "self.query_proj(query)",
            "self.query_proj(query.view(query.numel()).view(query.shape))",
        ),
        Change(
            "attention/inputs",
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
        Change("validation", "minimum refused", "if value < minimum:", "if value <= minimum:"),
        Change("validation", "zero is positive", "if not value > 0:", "if not value >= 0:"),
        Change("validation", "NaN is positive", "if not value > 0:", "if value <= 0:"),
        Change("validation", "NaN is not negative", "if not value >= 0:", "if value < 0:"),
        Change(
            "validation",
            "probability of 1 refused",
            "if not 0 <= value <= 1:",
            "if not 0 <= value < 1:",
        ),
        Change(
            "validation",
            "True is a size",
            " or isinstance(value, bool):",
            ":",
        ),
        Change(
            "validation",
            "complex numbers pass",
            "if not x.is_floating_point():",
            "if not (x.is_floating_point() or x.is_complex()):",
        ),
        Change(
            "validation",
            "low precision meets float32 in every layer",
            "if low_precision_input and x.dtype in",
            "if x.dtype in",
        ),
        Change(
            "validation",
            "a hook before the layer ignored",
            "    if layer._forward_pre_hooks:\n        return None\n",
            "",
        ),
        Change(
            "validation",
            "integers are a layer's dtype",
            "return dtype if dtype is not None and dtype.is_floating_point else None",
            "return dtype",
        ),
        Change(
            "validation",
            "parameters of a wrapped layer looked at",
            "layer.parameters(recurse=False)",
            "layer.parameters()",
        ),
        Change(
            "validation",
            "the error names the wrong dtype",
            'f"{name} is {x.dtype} but',
            'f"{name} is {dtype} but',
        ),
        Change(
            "validation",
            "the error prints the wrong size",
            "{size_name} = {size}",
            "{size_name} = {x.ndim}",
        ),
        Change("precision", "float16 stays", "x.dtype, torch.float32", "x.dtype, torch.float16"),
        Change("precision", "always float64", "x.dtype, torch.float32", "x.dtype, torch.float64"),
    ),
    "wrapping": (
        Change(
            "gpt2/conv1d",
            "weight looked at before it is used",
            "self.bias.dtype)",
            "self.weight.dtype)",
        ),
        Change(
            "gpt2/conv1d",
            "the first parameter is the weight",
            "product = x @ self.weight",
            "product = x @ next(self.parameters()).reshape(self.in_features, self.out_features)",
        ),
        Change(
            "gpt2/attention",
            "projected by its weight",
            "self.c_attn(x).split",
            "(x @ self.c_attn.weight + self.c_attn.bias).split",
        ),
        Change(
            "attention/multi_head",
            "dtype of the projection's weight",
            "dtype_taken_by(self.query_proj)",
            "self.query_proj.weight.dtype",
        ),
        Change(
            "attention/multi_head",
            "dtype of the last parameter",
            "dtype_taken_by(self.query_proj)",
            "list(self.query_proj.parameters())[-1].dtype",
        ),
        Change(
            "attention/multi_head",
            "query converted back",
            "self.query_proj(query),",
            "self.query_proj(query).to(query.dtype),",
        ),
        Change(
            "positionwise_feed_forward",
            "projected by its weights",
            "self.linear2(self.linear1(x).relu())",
            "(x @ self.linear1.weight.T + self.linear1.bias).relu() @ self.linear2.weight.T"
            " + self.linear2.bias",
        ),
        Change(
            "batch_norm",
            "eps outside the root",
            "torch.sqrt(var + self.eps)",
            "(torch.sqrt(var) + self.eps)",
        ),
    ),
}
