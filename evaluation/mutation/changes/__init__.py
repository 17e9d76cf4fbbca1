"""Lines that are wrong, for tests that no wrong version of a whole layer makes fail.

By module of tests, as `path_of` in `trials.py` takes it. To add one, give the module
of `transformer_layers` and the function, a few words, the text (which must occur there once) and
what stands in its place. What a generic operator makes (`mutants.py`) needs no line here, unless
a test would fail on nothing else.
"""

from evaluation.mutation.changes.byte_pairs import BYTE_PAIRS
from evaluation.mutation.changes.checkpoints import CHECKPOINTS
from evaluation.mutation.changes.evaluation import EVALUATION
from evaluation.mutation.changes.generation import GENERATION
from evaluation.mutation.changes.gpt2_config import GPT2_CONFIG
from evaluation.mutation.changes.inference import INFERENCE
from evaluation.mutation.changes.layers import LAYERS
from evaluation.mutation.changes.machinery import MACHINERY
from evaluation.mutation.changes.sampling import SAMPLING
from evaluation.mutation.changes.tokenizer import TOKENIZER
from evaluation.mutation.wrongs import Change

CHANGES: dict[str, tuple[Change, ...]] = {
    **LAYERS,
    **CHECKPOINTS,
    "generation/evaluation": EVALUATION,
    "generation/loop": GENERATION,
    "generation/sampling": SAMPLING,
    "models/gpt2/config": GPT2_CONFIG,
    "models/gpt2/inference/model": INFERENCE,
    "machinery": MACHINERY,
    "tokenizers/byte_pairs": BYTE_PAIRS,
    "tokenizers/tokenizer": TOKENIZER,
}
