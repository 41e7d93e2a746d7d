"""Whether a plateau scheduler is fed a metric that it reads upside down."""

from collections.abc import Sequence

import numpy as np
from torch.optim.lr_scheduler import ReduceLROnPlateau

from labkit.probe.finding import Finding

LEAST = 5
"""Fewer values have no direction that chance wouldn't give them."""

STEADY = 0.7
"""Correlation with time (of the ranks) from which a metric steadily gets better."""


def wrong_direction(
    scheduler: ReduceLROnPlateau, metrics: Sequence[float]
) -> Finding | None:
    """Return a finding where a metric moves away from what the scheduler calls better.

    A loss that rises late, in an over-fitted run, has its best value in the middle; a
    metric that's read upside down has its best value at the very start.

    Args:
        scheduler: its `mode` is "min" or "max".
        metrics: what it's given, in order.

    Returns:
        A finding, or None.

    Example:
        >>> scheduler = ReduceLROnPlateau(optimizer, mode="min")
        >>> wrong_direction(scheduler, [0.5, 0.6, 0.7, 0.8, 0.9]).sure
        'likely'
    """
    values = np.asarray(metrics, dtype=float)
    values = values[np.isfinite(values)]
    if len(values) < LEAST or np.ptp(values) == 0:
        return None
    worse = values if scheduler.mode == "min" else -values
    ranks = np.argsort(np.argsort(worse, kind="stable"), kind="stable")
    trend = float(np.corrcoef(ranks, np.arange(len(ranks)))[0, 1])
    best_is_early = int(np.argmin(worse)) < max(1, len(worse) // 10)
    if trend < STEADY or not best_is_early:
        return None
    moves, seeks, other = (
        ("rises", "fall", "max")
        if scheduler.mode == "min"
        else ("falls", "rise", "min")
    )
    what = (
        f'wrong direction: with mode="{scheduler.mode}" the metric should {seeks}, and '
        f"it {moves} from {values[0]:.3g} to {values[-1]:.3g}: is it one for "
        f'mode="{other}"?'
    )
    return Finding(what, "ReduceLROnPlateau", "likely", "5.2")
