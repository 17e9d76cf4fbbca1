"""Sphinx extension: the environment variable VERIFIED_BOOK_URL says where the site will be.

It comes before `html_baseurl`. Canonical addresses, previews, the site map, the page for what is
missing, and links of notebooks to the site need it; without it the site works anywhere.
"""

import os
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from sphinx.errors import ConfigError

from book_site import __version__

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.config import Config
    from sphinx.util.typing import ExtensionMetadata

URL = "VERIFIED_BOOK_URL"


def take_address(app: "Sphinx", config: "Config") -> None:
    """Sets the options that need the address, which is that of a folder."""
    address = os.environ.get(URL) or config.html_baseurl
    if not address:
        return
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.netloc or parts.query or parts.fragment:
        raise ConfigError(
            f"book_site.address: {address!r} is no address of a site. "
            f"Remedy: set {URL} or html_baseurl to one such as https://example.org/book/"
        )
    config.html_baseurl = config.ogp_site_url = address.rstrip("/") + "/"


def setup(app: "Sphinx") -> "ExtensionMetadata":
    """Runs before anything is built."""
    app.connect("config-inited", take_address)
    return {"version": __version__, "parallel_read_safe": True, "parallel_write_safe": True}
