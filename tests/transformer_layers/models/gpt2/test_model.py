"""GPT-2 against that of `transformers`, rung by rung, and by its laws."""

import math

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import GPT2Config as TheirConfig
from transformers import GPT2LMHeadModel

from tests.transformer_layers.comparisons import (
    relative_error,
    unit_roundoff,
    with_random_weights,
)
from tests.transformer_layers.models.ladder import (
    Ladder,
    Reference,
    steps_of,
)
from transformer_layers import (
    GPT2,
    GPT2Config,
    KeyValueCache,
)

BATCH, SEQ, VOCAB_SIZE, N_POSITIONS = 3, 20, 31, 23
N_EMBD, N_LAYER, N_HEAD, EPS = 14, 4, 2, 1e-3
D_K = N_EMBD // N_HEAD
PUBLISHED = {  # n_layer, n_embd, n_head, and the parameters of the published weights
    "gpt2": (12, 768, 12, 124_439_808),
    "gpt2-medium": (24, 1024, 16, 354_823_168),
    "gpt2-large": (36, 1280, 20, 774_030_080),
    "gpt2-xl": (48, 1600, 25, 1_557_611_200),
}


def small_config(dropout=0.0):
    return GPT2Config(VOCAB_SIZE, N_POSITIONS, N_EMBD, N_LAYER, N_HEAD, dropout, EPS)


def random_model(dropout=0.0):
    return with_random_weights(GPT2(small_config(dropout))).double()


def random_ids(*leading, seq=SEQ):
    return torch.randint(VOCAB_SIZE, (*leading, seq))


def their_config(**options):
    return TheirConfig(
        vocab_size=VOCAB_SIZE,
        n_positions=N_POSITIONS,
        n_embd=N_EMBD,
        n_layer=N_LAYER,
        n_head=N_HEAD,
        layer_norm_epsilon=EPS,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        resid_pdrop=0.0,
        bos_token_id=None,
        eos_token_id=None,
        **options,
    )


# By hand


def tiny_model():
    """Two features; the blocks add nothing, so that the last norm sees the embeddings alone."""
    model = GPT2(GPT2Config(3, 2, 2, 1, 1, dropout=0.0)).double()
    with torch.no_grad():
        for parameter in model.h.parameters():
            parameter.zero_()
        model.wte.weight.copy_(torch.tensor([[4.0, 0.0], [0.0, 3.0], [1.0, 1.0]]))
        model.wpe.weight.copy_(torch.tensor([[0.0, 1.0], [0.0, 9.0]]))
    return model


def test_logits_by_hand():
    # Token 0 at position 0 is (4, 1), at position 1 (4, 9). The norms are (1, -1) and (-1, 1).
    logits = tiny_model()(torch.tensor([0, 0]))
    expected = torch.tensor([[4.0, -3.0, 0.0], [-4.0, 3.0, 0.0]], dtype=torch.float64)
    torch.testing.assert_close(logits, expected, rtol=0, atol=1e-4)


# The ladder: every step of the model against transformers', with the same weights

REFERENCE = Reference(
    model=lambda: GPT2(small_config()),
    theirs=lambda implementation: GPT2LMHeadModel(their_config(attn_implementation=implementation)),
    their_name=lambda name: f"transformer.{name}",
    their_attention="transformer.h.{}.attn",
    steps=steps_of(
        {
            "token embeddings": "wte",
            "position embeddings": "wpe",
            "embeddings": "drop",
            "last norm": "ln_f",
        },
        {
            "first norm": "h.{}.ln_1",
            "queries, keys and values": "h.{}.attn.c_attn",
            "heads": "input of h.{}.attn.c_proj",
            "attention": "h.{}.attn",
            "first residual": "input of h.{}.ln_2",
            "second norm": "h.{}.ln_2",
            "inner features": "h.{}.mlp.c_fc",
            "activations": "input of h.{}.mlp.c_proj",
            "feed-forward": "h.{}.mlp",
            "block": "h.{}",
        },
        N_LAYER,
    ),
    canceling=("c_attn.bias",),  # for the keys it is 0
)


class TestLadder(Ladder):
    reference = REFERENCE


# Laws


def test_int32_ids_give_the_same():
    model, ids = random_model(), random_ids(BATCH)
    assert torch.equal(model(ids.int()), model(ids))
    assert torch.equal(model.loss(ids.int()), model.loss(ids))


# Initial weights


def larger_config(n_layer=3):
    return GPT2Config(vocab_size=499, n_positions=128, n_embd=60, n_layer=n_layer, n_head=4)


def assert_initial_weights(model):
    n_layer = model.config.n_layer
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            assert (parameter == 0).all(), name
        elif "ln_" in name:
            assert (parameter == 1).all(), name
        else:
            std = 0.02 / math.sqrt(2 * n_layer) if name.endswith("c_proj.weight") else 0.02
            # The standard errors of a deviation and of a mean of n draws; five of them.
            n = parameter.numel()
            assert abs(parameter.std() / std - 1) < 5 / math.sqrt(2 * n), name
            assert abs(parameter.mean()) < 5 * std / math.sqrt(n), name


def test_reset_parameters_gives_the_weights_of_construction_in_distribution():
    model = GPT2(larger_config(), device="meta").to_empty(device="cpu")
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(math.nan)
    model.reset_parameters()
    assert_initial_weights(model)
    assert not torch.equal(model.h[0].mlp.c_fc.weight, model.h[1].mlp.c_fc.weight)
    skipped = torch.nn.utils.skip_init(GPT2, larger_config(), dtype=torch.float64)
    skipped.reset_parameters()
    assert_initial_weights(skipped)
    assert {parameter.dtype for parameter in skipped.parameters()} == {torch.float64}


def test_shows_its_size():
    first, *_ = repr(GPT2(small_config())).splitlines()[1:]
    count = sum(parameter.numel() for parameter in GPT2(small_config()).parameters())
    assert first == (
        f"  {count:,} parameters, vocab_size=31, n_positions=23, n_embd=14, n_layer=4, n_head=2"
    )


# Sizes


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_published_sizes_have_the_published_numbers_of_parameters(name):
    n_layer, d, n_head, published = PUBLISHED[name]
    config = GPT2Config(n_layer=n_layer, n_embd=d, n_head=n_head)
    with torch.device("meta"):
        model = GPT2(config)
    assert all(parameter.is_meta for parameter in model.parameters())
    assert sum(parameter.numel() for parameter in model.parameters()) == published
    embeddings, block, last_norm = (50257 + 1024) * d, 12 * d**2 + 13 * d, 2 * d
    assert embeddings + n_layer * block + last_norm == published


def test_has_the_published_keys_and_shapes_and_no_others():
    of_block = [
        f"{layer}.{kind}"
        for layer in ("ln_1", "attn.c_attn", "attn.c_proj", "ln_2", "mlp.c_fc", "mlp.c_proj")
        for kind in ("weight", "bias")
    ]
    keys = ["wte.weight", "wpe.weight"]
    keys += [f"h.{i}.{name}" for i in range(N_LAYER) for name in of_block]
    keys += ["ln_f.weight", "ln_f.bias"]
    model = random_model()
    assert list(model.state_dict()) == keys
    theirs = REFERENCE.their_model(model).transformer.state_dict()
    assert {name: each.shape for name, each in model.state_dict().items()} == {
        name: each.shape for name, each in theirs.items()
    }


# Dropout

DRAWS = {"rand", "rand_like", "bernoulli", "bernoulli_", "native_dropout", "uniform_"}


class Draws(TorchDispatchMode):
    """Counts the operations that draw numbers."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.count += function.overloadpacket.__name__ in DRAWS
        return function(*args, **(kwargs or {}))


def test_one_draw_for_the_embeddings_and_three_for_each_block():
    model, ids = random_model(dropout=0.5), random_ids(BATCH)
    with Draws() as draws:
        model.train()(ids)
    assert draws.count == 1 + 3 * N_LAYER
    with Draws() as draws:
        model.eval()(ids)
    assert draws.count == 0


# Dtypes and memory


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_low_precision_stays_near_float64(dtype):
    model, ids = random_model().to(dtype), random_ids(BATCH)
    logits, loss = model(ids), model.loss(ids)
    assert logits.dtype == dtype
    assert loss.dtype == torch.float32
    model = model.double()
    # A dozen steps in each block, each rounded, relative to the largest element.
    assert relative_error(logits, model(ids)) <= 12 * N_LAYER * unit_roundoff(dtype)
    assert relative_error(loss, model.loss(ids)) <= 12 * N_LAYER * unit_roundoff(dtype)


# Errors


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("ids", "error", "message"),
    [
        (
            torch.zeros(3, 5),
            TypeError,
            r"ids must be a tensor of int64 or int32, got torch.float32; convert it with ids.long",
        ),
        ([3, 4], TypeError, r"^ids must be a tensor of int64 or int32, got a list; make one with "),
        (torch.tensor(3), ValueError, "ids must have an axis of positions, got a single number"),
        (
            torch.zeros(2, 24, dtype=torch.int64),
            ValueError,
            "the model has 23 positions, got a sequence of 24",
        ),
        (
            torch.tensor([[3, 31], [0, 4]]),
            ValueError,
            r"ids must be in \[0, 31\), got values from 0 to 31",
        ),
    ],
)
def test_errors_of_ids(ids, error, message):
    with pytest.raises(error, match=message):
        GPT2(small_config())(ids)


@pytest.mark.usefixtures("as_users_run_it")
def test_errors_of_caches():
    model = random_model()
    caches = model.new_caches(BATCH, 30)
    with pytest.raises(
        ValueError,
        match=r"caches must be one for each of 4 blocks, all with the same length and max_seq, "
        r"got 0 of 30, 0 of 30$",
    ):
        model(random_ids(BATCH), caches[:2])
    with pytest.raises(ValueError, match=r"of 4 blocks, .* got none"):
        model(random_ids(BATCH), [])
    model(random_ids(BATCH), caches)
    with pytest.raises(ValueError, match="got 20 of 30, 20 of 30, 20 of 30, 0 of 30"):
        model(random_ids(BATCH), [*caches[:3], *model.new_caches(BATCH, 30)[:1]])
    unequal = [*model.new_caches(BATCH, 30)[:3], *model.new_caches(BATCH, 5)[:1]]
    with pytest.raises(ValueError, match="got 0 of 30, 0 of 30, 0 of 30, 0 of 5"):
        model(random_ids(BATCH), unequal)
    assert {cache.length for cache in unequal} == {0}
    with pytest.raises(ValueError, match="23 positions, got a sequence of 24"):
        model(random_ids(BATCH, seq=4), caches)
    with pytest.raises(ValueError, match=r"of shape \(3, 2, seq, 7\), got \(1, 2, 1, 7\)"):
        model(random_ids(1, seq=1), caches)
    with pytest.raises(ValueError, match=r"room for max_seq = 5 positions, got 20 after 0"):
        model(random_ids(BATCH), model.new_caches(BATCH, 5))
    other = [KeyValueCache(BATCH, N_HEAD, 5, D_K) for _ in range(N_LAYER)]
    with pytest.raises(TypeError, match=r"holds torch.float32, got keys of torch.float64"):
        model(random_ids(BATCH, seq=1), other)


def test_a_cache_belongs_to_the_block_that_has_written_to_it():
    model = random_model()
    caches = model.new_caches(BATCH, 30)
    model(random_ids(BATCH, seq=2), list(reversed(caches)))  # empty ones may stand anywhere
    with pytest.raises(
        ValueError,
        match=r"^caches must be in the order of the blocks, each block with its own, got those of "
        r"blocks 3, 2, 1, 0$",
    ):
        model(random_ids(BATCH, seq=2), caches)
    caches.reverse()
    with pytest.raises(ValueError, match=r"got those of blocks 0, 2, 1, 3$"):
        model(random_ids(BATCH, seq=2), [caches[i] for i in (0, 2, 1, 3)])
    with pytest.raises(ValueError, match=r"got those of blocks 0, 1, 2, 2$"):
        model(random_ids(BATCH, seq=2), [*caches[:3], caches[2]])
    assert [cache.length for cache in caches] == [2] * N_LAYER
    model(random_ids(BATCH, seq=2), caches)


def test_no_two_blocks_share_a_cache():
    model = random_model()
    caches = model.new_caches(BATCH, 30)
    with pytest.raises(ValueError, match=r"each block with its own, got those of blocks 3, 3, 3,"):
        model(random_ids(BATCH, seq=2), caches[:1] * N_LAYER)
    assert caches[0].length == 0
    pair = torch.zeros(2, BATCH, N_HEAD, 2, D_K, dtype=torch.float64)
    caches[0].append(*pair)  # by hand: of no block yet
    caches[0].block = None
    with pytest.raises(ValueError, match=r"each block with its own, got those of blocks 0, 0, 0,"):
        model(random_ids(BATCH, seq=2), caches[:1] * N_LAYER)
