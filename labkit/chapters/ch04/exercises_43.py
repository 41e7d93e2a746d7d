"""The exercise of part 4.3: a collate with dtype, mask and pad value."""

import torch

from labkit.chapters.ch04 import padded_answers as answers
from labkit.chapters.ch04.padded_bench import SIZES, WIDTH, Answer, padded, samples
from labkit.lesson.exercise import Exercise, Wrong


def shapes(answer: Answer) -> None:
    """a row a sample, as wide as the longest"""
    x, mask, _ = padded(answer, samples(), -1)
    want = (len(SIZES), WIDTH)
    assert tuple(x.shape) != want[::-1], (
        f"samples in rows are {want}, and {want[::-1]} came: `pad_sequence` puts the "
        "places first unless told otherwise"
    )
    assert x.dim() != 2 or x.shape[1] >= WIDTH, (
        f"the longest sample has {WIDTH} values, and only {x.shape[1]} places came: its "
        "end is cut off"
    )
    assert x.dim() != 2 or x.shape[1] <= WIDTH, (
        f"the longest sample of this batch has {WIDTH} values, and {x.shape[1]} places "
        "came: what is computed for the others is thrown away"
    )
    assert tuple(x.shape) == want, f"{want} is wanted, and {tuple(x.shape)} came"
    assert mask.shape == x.shape, (
        f"the mask says it of every place, so it is {want}; {tuple(mask.shape)} came: "
        "compare the lengths with `torch.arange`"
    )


def values(answer: Answer) -> None:
    """each sample from the left, in the order of the batch"""
    parts = samples()
    x, _, _ = padded(answer, parts, -1)
    for n, part in enumerate(parts):
        row, want = x[n].tolist(), part.tolist()
        assert row[-len(want) :] != want or len(want) == WIDTH, (
            f"sample {n}, {want}, stands at the right end of its row: {row}"
        )
        found = [
            m for m, other in enumerate(parts) if row[: len(other)] == other.tolist()
        ]
        assert not found or n in found, (
            f"row {n} holds sample {found[0]}: the order of the batch is wanted, since "
            "with any other the labels may belong to other samples"
        )
        assert row[: len(want)] == want, f"sample {n} is {want}, and row {n} is {row}"


def dtypes(answer: Answer) -> None:
    """the dtype of the samples, and their exact values"""
    for dtype, first in (
        (torch.int64, 2**24),
        (torch.int32, 1),
        (torch.float64, 0.1),
    ):
        parts = samples(dtype, first)
        x, _, _ = padded(answer, parts, -1)
        name, came = str(dtype)[6:], str(x.dtype)[6:]
        assert not (x.is_floating_point() and not dtype.is_floating_point), (
            f"samples of {name} became {came}, which no embedding takes: a rectangle "
            "made by `torch.zeros` or `torch.full` needs the samples' dtype"
        )
        assert x.dtype == dtype, f"samples of {name} became {came}"
        got, want = x[0, : SIZES[0]].tolist(), parts[0].tolist()
        lost = [(w, g) for w, g in zip(want, got, strict=True) if w != g]
        assert not lost, (
            f"{lost[0][0]} became {lost[0][1]}: on its way it was a float32, and the "
            "conversion back cannot know"
        )


def pads(answer: Answer) -> None:
    """`pad` in all other places"""
    for dtype, pad in ((torch.int64, 190), (torch.int64, -1), (torch.float32, -0.5)):
        x, _, _ = padded(answer, samples(dtype), pad)
        rest = [value for n, size in enumerate(SIZES) for value in x[n, size:].tolist()]
        assert set(rest) == {pad}, (
            f"`pad` is {pad}, and behind the samples stands {sorted(set(rest))[0]}"
        )


def masks(answer: Answer) -> None:
    """True where a value of a sample stands"""
    empty = torch.empty(0, dtype=torch.int64)
    for parts in (samples(), [*samples(), empty]):
        _, mask, _ = padded(answer, parts, -1)
        assert mask.dtype == torch.bool, (
            f"a boolean mask is wanted, and {str(mask.dtype)[6:]} came: `x[mask]` would "
            "take rows number 0 and 1"
        )
        want = torch.tensor([[n < len(part) for n in range(WIDTH)] for part in parts])
        assert not torch.equal(mask, ~want), (
            "the mask is True at the pads, and False where a value stands: it is wanted "
            "the other way round"
        )
        assert not mask.all(), (
            "the mask is True in every place: after padding all rows have one length, so "
            "when must the lengths be taken?"
        )
        assert torch.equal(mask, want), (
            f"the sizes are {[len(part) for part in parts]}, and the mask has "
            f"{mask.sum(1).tolist()} True in its rows"
        )


def values_like_the_pad(answer: Answer) -> None:
    """a sample that holds the value of the pad"""
    parts = [torch.tensor([5, 0, 7]), torch.tensor([0])]
    _, mask, _ = padded(answer, parts, 0)
    assert mask.tolist() == [[True, True, True], [True, False, False]], (
        f"the samples are [5, 0, 7] and [0], `pad` is 0, and the mask is {mask.tolist()}: "
        "what a place holds does not tell whether it is a pad"
    )


def class_labels(answer: Answer) -> None:
    """labels: one dimension, whole numbers as int64"""
    _, _, y = padded(answer, samples(), -1, (3, 0, 15, 3))
    assert tuple(y.shape) == (len(SIZES),), (
        f"the labels are ({len(SIZES)},), and {tuple(y.shape)} came: a column is "
        "broadcast against a row without a word"
    )
    assert y.dtype == torch.int64, (
        f"whole labels are int64, which `cross_entropy` takes for classes; "
        f"{str(y.dtype)[6:]} came"
    )
    assert y.tolist() == [3, 0, 15, 3], (
        f"the labels are [3, 0, 15, 3], and {y.tolist()} came"
    )


def float_labels(answer: Answer) -> None:
    """labels that are floats stay floats"""
    _, _, y = padded(answer, samples(), -1, (0.5, 1.5, 2.0, -1.0))
    assert y.dtype == torch.float32, (
        f"the labels are 0.5, 1.5, 2.0, -1.0, and came as {str(y.dtype)[6:]}: "
        f"{y.tolist()}"
    )


EXERCISES = [
    Exercise(
        id="4.3-collate",
        title="A collate with dtype, mask and pad value",
        minutes=10,
        difficulty="medium",
        deliver="`padded_batch(batch, pad)`: the samples in one tensor of their dtype, a "
        "boolean mask that is True where a value stands, and the labels",
        reference=answers.padded_batch,
        tests=(
            shapes,
            values,
            dtypes,
            pads,
            masks,
            values_like_the_pad,
            class_labels,
            float_labels,
        ),
        hints=(
            "Which three things do you know before padding, and can no longer read off "
            "the padded tensor?",
            "`pad_sequence(parts, batch_first=True, padding_value=pad)` keeps the dtype; "
            "`zip(*batch)` takes samples and labels apart.",
            "The mask: `torch.arange(width)` is a row, `lengths[:, None]` a column. What "
            "does `<` make of them?",
        ),
        why=(
            "`pad_sequence` takes dtype and width from the samples. The mask is made from "
            "the lengths, which are known before padding, and so no value can be mistaken "
            "for a pad. `torch.tensor` of whole numbers is int64, of floats float32."
        ),
        wrong=(
            Wrong(answers.float_rectangle, "which no embedding takes"),
            Wrong(answers.through_float, "the conversion back cannot know"),
            Wrong(answers.always_long, "samples of int32 became int64"),
            Wrong(answers.zero_pads, "and behind the samples stands 0"),
            Wrong(answers.places_first, "puts the places first unless"),
            Wrong(answers.padded_on_the_left, "at the right end of its row"),
            Wrong(answers.longest_first, "the order of the batch is wanted"),
            Wrong(answers.fixed_width, "is thrown away"),
            Wrong(answers.shortest, "its end is cut off"),
            Wrong(answers.true_is_hidden, "the other way round"),
            Wrong(answers.mask_from_values, "does not tell whether it is a pad"),
            Wrong(answers.lengths_after_padding, "when must the lengths be taken"),
            Wrong(answers.mask_of_numbers, "a boolean mask is wanted"),
            Wrong(answers.lengths_for_a_mask, "compare the lengths with"),
            Wrong(answers.labels_as_a_column, "a column is broadcast against a row"),
            Wrong(answers.labels_as_floats, "whole labels are int64"),
            Wrong(answers.labels_as_long, "came as int64"),
            Wrong(answers.labels_left_alone, "the labels came as tuple"),
        ),
        variants=(answers.row_by_row, answers.each_part_padded),
    )
]
