"""Sphinx extension: models and answers that several pages want are made once.

It names folders among the pages' doctrees in the environment variables that
:mod:`transformer_training.kept` and :mod:`layer_checks.diagnosis.kept_results` read, unless a
variable is set.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from book_site import __version__

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.util.typing import ExtensionMetadata

FOLDERS = {"TRAINED_MODELS": "trained_models", "CHECK_RESULTS": "check_results"}


def setup(app: "Sphinx") -> "ExtensionMetadata":
    """Names the folders before any kernel starts."""
    for variable, folder in FOLDERS.items():
        os.environ.setdefault(variable, str(Path(app.doctreedir).absolute() / folder))
    return {"version": __version__, "parallel_read_safe": True, "parallel_write_safe": True}
