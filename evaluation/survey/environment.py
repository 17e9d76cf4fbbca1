"""`python -m evaluation.survey.environment FOLDER`: makes the environment that the survey runs in.

It sees the packages of the environment that it is called from, and has the works beside them, each
without its dependencies. Other versions of a work, and files of repositories that are no packages,
are in folders of their own, which only the layers that want them see. A file that cannot be loaded
is named, with the place where it can be put by hand; its layers are rows that say so.
"""

import argparse
import hashlib
import subprocess
import sys
import sysconfig
import urllib.request
import venv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
RAW = "https://raw.githubusercontent.com"
VERSIONS = {"timm-1.0.9": "timm==1.0.9"}


@dataclass(frozen=True)
class File:
    """A file of a repository.

    Attributes:
        address: Owner, repository, commit and path.
        digest: Its SHA-256, wherever it is from.
    """

    address: str
    digest: str

    def holds(self, content: bytes) -> bool:
        """Whether this is what is in it."""
        return hashlib.sha256(content).hexdigest() == self.digest


FILES = {
    "karpathy-nanoGPT-3adf61e1/nanogpt_model.py": File(
        "karpathy/nanoGPT/3adf61e154c3fe3fca428ad6bc3818b27a3b8291/model.py",
        "7c01703240dbec5d554527dc666e35b3df8391d0b117fddc07afcf325a21d11c",
    ),
    "karpathy-minGPT-37baab71/mingpt_model.py": File(
        "karpathy/minGPT/37baab71b9abea1b76ab957409a1cc2fbfba8a26/mingpt/model.py",
        "3586d4a957722864f7a790689a094478d3ee0b7de34d7456cb635923e4779576",
    ),
    "harvardnlp-annotated-transformer-debc9fd7/the_annotated_transformer.py": File(
        "harvardnlp/annotated-transformer/debc9fd747bb2123160a98046ad1c2d4da44a567/"
        "the_annotated_transformer.py",
        "9562df56fc29a172dd9284e0d2ba68443b25e8733981fedf854d1f36cbc2e74b",
    ),
    "graykode-gpt-2-Pytorch-401078fd/graykode_model.py": File(
        "graykode/gpt-2-Pytorch/401078fde5e85475590dc04c9ed11b79332b8717/GPT2/model.py",
        "1681ec1718daf5ff613ad923be7f30cf36f349ed5f458f05d936d61b97b6b3c5",
    ),
    "SamLynnEvans-Transformer-49e01800/samlynnevans_embed.py": File(
        "SamLynnEvans/Transformer/49e01800aab01dcd83403a056c059f429a7d7512/Embed.py",
        "7594c0d7c3c8e81bd520aabef5e226da155b540e77e46ad4fde35232542372e8",
    ),
}


def make(folder: Path) -> list[str]:
    """Makes the environment, or brings it up to date.

    Args:
        folder: Where it is to be.

    Returns:
        What could not be had, a line for each file.
    """
    venv.create(folder, with_pip=False, symlinks=True)
    python = folder / "bin" / "python"
    ours = sysconfig.get_path("purelib")
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = folder / "lib" / version / "site-packages"
    (packages / "book.pth").write_text(f"{ours}\n")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    install = ["install", "--quiet", "--no-deps", "--no-compile"]
    subprocess.run(
        [*pip, f"--python={python}", *install, f"--requirement={HERE / 'requirements.txt'}"],
        check=True,
    )
    for name, wanted in VERSIONS.items():
        place = folder / "places" / name
        if not place.exists():
            subprocess.run([*pip, *install, f"--target={place}", wanted], check=True)
    return put_files(folder / "places", FILES)


def put_files(places: Path, files: Mapping[str, File], root: str = RAW) -> list[str]:
    """Loads files that are not there, and looks whether each is the one that is meant.

    Args:
        places: The folder of all of them.
        files: What is wanted, by its place there.
        root: The address under which the addresses are.

    Returns:
        A line for each that could not be had.
    """
    missing = []
    for name, file in files.items():
        path = places / name
        if path.exists() and file.holds(path.read_bytes()):
            continue
        try:
            with urllib.request.urlopen(f"{root}/{file.address}") as answer:
                content = answer.read()
        except OSError as error:
            missing.append(f"{file.address}: {error}; put it at {path}")
            continue
        if not file.holds(content):
            missing.append(f"{file.address}: its SHA-256 is not {file.digest}")
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return missing


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        prog="python -m evaluation.survey.environment", description=__doc__
    )
    parser.add_argument("folder", type=Path)
    for line in make(parser.parse_args().folder.absolute()):
        print(f"not loaded: {line}", file=sys.stderr)
