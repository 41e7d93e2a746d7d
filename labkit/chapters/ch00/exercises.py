"""The one exercise of chapter 00."""

from collections.abc import Callable

import torch

from labkit.lesson.exercise import Exercise, Wrong, given

Answer = Callable[[torch.Tensor], torch.Tensor]


def to_unit(image: torch.Tensor) -> torch.Tensor:
    return image.to(torch.float32) / 16


def scaled(answer: Answer, values: list[int]) -> torch.Tensor:
    """The answer for a uint8 image of one row, if it is a float32 tensor."""
    got = given(answer, torch.tensor([values], dtype=torch.uint8))
    assert isinstance(got, torch.Tensor), (
        f"a tensor is asked for, not this {type(got).__name__}"
    )
    assert got.dtype == torch.float32, f"float32 is asked for, this is {got.dtype}"
    assert tuple(got.shape) == (1, len(values)), (
        f"the shape (1, {len(values)}) became {tuple(got.shape)}"
    )
    return got


def paper_and_ink(answer: Answer) -> None:
    """paper (0), half ink (8) and full ink (16)"""
    got = scaled(answer, [0, 8, 16])[0].tolist()
    assert got == [0.0, 0.5, 1.0], (
        f"0, 8 and 16 should become 0, 0.5 and 1; they became {got[0]:.3g}, "
        f"{got[1]:.3g} and {got[2]:.3g}"
    )


def pale_image(answer: Answer) -> None:
    """an image whose darkest point is 8"""
    got = scaled(answer, [0, 4, 8])[0].tolist()
    assert got == [0.0, 0.25, 0.5], (
        f"in a pale image, 0, 4 and 8 should become 0, 0.25 and 0.5; they became "
        f"{got[0]:.3g}, {got[1]:.3g} and {got[2]:.3g}: the scale is the same for every "
        "image"
    )


def whole_numbers(image: torch.Tensor) -> torch.Tensor:
    return image // 16


def double(image: torch.Tensor) -> torch.Tensor:
    return image.double() / 16


def convert_too_late(image: torch.Tensor) -> torch.Tensor:
    return (image * 16).to(torch.float32) / 256


def by_its_own_maximum(image: torch.Tensor) -> torch.Tensor:
    return image.to(torch.float32) / image.max()


def not_scaled(image: torch.Tensor) -> torch.Tensor:
    return image.to(torch.float32)


def divide(image: torch.Tensor) -> torch.Tensor:
    return torch.div(image, 16)


EXERCISES: list[Exercise] = [
    Exercise(
        id="0-scale",
        title="From ink to numbers between 0 and 1",
        minutes=3,
        difficulty="easy",
        deliver="a float32 tensor of the image's shape: 0 for paper (0), 1 for full ink "
        "(16)",
        reference=to_unit,
        tests=(paper_and_ink, pale_image),
        hints=(
            "In which dtype does the division have to happen, so that a half can come "
            "out?",
            "`image.to(torch.float32)` first, then divide by the largest value that the "
            "scanner can give.",
        ),
        why="Convert first, compute then: the conversion is exact, and nothing after it "
        "can leave the range of float32 here.",
        wrong=(
            Wrong(whole_numbers, "this is torch.uint8"),
            Wrong(double, "this is torch.float64"),
            Wrong(convert_too_late, "they became 0, 0.5 and 0"),
            Wrong(by_its_own_maximum, "the scale is the same for every image"),
            Wrong(not_scaled, "they became 0, 8 and 16"),
        ),
        variants=(divide,),
    )
]
