"""Answers to exercise 6.2-ddp: another right one, and wrong ones.

They share one script, in pieces; each wrong answer has another piece.
"""

from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import init_process_group
from torch.utils.data import DataLoader, DistributedSampler

from labkit.chapters.ch06.ddp_script import Script, answer


@answer
class InPieces(Script):
    """Right: the backend left to torch, `cuda()`, objects gathered, the inner model."""


@answer
class NeverBegins(Script):
    """The script before the first edit, as far as the process group goes."""

    def begin(self) -> None:
        pass

    def end(self) -> None:
        pass


@answer
class AlwaysNccl(Script):
    """The backend that the article writes, on any machine."""

    def begin(self) -> None:
        init_process_group("nccl")


@answer
class AlwaysGloo(Script):
    """The backend that works everywhere, also where a better one is there."""

    def begin(self) -> None:
        init_process_group("gloo")


@answer
class NeverEnds(Script):
    """The process group is left to the end of the process."""

    def end(self) -> None:
        pass


@answer
class FirstDevice(Script):
    """All ranks on the current GPU, which nobody has set."""

    def placed(self) -> Any:
        return self.model.to("cuda" if torch.cuda.is_available() else "cpu")


@answer
class DeviceOfRank(Script):
    """The number of the rank among all machines, instead of that on its own."""

    def placed(self) -> Any:
        if not torch.cuda.is_available():
            return self.model
        return self.model.to(f"cuda:{self.rank}")


@answer
class NotWrapped(Script):
    """Two trainings that know nothing of each other."""

    def wrapped(self, model: Any) -> Any:
        return model


@answer
class Bypassed(Script):
    """The model inside is called, not the wrapper."""

    def stepped(self, model: Any, optimizer: Any, batch: Any) -> float:
        return float(self.step(model.module, optimizer, batch))


@answer
class EachAll(Script):
    """Each rank goes through all data."""

    def loader(self) -> Any:
        return DataLoader(self.data, 20, shuffle=True)

    def new_epoch(self, loader: Any, epoch: int) -> None:
        pass


@answer
class BothShuffle(Script):
    """A sampler, and `shuffle=True` as before."""

    def loader(self) -> Any:
        return DataLoader(
            self.data, 20, shuffle=True, sampler=DistributedSampler(self.data)
        )


@answer
class NobodyShuffles(Script):
    """`shuffle=True` is taken away, and the sampler told not to."""

    def loader(self) -> Any:
        return DataLoader(
            self.data, 20, sampler=DistributedSampler(self.data, shuffle=False)
        )


@answer
class SeedOfRank(Script):
    """Another seed for each rank's sampler."""

    def loader(self) -> Any:
        sampler: Any = DistributedSampler(self.data, seed=self.rank)
        return DataLoader(self.data, 20, sampler=sampler)


@answer
class NoSetEpoch(Script):
    """The sampler is not told about epochs."""

    def new_epoch(self, loader: Any, epoch: int) -> None:
        pass


@answer
class OwnLoss(Script):
    """Rank 0 prints its own loss."""

    def tell(self, epoch: int, mean: float) -> None:
        if self.rank == 0:
            print(f"epoch {epoch}: loss {mean:.2f}")


@answer
class AllPrint(Script):
    """The mean over all ranks, from each of them."""

    def tell(self, epoch: int, mean: float) -> None:
        both = torch.tensor(mean)
        dist.all_reduce(both)
        print(f"epoch {epoch}: loss {both / 2:.2f}")


@answer
class SumOfLosses(Script):
    """What `all_reduce` returns by default, which is a sum."""

    def tell(self, epoch: int, mean: float) -> None:
        both = torch.tensor(mean)
        dist.all_reduce(both)
        if self.rank == 0:
            print(f"epoch {epoch}: loss {both:.2f}")


@answer
class AllSave(Script):
    """Each rank writes the file."""

    def save(self, model: Any) -> None:
        torch.save(self.model.state_dict(), self.path)


@answer
class WrapperSaved(Script):
    """The state of the wrapper, with its prefix."""

    def save(self, model: Any) -> None:
        if self.rank == 0:
            torch.save(model.state_dict(), self.path)


@answer
class NobodyWaits(Script):
    """The other ranks are done before the file is there."""

    def wait(self) -> None:
        pass


@answer
class OnlyRankZeroReduces(Script):
    """The collective inside the `if`: rank 0 waits for a rank that never comes."""

    def tell(self, epoch: int, mean: float) -> None:
        if self.rank == 0:
            both = torch.tensor(mean)
            dist.all_reduce(both)
            print(f"epoch {epoch}: loss {both / 2:.2f}")

    def save(self, model: Any) -> None:
        pass

    def wait(self) -> None:
        pass


# All but the last, after which the ranks do not find together again.
TOGETHER = (
    InPieces,
    *(NeverBegins, AlwaysNccl, AlwaysGloo, NeverEnds, FirstDevice, DeviceOfRank),
    *(NotWrapped, Bypassed, EachAll, BothShuffle, NobodyShuffles, SeedOfRank),
    *(NoSetEpoch, OwnLoss, AllPrint, SumOfLosses, AllSave, WrapperSaved, NobodyWaits),
)
