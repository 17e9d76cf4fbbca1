"""Every option of the extensions: its name, its default and what it does.

The one list from which the options are registered and the reference page is written.
"""

from dataclasses import dataclass
from typing import Any, Literal

from sphinx.application import Sphinx


@dataclass(frozen=True)
class Setting:
    """A value of `conf.py`, or of `sphinx.config` in a Jupyter Book's `_config.yml`.

    Attributes:
        rebuild: What a change makes Sphinx do again: read every page ("env"), write it ("html") or
            nothing ("").
        purpose: What it does, in a sentence.
    """

    name: str
    default: Any
    types: tuple[type, ...]
    rebuild: Literal["env", "html", ""]
    purpose: str


OUTPUTS = (
    Setting(
        "verified_book_require",
        "all",
        (str,),
        "env",
        "Which outputs must have an `expect-output` block: `all` that show text, or only those of "
        "`marked` cells. A page can say otherwise in its front matter.",
    ),
    Setting(
        "verified_book_sources",
        [],
        (list, tuple),
        "",
        "Patterns, from the book's folder, of files that cells import. "
        "A change in one runs every page again.",
    ),
    Setting(
        "verified_book_distributions",
        ["*"],
        (list, tuple),
        "env",
        "Installed distributions whose versions the outputs depend on; `*` stands for all.",
    ),
    Setting(
        "verified_book_environment",
        [],
        (list, tuple),
        "env",
        "Environment variables that the outputs depend on, such as switches of libraries; "
        "`NAME=VALUE` says what an unset one counts as.",
    ),
    Setting(
        "verified_book_caches_kept",
        6,
        (int,),
        "",
        "How many execution caches are kept, one for each state of sources, versions, processor "
        "and variables.",
    ),
    Setting(
        "verified_book_kernel",
        "python3",
        (str,),
        "env",
        "The kernel that runs the cells of reStructuredText pages.",
    ),
    Setting(
        "verified_book_allow_stderr",
        False,
        (bool,),
        "env",
        "Whether cells may write to stderr; a cell tagged `allow-stderr` always may.",
    ),
    Setting(
        "verified_book_accept_command",
        "python -m verified_book accept",
        (str,),
        "",
        "The command that messages name as the way to rewrite the blocks.",
    ),
)

KERNELS = (
    Setting(
        "verified_book_preload",
        [],
        (list, tuple),
        "",
        "Modules that take long to import, such as `torch`: on Linux they are imported once in a "
        "build, and each ipykernel is forked from the process that has them. The book's own "
        "modules do not belong here, since pages depend on those that they import.",
    ),
    Setting(
        "verified_book_data",
        [],
        (list, tuple),
        "env",
        "Patterns, from the book's folder, of files that the outputs of all pages depend on. "
        "Those that Python cells open below that folder are noticed without.",
    ),
)

CLAIMS = (
    Setting(
        "verified_book_notes",
        {},
        (dict,),
        "env",
        "What claims are about: the names that `:note:` may have, each with its title. "
        "Where none are named, the option may be left out, and no note is shown.",
    ),
    Setting(
        "verified_book_claim_remedy",
        "Assert something in one of its cells, or expect an output.",
        (str,),
        "env",
        "What the build advises when the proof of a claim cannot fail.",
    ),
)

PARALLEL = (
    Setting(
        "verified_book_jobs",
        0,
        (int,),
        "",
        "How many processes read pages; 0 is one for each core. "
        "A number on the command line (`-j`) comes first.",
    ),
    Setting(
        "verified_book_parallel_safe",
        ["sphinx_jupyterbook_latex", "sphinx_multitoc_numbering", "sphinx_proof"],
        (list, tuple),
        "",
        "Extensions whose pages can be read in parallel although they do not say so, or although "
        "their domain cannot be merged: it holds nothing.",
    ),
)


def register(app: Sphinx, settings: tuple[Setting, ...]) -> None:
    """Makes the options of one extension known to Sphinx."""
    for setting in settings:
        default: Any = setting.default
        if isinstance(default, list | dict):
            default = type(default)(default)
        app.add_config_value(setting.name, default, setting.rebuild, setting.types)
