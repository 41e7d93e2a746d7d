"""Which of a container's objects a forked worker has copied, told page by page."""

import mmap
import struct
from collections.abc import Iterable
from itertools import islice
from typing import Any

_SAMPLED = 256  # elements of a container, evenly spread
_INSIDE = 4  # objects in each of these, where it is a container itself
_OWN = 1 << 56  # the bit of a page that no other process has


def addresses(container: list[Any] | tuple[Any, ...] | dict[Any, Any]) -> list[int]:
    """Return the places in memory of some of a container's objects.

    Called before a fork, it touches none of the worker's pages.

    Args:
        container: its elements, or values, and what those contain are sampled.

    Returns:
        Addresses in bytes; more where the elements are containers.

    Example:
        >>> numbers = [1000, 2000]
        >>> addresses(numbers) == [id(number) for number in numbers]
        True
    """
    found = []
    for element in _spread(container, _SAMPLED):
        found.append(id(element))
        if isinstance(element, list | tuple | dict):
            found += [id(inner) for inner in _spread(element, _INSIDE)]
    return found


def shares_copied(pid: int, places: dict[str, list[int]]) -> dict[str, float]:
    """Return which share of each container's objects a forked process has alone.

    A page is shared after the fork until one side writes to it.

    Args:
        pid: the process.
        places: for each container's path, what `addresses` returned before the fork.

    Returns:
        From 0 to 1 for each path; {} where the system does not tell.
        Source: https://docs.kernel.org/admin-guide/mm/pagemap.html

    Example:
        >>> shares_copied(worker.pid, {"dataset.rows": addresses(dataset.rows)})
        {'dataset.rows': 0.0}
    """
    if not places:
        return {}
    try:
        # unbuffered: eight bytes for a page are read, not those of its neighbours
        with open(f"/proc/{pid}/pagemap", "rb", buffering=0) as pages:
            return {
                path: sum(_own(pages, place) for place in each) / len(each)
                for path, each in places.items()
            }
    except (OSError, struct.error):
        return {}


def _own(pages: Any, place: int) -> bool:
    pages.seek(place // mmap.PAGESIZE * 8)
    (entry,) = struct.unpack("=Q", pages.read(8))
    return bool(entry & _OWN)


def _spread(container: Any, most: int) -> Iterable[Any]:
    elements = container.values() if isinstance(container, dict) else container
    step = max(len(container) // most, 1)
    return islice(elements, 0, step * most, step)
