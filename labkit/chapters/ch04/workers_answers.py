"""Answers to the exercise of part 4.2 on the number of workers: right ones and wrong."""

import os
from collections.abc import Mapping

import torch

Rates = Mapping[int, float]


def choose_workers(
    rates: Rates,
    needed: float,
    processes: int,
    worker_gb: float,
    free_gb: float,
    noise: float = 0.05,
) -> int:
    fits = [n for n in rates if n * processes * worker_gb <= free_gb]
    useful = {n: min(rates[n], needed) for n in fits}
    enough = (1 - noise) * max(useful.values())
    return min(n for n in fits if useful[n] >= enough)


def from_below(
    rates: Rates,
    needed: float,
    processes: int,
    worker_gb: float,
    free_gb: float,
    noise: float = 0.05,
) -> int:
    """Right: a loop over the numbers that fit, which keeps what is clearly better."""
    limit = free_gb / processes
    numbers = sorted(n for n in rates if n * worker_gb <= limit)
    best = min(needed, max(rates[n] for n in numbers))
    for n in numbers:
        if rates[n] >= best * (1 - noise):
            return n
    return 0


# --- wrong ------------------------------------------------------------------------------


def every_core(rates, needed, processes, worker_gb, free_gb, noise=0.05):
    return os.cpu_count()


def the_formula(rates, needed, processes, worker_gb, free_gb, noise=0.05):
    return min(4 * torch.cuda.device_count(), (os.cpu_count() or 1) // 2)


def most_workers(rates, needed, processes, worker_gb, free_gb, noise=0.05):
    return max(n for n in rates if n * processes * worker_gb <= free_gb)


def the_fastest(rates, needed, processes, worker_gb, free_gb, noise=0.05):
    fits = [n for n in rates if n * processes * worker_gb <= free_gb]
    return max(fits, key=lambda n: min(rates[n], needed))


def until_it_drops(rates, needed, processes, worker_gb, free_gb, noise=0.05):
    fits = sorted(n for n in rates if n * processes * worker_gb <= free_gb)
    chosen = fits[0]
    for n in fits[1:]:
        if min(rates[n], needed) <= min(rates[chosen], needed) * (1 + noise):
            break
        chosen = n
    return chosen


def what_is_needed_forgotten(rates, needed, processes, worker_gb, free_gb, noise=0.05):
    fits = [n for n in rates if n * processes * worker_gb <= free_gb]
    enough = (1 - noise) * max(rates[n] for n in fits)
    return min(n for n in fits if rates[n] >= enough)


def memory_forgotten(rates, needed, processes, worker_gb, free_gb, noise=0.05):
    useful = {n: min(rate, needed) for n, rate in rates.items()}
    enough = (1 - noise) * max(useful.values())
    return min(n for n in rates if useful[n] >= enough)


def one_process_only(rates, needed, processes, worker_gb, free_gb, noise=0.05):
    return choose_workers(rates, needed, 1, worker_gb, free_gb, noise)


def best_of_all(rates, needed, processes, worker_gb, free_gb, noise=0.05):
    fits = [n for n in rates if n * processes * worker_gb <= free_gb]
    enough = (1 - noise) * min(needed, max(rates.values()))
    return min((n for n in fits if rates[n] >= enough), default=0)


def rates_of_all(rates, needed, processes, worker_gb, free_gb, noise=0.05):
    together = {n: rate * processes for n, rate in rates.items()}
    return choose_workers(together, needed, processes, worker_gb, free_gb, noise)
