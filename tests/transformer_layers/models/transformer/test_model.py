"""The Transformer against transformers' Marian: values, gradients, files and decoding."""

import json

import pytest
import torch
from transformers import MarianConfig, MarianMTModel

from tests.transformer_layers.comparisons import assert_same
from transformer_layers import (
    PaperLengthPenalty,
    Transformer,
    TransformerConfig,
    load_model,
    padding_mask,
)
from transformer_layers.models.transformer.checkpoint import stored_as

LENGTHS = torch.tensor([7, 3, 5, 1])
MASK = padding_mask(LENGTHS, 7)

# Sizes that differ between encoder and decoder, and tokens at odd places.
CASES = {
    "swish": {"activation_function": "swish", "scale_embedding": True},
    "relu": {"activation_function": "relu", "scale_embedding": False, "decoder_layers": 1},
    "gelu": {"activation_function": "gelu", "eos_token_id": 4, "pad_token_id": 3},
    "unforced": {"forced_eos_token_id": None, "decoder_start_token_id": 5},
}


def marian(**options):
    config = MarianConfig(
        **{
            "vocab_size": 23,
            "d_model": 12,
            "encoder_layers": 2,
            "decoder_layers": 3,
            "encoder_attention_heads": 3,
            "decoder_attention_heads": 2,
            "encoder_ffn_dim": 16,
            "decoder_ffn_dim": 20,
            "max_position_embeddings": 40,
            "pad_token_id": 19,
            "decoder_start_token_id": 19,
            "eos_token_id": 0,
            **options,
        }
    )
    model = MarianMTModel(config).double().eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "embed_positions" not in name:
                parameter.normal_(std=0.3).add_(1.0 if "norm.weight" in name else 0.0)
        model.final_logits_bias.normal_()
    return model


def pair(folder, **options):
    theirs = marian(**options)
    theirs.save_pretrained(folder)
    return Transformer.from_pretrained(folder), theirs


def sources(config):
    ids = torch.randint(6, 19, (4, 7))
    return ids.masked_fill(~MASK[:, 0], config.pad_token_id)


@pytest.mark.parametrize("case", CASES)
def test_equals_marian_in_values_and_gradients(case, tmp_path):
    ours, theirs = pair(tmp_path, **CASES[case])
    source, target = sources(theirs.config), torch.randint(6, 19, (4, 6))
    result = ours(source, target, MASK)
    expected = theirs(
        input_ids=source, attention_mask=MASK[:, 0].long(), decoder_input_ids=target
    ).logits
    cotangent = torch.randn_like(result)
    for output in (result, expected):
        (output * cotangent).sum().backward()
    named = dict(theirs.named_parameters())
    pairs = [(p.grad, named[stored_as(name)].grad) for name, p in ours.named_parameters()]
    assert_same([result, *(mine for mine, _ in pairs)], [expected, *(other for _, other in pairs)])


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("beams", [1, 2, 5])
def test_decodes_token_for_token_as_marian(case, beams, tmp_path):
    ours, theirs = pair(tmp_path, **CASES[case])
    source = sources(theirs.config)
    for alpha in (0.0, 0.6):
        for stop in (False, "never") if beams > 1 else (False,):
            options = {"num_beams": beams, "length_penalty": alpha, "early_stopping": stop}
            expected = theirs.generate(
                source, attention_mask=MASK[:, 0].long(), max_new_tokens=9, **options
            )[:, 1:]
            result = ours.generate(
                source, 9, beams, alpha, source_mask=MASK, exhaustive=stop == "never"
            )
            assert torch.equal(result, expected), (alpha, stop)


def test_a_padding_token_of_zero_is_where_transformers_fills_with_the_end(tmp_path):
    # Its fill is `pad_token_id or eos_token_id`, and 0 is false.
    ours, theirs = pair(tmp_path, pad_token_id=0, eos_token_id=4, forced_eos_token_id=4)
    source = torch.randint(6, 19, (8, 7))
    for _ in range(30):  # the end grows more likely, until rows end at different lengths
        with torch.no_grad():
            ours.logits_bias[0, 4] += 0.2
            theirs.final_logits_bias[0, 4] += 0.2
        result = ours.generate(source, 9, 3)
        ends = (result == 4).int()
        behind = ends.cumsum(dim=1) > ends
        if behind.any():
            break
    assert bool((result[behind] == 0).all())
    expected = theirs.generate(
        source,
        attention_mask=torch.ones_like(source),
        max_new_tokens=9,
        num_beams=3,
        length_penalty=0.0,
    )[:, 1:]
    assert bool((expected[behind] == 4).all())
    assert torch.equal(result.masked_fill(behind, 4), expected)


def test_saved_is_loaded_by_transformers_and_again(tmp_path):
    ours, theirs = pair(tmp_path / "theirs", **CASES["swish"])
    ours.save_pretrained(tmp_path / "ours")
    again = MarianMTModel.from_pretrained(tmp_path / "ours").eval()
    source, target = sources(theirs.config), torch.randint(6, 19, (4, 6))
    with torch.no_grad():
        expected = theirs(input_ids=source, decoder_input_ids=target).logits
        assert torch.equal(again(input_ids=source, decoder_input_ids=target).logits, expected)
    second = load_model(tmp_path / "ours")
    assert second.config == ours.config
    assert not second.training
    assert all(
        torch.equal(a, b) for a, b in zip(second.parameters(), ours.parameters(), strict=True)
    )


# A share of 0 or 1 leaves nothing to chance.
@pytest.mark.parametrize(
    ("of_weights", "of_activations", "elsewhere"),
    [(1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)],
)
def test_training_drops_what_marian_drops(of_weights, of_activations, elsewhere, tmp_path):
    options = {"attention_dropout": of_weights, "activation_dropout": of_activations}
    ours, theirs = pair(tmp_path, dropout=elsewhere, **options)
    source, target = sources(theirs.config), torch.randint(6, 19, (4, 6))
    expected = theirs.train()(input_ids=source, decoder_input_ids=target).logits
    torch.testing.assert_close(ours.train()(source, target), expected)
    ours.save_pretrained(tmp_path / "again")
    again = MarianMTModel.from_pretrained(tmp_path / "again").train()
    torch.testing.assert_close(again(input_ids=source, decoder_input_ids=target).logits, expected)


def test_layers_that_are_dropped_in_training_are_told(tmp_path):
    marian(decoder_layerdrop=0.2).save_pretrained(tmp_path)
    said = r"config\.json.*: decoder_layerdrop = 0\.2, and Transformer drops no layers"
    with pytest.warns(UserWarning, match=said):
        Transformer.from_pretrained(tmp_path)


@pytest.mark.parametrize(
    "options",
    [
        {"attention_dropout": 0.0, "activation_dropout": 0.2},
        {"pre_norm": True},
        {"decoder_layers": 1, "decoder_heads": 2, "max_seq": 9},
    ],
)
def test_the_papers_own_form_is_saved_and_loaded(options, tmp_path):
    config = TransformerConfig(17, d_model=12, num_layers=2, num_heads=3, d_ff=16, **options)
    model = Transformer(config)
    model.save_pretrained(tmp_path)
    again = load_model(tmp_path)
    assert again.config == config
    source, target = torch.randint(3, 17, (2, 5)), torch.randint(3, 17, (2, 4))
    assert torch.equal(again(source, target), model.eval()(source, target))


SMALL = TransformerConfig(17, d_model=12, num_layers=2, num_heads=3, d_ff=16)


def small(**options):
    model = Transformer(TransformerConfig(**{**SMALL.__dict__, **options})).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return model


@pytest.mark.parametrize("beams", [1, 3])
def test_a_source_is_decoded_the_same_alone_padded_and_in_a_list(beams):
    model = small()
    sources = [torch.randint(3, 17, (n,)) for n in (5, 2, 7, 1)]
    together = model.generate(sources, 8, beams, PaperLengthPenalty())
    for source, row in zip(sources, together, strict=True):
        alone = model.generate(source[None], 8, beams, PaperLengthPenalty())[0]
        assert torch.equal(row[: len(alone)], alone)
        assert bool((row[len(alone) :] == 0).all())


def test_the_future_of_the_target_is_hidden_and_the_source_is_seen():
    model = small()
    source, target = torch.randint(3, 17, (2, 5)), torch.randint(3, 17, (2, 6))
    changed = target.clone()
    changed[:, 4:] = 3 + (changed[:, 4:] - 2) % 14
    before, after = model(source, target), model(source, changed)
    torch.testing.assert_close(after[:, :4], before[:, :4], rtol=0, atol=1e-12)
    other = source.clone()
    other[:, 0] = 3 + (other[:, 0] - 2) % 14
    assert ((model(other, target) - before).abs() > 1e-9).any(dim=-1).all()


def test_the_loss_is_that_of_each_target_alone_weighted_by_its_tokens():
    model = small()
    source = torch.randint(3, 17, (2, 5))
    target = torch.tensor([[4, 5, 6, 2], [7, 2, 0, 0]])
    whole = model.loss(source, target, epsilon=0.1)
    parts = [
        model.loss(source[i : i + 1], target[i : i + 1, :n], epsilon=0.1)
        for i, n in ((0, 4), (1, 2))
    ]
    torch.testing.assert_close(whole, (4 * parts[0] + 2 * parts[1]) / 6)


def test_generation_leaves_the_mode_and_draws_nothing():
    model = small(dropout=0.5).train()
    source = torch.randint(3, 17, (2, 5))
    state = torch.get_rng_state()
    first = model.generate(source, 6, 2)
    assert model.training
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(model.eval().generate(source, 6, 2), first)


def test_caches_that_failed_are_as_long_as_before():
    model = small(max_seq=3)
    memory = model.encode(torch.randint(3, 17, (2, 3)))
    caches = model.new_caches(2, 3)
    model.decode(torch.randint(3, 17, (2, 2)), memory, caches=caches)
    with pytest.raises(ValueError, match=r"^the model has 3 positions, got a target of 4"):
        model.decode(torch.randint(3, 17, (2, 2)), memory, caches=caches)
    assert [cache.length for cache in caches] == [2, 2]


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"vocab_size": 0}, "vocab_size must be at least 1, got 0"),
        ({"num_heads": 5}, "d_model must be divisible by num_heads, got d_model=12"),
        ({"end_token": 17}, "end_token must be below vocab_size = 17, got 17"),
        ({"activation": "tanh"}, "activation must be one of relu, silu, gelu, got 'tanh'"),
        ({"attention_dropout": 1.5}, r"attention_dropout must be .*, got 1\.5"),
    ],
)
def test_errors_of_sizes(options, message):
    with pytest.raises(ValueError, match=r"^" + message):
        TransformerConfig(**{**SMALL.__dict__, **options})


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((torch.zeros(2, 3), 4), TypeError, "source_ids must be a tensor of int64"),
        ((torch.tensor([3, 4]), 4), ValueError, r"source_ids must be of shape \(batch, seq\)"),
        ((torch.tensor([[3, 17]]), 4), ValueError, r"source_ids must be in \[0, 17\)"),
        (([torch.tensor([[3]])], 4), ValueError, r"source_ids\[0\] must be of shape"),
        ((torch.tensor([[3, 4]]), 4, 0), ValueError, "beams must be at least 1, got 0"),
    ],
)
def test_errors_of_generation(arguments, error, message):
    with pytest.raises(error, match=r"^" + message):
        small().generate(*arguments)


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tie_word_embeddings": False}, "tie_word_embeddings is False, which changes what"),
        ({"activation_function": "tanh"}, "activation_function is 'tanh', and Transformer"),
        ({"decoder_vocab_size": 5}, "decoder_vocab_size is 5, which changes"),
        ({"bad_words_ids": [[1, 2]]}, r"bad_words_ids is \[\[1, 2\]\], and Transformer bans"),
        ({"model_type": "bart"}, "model_type must be one of marian, transformer, got 'bart'"),
    ],
)
def test_configs_that_are_not_computed_are_refused(options, message, tmp_path):
    Transformer(
        TransformerConfig(
            **{**SMALL.__dict__, "sines_first": True, "logits_bias": True, "max_seq": 9}
        )
    ).save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    entries = json.loads(path.read_text())
    path.write_text(json.dumps({**entries, **options}))
    with pytest.raises(ValueError, match=message):
        Transformer.from_pretrained(tmp_path)
