"""The Transformer against `torch.nn.Transformer`, and against Marian of `transformers`."""

import math
import random
import tempfile
from typing import Any

import torch
from torch import Tensor, nn
from transformers import MarianConfig, MarianMTModel

from evaluation.held_out_sizes.differences import Row, changed, draw_weights, gradients_of
from layer_checks.kit.weight_maps import to_ours, to_theirs
from transformer_layers import PaperLengthPenalty, Transformer, TransformerConfig
from transformer_layers.models.transformer.checkpoint import stored_as

THEIRS: Any = MarianMTModel
LENGTHS = (1, 2, 7, 30, 65, 100)
ACTIVATIONS = {"relu": torch.relu, "silu": nn.functional.silu, "gelu": nn.functional.gelu}

CHANGES: dict[str, dict[str, Any]] = {
    "activation_function": {"activation_function": "gelu_new"},
    "decoder_vocab_size": {"decoder_vocab_size": 100},
    "is_causal": {"is_causal": False},
    "normalize_before": {"normalize_before": True},
    "per_layer_config": {"per_layer_config": {"0": {"encoder_ffn_dim": 3}}},
    "tie_word_embeddings": {"tie_word_embeddings": False},
}


class Paper(float):
    """An exponent of which `n ** exponent` is the length penalty of the paper."""

    def __rpow__(self, n: int, modulo: None = None) -> float:  # type: ignore[override]  # of integers
        """The divisor for n tokens."""
        return ((5 + n) / 6) ** float(self)


def drawn_ids(draw: random.Random, vocab_size: int) -> tuple[Tensor, Tensor, Tensor | None]:
    """A source, a target, and what is seen of the source: all, one side, the middle, a single."""
    batch, seq, target_seq = draw.randint(1, 4), draw.choice(LENGTHS), draw.choice(LENGTHS)
    source, target = (torch.randint(vocab_size, (batch, n)) for n in (seq, target_seq))
    place, ends = torch.arange(seq), torch.randint(seq, (batch, 2)).sort(dim=1).values
    after, before = place >= ends[:, :1], place <= ends[:, 1:]
    kinds = [None, after, before, after & before, place == ends[:, :1]]
    mask = draw.choice(kinds)
    return source, target, mask if mask is None else mask[:, None]


def drawn_config(draw: random.Random, **options: Any) -> TransformerConfig:
    """Sizes and options."""
    vocab_size = draw.randint(3, 90)
    start, end, forced = (draw.randrange(vocab_size) for _ in range(3))
    heads, decoder_heads = draw.choice([1, 2, 3, 5]), draw.choice([1, 2, 3])
    sizes: dict[str, Any] = {
        "vocab_size": vocab_size,
        "d_model": math.lcm(heads, decoder_heads) * draw.randint(2, 6),
        "num_heads": heads,
        "decoder_heads": decoder_heads,
        "num_layers": draw.randint(1, 3),
        "decoder_layers": draw.randint(1, 3),
        "d_ff": draw.randint(1, 70),
        "decoder_d_ff": draw.randint(1, 70),
        "activation": draw.choice(list(ACTIVATIONS)),
        "scaled_embedding": draw.random() < 0.5,
        "dropout": 0.0,
        "start_token": start,
        "end_token": end,
        "padding_token": (end + draw.randrange(1, vocab_size)) % vocab_size,
        "must_end": draw.random() < 0.8,
        "forced_token": draw.choice([None, forced]),
    }
    return TransformerConfig(**{**sizes, **options})


def their_options(config: TransformerConfig, draw: random.Random) -> dict[str, Any]:
    """A config under the names of Marian's."""
    forced = config.end_token if config.forced_token is None else config.forced_token
    return {
        "vocab_size": config.vocab_size,
        "d_model": config.d_model,
        "encoder_layers": config.num_layers,
        "decoder_layers": config.decoder_layers,
        "encoder_attention_heads": config.num_heads,
        "decoder_attention_heads": config.decoder_heads,
        "encoder_ffn_dim": config.d_ff,
        "decoder_ffn_dim": config.decoder_d_ff,
        "activation_function": config.activation,
        "scale_embedding": config.scaled_embedding,
        "max_position_embeddings": max(LENGTHS) + draw.randint(0, 9),
        "decoder_start_token_id": config.start_token,
        "eos_token_id": config.end_token,
        "pad_token_id": config.padding_token,
        "forced_eos_token_id": forced if config.must_end else None,
        "attn_implementation": draw.choice(["eager", "sdpa"]),
    }


def marian(draw: random.Random) -> Row:
    """A model of Marian's: its folder, logits, gradients, caches and tokens."""
    config = drawn_config(draw)
    theirs = THEIRS(MarianConfig(**their_options(config, draw))).double().eval()
    draw_weights(theirs, draw.uniform(0.1, 0.6))
    theirs.final_logits_bias.normal_()
    for each in theirs.modules():
        if isinstance(each, nn.Embedding):
            each.padding_idx = None  # else there is no gradient of what is read of that token
    if draw.random() < 0.5:
        banned = (config.end_token + draw.randrange(1, config.vocab_size)) % config.vocab_size
        theirs.generation_config.bad_words_ids = [[banned]]
        theirs.final_logits_bias[0, banned] += 2.0
    row = Row(f"marian {' '.join(map(str, vars(config).values()))}")
    source, target, mask = drawn_ids(draw, config.vocab_size)
    asked = {"input_ids": source, "decoder_input_ids": target}
    asked["attention_mask"] = torch.ones_like(source) if mask is None else mask[:, 0].long()
    expected = theirs(**asked).logits
    with torch.no_grad(), tempfile.TemporaryDirectory() as folder:
        theirs.save_pretrained(folder, max_shard_size=draw.choice(["8KB", "5GB"]))
        ours = Transformer.from_pretrained(folder)
        ours.save_pretrained(f"{folder}/ours")
        kind = theirs.config._attn_implementation
        again = THEIRS.from_pretrained(f"{folder}/ours", attn_implementation=kind).eval()
        row.note("other files", "logits", not again(**asked).logits.equal(expected))
        changed(
            row,
            folder,
            CHANGES,
            lambda: Transformer.from_pretrained(folder)(source, target, mask),
            lambda: THEIRS.from_pretrained(folder).eval()(**asked).logits,
        )
    result = ours(source, target, mask)
    row.values("logits", result, expected)
    cotangent = torch.randn_like(result)
    for logits in (result, expected):
        logits.backward(cotangent)
    found, wanted = gradients_of(ours), gradients_of(theirs)
    row.gradients(found, {name: wanted[stored_as(name)] for name in found})
    with torch.no_grad():
        memory, caches = ours.encode(source, mask), ours.new_caches(*target.shape)
        pieces = target.tensor_split(sorted(draw.choices(range(target.shape[1]), k=3)), dim=1)
        states = [ours.decode(piece, memory, mask, caches) for piece in pieces]
        row.values("pieces", ours.logits(torch.cat(states, dim=1)), expected)
        for beams in range(1, 9):
            searched(row, ours, theirs, draw, beams)
    return row


def searched(row: Row, ours: Transformer, theirs: Any, draw: random.Random, beams: int) -> None:
    """Greedy and beam search; the end is made more or less likely."""
    end, more = ours.config.end_token, draw.uniform(-1.5, 3.0)
    for bias in (ours.get_buffer("logits_bias"), theirs.final_logits_bias):
        bias[0, end] = 0.0
        bias[0, end] = bias.max() + more
    source, _, mask = drawn_ids(draw, ours.vocab_size)
    seen = torch.ones_like(source) if mask is None else mask[:, 0].long()
    alpha, new = draw.choice([0.0, 1.0, draw.uniform(-1.0, 3.0)]), draw.choice([1, 2, 9, 25])
    exhaustive, paper = draw.random() < 0.5, draw.random() < 0.5
    options: dict[str, Any] = {"max_new_tokens": new, "num_beams": beams, "do_sample": False}
    if beams > 1:
        options["early_stopping"] = "never" if exhaustive else False
        options["length_penalty"] = Paper(alpha) if paper else alpha
    expected = theirs.generate(source, attention_mask=seen, **options)[:, 1:]
    penalty = PaperLengthPenalty(alpha) if paper else alpha
    found = ours.generate(source, new, beams, penalty, source_mask=mask, exhaustive=exhaustive)
    for a, b in zip(found, expected, strict=True):
        row.tokens(f"{options}", end, a.tolist(), b.tolist())


def of_torch(draw: random.Random) -> Row:
    """The stacks of `torch.nn.Transformer`; the paper's embeddings are typed out here again."""
    heads, d_ff, pre_norm = draw.choice([1, 2, 3, 5]), draw.randint(1, 70), draw.random() < 0.5
    same = {"num_heads": heads, "decoder_heads": heads, "d_ff": d_ff, "decoder_d_ff": d_ff}
    config = drawn_config(
        draw, d_model=heads * draw.randint(2, 9), scaled_embedding=True, pre_norm=pre_norm, **same
    )
    ours = Transformer(config, dtype=torch.float64)
    theirs = nn.Transformer(
        *(config.d_model, heads, config.num_layers, config.layers_of_decoder, d_ff, 0.0),
        ACTIVATIONS[config.activation],
        batch_first=True,
        norm_first=pre_norm,
    ).double()
    draw_weights(ours, draw.uniform(0.1, 0.6))
    kinds = {"encoder": "nn.TransformerEncoderLayer", "decoder": "nn.TransformerDecoderLayer"}
    layers = {"encoder": config.num_layers, "decoder": config.layers_of_decoder}
    pairs = {f"{each}.layers.{i}": kinds[each] for each in kinds for i in range(layers[each])}
    if pre_norm:
        pairs |= {f"{each}.norm": "nn.LayerNorm" for each in kinds}
    else:  # the paper has no norm behind its stacks
        theirs.encoder.norm = theirs.decoder.norm = None
    for place, kind in pairs.items():
        weights = to_theirs(kind, ours.get_submodule(place).state_dict())
        theirs.get_submodule(place).load_state_dict(weights)
    source, target, mask = drawn_ids(draw, config.vocab_size)
    table = nn.Embedding.from_pretrained(ours.embedding.weight.detach().clone(), freeze=False)
    output = theirs(
        embedded(table.weight, source),
        embedded(table.weight, target),
        tgt_mask=torch.ones(target.shape[1], target.shape[1]).triu(1).bool(),
        src_key_padding_mask=None if mask is None else ~mask[:, 0],
        memory_key_padding_mask=None if mask is None else ~mask[:, 0],
    )
    expected, result = output @ table.weight.T, ours(source, target, mask)
    row = Row(f"torch {' '.join(map(str, vars(config).values()))}")
    row.values("logits", result, expected)
    cotangent = torch.randn_like(result)
    for logits in (expected, result):
        logits.backward(cotangent)
    wanted = {f"embedding.{name}": each for name, each in gradients_of(table).items()}
    for place, kind in pairs.items():
        gradients = to_ours(kind, gradients_of(theirs.get_submodule(place)))
        wanted |= {f"{place}.{name}": each for name, each in gradients.items()}
    row.gradients(gradients_of(ours), wanted)
    return row


def embedded(table: Tensor, ids: Tensor) -> Tensor:
    """Sections 3.4 and 3.5 of the paper."""
    d = table.shape[1]
    waves = [
        [(math.cos if i % 2 else math.sin)(place / 10_000 ** ((i - i % 2) / d)) for i in range(d)]
        for place in range(ids.shape[1])
    ]
    return table[ids] * d**0.5 + torch.tensor(waves, dtype=torch.float64)
