"""The claims of part 6.3, what each rank keeps to itself, judged by measured values."""

from typing import Any

from labkit.lesson.verdict import Claim

SYNC = "https://docs.pytorch.org/docs/stable/generated/torch.nn.SyncBatchNorm.html"
DDP = (
    "https://docs.pytorch.org/docs/stable/generated/"
    "torch.nn.parallel.DistributedDataParallel.html"
)


def statistics(m: dict[str, Any]) -> str:
    (own_0, own_1), (kept_0, kept_1) = m["own"], m["kept"]
    return (
        f"means of {own_0:.1f} and {own_1:.1f} on the two ranks, and kept are "
        f"{kept_0:.1f} and {kept_1:.1f}: rank 0's, on rank 1 with the update of one last "
        f"step. What rank 0 saved reads {m['right'][0]} of its own kind of images and "
        f"{m['right'][1]} of the other's"
    )


def near_rank_0(m: dict[str, Any]) -> bool:
    (own_0, own_1), (kept_0, kept_1) = m["own"], m["kept"]
    apart = abs(own_1 - own_0)
    return (
        abs(kept_0 - own_0) < 0.2 * apart
        and abs(kept_1 - own_0) < 0.3 * apart
        and m["right"][0] - m["right"][1] > 0.3
    )


def weights(m: dict[str, Any]) -> str:
    before, after = zip(*m["copied"], strict=True)
    return (
        f"seeded differently, the ranks have {before[0]:.2f} and {before[1]:.2f} before "
        f"DDP wraps, and {after[0]:.2f} and {after[1]:.2f} after: rank 0's. What is "
        f"changed later stays apart: {m['late'][0]} and {m['late'][1]}. Wrap last"
    )


def copied_once(m: dict[str, Any]) -> bool:
    before, after = zip(*m["copied"], strict=True)
    return bool(
        before[0] != before[1]
        and after[0] == after[1] == before[0]
        and m["late"][0] != m["late"][1]
    )


CLAIMS = [
    Claim(
        "C6.3a",
        "holds",
        "Under DDP each GPU computes BatchNorm statistics of its own; with small batches "
        "they are imprecise.",
        statistics,
        agrees=near_rank_0,
    ),
    Claim(
        "C6.3b",
        "conditions",
        "The remedy is `nn.SyncBatchNorm.convert_sync_batchnorm(model)`.",
        "on GPUs; training on them is not measured here. On the CPU, in a group: "
        "“{wrapped}”; “{train}”; evaluation {eval}. Convert before wrapping, or take "
        "GroupNorm",
        agrees=lambda m: (
            "SyncBatchNorm layers only work with GPU" in m["wrapped"]
            and "expected input tensor to be" in m["train"]
            and m["eval"] == "works"
        ),
        source=SYNC,
    ),
    Claim(
        "C6.3c",
        "holds",
        "The seed must differ from rank to rank, or all ranks augment alike.",
        lambda m: (
            f"one seed: {m['same'][0]} on both ranks; seeded by rank: "
            f"{m['own'][0]} and {m['own'][1]}"
            if m["same"][0] == m["same"][1]
            else f"one seed gave {m['same']}"
        ),
        agrees=lambda m: (
            len(m["same"][0]) >= 3
            and m["same"][0] == m["same"][1]
            and m["own"][0] != m["own"][1]
        ),
    ),
    Claim(
        "C6.3d",
        "wrong",
        "The seed for the model's weights must be the same on all ranks, so that they "
        "start alike.",
        weights,
        agrees=copied_once,
        source=DDP,
    ),
    Claim(
        "C6.3e",
        "holds",
        "The real parameters are in `model.module`: save that, and load it into the plain "
        "model.",
        "the wrapper's own names loaded {prefixed} of {known} tensors into the plain "
        "model, without an error, and it reads {lost}; those of `module` loaded all, and "
        "it reads {kept}",
        agrees=lambda m: (
            m["prefixed"] == 0
            and m["known"] > 0
            and m["kept"] - m["lost"] > 0.5
            and m["inside"]
        ),
    ),
    Claim(
        "C6.3f",
        "incomplete",
        "(not said: who writes, who waits, and whose loss is printed)",
        "rank 0 alone logs {alone}, all ranks together {together}. With the `all_reduce` "
        "under `if rank == 0:` rank 0 waited in `{waits_0}` and rank 1 in `{waits_1}`. A "
        "file that two ranks write at once {torn}. Guard what touches the disk, and "
        "nothing that ranks do together",
        agrees=lambda m: (
            m["alone"] == 1.0
            and m["together"] == 1.5
            and m["waits_0"] == "all_reduce"
            and m["waits_1"] != m["waits_0"]
            and m["torn"] == "cannot be read"
        ),
    ),
]
