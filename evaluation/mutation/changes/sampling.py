"""Lines of the next token's choice that are wrong, for `test_sampling.py`."""

from evaluation.mutation.wrongs import Function

_next_token_distribution = Function("generation/sampling:next_token_distribution")
_next_token = Function("generation/sampling:next_token")
_require_sampling = Function("generation/sampling:require_sampling", "errors")
_require_logits = Function("generation/sampling:_require_logits", "errors")

SAMPLING = (
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
    _next_token_distribution("largest logit of all rows subtracted", "dim=-1, keepdim=True", ""),
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
    ),
    _next_token_distribution(
        "the last of equals at temperature 0",
        "best = wide",
        "best = vocab_size - 1 - wide.flip(-1)",
    ),
    # Draws
    _next_token(
        "drawn unless asked otherwise", "temperature: float = 0.0", "temperature: float = 1.0"
    ),
    _next_token("options left out", ", temperature, top_k, top_p", ", temperature"),
    _next_token("some probability for every token", "rows,", "rows.clamp(min=1e-2),"),
    _next_token(
        "one random number for all rows",
        "torch.multinomial(rows, 1, generator=generator)",
        "(rows.cumsum(-1) > torch.rand((), generator=generator)).byte().argmax(-1)",
    ),
    _next_token("a generator of its own", "=generator", "=generator or torch.Generator()"),
    _next_token("drawn at temperature 0", "    return logits.argmax(dim=-1)\n    ", ""),
    _next_token("compared in bfloat16", "argmax", "bfloat16().argmax"),
    _next_token("two axes only", "shape[:-1]", "shape[:1]"),
    # Limits and errors
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
