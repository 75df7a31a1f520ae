"""Makes the pictures of the documentation out of those that the test of the pages has taken: few colours, small files.

TOOLSEARCH_SCREENSHOTS=taken python -m pytest tests/service/integration/test_pages.py
python -m tests.kit.pictures taken docs/images/service
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from PIL import Image

_COLOURS = 96


def main(taken: Path, folder: Path) -> None:
    """Renew the pictures in *folder*, which are those that pages show."""
    for picture in sorted(taken.glob("*-light.png")):
        shown = folder / picture.name.replace("-light", "")
        if shown.exists():
            _write(Image.open(picture).convert("RGB"), shown)
    _write(_sheet(sorted(taken.glob("*-dark.png"))[:4], 2, (480, 323)), folder / "dark-1.png")
    _write(_sheet(sorted(taken.glob("*-telephone.png"))[:4], 4, (240, 519)), folder / "telephone-1.png")


def _sheet(pictures: Sequence[Path], across: int, size: tuple[int, int]) -> Image.Image:
    """All of them side by side, *across* in a row."""
    gap, (width, height) = 12, size
    rows = -(-len(pictures) // across)
    sheet = Image.new("RGB", (across * (width + gap) + gap, rows * (height + gap) + gap), "#8a93a3")
    for place, path in enumerate(pictures):
        at = (gap + place % across * (width + gap), gap + place // across * (height + gap))
        sheet.paste(Image.open(path).convert("RGB").resize(size, Image.Resampling.LANCZOS), at)
    return sheet


def _write(picture: Image.Image, path: Path) -> None:
    picture.quantize(_COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
