"""Torch's functions by what they do to a graph, or to gradients."""

# out of a tensor that has a graph they make one that has none, or a number
CUTS = frozenset(
    [
        "detach",
        "data",
        "item",
        "tolist",
        "numpy",
        "tensor",
        "as_tensor",
        "new_tensor",
        "__float__",
        "__int__",
        "__complex__",
        "__array__",
        "argmax",
        "argmin",
        "argsort",
        "long",
        "int",
        "short",
        "byte",
        "char",
        "to",
        "type",
        "bernoulli",
        "multinomial",
        "one_hot",
        "histc",
    ]
)
NUMBERS = frozenset(["item", "tolist", "float", "int", "complex"])
REBUILDS = frozenset(("tensor", "as_tensor", "new_tensor"))
# what may be done to gradients: measured, limited, reset
GRADIENT_KINDS = {
    **dict.fromkeys(
        [
            "norm",
            "vector_norm",
            "linalg_vector_norm",
            "linalg_norm",
            "_foreach_norm",
            "square",
            "pow",
            "sum",
            "dot",
            "vdot",
            "mul",
            "abs",
            "__pow__",
            "max",
            "amax",
        ],
        "norm",
    ),
    **dict.fromkeys(
        [
            "clamp",
            "clamp_",
            "clip",
            "clip_",
            "clamp_min_",
            "clamp_max_",
            "_foreach_clamp_min_",
            "_foreach_clamp_max_",
            "hardtanh",
            "hardtanh_",
            "minimum",
            "maximum",
        ],
        "clamp",
    ),
    **dict.fromkeys(("zero_", "_foreach_zero_"), "zero"),
}
