"""Where the HTML builders find the stylesheets and scripts of an extension."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def offer_static_files(app: "Sphinx", module: str) -> None:
    """Lets the HTML builders copy what is in the folder `static` beside a module.

    Args:
        app: The application.
        module: The file of the module.
    """
    folder = str(Path(module).parent / "static")
    app.connect("builder-inited", lambda app: app.config.html_static_path.append(folder))
