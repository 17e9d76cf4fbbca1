"""The language of the book's running sentence, and a small GPT-2 that learns it.

"The keys to the box are old": the verb agrees with the first noun, whatever the nearest noun is.
What a model makes of such sentences tells what it looks at (Linzen, Dupoux and Goldberg 2016,
https://aclanthology.org/Q16-1037/).
"""

from transformer_training.agreement.language import (
    NOUNS,
    WORDS,
    decode,
    encode,
    right_verb,
    sentences,
)
from transformer_training.agreement.model import trained_model

__all__ = ["NOUNS", "WORDS", "decode", "encode", "right_verb", "sentences", "trained_model"]
