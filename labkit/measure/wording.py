"""Times and ratios as short text, with about three digits."""


def unit_for(seconds: float) -> tuple[str, float]:
    """Return the unit that suits a time, and its length in seconds."""
    # not torch.utils.benchmark.select_unit: it writes "us"
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= scale:
            return unit, scale
    return "ns", 1e-9


def duration(seconds: float) -> str:
    """Return a time with its unit: "12.3 ms"."""
    unit, scale = unit_for(seconds)
    return f"{number(seconds / scale)} {unit}"


def number(value: float) -> str:
    """Return a positive number with about three digits, thousands separated."""
    if value >= 100:
        return f"{value:,.0f}"
    if value >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}" if value >= 0.1 else f"{value:.2g}"
