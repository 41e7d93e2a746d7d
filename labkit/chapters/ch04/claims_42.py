"""The claims of part 4.2, workers, judged by measured values."""

from typing import Any

from labkit.lesson.verdict import Claim

PLATFORM = "https://docs.pytorch.org/docs/stable/data.html#platform-specific-behaviors"
REFUSED = {"a lambda", "a function in a function", "a class in a function"}


def copies(m: dict[str, Any]) -> str:
    text = (
        f"of an array of {m['nbytes'] // 10**6} MB spawn sends every byte, of a tensor "
        "only where it is"
    )
    if m["list"] is None:
        return text + "; what fork copies, only Linux tells"
    return (
        text + "; fork copies nothing at first, but reading a list of names copies it "
        "(more than five times what reading an array does)"
    )


def nested(m: dict[str, Any]) -> str:
    fork = {True: "arrives", False: "does not arrive", None: "cannot be tried here"}
    return (
        f"a class inside a function {fork[m['fork']]} by fork, and "
        f"{fork[m['elsewhere']]} by {m['method']}. Since Python 3.14 Linux does not fork "
        "by default"
    )


CLAIMS: list[Claim] = [
    Claim(
        "C4.2a",
        "holds",
        "With 0 workers the main process loads; more are processes of their own.",
        "0: {none}; 2: {two}, both in processes of their own: {apart}. With 0 `prefetch_"
        "factor` and `persistent_workers` are refused: {refused}",
        agrees=lambda m: (
            m["none"] == "your process"
            and m["two"] == "worker 0, worker 1"
            and m["apart"]
            and m["refused"]
        ),
    ),
    Claim(
        "C4.2b",
        "holds",
        "More workers load faster, until processor, disk or memory are the limit.",
        lambda m: (
            "items that wait: at least "
            f"{min(int(m['wait_bound_speedup'] * 2) / 2, 2):g} times as fast with workers; "
            "items that cost nothing: slower with any number of them"
        ),
        agrees=lambda m: m["wait_bound_speedup"] >= 1.3 and m["trivial_speedup"] < 1,
    ),
    Claim(
        "C4.2c",
        "wrong",
        "`num_workers = min(4 * num_gpus, cpu_count // 2)`.",
        lambda m: (
            f"without a GPU it gives {m['formula_no_gpu']}, and items that wait were "
            "fastest with workers; it is asked once for each training process, so 8 GPUs "
            "make 256 workers; and it counts cores that are not yours"
        ),
        agrees=lambda m: (
            m["formula_no_gpu"] == 0 and m["best_wait_bound"] > m["formula_no_gpu"]
        ),
    ),
    Claim(
        "C4.2d",
        "unmeasured",
        "With too many workers, switching between them costs more than it brings.",
        "torch itself warns above the number of cores that the process may use: "
        "{warned}. What switching costs depends on the machine and the item; the sweep "
        "above shows it for yours",
        agrees=lambda m: m["warned"] and m["suggested"] >= 1,
        source="https://github.com/pytorch/pytorch/pull/46867",
    ),
    Claim(
        "C4.2e",
        "conditions",
        "Each worker copies the dataset, so memory grows with their number.",
        copies,
        agrees=lambda m: (
            m["array"] >= m["nbytes"]
            and m["tensor"] < 1000
            and m["shared"]
            and (m["list"] is None or m["list"] > 5 * m["fork_array"])
        ),
        source="https://github.com/pytorch/pytorch/issues/13246",
    ),
    Claim(
        "C4.2f",
        "incomplete",
        "On Windows the dataset must stand at the top level, or pickling fails.",
        lambda m: (
            "so must everything that is sent: no lambda arrives as "
            f"{', '.join(m['roles'])}, and neither do {', '.join(m['refused'][1:])}"
        ),
        agrees=lambda m: (
            set(m["refused"]) >= REFUSED
            and set(m["roles"]) == {"transform", "collate_fn", "worker_init_fn"}
        ),
        source=PLATFORM,
    ),
    Claim(
        "C4.2g",
        "outdated",
        "Linux takes definitions inside functions.",
        nested,
        agrees=lambda m: m["elsewhere"] is False and m["fork"] is not False,
        source="https://github.com/pytorch/pytorch/issues/169252",
    ),
    Claim(
        "C4.2h",
        "conditions",
        "So define it at the top level, everywhere.",
        "at the top level of a module: one there arrives: {module}; one at the top level "
        "of a notebook can be sent: {sent}, and arrives: {arrives}",
        agrees=lambda m: m["sent"] and not m["arrives"] and m["module"],
        source="https://github.com/pytorch/pytorch/issues/51344",
    ),
]
