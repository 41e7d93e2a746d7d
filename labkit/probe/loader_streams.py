"""Judges random streams: the same in two workers, or the same in two epochs."""

from collections.abc import Container, Iterable, Iterator

from labkit.probe.finding import Finding, names
from labkit.probe.loader_random import GLOBAL
from labkit.probe.loader_record import Record


def judge_streams(
    first: Iterable[Record],
    second: Iterable[Record],
    stream: bool,
    reseeded: Container[str] = (),
) -> Iterator[Finding]:
    """Yield what is wrong with the workers' random streams.

    Args:
        first: the records of the watched epoch.
        second: those of the workers' next start; empty where they live on.
        stream: whether the dataset is an iterable one.
        reseeded: generators that get a seed for each item: that they are alike is meant.

    Returns:
        An iterator of findings, one for each generator.
    """
    start, used = _states(first, stream)
    again, _ = _states(second, stream)
    paths = {path for marks in start.values() for path in marks}
    for path in sorted(path for path in paths if path not in reseeded):
        users = [worker for worker in start if path in used[worker]]
        groups: dict[bytes, list[int]] = {}
        for worker in users:
            groups.setdefault(start[worker][path], []).append(worker)
        alike = next((group for group in groups.values() if len(group) > 1), [])
        repeats = [w for w in users if again.get(w, {}).get(path) == start[w][path]]
        if alike or repeats:
            yield _finding(path, alike, bool(repeats))


def _finding(path: str, alike: list[int], repeats: bool) -> Finding:
    where = [f"in workers {names(map(str, alike))}"] if alike else []
    where += ["in every epoch"] if repeats else []
    if path in GLOBAL:
        cause = "`worker_init_fn` gives it a fixed seed: add `get_worker_info().seed`"
    else:
        cause = (
            "each worker gets a copy of it: seed the copy in `worker_init_fn` with "
            "`get_worker_info().seed`"
        )
    what = f"this generator draws the same numbers {' and '.join(where)}; {cause}"
    return Finding(what, path, "certain", "4.2")


def _states(
    records: Iterable[Record], stream: bool
) -> tuple[dict[int, dict[str, bytes]], dict[int, set[str]]]:
    """Return each worker's states at its start, and the generators it then used."""
    start: dict[int, dict[str, bytes]] = {}
    seen: dict[int, list[dict[str, bytes]]] = {}
    for record in records:
        if record.start:
            start[record.worker] = dict(record.start)
        if record.marks:
            seen.setdefault(record.worker, []).append(record.marks)
    used: dict[int, set[str]] = {}
    for worker, before in start.items():
        marks = seen.get(worker, [])
        if marks:
            # one that the first item made has no state before it
            for path, mark in marks[0].items():
                before.setdefault(path, mark)
        states = [before, *marks]
        # a stream may shuffle with one seed in all workers, once, before it shares out
        states = states[1:] if stream else states
        used[worker] = {
            path
            for path in before
            if len({state[path] for state in states if path in state}) > 1
        }
    return start, used
