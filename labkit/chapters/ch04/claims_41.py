"""The claims of part 4.1, what a dataset hands out, judged by measured values."""

from typing import Any

from labkit.lesson.verdict import Claim


def epochs(loads: str) -> list[int]:
    """The loads of each epoch, from a text like "36, 0, 0, 0"."""
    return [int(count) for count in loads.split(", ")]


def kept_twice(m: dict[str, Any]) -> bool:
    return (
        m["main"] == 0
        and m["preloaded"] == m["photos"]
        and 1.4 * m["photos"] < m["kept"] <= 2 * m["photos"]
    )


def reloaded(m: dict[str, Any]) -> bool:
    alone, workers, kept = (epochs(m[name]) for name in ("alone", "workers", "kept"))
    return (
        sum(alone[1:]) == 0
        and len(set(workers)) == 1
        and workers[0] == alone[0] == kept[0]
        and 0 < kept[1] < kept[0]
    )


CLAIMS = [
    Claim(
        "C4.1a",
        "conditions",
        "A Dataset of your own has to implement `__len__` and `__getitem__`.",
        "a plain list will do; without `__len__` the loader stops with {without}, unless "
        "a sampler gives the indices ({sampler} items); a stream has only `__iter__` "
        "({stream} items); with `__getitems__` {items} items took {calls} calls",
        agrees=lambda m: (
            m["without"] == "TypeError"
            and m["sampler"] == m["stream"] == m["items"]
            and m["calls"] < m["items"]
            and m["plain"] == m["items"]
        ),
    ),
    Claim(
        "C4.1b",
        "incomplete",
        "Keep `__getitem__` light: move heavy work to a library that uses the GPU, or do "
        "it for the whole batch in `collate_fn`.",
        "`collate_fn` ran in {places}, in each with {threads} thread; the work ran "
        "{calls} times for {items} photos, with the same result. It saves calls, and no "
        "decoding ({loads} loads)",
        agrees=lambda m: (
            m["places"] == "worker processes"
            and m["threads"] == 1
            and 4 * m["calls"] == m["items"] == m["loads"]
            and m["same"]
        ),
    ),
    Claim(
        "C4.1c",
        "unmeasured",
        "A project spent 50 ms on each image in `__getitem__`, and eight workers could not "
        "feed its GPU.",
        "the arithmetic: 8 / 0.05 s = {rate} images a second at best, if there are eight "
        "cores; a ResNet-50 on an A100 is reported to take about 2,600",
        agrees=lambda m: m["rate"] == 160,
        source="https://github.com/huggingface/pytorch-image-models/issues/1491",
    ),
    Claim(
        "C4.1d",
        "wrong",
        "Cache what preprocessing makes; its sample class keeps the transformed item.",
        "{seen} pictures in three epochs, {frozen} different ones: the augmentation is "
        "frozen. With the cache before it, {fresh}",
        agrees=lambda m: m["frozen"] * 3 == m["seen"] == m["fresh"],
    ),
    Claim(
        "C4.1e",
        "conditions",
        "With such a cache all epochs after the first are fast.",
        "decoded in each of four epochs: {alone} without workers, {workers} with two, "
        "{kept} with two persistent ones",
        agrees=reloaded,
    ),
    Claim(
        "C4.1f",
        "conditions",
        "A small dataset can be loaded into memory in the first epoch.",
        "after four epochs two persistent workers held {kept} cached photos for "
        "{photos}, and the main process {main}; loaded before the workers start, "
        "{preloaded}",
        agrees=kept_twice,
    ),
    Claim(
        "C4.1g",
        "wrong",
        "The cached item is returned as it is.",
        "a loop that normalises in place moved the mean from {first} to {last} in three "
        "epochs; through persistent workers too, to {persistent}; with a clone it stays "
        "{safe}",
        agrees=lambda m: (
            m["last"] < m["first"] - 1
            and m["persistent"] < m["first"] - 1
            and m["safe"] == m["first"]
        ),
    ),
    Claim(
        "C4.1h",
        "holds",
        "Of a dataset too large for memory, preprocess once and save a binary format to "
        "read from.",
        "{photos} photos decoded once and written to one file of {bytes:,} bytes; three "
        "epochs with two workers read the same values from it. A worker gets the file's "
        "name; the open array would be sent with all its values",
        agrees=lambda m: (
            m["same"]
            and m["photos"] == 36
            and m["bytes"] >= m["photos"] * 3 * 64 * 64
            and m["array sent"] > m["bytes"] > 100 * m["name sent"]
        ),
    ),
]
