"""`python -m survey.environment FOLDER`: makes the environment that the survey runs in.

It sees the packages of the environment that it is called from, and has the works beside them, each
without its dependencies. Other versions of a work, and files of repositories that are no packages,
are in folders of their own, which only the layers that want them see.
"""

import argparse
import subprocess
import sys
import sysconfig
import urllib.request
import venv
from pathlib import Path

HERE = Path(__file__).parent
RAW = "https://raw.githubusercontent.com"
VERSIONS = {"timm-1.0.9": "timm==1.0.9"}
FILES = {
    "karpathy-nanoGPT-3adf61e1/nanogpt_model.py": (
        "karpathy/nanoGPT/3adf61e154c3fe3fca428ad6bc3818b27a3b8291/model.py"
    ),
    "karpathy-minGPT-37baab71/mingpt_model.py": (
        "karpathy/minGPT/37baab71b9abea1b76ab957409a1cc2fbfba8a26/mingpt/model.py"
    ),
}


def make(folder: Path) -> None:
    """Makes the environment, or brings it up to date."""
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
    for name, address in FILES.items():
        file = folder / "places" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        if not file.exists():
            urllib.request.urlretrieve(f"{RAW}/{address}", file)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m survey.environment", description=__doc__)
    parser.add_argument("folder", type=Path)
    make(parser.parse_args().folder.absolute())
