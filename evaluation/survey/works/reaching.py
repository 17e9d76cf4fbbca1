"""Ways to a work's module where importing its package is not one."""

from typing import Any

from evaluation.survey.stubs import stub


def file_of(work: str, path: str) -> Any:
    """A module of a work, without what its package imports."""
    import importlib.metadata
    import importlib.util

    found = importlib.metadata.distribution(work).locate_file(path)
    spec = importlib.util.spec_from_file_location("surveyed_file", str(found))
    if spec is None or spec.loader is None:
        raise ImportError(f"no file {path} of {work}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def d2l_torch() -> Any:
    """The module `torch` of d2l."""
    stub("matplotlib_inline", "gym", "pandas", "torchvision", "PIL", "syne_tune", "scipy")
    from d2l import torch as d2l

    return d2l


def annotated_transformer() -> Any:
    """The Annotated Transformer, whose examples are left out."""
    stub("pandas", "altair", "torchtext", "spacy", "GPUtil")
    import the_annotated_transformer

    return the_annotated_transformer
