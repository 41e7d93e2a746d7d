"""Answers to exercise 6.3-save: the reference, another right one, and wrong ones."""

import io
import os
from typing import Any

import torch
import torch.distributed as dist


class OneFile:
    def save(self, ddp, path):
        if dist.get_rank() == 0:
            part = path.with_suffix(".part")
            torch.save(ddp.module.state_dict(), part)
            os.replace(part, path)
        dist.barrier()

    def load(self, model, path, device):
        state = torch.load(path, map_location=device, weights_only=True)
        model.load_state_dict(state)
        return model


# --- right, written differently ---------------------------------------------------------


class WordFromRankZero:
    """Bytes first, the prefix cut off, a broadcast to wait for, by way of the CPU."""

    def save(self, ddp: Any, path: Any) -> None:
        if int(os.environ["RANK"]) == 0:
            whole = io.BytesIO()
            state = ddp.state_dict()
            torch.save({k.removeprefix("module."): v for k, v in state.items()}, whole)
            with open(f"{path}.new", "wb") as file:
                file.write(whole.getvalue())
            os.replace(f"{path}.new", path)
        done = torch.zeros(1)
        dist.broadcast(done, src=0)

    def load(self, model: Any, path: Any, device: Any) -> Any:
        model.load_state_dict(torch.load(path, "cpu", weights_only=True))
        return model.to(device)


# --- wrong ------------------------------------------------------------------------------


class WrapperSaved(OneFile):
    """The state of the wrapper, whose names have a prefix."""

    def save(self, ddp: Any, path: Any) -> None:
        if dist.get_rank() == 0:
            torch.save(ddp.state_dict(), f"{path}.part")
            os.replace(f"{path}.part", path)
        dist.barrier()


class EveryoneSaves(OneFile):
    """Every rank writes the file."""

    def save(self, ddp: Any, path: Any) -> None:
        part = f"{path}.part{dist.get_rank()}"
        torch.save(ddp.module.state_dict(), part)
        os.replace(part, path)
        dist.barrier()


class BarrierInside(OneFile):
    """Rank 0 saves and then waits for the others, alone."""

    def save(self, ddp: Any, path: Any) -> None:
        if dist.get_rank() == 0:
            torch.save(ddp.module.state_dict(), f"{path}.part")
            os.replace(f"{path}.part", path)
            dist.barrier()


class NobodyWaits(OneFile):
    """Rank 0 saves, the others go on."""

    def save(self, ddp: Any, path: Any) -> None:
        if dist.get_rank() == 0:
            torch.save(ddp.module.state_dict(), f"{path}.part")
            os.replace(f"{path}.part", path)


class BarrierFirst(OneFile):
    """All ranks meet, then rank 0 saves."""

    def save(self, ddp: Any, path: Any) -> None:
        dist.barrier()
        if dist.get_rank() == 0:
            torch.save(ddp.module.state_dict(), f"{path}.part")
            os.replace(f"{path}.part", path)


class WrittenInPlace(OneFile):
    """Straight onto the checkpoint before."""

    def save(self, ddp: Any, path: Any) -> None:
        if dist.get_rank() == 0:
            torch.save(ddp.module.state_dict(), path)
        dist.barrier()


class BackToItsPlace(OneFile):
    """Every rank loads to where the file says, the device of rank 0."""

    def load(self, model: Any, path: Any, device: Any) -> Any:
        model.load_state_dict(torch.load(path, weights_only=True))
        return model.to(device)


class Trusting(OneFile):
    """Whatever the file wants is done."""

    def load(self, model: Any, path: Any, device: Any) -> Any:
        state = torch.load(path, map_location=device, weights_only=False)
        model.load_state_dict(state)
        return model


# --- wrong, and only a real kill shows it ------------------------------------------------


class BytesInPlace(OneFile):
    """In one go, as it seems; but the file is emptied first and written in pieces."""

    def save(self, ddp: Any, path: Any) -> None:
        if dist.get_rank() == 0:
            whole = io.BytesIO()
            torch.save(ddp.module.state_dict(), whole)
            path.write_bytes(whole.getvalue())
        dist.barrier()
