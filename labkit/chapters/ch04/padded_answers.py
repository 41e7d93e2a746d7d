"""Answers to the exercise of part 4.3 that people really give, right and wrong."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence

Batch = Sequence[tuple[Tensor, float]]
Padded = tuple[Tensor, Tensor, Tensor]


def padded_batch(batch: Batch, pad: float) -> Padded:
    parts, labels = zip(*batch, strict=True)
    lengths = torch.tensor([len(part) for part in parts])
    x = pad_sequence(list(parts), batch_first=True, padding_value=pad)
    mask = torch.arange(x.shape[1]) < lengths[:, None]
    return x, mask, torch.tensor(labels)


def row_by_row(batch: Batch, pad: float) -> Padded:
    parts = [part for part, _ in batch]
    size = len(parts), max(len(part) for part in parts)
    x = torch.full(size, pad, dtype=parts[0].dtype)
    mask = torch.zeros(size, dtype=torch.bool)
    for n, part in enumerate(parts):
        x[n, : len(part)] = part
        mask[n, : len(part)] = True
    return x, mask, torch.tensor([label for _, label in batch])


def each_part_padded(batch: Batch, pad: float) -> Padded:
    longest = max(len(part) for part, _ in batch)
    rows, masks = [], []
    for part, _ in batch:
        more = longest - len(part)
        rows.append(F.pad(part, (0, more), value=pad))
        masks.append(F.pad(torch.ones_like(part, dtype=torch.bool), (0, more)))
    labels = [torch.tensor(label) for _, label in batch]
    return torch.stack(rows), torch.stack(masks), torch.stack(labels)


def float_rectangle(batch: Batch, pad: float) -> Padded:
    """Fills a rectangle of the default dtype."""
    x, mask, labels = padded_batch(batch, pad)
    filled = torch.full(x.shape, float(pad))
    filled[:] = x
    return filled, mask, labels


def through_float(batch: Batch, pad: float) -> Padded:
    """Fills a rectangle of floats, and turns it into integers at the end."""
    x, mask, labels = padded_batch(batch, pad)
    return x.float().to(x.dtype), mask, labels


def always_long(batch: Batch, pad: float) -> Padded:
    """Takes it that samples are token ids."""
    x, mask, labels = padded_batch(batch, pad)
    return x.long(), mask, labels


def zero_pads(batch: Batch, pad: float) -> Padded:
    """Leaves `pad` aside: zero is the usual one."""
    _, mask, labels = padded_batch(batch, pad)
    return pad_sequence([part for part, _ in batch], batch_first=True), mask, labels


def places_first(batch: Batch, pad: float) -> Padded:
    """Takes the layout that `pad_sequence` has by default."""
    parts = [part for part, _ in batch]
    _, mask, labels = padded_batch(batch, pad)
    return pad_sequence(parts, padding_value=pad), mask, labels


def padded_on_the_left(batch: Batch, pad: float) -> Padded:
    """Pads in front, as for a model that writes on."""
    x, mask, labels = padded_batch(batch, pad)
    for n, (part, _) in enumerate(batch):
        x[n] = x[n].roll(x.shape[1] - len(part))
        mask[n] = mask[n].flip(0)
    return x, mask, labels


def longest_first(batch: Batch, pad: float) -> Padded:
    """Sorts the samples, as packing once asked for, and leaves the labels."""
    x, mask, labels = padded_batch(batch, pad)
    order = mask.sum(1).argsort(descending=True)
    return x[order], mask[order], labels


def fixed_width(batch: Batch, pad: float) -> Padded:
    """Pads every batch to the longest sample that there will ever be."""
    x, mask, labels = padded_batch(batch, pad)
    more = 64 - x.shape[1]
    return F.pad(x, (0, more), value=pad), F.pad(mask, (0, more)), labels


def shortest(batch: Batch, pad: float) -> Padded:
    """Cuts to the length that all of them have."""
    x, mask, labels = padded_batch(batch, pad)
    width = int(mask.sum(1).min())
    return x[:, :width], mask[:, :width], labels


def true_is_hidden(batch: Batch, pad: float) -> Padded:
    """Makes the mask that `key_padding_mask` takes."""
    x, mask, labels = padded_batch(batch, pad)
    return x, ~mask, labels


def mask_from_values(batch: Batch, pad: float) -> Padded:
    """Reads the mask off the padded values."""
    x, _, labels = padded_batch(batch, pad)
    return x, x != pad, labels


def lengths_after_padding(batch: Batch, pad: float) -> Padded:
    """Measures the lengths when all of them are the same."""
    x, _, labels = padded_batch(batch, pad)
    lengths = torch.tensor([len(row) for row in x])
    return x, torch.arange(x.shape[1]) < lengths[:, None], labels


def mask_of_numbers(batch: Batch, pad: float) -> Padded:
    """Returns the mask of 0 and 1 that tokenizers return."""
    x, mask, labels = padded_batch(batch, pad)
    return x, mask.long(), labels


def lengths_for_a_mask(batch: Batch, pad: float) -> Padded:
    """Returns the lengths, from which a mask can be made."""
    x, mask, labels = padded_batch(batch, pad)
    return x, mask.sum(1), labels


def labels_as_a_column(batch: Batch, pad: float) -> Padded:
    """Makes one row a label."""
    x, mask, labels = padded_batch(batch, pad)
    return x, mask, labels[:, None]


def labels_as_floats(batch: Batch, pad: float) -> Padded:
    """Makes `torch.Tensor(labels)`, which is float32 whatever comes."""
    x, mask, labels = padded_batch(batch, pad)
    return x, mask, labels.float()


def labels_as_long(batch: Batch, pad: float) -> Padded:
    """Takes it that labels are classes."""
    x, mask, labels = padded_batch(batch, pad)
    return x, mask, labels.long()


def labels_left_alone(batch: Batch, pad: float) -> tuple[Tensor, Tensor, tuple]:
    """Returns the labels as `zip` gives them."""
    x, mask, _ = padded_batch(batch, pad)
    return x, mask, tuple(label for _, label in batch)
