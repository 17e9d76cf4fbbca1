"""Lines of the sizes of a GPT-2 that are wrong, for `test_gpt2_config.py`."""

from tests.against_wrong_versions.wrongs import Change

GPT2_CONFIG = (
    Change("gpt2/config", "width of the second size", "n_embd: int = 768", "n_embd: int = 1024"),
    Change("gpt2/config", "no dropout", "dropout: float = 0.1", "dropout: float = 0.0"),
    Change(
        "gpt2/config",
        "epsilon of another library",
        "layer_norm_epsilon: float = 1e-5",
        "layer_norm_epsilon: float = 1e-6",
    ),
    Change("gpt2/config", "can be written to", "frozen=True", "unsafe_hash=True"),
    Change("gpt2/config", "no value", "frozen=True", "frozen=True, eq=False"),
    Change(
        "gpt2/config",
        "sizes exchanged",
        "    vocab_size: int = 50257\n    n_positions: int = 1024\n",
        "    n_positions: int = 1024\n    vocab_size: int = 50257\n",
    ),
    Change(
        "gpt2/config",
        "vocabulary of two tokens at least",
        'require_size("vocab_size", self.vocab_size)',
        'require_size("vocab_size", self.vocab_size, 2)',
    ),
    Change(
        "gpt2/config",
        "no layers",
        'require_size("n_layer", self.n_layer)',
        'require_size("n_layer", self.n_layer, 0)',
    ),
    Change(
        "gpt2/config",
        "positions not checked",
        '        require_size("n_positions", self.n_positions)\n',
        "",
    ),
    Change(
        "gpt2/config",
        "heads not checked",
        '        require_heads(self.n_embd, self.n_head, names=("n_embd", "n_head"))\n',
        "",
    ),
    Change(
        "gpt2/config",
        "the error has the names of another module",
        'names=("n_embd", "n_head")',
        'names=("d_model", "num_heads")',
    ),
    Change(
        "gpt2/config",
        "dropout not checked",
        '        require_probability("dropout", self.dropout)\n',
        "",
    ),
    Change(
        "gpt2/config",
        "dropout of 1 refused",
        'require_probability("dropout", self.dropout)',
        'require_probability("dropout", self.dropout if self.dropout < 1 else 2)',
    ),
    Change(
        "gpt2/config",
        "epsilon of 0",
        'require_positive("layer_norm_epsilon", self.layer_norm_epsilon)',
        'require_positive("layer_norm_epsilon", abs(self.layer_norm_epsilon) + 1)',
    ),
    Change(
        "gpt2/model",
        "a head of its own",
        "        self.to(dtype=dtype)\n        self._initialize()\n",
        "        self.to(dtype=dtype)\n        self._initialize()\n"
        "        self.head = nn.Linear(config.n_embd, config.vocab_size, bias=False)\n",
    ),
)
