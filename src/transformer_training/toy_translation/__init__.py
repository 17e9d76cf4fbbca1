"""A toy language and its German, between which a small Transformer learns to translate.

The sentences are those of :mod:`transformer_training.toy_language` whose verb agrees with a noun.
Their German has another order and more agreement. Take a part out of the Transformer before it is
trained (`ABLATIONS`), and it fails.
"""

from transformer_training.kept import kept
from transformer_training.toy_translation.ablations import ABLATIONS
from transformer_training.toy_translation.language import (
    END,
    PADDING,
    START,
    WORDS,
    Pair,
    batch,
    decode,
    draw,
    encode,
    held_out,
    pairs,
    source_mask,
    training,
    translation,
)
from transformer_training.toy_translation.model import (
    attention_to_source,
    share_exact,
    translated,
)
from transformer_training.toy_translation.model import trained_translator as _train

__all__ = [
    "ABLATIONS",
    "END",
    "PADDING",
    "START",
    "WORDS",
    "Pair",
    "attention_to_source",
    "batch",
    "decode",
    "draw",
    "encode",
    "held_out",
    "pairs",
    "share_exact",
    "source_mask",
    "trained_translator",
    "training",
    "translated",
    "translation",
]

trained_translator = kept(steps=0, checkpoints=1)(_train)
