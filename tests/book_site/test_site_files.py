"""Files of a built site that are damaged are named."""

import pytest

from book_site.site_files import SiteFileError, text_of_site


def test_the_text_of_a_file(tmp_path):
    (tmp_path / "file").write_text("ünder", encoding="utf-8")
    assert text_of_site(tmp_path / "file") == "ünder"


def test_what_is_no_text_is_named(tmp_path):
    (tmp_path / "bytes").write_bytes(b"\0\r\n\xff")
    with pytest.raises(SiteFileError, match="it is not written in UTF-8"):
        text_of_site(tmp_path / "bytes")
    for name in (".", "nothing"):
        with pytest.raises(SiteFileError, match=r": .*\. Remedy: remove it"):
            text_of_site(tmp_path / name)
