"""Training of GPT-2 and others on text files, which nothing that ends it undoes.

`python -m transformer_training --data FILE... --out DIR` trains, on one machine or many; the same
command goes on.
"""

from transformer_layers import __version__ as __version__
from transformer_training.adapters import add_adapters, load_adapters, save_adapters
from transformer_training.chats import ChatBatch, chat_batches, chat_with_labels
from transformer_training.config import TrainingConfig, TrainingError
from transformer_training.costs import Costs, costs
from transformer_training.estimate import Estimate, estimate
from transformer_training.recompute import recompute_activations
from transformer_training.run import StoppedError, train
from transformer_training.step import (
    evaluate,
    inverse_sqrt_rate,
    learning_rate,
    make_optimizer,
    train_step,
)

__all__ = [
    "ChatBatch",
    "Costs",
    "Estimate",
    "StoppedError",
    "TrainingConfig",
    "TrainingError",
    "add_adapters",
    "chat_batches",
    "chat_with_labels",
    "costs",
    "estimate",
    "evaluate",
    "inverse_sqrt_rate",
    "learning_rate",
    "load_adapters",
    "make_optimizer",
    "recompute_activations",
    "save_adapters",
    "train",
    "train_step",
]
