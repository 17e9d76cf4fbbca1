"""A decoder's forward pass by its context: masks, position ids, embeddings, and what it shows."""

import re
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import GPT2Config as TheirGPT2Config
from transformers import GPT2LMHeadModel, LlamaForCausalLM, MistralForCausalLM
from transformers import LlamaConfig as TheirLlamaConfig
from transformers import MistralConfig as TheirMistralConfig

from tests.transformer_layers.comparisons import assert_same, with_random_weights
from tests.transformer_layers.models.llama.families import in_float64
from transformer_layers import (
    GPT2,
    Gemma3,
    Gemma3Config,
    GPT2Config,
    Llama,
    LlamaConfig,
    causal_mask,
    document_mask,
    ready_for_inference,
)

pytestmark = pytest.mark.usefixtures("as_users_run_it")

VOCAB_SIZE, POSITIONS = 11, 16
SIZES = (VOCAB_SIZE, 8, 12, 2, 4, 2, 4, POSITIONS)
MODELS: dict[str, Any] = {
    "GPT2": lambda: GPT2(GPT2Config(VOCAB_SIZE, POSITIONS, 8, 2, 4)),
    "Llama": lambda: Llama(LlamaConfig(*SIZES)),
    "Mistral": lambda: Llama(LlamaConfig(*SIZES, sliding_window=4, model_type="mistral")),
    "Gemma 3": lambda: Gemma3(
        Gemma3Config(*SIZES, sliding_window=4, layer_types=("sliding_attention", "full_attention"))
    ),
}
THEIRS: dict[str, Any] = {
    "GPT2": lambda: GPT2LMHeadModel(
        TheirGPT2Config(vocab_size=VOCAB_SIZE, n_positions=POSITIONS, n_embd=8, n_layer=2, n_head=4)
    ),
    "Llama": lambda: LlamaForCausalLM(TheirLlamaConfig(**_theirs())),
    "Mistral": lambda: MistralForCausalLM(TheirMistralConfig(**_theirs(), sliding_window=4)),
}


def _theirs() -> dict[str, Any]:
    names = "vocab_size hidden_size intermediate_size num_hidden_layers num_attention_heads"
    names += " num_key_value_heads head_dim max_position_embeddings"
    return dict(zip(names.split(), SIZES, strict=True)) | {"attn_implementation": "eager"}


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest) -> Any:
    return with_random_weights(MODELS[request.param]()).double().eval()


def random_ids(*shape: int) -> Tensor:
    return torch.randint(VOCAB_SIZE, shape)


@pytest.mark.parametrize("behind", [False, True], ids=["in front", "behind"])
def test_padding_that_is_hidden_changes_nothing(model, behind):
    lengths = [9, 4, 1]
    ids, mask = random_ids(3, 9), torch.zeros(3, 9, dtype=torch.bool)
    for row, length in enumerate(lengths):
        mask[row, slice(0, length) if behind else slice(9 - length, 9)] = True
    positions = (mask.cumsum(dim=1) - 1).clamp(min=0)
    logits = model(ids, mask=mask, positions=positions)
    for row in range(3):
        assert_same([logits[row][mask[row]]], [model(ids[row][mask[row]])])
    assert logits.isfinite().all()


def test_texts_in_one_row_do_not_see_each_other(model):
    lengths = [[3, 5, 1], [2, 2, 5]]
    documents = torch.tensor([[i for i, n in enumerate(row) for _ in range(n)] for row in lengths])
    positions = torch.tensor([[i for n in row for i in range(n)] for row in lengths])
    ids = random_ids(2, 9)
    logits = model(ids, mask=document_mask(documents), positions=positions)
    for row in range(2):
        alone = [model(text) for text in ids[row].split(lengths[row])]
        assert_same([logits[row]], [torch.cat(alone)])
    assert not torch.allclose(logits, model(ids, positions=positions))


@pytest.mark.parametrize("pieces", [[4, 1, 1, 3]], ids=str)
def test_in_pieces_with_caches_a_mask_hides_the_same(model, pieces):
    ids, mask = random_ids(2, 9), torch.rand(2, 9) < 0.6
    whole, every = model(ids, mask=mask), causal_mask(9).expand(2, 9, 9) & mask[:, None]
    for given in (mask, every):
        caches, end, found = model.new_caches(2, 9), 0, []
        for piece in ids.split(pieces, dim=1):
            begin, end = end, end + piece.shape[1]
            part = given[:, :end] if given.ndim == 2 else given[:, begin:end, :end]
            found.append(model(piece, caches, mask=part))
        assert_same([torch.cat(found, dim=1)], [whole])


def test_position_ids_are_free(model):
    ids, positions = random_ids(3, 5), torch.tensor([4, 5, 6, 7, 8])
    caches = model.new_caches(3, 9, padding=torch.tensor([4, 4, 4]))
    model(random_ids(3, 4), caches)  # nothing but padding
    of_each = torch.stack([positions, positions - 4, positions])
    shifted = model(ids, positions=of_each)
    assert_same([shifted[1]], [model(ids)[1]])
    assert_same([shifted[0]], [model(ids, positions=positions)[0]])
    assert_same([model(ids, caches)], [model(ids)])
    assert_same([model(ids, positions=positions.int())], [model(ids, positions=positions)])


def test_position_ids_of_one_sequence_are_those_of_all(model):
    ids, positions = random_ids(3, 5), torch.tensor([[4, 5, 6, 8, 11]])
    whole = model(ids, positions=positions.expand(3, 5))
    assert_same([model(ids, positions=positions)], [whole])
    assert_same([model(ids[:1], positions=positions)], [whole[:1]])
    assert_same([model(ids[None], positions=positions)], [whole[None]])  # (..., seq)
    caches = model.new_caches(3, 9)
    model(ids, caches)
    own = model.new_caches(3, 9)
    model(ids, own)
    expected = model(ids[:, :2], own, positions=torch.tensor([[7, 9]] * 3))
    assert_same([model(ids[:, :2], caches, positions=torch.tensor([[7, 9]]))], [expected])
    labeled = model.loss(ids, positions=positions)
    assert_same([labeled], [model.loss(ids, positions=positions.expand(3, 5))])
    if not isinstance(model, Gemma3):
        ready = ready_for_inference(model.float(), torch.float32)
        assert_same([ready(ids, positions=positions)], [ready(ids, positions=positions[0])])
    for other in ((2, 5), (1, 1, 5), (1, 4)):
        said = f"positions must be of shape (5,) or (3, 5), got {other}"
        with pytest.raises(ValueError, match=re.escape(said)):
            model(ids, positions=torch.zeros(other, dtype=torch.int64))
    with pytest.raises(ValueError, match=re.escape("positions must be of shape (5,), got (1, 5)")):
        model(ids[0], positions=positions)


def test_embeddings_in_the_place_of_tokens_give_the_same(model):
    ids = random_ids(2, 5)
    table = model.wte if isinstance(model, GPT2) else model.model.embed_tokens
    embeddings = table(ids).detach().requires_grad_()
    caches = model.new_caches(2, 5)
    whole = model(None, inputs_embeds=embeddings)
    pieces = [model(None, caches, inputs_embeds=part) for part in embeddings.split([2, 3], dim=1)]
    assert_same([whole, torch.cat(pieces, dim=1)], [model(ids)] * 2)
    whole.sum().backward()
    assert embeddings.grad is not None
    assert embeddings.grad.abs().sum() > 0


@pytest.mark.parametrize("name", THEIRS)
def test_masks_and_position_ids_are_those_of_transformers(name, tmp_path):
    with in_float64():
        theirs = with_random_weights(THEIRS[name]()).double().eval()
        theirs.save_pretrained(tmp_path)
        ours = type(MODELS[name]()).from_pretrained(tmp_path)
        for _ in range(2):
            ids, mask = random_ids(3, 8), torch.rand(3, 8) < 0.7
            mask[:, 0] = True  # where nothing is left theirs attends to all
            positions = torch.randint(POSITIONS, (3, 8))
            found = ours(ids, mask=mask, positions=positions)
            expected = theirs(ids, attention_mask=mask.long(), position_ids=positions).logits
            if name == "Mistral":  # a window can hide all that the mask leaves
                left = (causal_mask(8).triu(-3) & mask[:, None]).any(dim=-1)
                sound = left.cumprod(dim=1).bool()
                found, expected = found[sound], expected[sound]
            assert_same([found], [expected])


@pytest.mark.parametrize("name", ["GPT2", "Llama"])
def test_what_is_shown_is_what_transformers_shows(name, tmp_path):
    with in_float64():
        theirs = with_random_weights(THEIRS[name]()).double().eval()
        theirs.set_attn_implementation("eager")
        theirs.save_pretrained(tmp_path)
        ours = type(MODELS[name]()).from_pretrained(tmp_path)
        ids = random_ids(2, 7)
        found = ours.inspect(ids)
        expected = theirs(ids, output_hidden_states=True, output_attentions=True)
    assert_same([found.logits], [expected.logits])
    assert_same(found.attention_weights, expected.attentions)
    assert_same(found.hidden_states[:-1], expected.hidden_states[:-1])  # theirs norms the last


def test_what_is_shown_fits_together(model):
    ids, mask = random_ids(2, 7), torch.rand(2, 7) < 0.6
    caches = model.new_caches(2, 7)
    model(ids[:, :3], caches, mask=mask[:, :3])
    found = model.inspect(ids[:, 3:], caches, mask=mask)
    assert_same([found.logits], [model(ids, mask=mask)[:, 3:]])
    assert len(found.hidden_states) == 3
    assert len(found.attention_weights) == 2
    for weights in found.attention_weights:
        assert weights.shape == (2, 4, 4, 7)
        assert (weights.transpose(-2, -1)[~mask[:, None].expand(2, 4, 7)] == 0).all()
    assert not found.logits.requires_grad


def test_models_that_are_ready_take_the_same():
    for name, dtype in (
        ("GPT2", torch.bfloat16),
        ("GPT2", torch.float32),
        ("Llama", torch.float32),
    ):
        model = with_random_weights(MODELS[name]()).eval()
        ready = ready_for_inference(model, dtype)
        ids, mask = random_ids(2, 6), torch.tensor([[0, 0, 1, 1, 1, 1], [1] * 6]).bool()
        positions = (mask.cumsum(dim=1) - 1).clamp(min=0)
        found = ready(ids, mask=mask, positions=positions)[mask].float()
        tolerance = 1e-4 if dtype == torch.float32 else 0.3
        expected = model(ids, mask=mask, positions=positions)[mask]
        torch.testing.assert_close(found, expected, atol=tolerance, rtol=tolerance)


def test_a_pass_with_a_mask_compiles_to_one_graph_whatever_its_sizes(model):
    torch.compiler.reset()  # graphs of other models are of the same functions
    compiled = torch.compile(model, fullgraph=True, backend="eager")
    for batch, seq in ((2, 6), (3, 5)):  # for the second, sizes are symbols
        ids, mask = random_ids(batch, seq), torch.rand(batch, seq) < 0.6
        positions = torch.randint(POSITIONS, (batch, seq))
        assert_same(
            [compiled(ids, mask=mask, positions=positions)],
            [model(ids, mask=mask, positions=positions)],
        )


@torch.no_grad()
def test_a_cache_compiles_to_two_graphs_whatever_it_holds(model):
    torch.compiler.reset()
    made = []

    def backend(graph, inputs):
        made.append(graph)
        return graph.forward

    compiled, ids = torch.compile(model, fullgraph=True, backend=backend), random_ids(2, 16)
    caches, own = model.new_caches(2, 16), model.new_caches(2, 16)
    for new in (ids[:, :5], *ids[:, 5:].split(1, dim=1)):  # the prompt, then token by token
        assert_same([compiled(new, caches)], [model(new, own)])
    assert len(made) == 2
    assert len({cache.nbytes for cache in caches} | {own[0].nbytes}) == 1  # the memory never grows


IDS = torch.tensor([[3, 1, 4]])
EMBEDDED = torch.zeros(1, 3, 8, dtype=torch.float64)


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"mask": torch.ones(1, 3)}, TypeError, "mask must be boolean, True = may attend, got"),
        (
            {"mask": torch.ones(3, dtype=torch.bool)},
            ValueError,
            "mask must be of shape (1, 3) or (1, 3, 3), got (3,) for tokens of shape (1, 3)",
        ),
        (
            {"ids": torch.tensor([3, 1]), "mask": torch.ones(2, dtype=torch.bool)},
            ValueError,
            "mask must be of shape (batch, length), which needs ids of two axes, got (2,)",
        ),
        ({"positions": torch.tensor([0.0, 1.0, 2.0])}, TypeError, "int64 or int32, got torch.fl"),
        ({"positions": torch.tensor([0, 1])}, ValueError, "of shape (3,) or (1, 3), got (2,)"),
        ({"positions": torch.tensor([0, 1, 16])}, ValueError, "0 to 15, got values from 0 to 16"),
        ({"inputs_embeds": EMBEDDED}, ValueError, "either ids or inputs_embeds, got both"),
        ({"ids": None}, TypeError, "ids must be a tensor of int64 or int32, got a NoneType"),
        ({"ids": None, "inputs_embeds": EMBEDDED[..., :7]}, ValueError, "8"),
        ({"ids": None, "inputs_embeds": EMBEDDED.repeat(1, 6, 1)}, ValueError, "sequence of 18"),
    ],
)
def test_what_does_not_fit_is_refused(options, error, said):
    model = with_random_weights(MODELS["Llama"]()).double().eval()
    with pytest.raises(error, match=re.escape(said)):
        model(**{"ids": IDS} | options)
    caches = model.new_caches(1, 16)
    with pytest.raises(error, match=re.escape(said)):
        model(caches=caches, **{"ids": IDS} | options)
    assert caches[0].length == 0


def test_a_mask_needs_a_batch():
    model = MODELS["GPT2"]().double()
    for ids in (IDS[0], IDS[None]):
        with pytest.raises(ValueError, match="which needs ids of two axes, got"):
            model(ids, mask=torch.ones(1, 3, dtype=torch.bool))


def test_with_a_cache_the_mask_counts_what_it_holds(model):
    caches = model.new_caches(1, 9)
    model(IDS, caches)
    said = "(1, 6) or (1, 3, 6), got (1, 3) for tokens of shape (1, 3) behind 3 others"
    with pytest.raises(ValueError, match=re.escape(said)):
        model(IDS, caches, mask=torch.ones(1, 3, dtype=torch.bool))
    assert caches[0].length == 3


def test_document_mask_by_hand_and_its_errors():
    documents = torch.tensor([[7, 7, 2, 7]], dtype=torch.int8)  # in any order
    expected = [[1, 0, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0], [1, 1, 0, 1]]
    assert document_mask(documents)[0].int().tolist() == expected
    with pytest.raises(ValueError, match=r"documents must have shape \(batch, seq\), got \(4,\)"):
        document_mask(documents[0])
    for dtype in (torch.bool, torch.float32):
        with pytest.raises(TypeError, match=f"documents must be integers, got {dtype}"):
            document_mask(documents.to(dtype))
    nothing = torch.zeros(0, 3, dtype=torch.int64)
    assert document_mask(nothing).shape == (0, 3, 3)
