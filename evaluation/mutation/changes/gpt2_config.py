"""Lines of the sizes of a GPT-2 that are wrong, for `test_gpt2_config.py`."""

from evaluation.mutation.wrongs import Change, Function

_gpt2_config = Function("models/gpt2/config:GPT2Config")
_gpt2_config_post_init = Function("models/gpt2/config:GPT2Config.__post_init__")

GPT2_CONFIG = (
    _gpt2_config("width of the second size", "int = 768", "int = 1024"),
    _gpt2_config("no dropout", "float = 0.1", "float = 0.0"),
    _gpt2_config("epsilon of another library", "1e-5", "1e-6"),
    _gpt2_config("can be written to", "frozen", "unsafe_hash"),
    _gpt2_config("no value", "frozen=True", "frozen=True, eq=False"),
    _gpt2_config(
        "sizes exchanged",
        "vocab_size: int = 50257\n    n_positions: int = 1024",
        "n_positions: int = 1024\n    vocab_size: int = 50257",
    ),
    _gpt2_config_post_init("vocabulary of two tokens at least", ".vocab_size", ".vocab_size, 2"),
    _gpt2_config_post_init("no layers", ".n_layer", ".n_layer, 0"),
    _gpt2_config_post_init(
        "positions not checked", '        require_size("n_positions", self.n_positions)\n', ""
    ),
    _gpt2_config_post_init(
        "heads not checked",
        '        require_heads(self.n_embd, self.n_head, names=("n_embd", "n_head"))\n',
        "",
    ),
    _gpt2_config_post_init(
        "the error has the names of another module", '"n_embd", "n_head"', '"d_model", "num_heads"'
    ),
    _gpt2_config_post_init(
        "dropout not checked", '        require_probability("dropout", self.dropout)\n', ""
    ),
    _gpt2_config_post_init(
        "dropout of 1 refused", ".dropout", ".dropout if self.dropout < 1 else 2"
    ),
    _gpt2_config_post_init(
        "epsilon of 0", "self.layer_norm_epsilon", "abs(self.layer_norm_epsilon) + 1"
    ),
    Change(
        "models/gpt2/model:GPT2.__init__",
        "a head of its own",
        "_initialize()\n",
        "_initialize()\n"
        "        self.head = nn.Linear(config.n_embd, config.vocab_size, bias=False)\n",
    ),
)
