"""What the directives of this extension share: options that are checked, failures with a place."""

from collections.abc import Callable
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective

from verified_book.outputs.source_lines import true_place
from verified_book.records import Failure, record_of


class _AnyOption(dict[str, Callable[[str], Any]]):
    """An option specification that lets every name pass, so that the directive can judge it.

    docutils turns an unknown option into a message in the page and MyST into a warning; a build
    without `-W` would go on.
    """

    def __missing__(self, name: str) -> Callable[[str], Any]:
        return directives.unchanged


class CheckedDirective(SphinxDirective):
    """A directive whose mistakes are failures of the build, each with file, line and remedy."""

    options_known: tuple[str, ...] = ()
    option_spec: ClassVar[_AnyOption | None] = _AnyOption(
        class_option=directives.unchanged
    )  # MyST skips an empty one
    has_content = True

    def get_source_info(self) -> tuple[str, int]:
        """The file and the line of the directive, from 1."""
        return true_place(self.env, *super().get_source_info())

    def set_source_info(self, node: nodes.Node) -> None:
        """Gives a node the place of the directive."""
        node.source, node.line = self.get_source_info()

    def fail(self, message: str, remedy: str) -> None:
        """Records a failure at the place of this directive."""
        source, line = self.get_source_info()
        record_of(self.env).failures.append(Failure(source, line, message, remedy))

    def check_options(self) -> None:
        """Records a failure for each option that the directive does not have."""
        known = ", ".join(f":{name}:" for name in self.options_known) or "none"
        for name in self.options:
            if name not in self.options_known:
                self.fail(
                    f"{self.name}: unknown option :{name}:",
                    f"The options of this directive are: {known}.",
                )
