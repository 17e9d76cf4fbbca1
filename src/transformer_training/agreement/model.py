"""The model that the chapters look into."""

import torch

from transformer_layers import GPT2, GPT2Config
from transformer_training.agreement.language import WORDS, sentences
from transformer_training.toy_language.model import by_itself


def trained_model(steps: int = 150) -> GPT2:
    """Trains a GPT-2 of two blocks with two heads each, a second or two of work.

    A draw of torch's generator seeds its first weights and its sentences. It is trained in
    float64, so that its weights agree to some 1e-5 between processors, and comes back in torch's
    default dtype.

    Args:
        steps: Updates, each on 64 sentences.

    Returns:
        The model, in evaluation mode; its stream is 32 numbers wide.

    Examples:
        >>> trained_model(steps=0).config.n_embd
        32
    """
    seed = int(torch.randint(2**31, (), device="cpu"))
    with by_itself(seed) as dtype:
        config = GPT2Config(
            vocab_size=len(WORDS), n_positions=8, n_embd=32, n_layer=2, n_head=2, dropout=0.0
        )
        model = GPT2(config)
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.ndim == 2:
                    parameter.mul_(5)  # so small a model starts sooner with larger weights
        optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
        for _ in range(steps):
            loss = model.loss(sentences(64))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        trained = model.eval().to(dtype)
    return trained
