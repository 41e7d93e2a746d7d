"""What `watch_loader` accepts, and its one sentence for each thing that it cannot do."""

import gc
import re
import signal
import sys
from typing import Any

from torch.utils.data import DataLoader
from torch.utils.data import dataloader as torch_loader

from labkit.probe.finding import names
from labkit.probe.loader_reading import size_of
from labkit.probe.loader_record import Problem
from labkit.probe.loader_twin import Twin


def check_arguments(loader: Any, step: Any, batches: Any) -> None:
    """Raise TypeError or ValueError where `watch_loader` cannot begin."""
    if not isinstance(loader, DataLoader):
        raise TypeError(
            f"watch_loader(loader): loader is a torch.utils.data.DataLoader, and got "
            f"{_a(loader)}."
        )
    if step is not None and not callable(step):
        raise TypeError(
            f"watch_loader(loader, step): step is a function of one batch or None, and "
            f"got {_a(step)}."
        )
    whole = isinstance(batches, int) and not isinstance(batches, bool)
    if batches is not None and (not whole or batches < 1):
        raise ValueError(
            f"watch_loader(loader, batches=...): batches is a whole number from 1, or "
            f"None for the whole epoch, and got {batches!r}."
        )
    if size_of(loader.dataset) == 0:
        raise ValueError(
            "watch_loader(loader): the loader's dataset is empty, and needs at least "
            "one sample."
        )
    taken = in_use(loader)
    if taken is not None:
        raise ValueError(
            f"watch_loader(loader): this loader is being iterated ({taken} batches were "
            f"taken), so let that loop end or delete its iterator first."
        )


def in_use(loader: DataLoader[Any]) -> int | None:
    """Return how many batches an unfinished iterator of the loader gave, else None."""
    # the loader and this call; each iterator holds it as well
    if sys.getrefcount(loader._index_sampler) <= 2:
        return None
    own = getattr(loader, "_iterator", None)
    kinds = _kinds(torch_loader._BaseDataLoaderIter)
    for thing in [thing for thing in gc.get_objects() if type(thing) in kinds]:
        same = getattr(thing, "_index_sampler", None) is loader._index_sampler
        if not same or thing._dataset is not loader.dataset or _ended(thing):
            continue
        # persistent workers keep theirs after a loop that was left: nobody else has it
        if thing is own and sys.getrefcount(thing) <= 4:
            continue
        return int(thing._num_yielded)
    return None


def _kinds(kind: type) -> set[type]:
    return {kind}.union(*map(_kinds, kind.__subclasses__()))


def _ended(iterator: Any) -> bool:
    if getattr(iterator, "_shutdown", False):
        return True
    if iterator._dataset_kind == torch_loader._DatasetKind.Iterable:
        fetcher = getattr(iterator, "_dataset_fetcher", None)
        status = getattr(iterator, "_workers_status", [True])
        return bool(getattr(fetcher, "ended", False)) or not any(status)
    return bool(iterator._num_yielded >= len(iterator))


def cannot_send(method: str, found: tuple[str, ...]) -> ValueError:
    """Return the error for objects that the loader's workers cannot be sent."""
    return ValueError(
        f"watch_loader(loader): its workers are started by {method}, and these cannot "
        f"be sent to them: {'; '.join(found)} (see page 4.2)."
    )


def cannot_read(problem: Problem, workers: int, worker: int) -> RuntimeError:
    """Return the error for a sample or a batch that could not be made."""
    who = f" in worker {worker}" if workers else ""
    if problem.what == "read":
        which = f"sample {_few(problem.index)}"
        said = f"reading {which}{who} raised {problem.error}"
    elif problem.what == "send":
        which = "" if problem.index is None else f" of samples {_few(problem.index)}"
        said = f"the batch{which} cannot be sent back{who}: {problem.error}"
    else:
        which = f"samples {_few(problem.index)}"
        said = f"the items of {which} cannot be collated{who}: {problem.error}"
    error = RuntimeError(f"watch_loader(loader): {said}".rstrip(".") + ".")
    error.add_note(problem.trace)
    return error


def worker_died(error: Exception, twin: Twin) -> BaseException | None:
    """Return the error for a worker that ended, None for another one.

    An Interrupt goes to workers too, and torch may hear of a worker's end by it before
    this process hears of its own: it is an Interrupt all the same.
    """
    said = str(error)
    # torch's wrapping of what `worker_init_fn` raised
    if found := re.search(r"^Caught \w+ in DataLoader worker process (\d+)", said):
        last = said.strip().splitlines()[-1]
        return RuntimeError(
            f"watch_loader(loader): starting worker {found[1]} raised {last}".rstrip(
                "."
            )
            + "."
        )
    pids = [int(pid) for pid in re.findall(r"\d+", said.partition("pid")[2])]
    if not said.startswith("DataLoader worker") or not pids:
        return None
    number = twin.worker_number(pids[0])
    code = twin.exit_code(number)
    if code == -signal.SIGINT or said.rstrip(" .").endswith("signal: Interrupt"):
        return KeyboardInterrupt()
    how = "ended unexpectedly"
    if code is not None and code < 0:
        how = f"was killed by {signal.Signals(-code).name}"
    elif "signal" in said:
        how = f"was killed by a signal ({said.rsplit(': ', 1)[-1].strip(' .')})"
    todo = twin.unfinished(number)
    which = f" while it had samples {_few(todo)} to read" if todo else ""
    return RuntimeError(f"watch_loader(loader): worker {number} {how}{which}.")


def _few(index: Any) -> str:
    if isinstance(index, list | tuple):
        return names(map(str, index), 8)
    return str(index)


def _a(thing: Any) -> str:
    return f"an object of type {type(thing).__name__}"
