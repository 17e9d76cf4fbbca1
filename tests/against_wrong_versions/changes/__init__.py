"""Lines that are wrong, for tests that no wrong version of a whole layer makes fail.

By module of tests, as `path_of` in `trials.py` takes it. To add one, give the module
of `transformer_layers` and the function, a few words, the text (which must occur there once) and
what stands in its place. What a generic operator makes (`mutants.py`) needs no line here, unless
a test would fail on nothing else.
"""

from tests.against_wrong_versions.changes.byte_pairs import BYTE_PAIRS
from tests.against_wrong_versions.changes.checkpoints import CHECKPOINTS
from tests.against_wrong_versions.changes.evaluation import EVALUATION
from tests.against_wrong_versions.changes.generation import GENERATION
from tests.against_wrong_versions.changes.gpt2_config import GPT2_CONFIG
from tests.against_wrong_versions.changes.inference import INFERENCE
from tests.against_wrong_versions.changes.layers import LAYERS
from tests.against_wrong_versions.changes.machinery import MACHINERY
from tests.against_wrong_versions.changes.sampling import SAMPLING
from tests.against_wrong_versions.changes.tokenizer import TOKENIZER
from tests.against_wrong_versions.wrongs import Change

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
