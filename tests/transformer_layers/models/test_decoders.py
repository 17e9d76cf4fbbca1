"""What every decoder does, whatever it is made of: one test for each, over all models."""

import pytest
import torch
from torch import nn

from tests.transformer_layers.comparisons import assert_same, with_random_weights
from tests.transformer_layers.models.second import Second, SecondConfig
from transformer_layers import (
    GPT2,
    Gemma3,
    Gemma3Config,
    GPT2Config,
    Llama,
    LlamaConfig,
    cache_bytes,
)

pytestmark = pytest.mark.usefixtures("as_users_run_it")

VOCAB_SIZE, POSITIONS = 11, 16
IDS = torch.tensor([0, 1, 2])
MODELS = {
    "GPT2": lambda: GPT2(GPT2Config(VOCAB_SIZE, POSITIONS, 8, 2, 4)),
    "Llama": lambda: Llama(LlamaConfig(VOCAB_SIZE, 8, 12, 2, 4, 2, 4, POSITIONS)),
    "Mistral": lambda: Llama(
        LlamaConfig(
            VOCAB_SIZE, 8, 12, 2, 4, 2, 4, POSITIONS, sliding_window=4, model_type="mistral"
        )
    ),
    "Mixtral": lambda: Llama(
        LlamaConfig(VOCAB_SIZE, 8, 12, 2, 4, 2, 4, POSITIONS, num_experts=3, model_type="mixtral")
    ),
    "Gemma 3": lambda: Gemma3(
        Gemma3Config(
            VOCAB_SIZE,
            8,
            12,
            2,
            4,
            2,
            4,
            POSITIONS,
            sliding_window=4,
            layer_types=("sliding_attention", "full_attention"),
        )
    ),
    "second": lambda: Second(SecondConfig(VOCAB_SIZE, POSITIONS, 8, 2, 4, 2)),
}


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest) -> nn.Module:
    return with_random_weights(MODELS[request.param]()).double().eval()


def random_ids(*shape: int) -> torch.Tensor:
    return torch.randint(VOCAB_SIZE, shape)


def test_logits_depend_on_the_tokens_up_to_their_own(model):
    ids = random_ids(3, 9)
    others = ids.clone()
    others[:, 5:] = (others[:, 5:] + 1) % VOCAB_SIZE
    assert_same([model(others)[:, :5]], [model(ids)[:, :5]])
    assert not torch.allclose(model(others)[:, 5:], model(ids)[:, 5:])


def test_a_sequence_does_not_see_the_others_of_its_batch(model):
    ids = random_ids(3, 9)
    assert_same([model(ids[1])], [model(ids)[1]])


@pytest.mark.parametrize("pieces", [[1] * 9, [4, 1, 1, 3]], ids=str)
def test_with_caches_the_logits_are_those_of_the_whole(model, pieces):
    ids = random_ids(3, 9)
    caches = model.new_caches(3, 9)
    found = [model.logits(model.last_hidden_state(each, caches)) for each in ids.split(pieces, 1)]
    assert_same([torch.cat(found, dim=1)], [model(ids)])
    assert [cache.length for cache in caches] == [9] * len(caches)


def test_prompts_of_different_lengths_are_continued_as_each_by_itself(model):
    prompts = [random_ids(length) for length in (5, 1, 3)]
    together = model.generate(prompts, 6)
    for prompt, found in zip(prompts, together, strict=True):
        assert found.equal(model.generate(prompt[None], 6)[0])


def test_greedy_tokens_are_the_most_likely_ones(model):
    ids = random_ids(2, 3)
    for _ in range(5):
        ids = torch.cat([ids, model(ids)[:, -1:].argmax(dim=-1)], dim=1)
    assert model.generate(ids[:, :3], 5).equal(ids)


def test_a_stream_is_what_is_generated_and_a_stop_ends_it(model):
    ids = random_ids(2, 3)
    whole = model.generate(ids, 6)
    assert torch.stack(list(model.stream(ids, 6)), dim=1).equal(whole[:, 3:])
    stop = int(whole[0, 4])
    ended = model.generate(ids[:1], 6, eos_token=stop)
    assert ended.shape[1] <= 5
    assert ended[0, -1] == stop


def test_draws_are_those_of_the_generator(model):
    drawn = [
        model.generate(random_ids(1, 3) * 0, 8, 1.0, generator=torch.Generator().manual_seed(seed))
        for seed in (1, 1, 2)
    ]
    assert drawn[0].equal(drawn[1])
    assert not drawn[0].equal(drawn[2])


def test_the_loss_is_the_cross_entropy_of_the_next_token(model):
    ids = random_ids(3, 9)
    expected = nn.functional.cross_entropy(model(ids)[:, :-1].flatten(0, 1), ids[:, 1:].flatten())
    assert_same([model.loss(ids)], [expected])
    assert_same([model.loss(ids, ids)], [expected])


def test_labels_choose_what_the_loss_is_the_mean_of(model):
    ids = random_ids(3, 9)
    scored = torch.zeros(3, 9, dtype=torch.bool)
    scored[0, 4:7] = scored[1, 8] = scored[2, 0] = True  # the first of a sequence has no guess
    found = model.loss(ids, ids.masked_fill(~scored, -100).int())
    log_p = model(ids).log_softmax(-1)[:, :-1].gather(-1, ids[:, 1:, None])[..., 0]
    assert_same([found], [-log_p[scored[:, 1:]].mean()])
    assert scored[:, 1:].sum() == 4


def test_what_is_saved_is_loaded(model, tmp_path):
    model.save_pretrained(tmp_path)
    loaded = type(model).from_pretrained(tmp_path)
    assert loaded.config == model.config
    assert not loaded.training
    assert loaded.state_dict().keys() == model.state_dict().keys()
    for name, weight in model.state_dict().items():
        assert loaded.state_dict()[name].equal(weight)
    damaged = bytearray((tmp_path / "model.safetensors").read_bytes())
    damaged[-3] ^= 1
    (tmp_path / "model.safetensors").write_bytes(damaged)
    with pytest.raises(ValueError, match="damaged: what it holds has the SHA-256"):
        type(model).from_pretrained(tmp_path)


@pytest.mark.parametrize(
    ("ask", "error", "said"),
    [
        (lambda m: m(random_ids(1, 17)), ValueError, "the model has 16 positions, got a sequence"),
        (lambda m: m.generate(random_ids(1, 3), 14), ValueError, "16 positions, got a sequence of"),
        (lambda m: m(torch.tensor([11])), ValueError, r"ids must be in \[0, 11\), got values from"),
        (lambda m: m.loss(torch.tensor([1])), ValueError, "two tokens or more"),
        (lambda m: m.loss(IDS - 9, IDS), ValueError, r"ids must be in \[0, 11\), got"),
        (lambda m: m.loss(IDS, IDS + 9), ValueError, r"labels must be in \[0, 11\), .* 10 to 11"),
        (lambda m: m.loss(IDS, IDS[1:]), ValueError, r"not shifted, got \(2,\) for \(3,\)"),
        (lambda m: m.loss(IDS, IDS * 1.0), TypeError, "labels must be a tensor of int64"),
        (lambda m: m.loss(IDS, 0 * IDS - 100), ValueError, r"-100 for all of \(3,\)"),
        (lambda m: m.generate([1, 2], 3), TypeError, "ids must be"),
        (lambda m: m.generate(random_ids(1, 3), 1, eos_token=11), ValueError, "eos_token must be"),
    ],
)
def test_what_it_cannot_read_is_refused(ask, error, said):
    model = MODELS["GPT2"]()
    with pytest.raises(error, match=said):
        ask(model)


def test_caches_have_all_grown_or_none(model):
    caches = model.new_caches(1, 9)
    model.last_hidden_state(random_ids(1, 4), caches)
    with pytest.raises(ValueError, match="ids must be in"):
        model.last_hidden_state(torch.tensor([[99]]), caches)
    last = [each for each in model.modules() if isinstance(each, nn.Linear)][-2:]

    def broken(*_):
        raise KeyboardInterrupt

    handles = [each.register_forward_pre_hook(broken) for each in last]
    if handles:
        with pytest.raises(KeyboardInterrupt):
            model(random_ids(1, 1), caches)
    assert [cache.length for cache in caches] == [4] * len(caches)


def test_the_bytes_of_a_token_are_those_that_caches_take(model):
    taken = sum(each.nbytes for each in model.new_caches(3, 5))
    assert taken == 3 * 5 * cache_bytes(model)
    heads = 4 if isinstance(model, GPT2) else 2
    d_k = 4 if isinstance(model, Llama | Gemma3) else 2
    assert cache_bytes(model) == 2 * 2 * heads * d_k * 8  # two blocks, keys and values, float64


def test_rows_of_caches_go_on_from_the_past_of_others(model):
    # Nine tokens are more than the window of the one that has a window.
    ids, new = random_ids(3, 9), random_ids(3, 2)
    padding, rows = torch.tensor([0, 2, 5]), torch.tensor([2, 0, 2])
    caches = model.new_caches(3, 11, padding)
    model(ids, caches)
    for cache in caches:
        cache.reorder(rows)
    found = model(new, caches)
    for row, past in enumerate(rows.tolist()):
        whole = torch.cat([ids[past, padding[past] :], new[row]])
        assert_same([found[row]], [model(whole)[-2:]])
