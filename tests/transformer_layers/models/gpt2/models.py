"""Small models, prompts and draws that the tests of GPT-2's parts have in common."""

import torch
from hypothesis import strategies as st
from torch import Tensor, nn

from tests.transformer_layers.comparisons import with_random_weights
from transformer_layers import GPT2, GPT2Config

VOCAB, N_POSITIONS = 23, 17
seeds = st.integers(0, 2**16)


def random_model(
    seed: int = 0, dropout: float = 0.0, dtype: torch.dtype = torch.float64, **sizes: int
) -> GPT2:
    """A GPT-2 of two small blocks, whose tokens depend on where they stand."""
    torch.manual_seed(seed)
    sizes = {"n_embd": 12, "n_layer": 2, "n_head": 3} | sizes
    config = GPT2Config(vocab_size=VOCAB, n_positions=N_POSITIONS, dropout=dropout, **sizes)
    model = with_random_weights(GPT2(config), std=0.4)
    # Biases make one token the best everywhere, positions make a difference.
    for name, parameter in model.named_parameters():
        if parameter.ndim == 1 and name.endswith("bias"):
            parameter.data.mul_(0.2)
    model.wpe.weight.data.mul_(3.0)
    return model.to(dtype).eval()


def random_ids(batch: int, seq: int, seed: int = 0) -> Tensor:
    """Prompts of one length."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(VOCAB, (batch, seq), generator=generator)


def seeded(seed: int = 0) -> torch.Generator:
    """A generator of its own."""
    return torch.Generator().manual_seed(seed)


def assert_probable(counts: Tensor, probabilities: Tensor, false_alarm: float = 1e-9) -> None:
    """Pearson's test: true frequencies fail it with probability `false_alarm`, about.

    That is the limit for large counts; here each expected count is 5 or more. What has probability
    0 must not be there at all.
    """
    assert not counts[probabilities == 0].any()
    counts, probabilities = counts[probabilities > 0].double(), probabilities[probabilities > 0]
    expected = counts.sum() * probabilities
    assert expected.min() >= 5
    statistic = ((counts - expected) ** 2 / expected).sum()
    freedom = torch.tensor((len(counts) - 1) / 2, dtype=torch.float64)
    assert torch.special.gammaincc(freedom, statistic / 2) > false_alarm


def modes(model: nn.Module) -> dict[str, bool]:
    """Which modules are in training."""
    return {name: module.training for name, module in model.named_modules()}
