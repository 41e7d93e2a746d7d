"""Which storages were alive when: the books that `track_memory` keeps."""

import threading
import weakref
from array import array
from collections.abc import Iterable
from typing import Any

import numpy as np
import torch

from labkit.measure.memory_history import KINDS, History
from labkit.measure.memory_storages import PLAIN, storages

# Events noted until they are worked in. With few kept the garbage collector, which
# counts objects, has less to do.
_FOLD_AT = 600

_KIND = {kind: index for index, kind in enumerate(KINDS)}
_TEMPORARY, _OTHER = _KIND["temporary"], _KIND["other"]

# instead of a place in the history
_BORN, _GONE = -1, -2


class Entry(weakref.ref[torch.UntypedStorage]):
    """A storage that was counted: a weak reference, so it lives no longer for that."""

    __slots__ = ("kind", "nbytes", "place")

    nbytes: int
    kind: str | None
    place: int  # of its coming, in the history


class Ledger:
    """Storages as they come and go, with what they turned out to be.

    An event is noted by appending the storage's entry to a list: once when it comes,
    and once more, by its weak reference, when it is freed. One append can't be
    interrupted, so this holds in every thread and in the garbage collector too. What
    the events amount to is worked out later, when all kinds are known.
    """

    def __init__(self) -> None:
        self.allocated_bytes = 0
        self.allocations = 0
        self.peak_bytes = 0
        self.live_bytes = 0
        self._events: list[Entry] = []
        self._note = self._events.append
        self._known: dict[int, Entry] = {}
        self._folding = threading.Lock()
        # for each event: the change in bytes, and the kind as its index in KINDS
        self._changes = array("q")
        self._kinds = array("b")
        self._peak_place = -1
        self._unnamed: list[Entry] = []
        self._given = 0
        self._fold_at = _FOLD_AT
        self._purge_at = 1000

    def begin(self) -> None:
        """Take what is counted so far as given: it wasn't allocated in the block."""
        self.fold()
        self._given = len(self._changes)
        self.allocated_bytes = self.allocations = 0

    def add(self, storage: torch.UntypedStorage, kind: str | None = None) -> Entry:
        """Count a storage from now until it is freed."""
        entry = Entry(storage, self._note)
        entry.nbytes = nbytes = storage.nbytes()
        entry.kind = kind
        # an empty storage is known, in case it grows, but makes no event
        entry.place = _BORN if nbytes else _GONE
        # the Python object of a storage lives as long as the storage
        self._known[id(storage)] = entry
        self._note(entry)
        return entry

    def find(self, storage: torch.UntypedStorage) -> Entry | None:
        """Return the entry of a storage that is counted, or None."""
        entry = self._known.get(id(storage))
        return entry if entry is not None and entry() is storage else None

    def name(self, value: Any, kind: str, unless_named: bool = False) -> None:
        """Say what the counted storages of the tensors in a value are for."""
        found: Iterable[torch.UntypedStorage]
        # mostly it is one dense tensor: then without generators, for speed
        if type(value) in PLAIN and value.layout is torch.strided:
            found = (value.untyped_storage(),)
        else:
            found = storages(value)
        for storage in found:
            entry = self._known.get(id(storage))
            if entry is None or entry() is not storage:
                continue
            if not (unless_named and entry.kind):
                entry.kind = kind

    def resize(self, entry: Entry, storage: torch.UntypedStorage) -> Entry:
        """Count a known storage anew if its size has changed."""
        if storage.nbytes() == entry.nbytes:
            return entry
        new = self.add(storage, entry.kind)
        self._note(entry)  # the old size goes, as if it had been freed
        return new

    def fold_if_long(self) -> None:
        """Work the events in once there are many. Not while a backward makes them."""
        if len(self._events) > self._fold_at:
            self.fold()

    def fold(self) -> None:
        """Work the events noted so far into the history and its totals."""
        with self._folding:
            # what other threads append meanwhile stays for the next time
            noted = self._events[:]
            del self._events[: len(noted)]
            unnamed, self._unnamed = self._unnamed, []
            for entry in unnamed:
                if entry.place != _GONE:
                    self._kinds[entry.place] = self._kind(entry)
            self._enter(noted)
            # what takes time in proportion waits until there is as much news
            self._fold_at = max(_FOLD_AT, 2 * len(self._unnamed))
            if len(self._known) > self._purge_at:
                for key, entry in list(self._known.items()):
                    if entry() is None and self._known.get(key) is entry:
                        del self._known[key]
                self._purge_at = max(1000, 2 * len(self._known))

    def _enter(self, noted: list[Entry]) -> None:
        changes, kinds = self._changes, self._kinds
        live, peak = self.live_bytes, self.peak_bytes
        for entry in noted:
            place = entry.place
            if place == _BORN:
                entry.place = place = len(changes)
                nbytes = entry.nbytes
                changes.append(nbytes)
                kind = entry.kind
                kinds.append(self._kind(entry) if kind is None else _KIND[kind])
                self.allocated_bytes += nbytes
                self.allocations += 1
                live += nbytes
                if live > peak:
                    peak, self._peak_place = live, place
            elif place != _GONE:
                changes.append(-entry.nbytes)
                kinds.append(kinds[place])
                live -= entry.nbytes
                entry.place = _GONE
        self.live_bytes, self.peak_bytes = live, peak

    def _kind(self, entry: Entry) -> int:
        if entry.kind is not None:
            return _KIND[entry.kind]
        if entry() is None:
            return _TEMPORARY
        self._unnamed.append(entry)  # it may get a name yet
        return _OTHER

    def clear(self) -> None:
        """Forget all storages: with its entry, a storage's weak reference is gone."""
        self._events.clear()
        self._known.clear()
        self._unnamed.clear()

    def history(self) -> History:
        """Return all that happened."""
        return History(
            np.array(self._changes),
            np.array(self._kinds),
            self._given,
            self._peak_place,
        )
