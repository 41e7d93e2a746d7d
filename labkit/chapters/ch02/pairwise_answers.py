"""Answers to the exercise 2.2-pairwise: the reference, wrong ones, and other right ones."""

import torch
from torch import Tensor

EXACT = "donot_use_mm_for_euclid_dist"


def pairwise(x: Tensor, y: Tensor) -> Tensor:
    result = x.new_empty(len(x), len(y))
    for start in range(0, len(x), 4):
        rows = x[start : start + 4]
        result[start : start + 4] = ((rows[:, None] - y) ** 2).sum(-1)
    return result


def three_axes(x: Tensor, y: Tensor) -> Tensor:
    return ((x[:, None] - y) ** 2).sum(-1)


def products(x: Tensor, y: Tensor) -> Tensor:
    return x.square().sum(1)[:, None] + y.square().sum(1) - 2 * x @ y.T


def default_cdist(x: Tensor, y: Tensor) -> Tensor:
    return torch.cdist(x, y).square_()


def not_squared(x: Tensor, y: Tensor) -> Tensor:
    return torch.cdist(x, y, compute_mode=EXACT)


def centred(x: Tensor, y: Tensor) -> Tensor:
    mean = torch.cat([x, y]).mean(0)
    return products(x - mean, y - mean)


def large_chunks(x: Tensor, y: Tensor) -> Tensor:
    return torch.cat([((rows[:, None] - y) ** 2).sum(-1) for rows in x.split(64)])


def through_numpy(x: Tensor, y: Tensor) -> Tensor:
    return torch.from_numpy(((x.numpy()[:, None] - y.numpy()) ** 2).sum(-1))


def full_chunks_only(x: Tensor, y: Tensor) -> Tensor:
    chunks = x[: len(x) // 4 * 4].split(4)
    return torch.cat([((c[:, None] - y) ** 2).sum(-1) for c in chunks])


def whole_list(x: Tensor, y: Tensor) -> Tensor:
    differences = [rows[:, None] - y for rows in x.split(4)]
    return torch.cat([(d**2).sum(-1) for d in differences])


def exact_cdist(x: Tensor, y: Tensor) -> Tensor:
    return torch.cdist(x, y, compute_mode=EXACT) ** 2


def row_by_row(x: Tensor, y: Tensor) -> Tensor:
    return torch.stack([((row - y) ** 2).sum(1) for row in x])


def feature_by_feature(x: Tensor, y: Tensor) -> Tensor:
    result = torch.zeros(len(x), len(y))
    for a, b in zip(x.T, y.T, strict=True):
        result += (a[:, None] - b) ** 2
    return result
