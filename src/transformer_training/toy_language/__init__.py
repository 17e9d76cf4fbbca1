"""A language in which each part of a GPT has something to do, and small models that learn it.

One block with one head learns which verb a sentence has. Take a part out of it before it is trained
(`ablations`), and some kind of sentence goes wrong. A kind more asks for a second head, and one for
a second block. What a model makes of such sentences tells what it looks at (Linzen, Dupoux and
Goldberg 2016, https://aclanthology.org/Q16-1037/).
"""

from transformer_training.kept import kept
from transformer_training.toy_language.ablations import ABLATIONS
from transformer_training.toy_language.language import (
    NOUNS,
    VERBS,
    WORDS,
    Kind,
    decode,
    draw,
    encode,
    kind,
    kinds,
)
from transformer_training.toy_language.model import share_right
from transformer_training.toy_language.model import trained_model as _train

__all__ = [
    "ABLATIONS",
    "NOUNS",
    "VERBS",
    "WORDS",
    "Kind",
    "decode",
    "draw",
    "encode",
    "kind",
    "kinds",
    "share_right",
    "trained_model",
]

trained_model = kept(steps=0)(_train)
