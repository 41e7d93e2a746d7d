"""Answers to the exercise 2.3-module: the reference, wrong ones, and other right ones."""

import torch
from torch import nn


class Standardized(nn.Module):
    mean: torch.Tensor
    std: torch.Tensor

    def __init__(self, mean: torch.Tensor, std: torch.Tensor) -> None:
        super().__init__()
        self.register_buffer("mean", mean)
        self.register_buffer("std", std)
        self.linear = nn.Linear(65, 10, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = (x - self.mean) / self.std
        ones = x.new_ones(len(x), 1)
        return self.linear(torch.cat([x, ones], dim=1))


class PlainAttributes(Standardized):
    def __init__(self, mean: torch.Tensor, std: torch.Tensor) -> None:
        nn.Module.__init__(self)
        self.mean, self.std = mean, std
        self.linear = nn.Linear(65, 10, bias=False)


class Parameters(Standardized):
    def __init__(self, mean: torch.Tensor, std: torch.Tensor) -> None:
        nn.Module.__init__(self)
        self.mean = nn.Parameter(mean, requires_grad=False)
        self.std = nn.Parameter(std, requires_grad=False)
        self.linear = nn.Linear(65, 10, bias=False)


class NotSaved(Standardized):
    def __init__(self, mean: torch.Tensor, std: torch.Tensor) -> None:
        nn.Module.__init__(self)
        self.register_buffer("mean", mean, persistent=False)
        self.register_buffer("std", std, persistent=False)
        self.linear = nn.Linear(65, 10, bias=False)


class OnesOnTheCpu(Standardized):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = (x - self.mean) / self.std
        return self.linear(torch.cat([x, torch.ones(len(x), 1)], dim=1))


class OnesInFloat32(Standardized):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = (x - self.mean) / self.std
        ones = torch.ones(len(x), 1, device=x.device)
        return self.linear(torch.cat([x, ones], dim=1))


class OnCuda(Standardized):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = (x - self.mean) / self.std
        ones = torch.ones(len(x), 1).cuda()
        return self.linear(torch.cat([x, ones], dim=1))


class RemembersItsDevice(Standardized):
    def __init__(self, mean: torch.Tensor, std: torch.Tensor) -> None:
        super().__init__(mean, std)
        self.device = mean.device

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = (x - self.mean) / self.std
        ones = torch.ones(len(x), 1, device=self.device, dtype=x.dtype)
        return self.linear(torch.cat([x, ones], dim=1))


class OnesFirst(Standardized):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = (x - self.mean) / self.std
        return self.linear(torch.cat([x.new_ones(len(x), 1), x], dim=1))


class OnesKept(Standardized):
    ones: torch.Tensor

    def __init__(self, mean: torch.Tensor, std: torch.Tensor) -> None:
        super().__init__(mean, std)
        self.register_buffer("ones", torch.ones(1, 1), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = (x - self.mean) / self.std
        return self.linear(torch.cat([x, self.ones.expand(len(x), 1)], dim=1))


class OneConstant(nn.Module):
    """Right, written differently: both constants in one buffer."""

    constants: torch.Tensor

    def __init__(self, mean: torch.Tensor, std: torch.Tensor) -> None:
        super().__init__()
        self.linear = nn.Linear(65, 10, bias=False)
        self.register_buffer("constants", torch.stack([mean, std]))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mean, std = self.constants
        ones = torch.ones_like(x[:, :1])
        return self.linear(torch.cat([(x - mean) / std, ones], dim=1))


class OtherNames(nn.Module):
    """Right, written differently: other names, ones by device and dtype."""

    center: torch.Tensor
    scale: torch.Tensor

    def __init__(self, mean: torch.Tensor, std: torch.Tensor) -> None:
        super().__init__()
        self.linear = nn.Linear(65, 10, bias=False)
        self.register_buffer("center", mean.clone())
        self.register_buffer("scale", 1 / std)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        ones = torch.ones((x.shape[0], 1), device=x.device, dtype=x.dtype)
        return self.linear(torch.hstack([(x - self.center) * self.scale, ones]))
