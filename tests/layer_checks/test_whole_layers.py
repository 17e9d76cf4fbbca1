"""Every layer has all that `CONTRIBUTING.md` asks for under "Add a layer"."""

import importlib
import pkgutil
import re
from pathlib import Path

import pytest
from torch import nn

import transformer_layers
from layer_checks.registry import LAYERS
from tests.transformer_layers.layer_cases import CASES

ROOT = Path(__file__).parents[2]
API = "book/reference/api.md"
# Exported, and no layers: nothing to hold against wrong versions.
NO_LAYERS = {"GPT2Config", "KeyValueCache", "next_token_distribution"}
NO_LAYERS |= {"Tokenizer", "PublishedTokenizer", "load_tokenizer", "train_tokenizer", "stop_texts"}
NO_LAYERS |= {"GPT2ForInference", "LlamaForInference", "InferenceError", "ready_for_inference"}
# A model is held against that of `transformers`, rung by rung, in its own tests.
NO_LAYERS |= {
    "Inspection",
    "document_mask",
    "LlamaConfig",
    "load_model",
    "Transformer",
    "TransformerConfig",
}
NO_LAYERS |= {"Gemma3", "Gemma3Config"}
NO_LAYERS |= {"TransformerDecoder", "TransformerEncoder"}
NO_LAYERS |= {"PaperLengthPenalty", "PlainLengthPenalty", "beam_search"}
NO_LAYERS |= {"DecoderCache", "LatentCache", "cache_bytes"}
NO_LAYERS |= {"LinearScaling", "Llama3Scaling", "NTKScaling", "YaRNScaling"}
NO_LAYERS |= {"DynamicNTKScaling", "LongRoPEScaling"}
NO_LAYERS |= {"halves_of_neighbours", "neighbours_of_halves"}
# They are checked as parts of a mixture of experts, which sends its tokens by them.
ROUTERS = {"TopKRouter", "SigmoidRouter"}
NO_LAYERS |= {"balanced_bias", "load_balancing_loss", "router_scores", "router_z_loss", *ROUTERS}
# They take sizes and no tensor of numbers, or run inside of the case that is named.
NO_CASE = {"causal_mask", "padding_mask", "sinusoidal_positions", "sliding_window_mask"}
NO_CASE |= {"smoothed_cross_entropy"}  # it refuses an empty batch: there is nothing to score
CASE_OF = {"dropout": "Dropout", "attention_weights": "scaled_dot_product_attention"}
TESTED_IN = {
    "GPT2Block": "tests/transformer_layers/models/gpt2/test_model.py",
    "LlamaBlock": "tests/transformer_layers/models/llama/test_model.py",
}
# The parts of models are layers where they are exported; a stack is layers one behind the other.
MODULES = [
    name
    for _, name, _ in pkgutil.walk_packages(transformer_layers.__path__, "transformer_layers.")
    if not name.startswith(("transformer_layers.models.", "transformer_layers.inference."))
    and name != "transformer_layers.blocks.stacks"
]


def classes_of_layers() -> dict[str, str]:
    """The module of each public class of layers, exported or not."""
    modules = [importlib.import_module(name) for name in MODULES]
    return {
        name: module.__name__
        for module in modules
        for name, value in vars(module).items()
        if isinstance(value, type)
        and issubclass(value, nn.Module)
        and value.__module__ == module.__name__
        and not name.startswith("_")
    }


CLASSES = classes_of_layers()
NAMES = sorted((set(transformer_layers.__all__) - NO_LAYERS) | set(LAYERS) | set(CLASSES) - ROUTERS)


def what_is_missing(name: str) -> list[str]:
    """What a layer has not, and where it belongs, a line for each."""
    missing = []
    if name not in transformer_layers.__all__:
        missing.append("src/transformer_layers/__init__.py does not export it in __all__")
    tests = TESTED_IN.get(name) or file_of_tests(name)
    if not (ROOT / tests).is_file():
        missing.append(f"there is no {tests}")
    cases = {case.name.split(" ")[0] for case in CASES}
    if name not in NO_CASE and CASE_OF.get(name, name) not in cases:
        missing.append("tests/transformer_layers/layer_cases.py has no case of it")
    if name not in LAYERS:
        missing.append("no module of src/layer_checks/checks makes a Layer of its name")
        missing.append("no module of src/layer_checks/wrong has wrong versions of it")
    else:
        if all(each.weak for each in LAYERS[name].checks):
            missing.append("src/layer_checks/checks declares no check of it")
        number = len(LAYERS[name].wrong_versions)
        if number < 6:
            missing.append(f"src/layer_checks/wrong declares {number} wrong versions, not 6")
    return missing + what_the_book_lacks(name)


def file_of_tests(name: str) -> str:
    """The file of its tests, as `tests/` mirrors `src/`."""
    layer = getattr(transformer_layers, name, None)
    module = CLASSES.get(name) or getattr(layer, "__module__", "transformer_layers.<its module>")
    folder, _, stem = module.rpartition(".")
    return f"tests/{folder.replace('.', '/')}/test_{stem}.py"


def what_the_book_lacks(name: str) -> list[str]:
    """What the pages of the API and the table of contents have not."""
    folder = (ROOT / API).parent
    rooms = "\n".join(file.read_text(encoding="utf-8") for file in folder.glob("api_*.md"))
    entry = re.search(rf"^\.\. auto(class|function):: {name}\n(?P<body>(\n| .*\n)*)", rooms, re.M)
    if entry is None:
        return ["no book/reference/api_*.md describes it"]
    if f"\n   {name}\n" not in (ROOT / API).read_text(encoding="utf-8"):
        return [f"{API} does not list it"]
    chapter = re.search(r":Chapter: :doc:`\.\./(?P<page>[^`]+)`", entry["body"])
    if chapter is None:
        return ["its entry in book/reference/api_*.md names no chapter of it"]
    file = f"  - file: {chapter['page']}\n"
    if file not in (ROOT / "book/_toc.yml").read_text(encoding="utf-8"):
        return [f"book/_toc.yml has no line for its chapter, {chapter['page']}"]
    texts = (ROOT / "book" / f"{chapter['page']}{suffix}" for suffix in (".md", ".rst"))
    if not any(name in text.read_text(encoding="utf-8") for text in texts if text.is_file()):
        return [f"its chapter, book/{chapter['page']}, does not name it"]
    return []


@pytest.mark.parametrize("name", NAMES)
def test_nothing_of_a_layer_is_missing(name: str) -> None:
    missing = what_is_missing(name)
    assert missing == [], "\n  ".join([f"{name} is not whole:", *missing])


def test_what_is_no_layer_is_exported_and_has_no_checks() -> None:
    assert set(transformer_layers.__all__) >= NO_LAYERS
    assert not NO_LAYERS & set(LAYERS)
