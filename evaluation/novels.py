"""The text of an experiment: six novels by Jane Austen, as a Debian package ships them.

The text is in the public domain, and the checkout does not hold it. `apt-get download` brings the
package, which is of data alone; nothing of it is installed or run.
"""

import hashlib
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
import zlib
from io import BytesIO
from pathlib import Path

PACKAGE = "r-cran-janeaustenr"
VARIABLE = "NOVELS_PACKAGE"
NOVELS = (  # in the order in which the package's data holds them
    "Emma",
    "Mansfield Park",
    "Northanger Abbey",
    "Persuasion",
    "Pride and Prejudice",
    "Sense and Sensibility",
)
DIGEST = "ac9337f7b837047826120ee338d22540461fefd6dd2bb1c50ada3bfa5ff9a6f1"
_DATA = re.compile(r".*/janeaustenr/data/Rdata\.rdb")
# R's marks of a string in ASCII and of one in UTF-8; its length comes next.
_STRINGS = (bytes.fromhex("00040009"), bytes.fromhex("00008009"))
_MISSING = f"the novels are in the Debian package {PACKAGE}"
_REMEDY = f"Remedy: bring the package here, and name its file in {VARIABLE}"


def novels() -> dict[str, str]:
    """The novels, each by its name, a paragraph a line.

    The environment variable `NOVELS_PACKAGE` names the file of the package; without it,
    `apt-get download` brings the package.

    Raises:
        SystemExit: If the package is not to be had, or its text is another one; with the remedy.
    """
    if file := os.environ.get(VARIABLE):
        return read(Path(file))
    with tempfile.TemporaryDirectory() as folder:
        return read(_downloaded(Path(folder)))


def read(package: Path, digest: str = DIGEST) -> dict[str, str]:
    """The novels of a package's file.

    Args:
        package: The file.
        digest: SHA-256 of the texts, one after the other.

    Raises:
        SystemExit: If it cannot be read, or its text is another one.
    """
    try:
        tar = _output("dpkg-deb", "--fsys-tarfile", str(package))
        texts = texts_of(_member(tar))
    except (OSError, ValueError, zlib.error, tarfile.TarError) as error:
        raise SystemExit(
            f"{package}: is not the package {PACKAGE}, or cannot be read: {error}. "
            f"Remedy: apt-get download {PACKAGE}, and name its file in {VARIABLE}"
        ) from error
    found = hashlib.sha256("".join(texts).encode()).hexdigest()
    if found != digest:
        raise SystemExit(
            f"{package}: holds another text than was measured: its SHA-256 is {found} and not "
            f"{digest}. Remedy: take version 1.0.0 of {PACKAGE}"
        )
    return dict(zip(NOVELS, texts, strict=True))


def texts_of(data: bytes) -> list[str]:
    """The texts in a file of R's data, a paragraph a line.

    Such a file is a row of objects. Each has its length in four bytes, and is compressed. An
    object here is a list of strings, a line of the book each, with empty ones between paragraphs.

    Args:
        data: The file.

    Raises:
        ValueError: If an object is not such a list.
    """
    texts = []
    while data:
        unpacking = zlib.decompressobj()
        packed = unpacking.decompress(data[4:])
        if len(packed) != int.from_bytes(data[:4], "big"):
            raise ValueError("an object has not the length that it states")
        paragraphs = re.split(r"\n{2,}", "\n".join(_strings(packed)))
        texts.append("\n".join(each.replace("\n", " ") for each in paragraphs) + "\n")
        data = unpacking.unused_data
    return texts


def _strings(packed: bytes) -> list[str]:
    place, found = packed.find(_STRINGS[0]), []
    if place < 0:
        raise ValueError("an object has no strings")
    while place < len(packed):
        if packed[place : place + 4] not in _STRINGS:
            raise ValueError(f"byte {place} of an object begins no string")
        begin = place + 8
        place = begin + int.from_bytes(packed[place + 4 : begin], "big")
        found.append(packed[begin:place].decode())
    return found


def _downloaded(folder: Path) -> Path:
    if shutil.which("apt-get") is None:
        raise SystemExit(f"{_MISSING}, and there is no apt-get here. {_REMEDY}")
    try:
        subprocess.run(
            ["apt-get", "download", PACKAGE], cwd=folder, check=True, capture_output=True, text=True
        )
    except subprocess.CalledProcessError as error:
        raise SystemExit(f"{_MISSING}, and {_said(error)}. {_REMEDY}") from error
    [file] = folder.glob("*.deb")
    return file


def _said(error: subprocess.CalledProcessError) -> str:
    last = (error.stderr.strip().splitlines() or [f"it ended with {error.returncode}"])[-1]
    return f"apt-get download said: {last}"


def _output(*command: str) -> bytes:
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode:
        raise ValueError(done.stderr.decode(errors="replace").strip())
    return done.stdout


def _member(tar: bytes) -> bytes:
    with tarfile.open(fileobj=BytesIO(tar), mode="r:") as archive:
        for member in archive:
            if _DATA.fullmatch(member.name) and (file := archive.extractfile(member)):
                return file.read()
    raise ValueError("it has no janeaustenr/data/Rdata.rdb")
