"""Sphinx extension: pages that train the same small model share it.

It names a folder beside the pages' doctrees in the environment variable that
:mod:`transformer_training.kept` reads, unless the variable is set.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from book_site import __version__

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.util.typing import ExtensionMetadata

FOLDER = "TRAINED_MODELS"


def setup(app: "Sphinx") -> "ExtensionMetadata":
    """Names the folder before any kernel starts."""
    os.environ.setdefault(FOLDER, str(Path(app.doctreedir).absolute().parent / "trained_models"))
    return {"version": __version__, "parallel_read_safe": True, "parallel_write_safe": True}
