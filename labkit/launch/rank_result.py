"""What a launch gives back: `Ranks`."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, repr=False)
class Ranks:
    """What the ranks of one launch gave back; `ranks[1]` is what rank 1 reported.

    Attributes:
        reported: for each rank, its values by name.
        output: for each rank, what it wrote, long output cut in the middle.
        problem: why the launch did not come to its end, one sentence; "" where it did.
        seconds: from start to end.
    """

    reported: tuple[dict[str, Any], ...]
    output: tuple[str, ...]
    problem: str
    seconds: float

    def __getitem__(self, rank: int) -> dict[str, Any]:
        return self.reported[rank]

    def __len__(self) -> int:
        return len(self.reported)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.reported)

    def __repr__(self) -> str:
        known = list(dict.fromkeys(name for values in self for name in values))
        said = f"reported {', '.join(known)}" if known else "nothing reported"
        end = f"; {self.problem}" if self.problem else ""
        return f"<Ranks: {len(self)}, {said}{end}>"
