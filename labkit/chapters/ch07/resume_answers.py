"""Answers to exercise 7.2-resume: the reference, another right one, and wrong ones."""

import io
import os
import random
from typing import Any

import torch


class Checkpoint:
    def save(self, path, epoch, model, optimizer, scheduler):
        state = {
            "epoch": epoch,
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
            "torch_rng": torch.get_rng_state(),
            "python_rng": random.getstate(),
        }
        fresh = path.with_suffix(".new")
        with open(fresh, "wb") as file:
            torch.save(state, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, path)

    def start(self, path, make_model, make_optimizer, make_scheduler):
        model = make_model()
        optimizer = make_optimizer(model)
        scheduler = make_scheduler(optimizer)
        if not path.exists():
            return 0, model, optimizer, scheduler
        state = torch.load(path, weights_only=True)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        scheduler.load_state_dict(state["scheduler"])
        torch.set_rng_state(state["torch_rng"])
        random.setstate(state["python_rng"])
        return state["epoch"] + 1, model, optimizer, scheduler


# --- right, written differently ---------------------------------------------------------


def randomness() -> list[Any]:
    return [torch.random.get_rng_state(), random.getstate()]


class NextEpochInBytes:
    """Bytes in memory first; a list of state dicts; the scheduler before the optimizer."""

    def save(
        self, path: Any, epoch: int, model: Any, optimizer: Any, scheduler: Any
    ) -> None:
        whole = io.BytesIO()
        dicts = [part.state_dict() for part in (model, optimizer, scheduler)]
        torch.save((epoch + 1, dicts, randomness()), whole)
        beside = f"{path}.part"
        with open(beside, "wb") as file:
            file.write(whole.getvalue())
        os.replace(beside, path)

    def start(
        self, path: Any, make_model: Any, make_optimizer: Any, make_scheduler: Any
    ) -> tuple[Any, ...]:
        model = make_model()
        optimizer = make_optimizer(model)
        parts = [model, optimizer, make_scheduler(optimizer)]
        first = 0
        if os.path.exists(path):
            first, dicts, (in_torch, in_python) = torch.load(path, weights_only=True)
            for part, state in reversed(list(zip(parts, dicts, strict=True))):
                part.load_state_dict(state)
            random.setstate(in_python)
            torch.set_rng_state(in_torch)
        return (first, *parts)


# --- wrong ------------------------------------------------------------------------------


class OptimizerForgotten(Checkpoint):
    """The weights, the schedule, the random states; the optimizer is made anew."""

    def start(
        self, path: Any, make_model: Any, make_optimizer: Any, make_scheduler: Any
    ) -> tuple[Any, ...]:
        parts = make_model, make_optimizer, make_scheduler
        first, model, optimizer, scheduler = super().start(path, *parts)
        optimizer.state.clear()
        return first, model, optimizer, scheduler


class RandomForgotten(Checkpoint):
    """All but the random states: the seed at the start must do."""

    def start(
        self, path: Any, make_model: Any, make_optimizer: Any, make_scheduler: Any
    ) -> tuple[Any, ...]:
        before = torch.get_rng_state(), random.getstate()
        parts = super().start(path, make_model, make_optimizer, make_scheduler)
        if path.exists():
            torch.set_rng_state(before[0])
            random.setstate(before[1])
        return parts


class TorchRandomOnly(Checkpoint):
    """Torch's random state and no other."""

    def start(
        self, path: Any, make_model: Any, make_optimizer: Any, make_scheduler: Any
    ) -> tuple[Any, ...]:
        before = random.getstate()
        parts = super().start(path, make_model, make_optimizer, make_scheduler)
        random.setstate(before)
        return parts


class SameEpochAgain(Checkpoint):
    """Begins with the epoch that the checkpoint was written after."""

    def start(
        self, path: Any, make_model: Any, make_optimizer: Any, make_scheduler: Any
    ) -> tuple[Any, ...]:
        first, *parts = super().start(path, make_model, make_optimizer, make_scheduler)
        return (max(first - 1, 0), *parts)


class LoadsBeforeItBuilds(Checkpoint):
    """The optimizer is loaded, and then the schedule is made for it."""

    def start(
        self, path: Any, make_model: Any, make_optimizer: Any, make_scheduler: Any
    ) -> tuple[Any, ...]:
        if not path.exists():
            return super().start(path, make_model, make_optimizer, make_scheduler)
        state = torch.load(path, weights_only=True)
        model = make_model()
        model.load_state_dict(state["model"])
        optimizer = make_optimizer(model)
        optimizer.load_state_dict(state["optimizer"])
        scheduler = make_scheduler(optimizer)
        scheduler.load_state_dict(state["scheduler"])
        torch.set_rng_state(state["torch_rng"])
        random.setstate(state["python_rng"])
        return state["epoch"] + 1, model, optimizer, scheduler


class WrittenInPlace(Checkpoint):
    """All of it, and straight onto the checkpoint before."""

    def save(
        self, path: Any, epoch: int, model: Any, optimizer: Any, scheduler: Any
    ) -> None:
        state = {
            "epoch": epoch,
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
            "torch_rng": torch.get_rng_state(),
            "python_rng": random.getstate(),
        }
        torch.save(state, path)


class InPlaceAndHopeful(WrittenInPlace):
    """Written in place; a file that cannot be read counts as none."""

    def start(
        self, path: Any, make_model: Any, make_optimizer: Any, make_scheduler: Any
    ) -> tuple[Any, ...]:
        parts = make_model, make_optimizer, make_scheduler
        try:
            return super().start(path, *parts)
        except Exception:
            path.unlink()
            return super().start(path, *parts)
