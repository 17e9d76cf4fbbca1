"""Llama and its relatives against those of `transformers`."""

import random
import tempfile
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM

from evaluation.held_out_sizes.differences import Row, changed, draw_weights, gradients_of
from tests.transformer_layers.models.llama.families import in_float64
from transformer_layers import Llama

THEIRS: Any = AutoModelForCausalLM
FAMILIES = ("llama", "mistral", "qwen2", "qwen3", "olmo2")
LLAMA3 = {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}

# Changes of a config.json, by the name that the error has where the result is not theirs.
CHANGES: dict[str, dict[str, Any]] = {
    "hidden_act": {"hidden_act": "gelu"},
    "is_causal": {"is_causal": False},
    "per_layer_config": {"per_layer_config": {"0": {"rms_norm_eps": 0.5}}},
    "layer_types": {"layer_types": ["chunked_attention"]},
    "num_key_value_heads": {"num_attention_heads": 7, "num_key_value_heads": 2},
    "quantization_config": {"quantization_config": {"bits": 4}},
    "rope_type": {"rope_parameters": {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 1e4}},
    "rope_scaling": {"rope_scaling": {"rope_type": "linear", "factor": 2.0}, "rope_theta": 9.0},
    "original_max_position_embeddings": {
        "rope_parameters": {**LLAMA3, "rope_theta": 30.0, "original_max_position_embeddings": 7},
        "original_max_position_embeddings": 60,
    },
}


def drawn_rope(draw: random.Random, seq: int) -> dict[str, Any]:
    """The settings of rotary positions."""
    kind = draw.choice(["default", "linear", "llama3", "yarn"])
    found = {"rope_type": kind, "rope_theta": round(10 ** draw.uniform(0.5, 6.5), 2)}
    if kind != "default":
        found["factor"] = draw.choice([0.5, 1.0, 1.7, 4.0, 31.0])
    if kind in ("llama3", "yarn"):
        found["original_max_position_embeddings"] = draw.randint(5, 2 * seq)
    if kind == "llama3":
        low = draw.uniform(0.1, 3.0)
        found |= {"low_freq_factor": low, "high_freq_factor": low + draw.uniform(0.1, 5.0)}
    if kind == "yarn":
        optional = {"attention_factor": 1.3, "beta_fast": 5.5, "beta_slow": 0.4, "truncate": False}
        found |= {name: value for name, value in optional.items() if draw.random() < 0.4}
        found |= {"mscale": 0.7, "mscale_all_dim": 0.4} if draw.random() < 0.4 else {}
    return found


def drawn_sizes(draw: random.Random, family: str) -> dict[str, Any]:
    """Sizes and options of a config."""
    kv_heads, seq, layers = draw.choice([1, 2, 3, 5]), draw.randint(5, 99), draw.randint(1, 4)
    heads = kv_heads * draw.randint(1, 4)
    found: dict[str, Any] = {
        "vocab_size": draw.randint(3, 150),
        # transformers refuses a Llama whose heads do not divide its features
        "hidden_size": heads * draw.randint(1, 9) if family == "llama" else draw.randint(5, 90),
        "intermediate_size": 2 * draw.randint(1, 60) + 1,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "head_dim": 2 * draw.randint(2, 13),
        "max_position_embeddings": seq,
        "rms_norm_eps": 10 ** draw.uniform(-9, -1),
        "tie_word_embeddings": draw.random() < 0.4,
        "rope_parameters": drawn_rope(draw, seq),
    }
    if family not in ("llama", "olmo2"):
        found["sliding_window"] = draw.choice([None, 1, draw.randint(1, seq), 2 * seq])
    if family.startswith("qwen"):
        found["use_sliding_window"] = draw.random() < 0.8
        found["max_window_layers"] = draw.randint(0, layers + 1)
    if family in ("llama", "qwen3", "olmo2"):
        found["attention_bias"] = draw.random() < 0.5
    if family == "llama":
        found["mlp_bias"] = draw.random() < 0.5
    return found


def decoder(family: str, draw: random.Random) -> Row:
    """A model of a family: its folder, logits, gradients, caches and greedy tokens."""
    sizes = drawn_sizes(draw, family)
    row = Row(f"{family} {' '.join(map(str, sizes.values()))}")
    with in_float64(), tempfile.TemporaryDirectory() as folder:
        tokens = dict.fromkeys(("bos_token_id", "eos_token_id", "pad_token_id"))
        config = AutoConfig.for_model(family, **sizes, **tokens)
        kind = {"attn_implementation": draw.choice(["eager", "sdpa"])}
        theirs: Any = THEIRS.from_config(config, dtype=torch.float64, **kind).eval()
        draw_weights(theirs, draw.uniform(0.1, 0.6))
        theirs.save_pretrained(folder, max_shard_size=draw.choice(["8KB", "5GB"]))
        ours = Llama.from_pretrained(folder)
        ids = torch.randint(ours.vocab_size, (2, ours.max_seq))
        both = ours(ids), theirs(ids).logits
        row.values("logits", *both)
        cotangent = torch.randn_like(both[0])
        for logits in both:
            logits.backward(cotangent)
        row.gradients(gradients_of(ours), gradients_of(theirs))
        with torch.no_grad():
            ours.save_pretrained(f"{folder}/ours")
            again = type(theirs).from_pretrained(f"{folder}/ours", **kind)
            row.note("other files", "logits", not again(ids).logits.equal(theirs(ids).logits))
            in_pieces(row, ours, theirs, draw)
            greedily(row, ours, theirs, draw)
            changed(
                row,
                folder,
                CHANGES,
                lambda: Llama.from_pretrained(folder)(ids),
                lambda: THEIRS.from_pretrained(folder)(ids).logits,
            )
    return row


def in_pieces(row: Row, ours: Llama, theirs: Any, draw: random.Random) -> None:
    """Sequences with padding in front, read in pieces, against theirs in one."""
    seq, batch = ours.max_seq, draw.randint(1, 4)
    padding = torch.tensor([0, *(draw.randrange(seq) for _ in range(1, batch))])
    ids, seen = torch.randint(ours.vocab_size, (batch, seq)), torch.arange(seq) >= padding[:, None]
    places = (seen.cumsum(dim=1) - 1).clamp(min=0)
    expected = theirs(ids, attention_mask=seen.long(), position_ids=places).logits
    caches = ours.new_caches(batch, seq, padding if batch > 1 else None)
    pieces = ids.tensor_split(sorted(draw.choices(range(seq), k=draw.randint(0, 6))), dim=1)
    found = torch.cat([ours(piece, caches) for piece in pieces], dim=1)
    row.values("pieces with padding", found[seen], expected[seen])


def greedily(row: Row, ours: Llama, theirs: Any, draw: random.Random) -> None:
    """Prompts of different lengths, continued; theirs padded in front."""
    longest = draw.randint(1, ours.max_seq - 1)
    lengths = [longest, *(draw.randint(1, longest) for _ in range(draw.randint(0, 3)))]
    prompts = [torch.randint(ours.vocab_size, (length,)) for length in lengths]
    new, end = ours.max_seq - longest, draw.choice([None, draw.randrange(ours.vocab_size)])
    options = {"max_new_tokens": new, "do_sample": False, "pad_token_id": 0, "eos_token_id": end}
    if getattr(theirs.config, "sliding_window", None) == 1:
        options["use_cache"] = False  # theirs keeps all keys of a window of one
    ids = torch.nn.utils.rnn.pad_sequence(prompts, batch_first=True, padding_side="left")
    seen = torch.arange(longest) >= longest - torch.tensor(lengths)[:, None]
    expected = theirs.generate(ids, attention_mask=seen.long(), **options)[:, longest:]
    found = ours.generate(prompts, new, eos_token=end)
    for length, a, b in zip(lengths, found, expected, strict=True):
        row.tokens("greedy search", end, a[length:].tolist(), b.tolist())
