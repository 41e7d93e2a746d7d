"""The workbook's photos: square crops of photographs that two packages install.

Whose each photograph is and under which licence stands in data/README.md; only those in
the public domain, under CC0 or CC BY are used.
"""

import io
from importlib.resources import as_file, files
from pathlib import Path

import numpy as np

Arrays = dict[str, np.ndarray]

QUALITY = 90  # of the JPEG files: about 2 bits a pixel
# the most that JPEG at this quality changes a pixel by, on the average of one crop
LOSS = 6.0

# name: (package, file inside it, side of a crop, columns, rows), in pixels
SOURCES: dict[str, tuple[str, str, int, int, int]] = {
    "astronaut": ("skimage", "data/astronaut.png", 256, 2, 2),
    "brick": ("skimage", "data/brick.png", 384, 1, 1),
    "camera": ("skimage", "data/camera.png", 256, 2, 2),
    "cat": ("skimage", "data/chelsea.png", 288, 2, 1),
    "coffee": ("skimage", "data/coffee.png", 300, 2, 1),
    "galaxies": ("skimage", "data/hubble_deep_field.jpg", 320, 3, 2),
    "grass": ("skimage", "data/grass.png", 384, 1, 1),
    "gravel": ("skimage", "data/gravel.png", 384, 1, 1),
    "palace": ("sklearn", "datasets/images/china.jpg", 320, 2, 1),
    "flower": ("sklearn", "datasets/images/flower.jpg", 320, 2, 1),
    "retina": ("skimage", "data/retina.jpg", 448, 3, 3),
    "rocket": ("skimage", "data/rocket.jpg", 320, 2, 1),
}


def photos() -> Arrays:
    """Crops by file name, each (side, side, 3) uint8, before JPEG has changed them.

    >>> sorted(photos())[0]
    'astronaut-0.jpg'
    """
    from PIL import Image

    crops: Arrays = {}
    for name, (package, inside, side, columns, rows) in SOURCES.items():
        with (
            as_file(files(package).joinpath(inside)) as path,
            Image.open(path) as image,
        ):
            pixels = np.asarray(image.convert("RGB"))
        tops = corners(pixels.shape[0], side, rows)
        lefts = corners(pixels.shape[1], side, columns)
        for number, (top, left) in enumerate((y, x) for y in tops for x in lefts):
            crop = pixels[top : top + side, left : left + side]
            crops[f"{name}-{number}.jpg"] = crop
    return crops


def corners(length: int, side: int, number: int) -> list[int]:
    """Where `number` crops of `side` pixels begin along `length`, evenly spread.

    >>> corners(100, 40, 2)
    [0, 60]
    >>> corners(100, 40, 1)
    [30]
    """
    if number == 1:
        return [(length - side) // 2]
    return [place * (length - side) // (number - 1) for place in range(number)]


def encode(pixels: np.ndarray) -> bytes:
    """A photo as the bytes of a JPEG file."""
    from PIL import Image

    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "JPEG", quality=QUALITY)
    return out.getvalue()


def decode(folder: Path) -> Arrays:
    """The photos in a folder, by file name, as arrays of (side, side, 3) uint8."""
    from PIL import Image

    found: Arrays = {}
    for path in sorted(folder.glob("*.jpg")):
        with Image.open(path) as image:
            found[path.name] = np.asarray(image)
    return found


def alike(stored: Arrays, made: Arrays) -> bool:
    """Whether stored photos are the made ones but for what JPEG loses.

    Another build of the JPEG library decodes to other values by a unit or two.
    """
    return stored.keys() == made.keys() and all(
        stored[name].shape == made[name].shape
        and np.abs(stored[name].astype(int) - made[name].astype(int)).mean() < LOSS
        for name in made
    )
