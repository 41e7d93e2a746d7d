"""What the article says about clipping and mixed precision, judged by the page's values."""

from typing import Any

from labkit.lesson.verdict import Claim


def against(ratio: float) -> str:
    """A ratio of times in words that stay the same from run to run."""
    if ratio <= 0.5:
        return "at most half the time of"
    if ratio < 0.97:
        return "less time than"
    if ratio <= 1.03:
        return "about the time of"
    return "more time than" if ratio < 2 else "at least twice the time of"


def on_this_device(m: dict[str, Any]) -> str:
    return (
        f"the figures are for GPUs with Tensor Cores. On this machine ({m['device']}), a "
        f"step in bfloat16 takes {against(m['bfloat16'])} float32, one in float16 "
        f"{against(m['float16'])} float32. Peak memory changes by {m['rows']:+.0%} where "
        f"activations dominate and by {m['weights']:+.0%} where weights do, which stay "
        f"{m['kept']}"
    )


def clipping(m: dict[str, Any]) -> str:
    return (
        f"the recurrent network ends at a loss of {m['free']} without and {m['held']} with "
        f"it. But one NaN makes {m['nan']} of {m['tensors']} gradients NaN, one Inf makes "
        f"that one NaN and {m['zero']} others 0"
    )


def skipping(m: dict[str, Any]) -> str:
    return (
        f"with the default scale, {m['skipped']} of the first {m['steps']} steps of a "
        f"summed loss were skipped; {m['taken']:,} subtractions of 0.001 from 1 in "
        f"bfloat16 leave {m['left']:g}; a scaler on float16 weights says “{m['half']}”; "
        f"bfloat16 to NumPy raises {m['numpy']}"
    )


CLAIMS: list[Claim] = [
    Claim(
        id="C5.3a",
        judgement="holds",
        article="`clip_grad_norm_` limits the gradients' norm; it belongs between "
        "`backward` and `step`.",
        measured="with a limit of 1 the weights moved by {between}; with the line before "
        "`backward` by {before}, after `step` by {after}",
        agrees=lambda m: m["between"] == 1.0 and m["before"] == m["after"] > 10,
    ),
    Claim(
        id="C5.3b",
        judgement="incomplete",
        article="(Clipping is shown, and then an AMP loop; how the two go together is not "
        "said.)",
        measured="clipped before `unscale_`, the norm is {factor:,} times too large, and "
        "the limit of 1 works like one of 1 ÷ {factor:,}: SGD ends at a loss of "
        "{broken_sgd} instead of {right_sgd}, AdamW hides it ({broken_adam}, {right_adam})",
        agrees=lambda m: (
            m["factor"] > 60000
            and m["broken_sgd"] > 2 > 1 > m["right_sgd"]
            and max(m["broken_adam"], m["right_adam"]) < 1
        ),
    ),
    Claim(
        id="C5.3c",
        judgement="conditions",
        article="Clipping deals with exploding gradients, as in recurrent networks.",
        measured=clipping,
        agrees=lambda m: (
            m["free"] != m["free"]
            and m["held"] < 1.5
            and m["nan"] == m["tensors"] == m["zero"] + 1
        ),
    ),
    Claim(
        id="C5.3d",
        judgement="conditions",
        article="`max_norm` depends on the task; 0.5 to 5 is usual.",
        measured="clipped at 0.001 throughout, SGD moves its weights {sgd:.2f} times as "
        "far as unclipped, AdamW {adam:.1f} times: the limit sets the step of one and says "
        "next to nothing to the other",
        agrees=lambda m: m["sgd"] < 0.05 and 0.5 < m["adam"] < 2,
    ),
    Claim(
        id="C5.3e",
        judgement="outdated",
        article="PyTorch has AMP built in as `torch.cuda.amp`, since 1.6.",
        measured="“{warning}” Without CUDA it switches itself off; here its scaler is "
        "enabled: {enabled}, and its autocast computes in {dtype}",
        agrees=lambda m: "deprecated" in m["warning"],
    ),
    Claim(
        id="C5.3f",
        judgement="conditions",
        article="`autocast` turns some operations into float16; `GradScaler` keeps "
        "gradients from underflow.",
        measured="gradients that are 0: {fp32:.0%} in float32, {fp16:.0%} in float16, "
        "{scaled:.0%} in float16 with the scaler, {bf16:.0%} in bfloat16 without one. "
        "Autocast's own choice is {cpu} on a CPU and {cuda} on CUDA",
        agrees=lambda m: (
            m["fp16"] == 1
            and max(m["scaled"], m["bf16"]) < 0.2
            and m["cpu"] == "bfloat16"
            and m["cuda"] == "float16"
        ),
    ),
    Claim(
        id="C5.3g",
        judgement="unmeasured",
        article="On GPUs with Tensor Cores training is 1.5 to 2 times as fast and needs "
        "about 30 % less memory.",
        measured=on_this_device,
        agrees=lambda m: m["rows"] < 0 < m["weights"] and m["kept"] == "float32",
        source="https://docs.pytorch.org/tutorials/recipes/recipes/amp_recipe.html",
    ),
    Claim(
        id="C5.3h",
        judgement="incomplete",
        article="(What else a float16 or bfloat16 loop does is not said.)",
        measured=skipping,
        agrees=lambda m: (
            0 < m["skipped"] < m["steps"]
            and m["left"] == 1
            and "FP16" in m["half"]
            and m["numpy"] == "TypeError"
        ),
    ),
]
