"""Lines of the next token's choice and of `generate` that are wrong, for `test_generation.py`."""

from tests.against_wrong_versions.wrongs import Change, Function

# All but the slow tests, for what shows in the quick ones.
_QUICK = "not (tokens_are or sequences or fewer or each_row)"
_ROWS = "not (tokens_are or sequences or fewer)"
_OF_MODELS = "not each_row"

_next_token_distribution = Function("gpt2/sampling:next_token_distribution", _QUICK)
_next_token = Function("gpt2/sampling:next_token")
_evaluating = Function("gpt2/sampling:evaluating", "gradient")
_generate = Function("gpt2/model:GPT2.generate", "errors")
_last_hidden_state = Function("gpt2/model:GPT2.last_hidden_state", _OF_MODELS)
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
        "values[..., -1:]",
        "values[..., -1]",
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
        "<= 1 - top_p",
        "- ranked.softmax(dim=-1) <= 1 - top_p",
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
        "argmax(dim=-1)",
        "argmax() % vocab_size + 0 * wide.argmax(dim=-1)",
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
    _evaluating(
        "dropout stays on",
        "    model.eval()\n",
        "",
        select="dropout or mode or evaluating or greedy",
    ),
    _evaluating(
        "all modules in the model's mode afterwards",
        "for module, training in modes:\n            module.training = training",
        "model.train(modes[0][1])",
        select="dropout or mode or evaluating",
    ),
    _evaluating(
        "modes lost after an error",
        "try:\n        with torch.no_grad():\n            yield\n    finally",
        "with torch.no_grad():\n        yield\n    if modes",
        select="dropout or mode or evaluating",
    ),
    _evaluating("gradients recorded", "no_grad", "enable_grad"),
    _evaluating(
        "parameters frozen", "with torch", "model.requires_grad_(False)\n        with torch"
    ),
    _evaluating("gradients lost", "eval()", "eval().zero_grad()"),
    # The loop
    _generate("one step too few", "(max_new_tokens)", "(max_new_tokens - 1)", select=_OF_MODELS),
    _generate(
        "the first position's scores",
        "(new, caches)[:, -1]",
        "(new, caches)[:, 0]",
        select=_OF_MODELS,
    ),
    _last_hidden_state("positions counted from 0 at each step", "past, past + ", ""),
    _generate(
        "everything computed again at each step",
        "new, caches",
        "ids",
        select="computed or scores or keys",
    ),
    _generate(
        "all positions scored",
        "last = self.last_hidden_state(new, caches)[:, -1]\n"
        "                logits = self.logits(last)",
        "logits = self.logits(self.last_hidden_state(new, caches))[:, -1]",
        select="computed or scores or keys",
    ),
    _generate(
        "a step whether a token is wanted or not",
        "            for _",
        "            self(ids)\n            for _",
        select="computed or scores",
    ),
    _generate(
        "the token of one sequence for all",
        "[:, None]",
        "[:1, None].expand(len(ids), 1)",
        select=_QUICK,
    ),
    _generate("int64 whatever the ids", ".to(ids.dtype)", "", select=_QUICK),
    _last_hidden_state("sequences of a batch meet", "ln_f(x)", "ln_f(x - x.mean(dim=0))"),
    _last_hidden_state(
        "tokens embedded at the first position only",
        "(positions)",
        "(positions[:1] * 0)",
        select=_QUICK,
    ),
    Change(
        "gpt2/model:GPT2._embed",
        "view of strides",
        "(ids)",
        "(ids.view(ids.numel()).view(ids.shape))",
        select="ids or tokens",
    ),
    _generate(
        "ids written over",
        "        new = ids",
        "        ids.clamp_(max=self.config.vocab_size - 2)\n        new = ids",
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
        "weight.dtype",
        "torch.float32",
        select=_QUICK,
    ),
    _append(
        "keys concatenated",
        "[:, :, self.length : end] = key",
        " = torch.cat([self._keys[:, :, : self.length], key], dim=2)",
    ),
    _append("copies returned", "[:, :, :end],", "[:, :, :end].clone(),"),
    # Limits and errors
    _generate(
        "room asked about on the way only",
        "        self._require_room(total)\n",
        "",
        select="position",
    ),
    _generate("room for the new tokens only", "(total)", "(max_new_tokens)", select="position"),
    _generate("empty batch refused", "shape[1] ==", "numel() ==", select="empty or errors"),
    _generate("no first position needed", "2 or ids.shape[1] == 0", "2", select="empty or errors"),
    _generate("fewer than no tokens", "max_new_tokens,", "abs(max_new_tokens),"),
    _generate(
        "the type of the ids asked about on the way only",
        'require_integers("ids", ids)\n        if',
        "if",
    ),
    _generate(
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
