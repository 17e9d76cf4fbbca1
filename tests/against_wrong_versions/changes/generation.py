"""Lines of the next token's choice and of `generate` that are wrong, for `test_generation.py`."""

from tests.against_wrong_versions.wrongs import Change, Function

# All but the slow tests, for what shows in the quick ones.
_QUICK = "not (tokens_are or sequences or fewer or each_row)"
_ROWS = "not (tokens_are or sequences or fewer)"
_OF_MODELS = "not each_row"

_next_token_distribution = Function("gpt2/sampling:next_token_distribution", _QUICK)
_next_token = Function("gpt2/sampling:next_token")
_in_evaluation = Function("gpt2/evaluation:in_evaluation", "twin")
_evaluating = Function("gpt2/evaluation:evaluating", "evaluating")
_stream = Function("gpt2/model:GPT2.stream", "errors")
_new_tokens = Function("gpt2/generation:new_tokens", "stop or ended or filled")
_last_hidden_state = Function("gpt2/model:GPT2.last_hidden_state", _OF_MODELS)
_require_stops = Function("gpt2/generation:require_stops", "errors")
_as_batch = Function("gpt2/generation:as_batch", "errors")
_mask = Function("gpt2/cache:KeyValueCache.mask", "prompts or padding")
_autocast_dtype = Function("precision:autocast_dtype", "autocast")
_inner_last_hidden_state = Function("gpt2/model:GPT2._last_hidden_state", _OF_MODELS)
_append = Function("gpt2/cache:KeyValueCache.append", "computed or keys or concatenated")
_require_sampling = Function("gpt2/sampling:require_sampling", "errors")
_require_logits = Function("gpt2/sampling:_require_logits", "errors")

GENERATION = (
    # The distribution
    _next_token_distribution("multiplied by the temperature", "/ min", "* min"),
    _next_token_distribution(
        "temperature ignored", " / min(max(temperature, limits.tiny), limits.max)", ".clone()"
    ),
    _next_token_distribution(
        "float64 rounded to float32", "at_least_float32(logits)", "logits.float()"
    ),
    _next_token_distribution("low precision stays", "at_least_float32(logits)", "logits"),
    _next_token_distribution(
        "largest logit not subtracted",
        "    wide = wide - wide.amax(dim=-1, keepdim=True)  # no temperature overflows\n",
        "",
    ),
    _next_token_distribution(
        "largest logit of all rows subtracted", "dim=-1, keepdim=True", "", select=_ROWS
    ),
    _next_token_distribution(
        "temperature rounded to infinity",
        "min(max(temperature, limits.tiny), limits.max)",
        "max(temperature, limits.tiny)",
    ),
    _next_token_distribution(
        "temperature rounded to 0", "max(temperature, limits.tiny)", "temperature"
    ),
    _next_token_distribution("one more than top_k", "top_k, vocab_size", "top_k + 1, vocab_size"),
    _next_token_distribution("top_k above the vocabulary", "min(top_k, vocab_size)", "top_k"),
    _next_token_distribution(
        "equals of the last of top_k dropped", "wide < kth", "(wide <= kth) & (wide < 0)"
    ),
    _next_token_distribution(
        "threshold of one row along the tokens of another",
        ":]\n        wide",
        "]\n        wide",
        select=_ROWS,
    ),
    _next_token_distribution("masked by 0", "kth, -math.inf", "kth, 0.0"),
    _next_token_distribution(
        "top_p of what was there before top_k",
        "ranked.",
        "logits.sort(dim=-1, descending=True).values.to(wide.dtype).",
    ),
    _next_token_distribution(
        "the token that reaches top_p dropped",
        "from_here_on <=",
        "from_here_on - ranked.softmax(dim=-1) <=",
    ),
    _next_token_distribution(
        "summed up from the most likely on",
        "from_here_on <= 1 -",
        "ranked.softmax(dim=-1).cumsum(dim=-1) - ranked.softmax(dim=-1) >=",
    ),
    _next_token_distribution(
        "all outside where top_p is tiny",
        "    outside[..., 0] = False  # also where 1 - top_p is rounded to 1\n",
        "",
    ),
    _next_token_distribution(
        "the first token kept, not the most likely one",
        "[..., 0] = False  # also where 1 - top_p is rounded to 1\n"
        "    outside = outside.scatter(-1, order, outside)",
        " = outside.scatter(-1, order, outside)\n    outside[..., 0] = False",
    ),
    _next_token_distribution(
        "ranks taken for tokens", "    outside = outside.scatter(-1, order, outside)\n", ""
    ),
    _next_token_distribution(
        "order applied in the wrong direction", "scatter(-1, order, outside)", "gather(-1, order)"
    ),
    _next_token_distribution(
        "of equals the last first",
        "wide.sort(dim=-1, descending=True, stable=True)",
        "(each.flip(-1) for each in wide.sort(dim=-1, stable=True))",
    ),
    _next_token_distribution(
        "not divided by the sum of what is left",
        "masked_fill(outside, -math.inf).softmax(dim=-1)",
        "softmax(dim=-1).masked_fill(outside, 0.0)",
    ),
    _next_token_distribution("detached", ").softmax(dim=-1)", ").softmax(dim=-1).detach()"),
    _next_token_distribution(
        "the likeliest of all rows at temperature 0",
        "argmax(",
        "argmax() % vocab_size + 0 * wide.argmax(",
        select=_ROWS,
    ),
    _next_token_distribution(
        "the last of equals at temperature 0",
        "best = wide",
        "best = vocab_size - 1 - wide.flip(-1)",
    ),
    # Draws
    _next_token("options left out", ", temperature, top_k, top_p", ", temperature"),
    _next_token(
        "some probability for every token", "rows,", "rows.clamp(min=1e-2),", select=_QUICK
    ),
    _next_token(
        "one random number for all rows",
        "torch.multinomial(rows, 1, generator=generator)",
        "(rows.cumsum(-1) > torch.rand((), generator=generator)).byte().argmax(-1)",
    ),
    _next_token("a generator of its own", "=generator", "=generator or torch.Generator()"),
    _next_token(
        "drawn at temperature 0", "    return logits.argmax(dim=-1)\n    ", "", select=_QUICK
    ),
    _next_token("compared in bfloat16", "argmax", "bfloat16().argmax", select=_QUICK),
    _next_token("two axes only", "shape[:-1]", "shape[:1]", select=_ROWS),
    # Modes and gradients
    _in_evaluation(
        "dropout stays on",
        "training=False, ",
        "",
        select="dropout or mode or evaluating or twin or greedy",
    ),
    _evaluating("the model's own modes switched", "in_evaluation(model)", "model.eval()"),
    _stream(
        "generated in the modes of the model",
        "in_evaluation(self)",
        "self",
        select="dropout or mode or twin or stream",
    ),
    _stream(
        "generated by the model, put in evaluation",
        "in_evaluation(self)",
        "self.eval()",
        select="dropout or mode or twin or stream",
    ),
    _in_evaluation(
        "children of the model itself",
        '        twins[module].__dict__["_modules"] = children\n',
        "",
        select="dropout or mode or twin or stream",
    ),
    _in_evaluation("what was compiled is called", ", _compiled_call_impl=None", ""),
    _in_evaluation(
        "parameters and buffers in other dictionaries",
        "    return twins",
        '        twins[module].__dict__["_buffers"] = dict(module._buffers)\n    return twins',
    ),
    _evaluating("gradients recorded while evaluating", "no_grad", "enable_grad", select="gradient"),
    _new_tokens("gradients recorded", "no_grad", "enable_grad", select="gradient"),
    _new_tokens(
        "no gradients for whoever reads a stream",
        "new = ids",
        "torch.set_grad_enabled(False)\n    new = ids",
        select="gradient",
    ),
    _stream("gradients lost", "model =", "self.zero_grad()\n        model =", select="gradient"),
    # The loop
    _new_tokens("one step too few", "(max_new_tokens)", "(max_new_tokens - 1)", select=_OF_MODELS),
    _stream(
        "the first position's scores",
        "[:, -1])\n\n        def",
        "[:, 0])\n\n        def",
        select=_OF_MODELS,
    ),
    _last_hidden_state("positions counted from 0 at each step", "past, past + ", ""),
    _new_tokens(
        "everything read again at each step",
        "tokens[:, None]",
        "torch.cat([new, tokens[:, None]], dim=1)",
        select="computed or scores or keys",
    ),
    _stream(
        "all positions scored",
        "caches)[:, -1])",
        "caches))[:, -1]",
        select="computed or scores or keys",
    ),
    _new_tokens(
        "a step whether a token is wanted or not",
        "ended =",
        "max_new_tokens = max(max_new_tokens, 1)\n    ended =",
        select="computed or scores",
    ),
    _stream(
        "the token of one sequence for all",
        "generator)",
        "generator)[:1].expand(len(logits))",
        select=_QUICK,
    ),
    _new_tokens("int64 whatever the ids", ".to(ids.dtype)", "", select=_QUICK),
    _stream(
        "all computed before the first token",
        "new_tokens(read, choose, batch, max_new_tokens, stops)",
        "iter(list(new_tokens(read, choose, batch, max_new_tokens, stops)))",
        select="stream",
    ),
    _stream("sampled otherwise than in float32", "logits,", "logits.double(),", select="sampled"),
    # The end of a sequence
    _new_tokens("stop tokens ignored", "ended |= ", ""),
    _new_tokens("only the first stop token ends", "tokens, stops", "tokens, stops[:1]"),
    _new_tokens("all end with the first", ".all", ".any"),
    _new_tokens("goes on after all have ended", "all()", "all() and False"),
    _new_tokens("not filled up", "            tokens = tokens.masked_fill(ended, stops[0])\n", ""),
    _new_tokens("filled with the last of several", "stops[0]", "stops[-1]"),
    Change(
        "gpt2/generation:up_to_stop",
        "ends before the stop token",
        "[0] + 1",
        "[0]",
        select="prompts",
    ),
    _require_stops("tokens that cannot come", " or max(stops) >= vocab_size", ""),
    _require_stops("no stop token of several", "not stops or", "stops and"),
    # Prompts of different lengths
    _as_batch("padding behind", '"left"', '"right"', select="prompts"),
    _as_batch("padding ignored", "padding if padding.any() else ", "", select="prompts"),
    _last_hidden_state(
        "positions not shifted", "- caches", "- 0 * caches", select="prompts or padding"
    ),
    _mask("padding attended to", ">= self", ">= 0 * self"),
    _mask("the last of the padding attended to", ">= self", ">= -1 + self"),
    _mask("one position attends to all", "1 and self.padding is None", "1"),
    Change(
        "gpt2/inference/attention:BlockwiseAttention.forward",
        "padding ignored where a model is ready for inference",
        "not None and cache.padding is not ",
        "",
        select="ready",
    ),
    Change(
        "gpt2/model:GPT2.generate",
        "a prompt is its own result",
        "[prompt.clone() for prompt in ids]",
        "list(ids)",
        select="prompts",
    ),
    _as_batch(
        "prompts of any shape",
        "ids or any(len(shape) != 1 or shape[0] == 0 for shape in shapes)",
        "ids",
    ),
    _as_batch("no prompt", "not ids or ", ""),
    _as_batch("prompts of any dtype", 'require_integers("each prompt", prompt)', "prompt.shape"),
    # Autocast
    _autocast_dtype(
        "dtype of the weights under autocast",
        "torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else x",
        "x",
    ),
    _autocast_dtype("float64 under autocast", "x.dtype == torch.float64 or ", ""),
    _inner_last_hidden_state("sequences of a batch meet", "ln_f(x)", "ln_f(x - x.mean(dim=0))"),
    _inner_last_hidden_state(
        "tokens embedded at the first position only",
        "(positions)",
        "(positions[:1] * 0)",
        select=_QUICK,
    ),
    Change(
        "gpt2/model:GPT2._embed",
        "view of strides",
        "wte(ids)",
        "wte(ids.view(ids.numel()).view(ids.shape))",
        select="ids or tokens",
    ),
    _stream(
        "ids written over",
        "(self)\n",
        "(self)\n        batch.clamp_(max=21)\n",
        select="ids or tokens",
    ),
    Change(
        "gpt2/model:GPT2.__init__",
        "a transposed view kept, which cannot be copied",
        "_initialize()\n",
        "_initialize()\n        self.head = self.wte.weight.T\n",
        select="copy or precision",
    ),
    Change(
        "gpt2/model:GPT2.new_caches",
        "float32 caches",
        "autocast_dtype(weight)",
        "torch.float32",
        select=_QUICK,
    ),
    _append(
        "keys concatenated",
        "[:, :, self.length : end] = key",
        " = torch.cat([self._keys[:, :, : self.length], key], dim=2)",
    ),
    _append("copies returned", "end],", "end].clone(),"),
    # Limits and errors
    _stream(
        "room asked about on the way only",
        "        self._require_room(total)\n",
        "",
        select="position",
    ),
    _stream("room for the new tokens only", "(total)", "(max_new_tokens)", select="position"),
    _as_batch("empty batch refused", "shape[1] ==", "numel() ==", select="empty or errors"),
    _as_batch("no first position needed", "2 or ids.shape[1] == 0", "2", select="empty or errors"),
    _stream("fewer than no tokens", "max_new_tokens, minimum", "abs(max_new_tokens), minimum"),
    _as_batch(
        "the type of the ids asked about on the way only",
        'require_integers("ids", ids)  # which refuses a list of numbers',
        "pass",
    ),
    _stream("tokens asked about on the way only", "        self._require_tokens(batch)\n", ""),
    _stream(
        "options asked about where they are used",
        "        require_sampling(temperature, top_k, top_p)\n",
        "",
    ),
    _next_token(
        "options not asked about at temperature 0",
        "require_sampling(temperature, top_k, top_p)\n        ",
        "",
        select="errors",
    ),
    _next_token(
        "logits not asked about at temperature 0",
        "_require_logits(logits)\n        ",
        "",
        select="errors",
    ),
    _require_sampling(
        "NaN is a temperature", "not 0 <= temperature <", "temperature < 0 or temperature =="
    ),
    _require_sampling("infinite temperature", " < math.inf", ""),
    _require_sampling("top_k of 0", '"top_k", top_k', '"top_k", top_k, 0'),
    _require_logits("no logits", "0 or logits.shape[-1] == 0", "0"),
    _require_logits(
        "any logit must be finite",
        "amax(dim=-1)",
        "flatten()",
        select="possible or never or logits",
    ),
    _require_logits("infinity can be chosen", "~highest.isfinite", "highest.isnan"),
    _require_logits("rows counted that are well", 'bad.numel()} "', 'highest.isfinite().sum()} "'),
)
