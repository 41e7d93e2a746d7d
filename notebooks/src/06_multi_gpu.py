# %% [markdown]
# # 6 · Several processes, several GPUs
#
# One model, trained by several processes at once. Where ranks talk to each other they are
# real processes here, on a laptop too: `gloo` on CPUs, `nccl` where there are GPUs. Where one
# process is enough, the page says so. Three parts: 6.1 how such a run starts and what it
# gains, 6.2 what the processes share, and where they wait for each other, 6.3 what each of
# them keeps to itself.
# A ★ marks the traps of the core route.
#
# [Open this page in Colab](https://colab.research.google.com/github/pytorch-pitfall-lab/pytorch-pitfall-lab/blob/learn/notebooks/06_multi_gpu.ipynb)
# · new here? [Start with page 00](00_start.ipynb).

# %% tags=["parameters"] jupyter={"source_hidden": true}
# Set-up: makes labkit importable, and changes nothing else.
# It finds the checkout that this page lies in; in Colab it fetches the repository.
# No package is installed, upgraded or removed.
solve = False  # papermill sets it: True runs the reference answers
made_with = "0.1.0"  # labkit's version
try:
    import labkit
except ModuleNotFoundError:
    import pathlib
    import subprocess
    import sys

    here = pathlib.Path.cwd()
    marks = [
        d for d in (here, *here.parents) if (d / "labkit" / "__init__.py").is_file()
    ]
    root = marks[0] if marks else here / "pytorch-pitfall-lab"
    if not root.is_dir():
        url = "https://github.com/pytorch-pitfall-lab/pytorch-pitfall-lab"
        subprocess.run(
            ["git", "clone", "-q", "--depth", "1", url, str(root)], check=True
        )
    sys.path.insert(0, str(root))

# %% [markdown]
# The environment of this page, in one line (run the folded cell above first):

# %% tags=["nbval-ignore-output", "volatile"]
import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

import labkit as lk

session = lk.setup(6, solve=solve, version=made_with)

# %% [markdown]
# ## 6.1 One process, or one process per GPU
#
# **After this part you can**
# - say what `DataParallel` does in each step, and quote what its own documentation advises,
# - start the same script as several ranks, and name what each rank is told,
# - choose the backend by the device, so that one file runs on a laptop and on eight GPUs,
# - say which three things `DistributedDataParallel` sends, and when,
# - write the command line for several machines.
#
# *One sitting, about 25 minutes. Needs the training loop of chapter 05. Any computer with
# two cores will do: the ranks are real processes, and on a CPU they talk through gloo.*

# %% [markdown]
# ### One line for several GPUs
#
# `nn.DataParallel(model)` uses all GPUs of a machine from one process. It is the shortest
# way to several GPUs, and one often finds the advice to begin with it. What its own
# documentation says about that:

# %%
about = " ".join(nn.DataParallel.__doc__.split())
about = about.replace(":class:`~torch.nn.parallel.", "`")
start_at = about.index("It is recommended")
advice = about[start_at:].split(". ")[0]
for part in advice.split(", "):
    print(part)

# %% [markdown]
# "Even if there is only a single node": that is every case in which `DataParallel` works
# at all. The reason is how it works. From the same text:

# %%
for words in ("In the forward pass", "During the backwards pass"):
    sentence = about[about.index(words):].split(". ")[0]
    for part in sentence.split(", "):
        print(part)

# %% [markdown]
# So in each step GPU 0 sends all weights to the others, cuts up the batch, collects the
# outputs and adds up the gradients; and one Python process has to drive all of them. The
# replicas live for one step. On a machine without GPUs there is nothing to spread, and
# the wrapper only passes on:

# %% tags=["nbval-ignore-output"]
wrapped = nn.DataParallel(nn.Linear(2, 1))
print("devices:", wrapped.device_ids)
print("names:", list(wrapped.state_dict()))

# %% [markdown]
# The names got a prefix, which is a trap of its own (part 6.3).
#
# **When the rule made sense.** "`DataParallel` up to four GPUs, then something better" is
# advice from a time when the something better asked for a launcher with arguments of its
# own, for ports, and for a spawned function in every script. Today it is one command and
# a handful of lines, the same for two GPUs and for two hundred. `DataParallel` does not
# warn, but [its removal has been discussed in public since
# 2021](https://github.com/pytorch/pytorch/issues/65936). **Begin with
# `DistributedDataParallel`, also on two GPUs.**

# %% [markdown]
# ### One process per GPU
#
# `DistributedDataParallel` (DDP) asks for one process per GPU. Each runs the whole script
# and has a whole model; they are called **ranks**. The launcher, `torchrun`, starts them
# and tells each one, in environment variables, which one it is. A training script begins
# with these lines; here they get a module, so that several cells can use them:

# %%
# %%module group
import os

import torch
import torch.distributed as dist

def start():
    local = int(os.environ["LOCAL_RANK"])
    gpus = torch.cuda.device_count() >= int(os.environ["LOCAL_WORLD_SIZE"])
    device = torch.device("cuda", local) if gpus else torch.device("cpu")
    if gpus:
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if gpus else "gloo")
    return dist.get_rank(), device

# %% [markdown]
# **The backend follows the device**: nccl moves tensors between GPUs, gloo between
# processors. nccl refuses to start without a GPU, and gloo is the slow way with one. nccl
# wants a GPU for each rank, which is why `start` counts them. `set_device` says which GPU a
# call takes that names none, as `barrier` does; else it could be GPU 0 for all ranks.
#
# Now what DDP adds. `look` gives each rank another weight on purpose, wraps the model,
# writes another number into a buffer, and makes one step with another input. It returns
# the weight, the buffer and the gradient that this rank then has.

# %%
# %%module replica
import torch
from torch.nn.parallel import DistributedDataParallel as DDP

def look(rank, device):
    model = torch.nn.Linear(1, 1, bias=False).to(device)
    torch.nn.init.constant_(model.weight, rank)
    model.register_buffer("noted", torch.zeros(1, device=device))
    ddp = DDP(model)
    model.noted.fill_(rank)
    ddp(torch.full((1, 1), rank + 1.0, device=device)).sum().backward()
    return [model.weight.item(), model.noted.item(), model.weight.grad.item()]

# %% [markdown]
# A cell that begins with `%%torchrun` is written to a file and started by `torchrun`, here
# with two ranks. It knows nothing of this page but its modules. `lk.report` brings values
# back; `--out` names the variable they come in. It takes some seconds, since each rank
# imports torch; a rank that fails ends all of them, and so do 60 seconds.

# %% tags=["nbval-ignore-output"]
# %%torchrun --nproc 2 --out first
import os

import torch.distributed as dist
from group import start
from replica import look

import labkit as lk

rank, device = start()
told = {n: os.environ[n] for n in ("RANK", "WORLD_SIZE", "LOCAL_RANK")}
print(told, device, dist.get_backend())
lk.report(told=told, backend=dist.get_backend(), seen=look(rank, device))
dist.destroy_process_group()

# %% [markdown]
# The world has two ranks. On one machine `LOCAL_RANK`, which picks the GPU, and `RANK` are
# the same number; on two machines with four GPUs each the ranks go from 0 to 7, and the
# local ranks twice from 0 to 3. What `look` gave:

# %%
print("on rank                      0    1")
rows = ("weight, which was  0 and 1", "buffer, which was  0 and 1",
        "gradient, alone    1 and 2")
for row, values in zip(rows, zip(*(r["seen"] for r in first))):
    print(f"{row:26}", *(f"{value:4.1f}" for value in values))

# %% [markdown]
# These are the three things that DDP sends:
#
# - **when it wraps**: rank 0's parameters and buffers to all others,
# - **at the start of a forward**: rank 0's buffers to all others (not if the forward before it
#   was under `no_grad` or `no_sync`),
# - **during each backward**: gradients, which are **averaged** over the ranks.
#
# Nothing else. Batches, metrics, random numbers, the learning rate and what you save are
# each rank's own business, and parts 6.2 and 6.3 are about that.
#
# **Larger than one GPU.** DDP keeps a whole model with gradients and optimizer state on
# every GPU. Where that does not fit, `torch.distributed.fsdp.fully_shard` (FSDP2) keeps a
# share of it on each, and gathers a layer's weights only while they are needed. The script
# around it stays the same: `torchrun`, ranks, a sampler. Saving and loading do not: no rank
# has the whole model, so all of them take part (`torch.distributed.checkpoint`); and
# `fully_shard` sends no weights from rank 0, so every rank must begin with the same ones.

# %% [markdown]
# ### The same file on several machines
#
# Run this line on each of the machines. One of them is the meeting point; the script does
# not change.

# %%
def command(machines, gpus, meeting_point, script="train.py"):
    return (f"torchrun --nnodes {machines} --nproc-per-node {gpus} \\\n"
            f"    --rdzv-backend c10d --rdzv-id job1 \\\n"
            f"    --rdzv-endpoint {meeting_point}:29400 {script}")

print(command(machines=2, gpus=4, meeting_point="node0.example"))

# %% [markdown]
# The meeting point is the name of one of them, the same in each line. Its port must be open
# to the others, and so must those that torch and nccl choose for themselves. On a single
# machine `torchrun --standalone --nproc-per-node 4 train.py` is enough: it finds a free
# port itself. With more than one rank `torchrun` sets `OMP_NUM_THREADS=1` for each, and says
# so; to compute on CPUs give each its part of the cores: `OMP_NUM_THREADS=4 torchrun …`.

# %% [markdown]
# ### A model of both, to play with
#
# How much of the time goes into transfers can be estimated from four numbers: the bytes of
# the parameters, the time of a step on one GPU, the speed of the link between GPUs, and
# how many there are. **This is a model, not a measurement**; it assumes:
#
# - Every GPU gets a batch of the same size, and computes as fast as one GPU alone: a third
#   of the step is forward, two thirds are backward.
# - DDP averages gradients by a *ring all-reduce*, in which each of n GPUs sends
#   2 (n − 1) / n times the bytes, so never more than twice, however many there are
#   ([Patarasuk and Yuan, 2009](https://doi.org/10.1016/j.jpdc.2008.09.002)). It runs during
#   the backward; only the last bucket, of 25 MB at most, has to wait for its end
#   ([Li and others, 2020](https://arxiv.org/abs/2006.15704)).
# - DataParallel's GPU 0 sends its parameters to one GPU after the other before each
#   forward, and adds up their gradients in the same way. Nothing overlaps. Left out: the
#   inputs and outputs that pass through GPU 0, and Python, which is one process for all of
#   them. Both would make DataParallel slower.
#
# Try it:
#
# - The start is about a ResNet-50 in float32 over PCIe, with a step of 100 ms; the stars are
#   the article's figures on 4 GPUs. Does the model agree? What happens to both on 16?
# - A small step (10 ms) and 400 MB: which link does DDP need to be faster than one GPU?
# - The article says that DataParallel's cost grows linearly with the number of GPUs. What
#   does that do to its curve, and why does DDP's not bend?

# %%
lk.explore("6.1-scaling")

# %% [markdown]
# ### Is the model right about the transfers
#
# GPUs or not, gloo runs the same kind of ring between processes. A function that times one
# all-reduce, with a barrier before each, and takes the median:

# %%
# %%module all_reduce_clock
import time
import torch
import torch.distributed as dist

def median_ms(group, kb, repeats=15):
    x, times = torch.zeros(256 * kb), []
    for _ in range(repeats):
        dist.barrier(group)
        start = time.perf_counter()
        dist.all_reduce(x, group=group)
        times.append(1e3 * (time.perf_counter() - start))
    return sorted(times)[repeats // 2]

# %% [markdown]
# A second one takes the times of five sizes, and counts the bytes that the machine sends
# meanwhile:

# %%
# %%module all_reduce_run
import psutil
from all_reduce_clock import median_ms

SIZES = (64, 256, 1024, 4096, 16384)

def measure(group):
    before = psutil.net_io_counters().bytes_sent
    ms = {kb: median_ms(group, kb) for kb in SIZES}
    return ms, psutil.net_io_counters().bytes_sent - before

# %% [markdown]
# One launch of four ranks measures two of them, while the others wait, and then all four:

# %% tags=["volatile", "nbval-ignore-output"]
# %%torchrun --nproc 4 --out gloo
import torch.distributed as dist
import labkit as lk
from all_reduce_run import measure
dist.init_process_group("gloo")
for n in (2, 4):
    group = dist.new_group(list(range(n)))
    if dist.get_rank() < n:
        ms, sent = measure(group)
        lk.report(**{f"ms{n}": ms, f"sent{n}": sent})
    dist.barrier()
dist.destroy_process_group()

# %% [markdown]
# First the factor, which does not depend on a clock: the bytes that a rank has sent for
# each byte that was reduced, fifteen times each size. (Where the system does not count what
# stays on the machine, it is 0.)

# %% tags=["volatile", "nbval-ignore-output"]
reduced = 15 * 1024 * sum(SIZES)
for n in (2, 4):
    counted = gloo[0][f"sent{n}"] / n / reduced
    print(f"{n} ranks: model {2 * (n - 1) / n:.1f}, counted {counted:.1f}")

# %% [markdown]
# Now the time. Two of the measured sizes on two ranks give the model its two constants, the
# delay of a message and the time per kilobyte:

# %%
ms = {n: gloo[0][f"ms{n}"] for n in (2, 4)}
per_kb = (ms[2][16384] - ms[2][64]) / (16384 - 64)
delay = ms[2][64] - 64 * per_kb

def modelled(n, kb):
    rounds = 2 * (n - 1)
    return rounds * (delay / 2 + kb / n * per_kb)

# %% [markdown]
# From these it predicts the other sizes, and all of four ranks:

# %% tags=["volatile", "nbval-ignore-output"]
print("ranks      kB  measured  modelled, ms")
for n in ms:
    for kb, took in ms[n].items():
        given = "  (given)" if n == 2 and kb in (64, 16384) else ""
        print(f"{n:5} {kb:7} {took:9.2f} {modelled(n, kb):9.2f}{given}")

# %% [markdown]
# Such times scatter; run the launch again and see how much. On two ranks the line usually
# hits the sizes between its two ends within a factor of two or three. Where the model is
# off, it leaves something out:
#
# - A tensor that fits into a core's own cache is cheaper, byte for byte, than one that does
#   not. The line knows one price.
# - Where there are fewer cores than ranks, these take turns, and a message has to wait until
#   the other process gets its core. Small tensors on four ranks then often take twice
#   as long as modelled, or longer.
# - On one machine the "link" is the memory, which all ranks share. Between GPUs it is not.
#
# **What stands is the number of bytes; their price has to be measured where you train.**
# A launch is also the cheapest way to find the link's speed in your own machines: the same
# cell with `"nccl"`, tensors on the GPU and `torch.cuda.synchronize()` before each reading
# of the clock.

# %% [markdown]
# ### What the article says, and what this page measured
#
# What needs several GPUs stays with what torch's documentation says.

# %%
names = list(wrapped.state_dict())
lk.verdicts(
    C6_1a=dict(instead="`DistributedDataParallel`, instead of" in advice,
               single="even if there is only a single node" in advice,
               names=", ".join(names)),
    C6_1b=dict(replicated="module is replicated on each device" in about,
               summed="summed into the original module" in about),
    C6_1c=dict(on_first="must have its parameters and buffers on "
               "``device_ids[0]``" in about),
)

# %% [markdown]
# **What you can do now**
# - Say why `DataParallel` is slow: weights out and gradients back in each step, all
#   through GPU 0, driven by one process; and quote the warning in its documentation.
# - Start ranks with `torchrun`, and read `RANK`, `LOCAL_RANK` and `WORLD_SIZE`.
# - Choose nccl where each rank has a GPU, gloo elsewhere.
# - Name what DDP sends: parameters once, buffers at each forward, gradients at each
#   backward.
# - Start the same file on several machines.
#
# **Keep this**
#
# | you want | write |
# |---|---|
# | several GPUs, one machine | `torchrun --standalone --nproc-per-node 4 train.py` |
# | the right backend | `"nccl"` if each rank has a GPU, else `"gloo"` |
# | this rank's GPU | `torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))` |
# | one model on all ranks | `DDP(model.to(device))` |
# | an end without warnings | `dist.destroy_process_group()` |
#
# *You can stop here; the next part starts with three epochs on two ranks.*

# %% [markdown]
# ## 6.2 DistributedDataParallel
#
# **After this part you can**
# - tell a `DistributedSampler` what it cannot know, and say which rank sees which sample,
# - compute a metric over all ranks that counts every sample once,
# - get the gradient of one large batch from ranks whose batches differ in size,
# - read the error about unused parameters, and name the parameters,
# - say where ranks wait for each other, and end a run whose ranks have different work,
# - count the messages that a step sends, and say which call prepares them.
#
# *Two sittings: about 40 minutes for the traps and the explorer, 30 for two exercises.
# Needs part 6.1. Any computer with two cores will do.*

# %% [markdown]
# ### ★ Three epochs on two ranks
#
# Twelve samples, two ranks. Each rank gets its half from a `DistributedSampler`, which
# shuffles by default. It takes the number of ranks and the rank from the process group,
# or as arguments: so this page can ask for any rank's share without starting one.

# %%
from torch.utils.data import DataLoader, DistributedSampler

data = list(range(12))

def epochs():
    sampler = DistributedSampler(data, num_replicas=2, rank=0)
    loader = DataLoader(data, batch_size=3, sampler=sampler)
    return [torch.cat(list(loader)).tolist() for epoch in range(3)]

lk.predict("6.2.1")

# %% [markdown]
# Run it:

# %%
lk.trap("6.2.1", epochs)

# %% [markdown]
# Ranks do not ask each other who takes which sample. Each computes the same permutation of
# all samples, from one seed, and takes every second of it. The seed is `seed + epoch`, and
# `epoch` is an attribute of the sampler that nobody but you sets:

# %%
def share(rank, epoch, seed=0):
    generator = torch.Generator().manual_seed(seed + epoch)
    return torch.randperm(12, generator=generator)[rank::2].tolist()

for rank in range(2):
    sampler = DistributedSampler(data, num_replicas=2, rank=rank)
    print(f"rank {rank}, epoch {sampler.epoch}:", list(sampler),
          list(sampler) == share(rank, epoch=0))

# %% [markdown]
# So each rank meets the same half of the data, in the same order and the same batches, for
# ever.
#
# **Fix.** `set_epoch` before each epoch gives all ranks the same new seed, hence a new
# permutation that they still share.

# %%
def epochs_fixed():
    sampler = DistributedSampler(data, num_replicas=2, rank=0)
    loader = DataLoader(data, batch_size=3, sampler=sampler)
    lists = []
    for epoch in range(3):
        sampler.set_epoch(epoch)
        lists.append(torch.cat(list(loader)).tolist())
    return lists

lk.fix("6.2.1", epochs_fixed)

# %% [markdown]
# **Transfer.** A run of four epochs stops after two, and goes on in a new process with a
# new sampler. What must the checkpoint hold of the sampler?

# %%
def order(numbers):
    sampler = DistributedSampler(data, num_replicas=2, rank=0)
    lists = []
    for epoch in numbers:
        sampler.set_epoch(epoch)
        lists += list(sampler)
    return lists

unbroken = order(range(4))
print("goes on with 2, 3:", order(range(2)) + order(range(2, 4)) == unbroken)
print("begins with 0 again:", order(range(2)) + order(range(2)) == unbroken)

# %% [markdown]
# The number of the epoch, and nothing else: the order depends on nothing that happened
# before.
#
# *In the field.* It was [reported as a bug of the
# sampler](https://github.com/pytorch/pytorch/issues/31771), and it is [missing in
# repository](https://github.com/lucidrains/DALLE-pytorch/pull/230) after
# [repository](https://github.com/kan-bayashi/ParallelWaveGAN/issues/177): training works,
# only a little worse. A cheap check: print the first batch's indices in two epochs.

# %% [markdown]
# ### A seed for each rank
#
# Somebody read that ranks need different seeds, and gives the sampler one as well. Both
# ranks' shares of one epoch, and how often the twelve samples are in them:

# %%
def counts():
    samplers = [DistributedSampler(data, 2, r, seed=r) for r in range(2)]
    seen = [index for sampler in samplers for index in sampler]
    times = [seen.count(index) for index in data]
    return {"never": times.count(0), "once": times.count(1),
            "twice": times.count(2)}

lk.predict("6.2.2")

# %% [markdown]
# The second version gives both the same seed:

# %%
def counts_fixed():
    samplers = [DistributedSampler(data, 2, r, seed=7) for r in range(2)]
    seen = [index for sampler in samplers for index in sampler]
    times = [seen.count(index) for index in data]
    return {"never": times.count(0), "once": times.count(1),
            "twice": times.count(2)}

lk.trap("6.2.2", counts, counts_fixed)

# %% [markdown]
# Shares fit together only if they are cut from one permutation: the sampler's seed and
# epoch are the same on all ranks. What has to differ is the randomness *within* a sample,
# such as augmentation (part 6.3).

# %% [markdown]
# ### ★ An accuracy from four ranks
#
# Nine samples are evaluated on four ranks. Each rank counts its samples and those that the
# model got right, and both counts are added up over the ranks, which is better than a mean
# of four accuracies. The model is wrong on the first three samples and right on the other
# six. To see all shares at once, this page plays the four ranks in turn; the sums are what
# `all_reduce` would give.

# %%
correct = torch.tensor([0, 0, 0, 1, 1, 1, 1, 1, 1])

def accuracy():
    good = seen = 0
    for rank in range(4):
        sampler = DistributedSampler(correct, 4, rank, shuffle=False)
        mine = correct[list(sampler)]
        good, seen = good + mine.sum().item(), seen + len(mine)
    return round(good / seen, 3)

lk.predict("6.2.3")

# %% [markdown]
# Run it:

# %%
lk.trap("6.2.3", accuracy)

# %% [markdown]
# Nine do not divide by four. In training all ranks must make the same number of steps, so
# the sampler fills up, with samples from the beginning:

# %%
for rank in range(4):
    sampler = DistributedSampler(correct, 4, rank, shuffle=False)
    print(f"rank {rank}:", list(sampler))

# %% [markdown]
# Three samples count twice, here the three that are wrong.
#
# **Fix.** Cut the shares yourself. They may differ in length, since an evaluation does not
# average gradients: only the two counts travel, once, at the end.

# %%
def accuracy_fixed():
    good = seen = 0
    for rank in range(4):
        mine = correct[range(rank, len(correct), 4)]
        good, seen = good + mine.sum().item(), seen + len(mine)
    return round(good / seen, 3)

lk.fix("6.2.3", accuracy_fixed)

# %% [markdown]
# In a script that is `Subset(data, range(rank, len(data), world))` and a plain loader. Such
# an evaluation calls the model itself, `ddp.module`, and not the wrapper: the wrapper's
# forward may send buffers, and wait for a rank that has nothing left to do.
#
# **Transfer.** Would `drop_last=True` have been right? And what if the sampler of the
# evaluation is left at `shuffle=True`, its default?

# %%
def by_sampler(epoch=0, **options):
    good = seen = 0
    for rank in range(4):
        sampler = DistributedSampler(correct, 4, rank, **options)
        sampler.set_epoch(epoch)
        mine = correct[list(sampler)]
        good, seen = good + mine.sum().item(), seen + len(mine)
    return round(good / seen, 3)

print("drop_last:", by_sampler(shuffle=False, drop_last=True))
print("shuffled: ", [by_sampler(epoch) for epoch in range(8)])

# %% [markdown]
# To drop is to leave out one sample. Shuffled anew, other samples count twice: the metric
# of a model that does not change goes up and down with the epoch.
#
# *In the field.* [Reported in 2019](https://github.com/pytorch/pytorch/issues/25162), and
# [still found](https://github.com/roboflow/rf-detr/issues/1507). With many samples the
# error is small; torchvision's reference scripts had it, and [so may published
# results](https://github.com/pytorch/vision/issues/4559). What is no sum of counts, such as
# an F1 score, must not be averaged over ranks either: gather counts, or predictions.

# %% [markdown]
# ### ★ Six samples here, two there
#
# Eight samples, two ranks: rank 0 has six of them, rank 1 has two. So it goes with shares
# that nobody has padded, and with every batch of texts, where the mean is taken over the
# tokens, and ranks differ in their number.
# `gradient` makes one step of a linear model; here it is defined, the ranks use it later.

# %%
# %%module eight
import torch

def gradient(loss, rows, wrap=lambda model: model, device="cpu"):
    torch.manual_seed(10)
    x, y = torch.randn(8, 3).to(device), torch.randn(8, 1).to(device)
    model = torch.nn.Linear(3, 1).to(device)
    wrapped = wrap(model)
    loss(wrapped(x[rows]), y[rows]).backward()
    return model.weight.grad

# %% [markdown]
# Three colleagues write down the loss of one rank:

# %%
# %%module losses
import torch
import torch.distributed as dist
from torch.nn import functional as F

def own_mean(out, y):
    return F.mse_loss(out, y)

def own_sum(out, y):
    return F.mse_loss(out, y, reduction="sum")

def own_part(out, y):
    n = torch.tensor(float(len(y)), device=y.device)
    dist.all_reduce(n)  # now the number of samples on all ranks
    return own_sum(out, y) * dist.get_world_size() / n

# %% [markdown]
# The wanted gradient is the one that a single process gets from the mean over all eight.
# Which of the three losses gives it to both ranks?

# %%
whole = gradient(F.mse_loss, slice(0, 8))
lk.predict("6.2.4")

# %% [markdown]
# The script wraps the model and tries all three, on two real ranks:

# %%
# %%torchrun --nproc 2 --out unequal
import torch.distributed as dist
from eight import gradient
from group import start
from losses import own_mean, own_part, own_sum
from torch.nn.parallel import DistributedDataParallel as DDP

import labkit as lk

rank, device = start()
rows = slice(0, 6) if rank == 0 else slice(6, 8)
for loss in (own_mean, own_sum, own_part):
    lk.report(**{loss.__name__: gradient(loss, rows, DDP, device)})
dist.destroy_process_group()

# %% [markdown]
# How far the gradient on rank 0 is from the wanted one, as a share of its length. The usual
# loss first:

# %%
def off(name):
    found = unequal[0][name]
    return round(((found - whole).norm() / whole.norm()).item(), 2)

lk.trap("6.2.4", lambda: off("own_mean"))

# %% [markdown]
# The ranks agree with each other, and with nobody else. DDP adds the gradients and divides
# by the number of **ranks**: a mean of two means, in which each sample on rank 1 weighs
# three times as much as one on rank 0.

# %%
parts = [gradient(F.mse_loss, rows) for rows in (slice(0, 6), slice(6, 8))]
of_means = (parts[0] + parts[1]) / 2
print("DDP is the mean of means:",
      torch.allclose(unequal[0]["own_mean"], of_means, atol=1e-6))
print("both ranks have the same:",
      torch.equal(unequal[0]["own_mean"], unequal[1]["own_mean"]))

# %% [markdown]
# **Fix.** Each rank hands in the **sum** of its losses, divided by the number of samples on
# all ranks; times the number of ranks, since DDP will divide by it.

# %%
lk.fix("6.2.4", lambda: off("own_part"))

# %% [markdown]
# **Transfer.** `own_sum` has no division by the number of samples. On one process it gives
# eight times the wanted gradient. How many times is it here?

# %%
times = (unequal[0]["own_sum"] / whole).mean().item()
print(f"{times:.2f} times")

# %% [markdown]
# Half of it: DDP divides by the ranks, whatever the loss is. **With a summed loss the same
# eight samples move the model half as far on two ranks as on one**, without a word.
#
# *In the field.* For texts of unequal length
# [Transformers](https://github.com/huggingface/transformers/issues/34242) and
# [torchtitan](https://github.com/pytorch/torchtitan/pull/2206) had to change their losses;
# the same mean of means appears in gradient accumulation (part 3.2). The check: one step on
# one process with all the data, one on two ranks, and the gradients compared, as above.

# %% [markdown]
# ### Two heads, one at a time
#
# A model with one head for digits and one for even or odd. The first thousand steps are to
# train the digits only.

# %%
class Heads(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 8)
        self.digit = nn.Linear(8, 10)
        self.parity = nn.Linear(8, 2)

    def forward(self, x, head):
        features = self.body(x).relu()
        head = self.digit if head == "digit" else self.parity
        return head(features)

# %% [markdown]
# What is told in the next lines needs only one rank, so the page becomes a group of one, for
# the length of a call. `steps` makes three steps with the first head, and counts them:

# %%
from datetime import timedelta

import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

def alone(run, backend="gloo", timeout=timedelta(seconds=60)):
    dist.init_process_group(backend, store=dist.HashStore(), rank=0,
                            world_size=1, timeout=timeout)
    try:
        return run()
    finally:
        dist.destroy_process_group()

# %% [markdown]
# The steps:

# %%
done = []

def steps(**options):
    done.clear()
    ddp = DDP(Heads(), **options)
    for step in range(3):
        loss = ddp(torch.ones(4, 8), "digit").sum()
        loss.backward()
        done.append(step)
    return f"{len(done)} steps"

lk.predict("6.2.5")

# %% [markdown]
# The second version looks through each graph for parameters that are not in it:

# %%
lk.trap("6.2.5", lambda: alone(steps),
        lambda: alone(lambda: steps(find_unused_parameters=True)))

# %% [markdown]
# DDP sends gradients in buckets, each when all its gradients are there. Those of `parity`
# never come, and the error tells at the next forward. Which parameters it means, it gives
# as numbers. With `TORCH_DISTRIBUTED_DEBUG=DETAIL` in the environment it gives names; by
# hand, after one backward from fresh gradients:

# %%
def unused():
    ddp = DDP(Heads())
    ddp(torch.ones(4, 8), "digit").sum().backward()
    return [name for name, p in ddp.named_parameters() if p.grad is None]

missing = alone(unused)
print(missing)
try:
    alone(steps)
except RuntimeError:
    before = len(done)
    print("steps before the error:", before)

# %% [markdown]
# The search is a walk through the graph in each step. A part that never trains is better
# switched off before wrapping, with `requires_grad_(False)`; a part that should have
# trained and does not is the bug that [this
# error](https://github.com/pytorch/pytorch/issues/43259) has found for you.

# %% [markdown]
# ### ★ Four batches here, three there
#
# Each rank reads its own files, and rank 0 has one batch more. Two epochs; `trace` notes
# the epoch and a number of the gradient after each step.

# %%
# %%module loops
import torch

def train(ddp, batches, trace):
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
    for epoch in range(2):
        for x in batches:
            optimizer.zero_grad()
            ddp(x).sum().backward()
            trace.append([epoch, ddp.module.weight.grad[0, 0].item()])
            optimizer.step()

# %% [markdown]
# `attempt` runs such a loop on one rank. After it comes what comes after every training: the
# ranks wait for each other, so that one can save.

# %%
# %%module attempt
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

def attempt(train, group=None):
    batches, trace = [torch.ones(2, 3)] * (4 - dist.get_rank()), []
    try:
        train(DDP(torch.nn.Linear(3, 1), process_group=group), batches, trace)
        dist.barrier(group)
        return {"trace": trace, "end": "finished"}
    except RuntimeError as error:
        return {"trace": trace, "end": str(error).rpartition("] ")[2]}

# %% [markdown]
# A rank that waits gives up when its group's timeout is over: by default after ten minutes
# with nccl, after thirty with gloo. The script will make a group that waits four seconds, with
# gloo on every machine.

# %%
lk.predict("6.2.6")

# %% [markdown]
# A second loop has one line more; what that does comes below.

# %%
# %%module joined
import torch

def train_joined(ddp, batches, trace):
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
    for epoch in range(2):
        with ddp.join():
            for x in batches:
                optimizer.zero_grad()
                ddp(x).sum().backward()
                trace.append([epoch, ddp.module.weight.grad[0, 0].item()])
                optimizer.step()

# %% [markdown]
# One launch tries both, always with gloo, whose timeout is an error that can be caught:

# %%
# %%torchrun --nproc 2 --out tried
from datetime import timedelta
import torch.distributed as dist
from attempt import attempt
from joined import train_joined
from loops import train
import labkit as lk
dist.init_process_group("gloo")
group = dist.new_group(timeout=timedelta(seconds=4))
dist.barrier(group)
lk.report(even=attempt(train_joined), uneven=attempt(train, group))
dist.destroy_process_group()

# %% [markdown]
# `outcome` raises what a rank has raised; otherwise it counts the steps of both. First the
# plain loop:

# %% tags=["volatile", "nbval-ignore-output"]
uneven, even = ([rank[key] for rank in tried] for key in ("uneven", "even"))

def outcome(ranks):
    ends = [rank["end"] for rank in ranks]
    failed = [end for end in ends if end != "finished"]
    if failed:
        raise RuntimeError(max(failed))
    return [f"{len(rank['trace'])} steps" for rank in ranks]

lk.trap("6.2.6", lambda: outcome(uneven))

# %% [markdown]
# In a real run this message comes after thirty minutes of silence, and reads like a fault of
# the network. (With nccl it is "Watchdog caught collective operation timeout" after ten, and
# ends the process.) Step by step, the epoch that each rank was in:

# %%
epochs_of = [[epoch for epoch, _ in rank["trace"]] for rank in uneven]
print("step     1  2  3  4  5  6  7  8")
for rank, numbers in enumerate(epochs_of):
    print(f"rank {rank}  ", *(f"{number:2}" for number in numbers))

# %% [markdown]
# The first epoch ends without an error. Rank 0's fourth batch was averaged with the first
# of rank 1's **next** epoch: a collective does not know what it is for, only that it is the
# next one. Rank 1 ran out of batches after six steps and went on to the barrier; rank 0
# waits in its seventh backward for a gradient that nobody sends.
#
# **Fix.** `ddp.join()` around each epoch, the line of the second loop: a rank that is done
# answers with zeros until the last one is done too.

# %% tags=["volatile", "nbval-ignore-output"]
lk.fix("6.2.6", lambda: outcome(even))

# %% [markdown]
# **Transfer.** Each batch gives the gradient 2. What is averaged in the fourth step, in
# which rank 1 answers with zeros?

# %%
print("rank 0:", [gradient for epoch, gradient in even[0]["trace"]])

# %% [markdown]
# Two and zero, divided by two ranks: half a step, from half as many samples. So each batch
# keeps the weight that it has in every step, one half. (`divide_by_initial_world_size=False`
# divides by the ranks that still work; then this step is 2, and the last batch counts
# double.) Where it can be had, equal work is better: a `DistributedSampler` gives it, and for streams the ranks
# can agree beforehand on the smallest number of batches, with one `all_reduce`.
#
# *In the field.* [The request that brought
# `join`](https://github.com/pytorch/pytorch/issues/38174) lists the cases;
# [sharded files](https://github.com/Lightning-AI/pytorch-lightning/issues/20404) are the
# usual one. `join` knows only DDP's own messages, says its documentation: an `all_reduce`
# of your own in the loop, like the one in `own_part`, or a `SyncBatchNorm` hangs as before;
# `throw_on_early_termination=True` makes an error of that.

# %% [markdown]
# ### A method of the model
#
# The model has a method that computes its loss. The wrapper has no such method, but its
# `.module` has. The page is a group of one again. DDP calls a **hook** for each bucket of
# gradients that is to be averaged over the ranks; this one counts them.

# %%
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

def messages(model, run):
    sent = []

    def hook(state, bucket):
        sent.append(bucket.index())
        return default_hooks.allreduce_hook(None, bucket)

    ddp = DDP(model)
    ddp.register_comm_hook(None, hook)
    run(ddp)
    return len(sent)

# %% [markdown]
# One step:

# %%
class Regression(nn.Linear):
    def loss(self, x, y):
        return F.mse_loss(self(x), y)

x, y = torch.ones(4, 3), torch.zeros(4, 1)

def by_method(ddp):
    ddp.module.loss(x, y).backward()

lk.predict("6.2.7")

# %% [markdown]
# The second version calls the wrapper:

# %%
def by_wrapper(ddp):
    F.mse_loss(ddp(x), y).backward()

lk.trap("6.2.7",
        lambda: alone(lambda: messages(Regression(3, 1), by_method)),
        lambda: alone(lambda: messages(Regression(3, 1), by_wrapper)))

# %% [markdown]
# DDP prepares the sending in *its* `forward`. Without it each rank trains a model of its own
# on its own share, no rank says so, and rank 0's is saved: GPUs that do nothing for the
# result. It happened [to a robot's action
# head](https://github.com/moojink/openvla-oft/issues/160) and in [reinforcement
# learning](https://github.com/jingyaogong/minimind/issues/853). Let the model's `forward`
# call what you need, and test that the weights of two ranks are equal after two steps.

# %% [markdown]
# ### Four small batches, one update
#
# Gradient accumulation (part 3.2) under DDP. The gradient is right; what is counted is how
# often it travels for one update.

# %%
small = [(torch.ones(2, 3) * k, torch.zeros(2, 1)) for k in range(1, 5)]

def accumulate(ddp):
    for x, y in small:
        (F.mse_loss(ddp(x), y) / 4).backward()

lk.predict("6.2.8")

# %% [markdown]
# The second version says which backward is the last:

# %%
from contextlib import nullcontext

def accumulate_fixed(ddp):
    for number, (x, y) in enumerate(small, start=1):
        with nullcontext() if number == 4 else ddp.no_sync():
            (F.mse_loss(ddp(x), y) / 4).backward()

lk.trap("6.2.8",
        lambda: alone(lambda: messages(nn.Linear(3, 1), accumulate)),
        lambda: alone(lambda: messages(nn.Linear(3, 1), accumulate_fixed)))

# %% [markdown]
# Each time the whole gradient travels; between machines that can be most of a step's time.
# The forward belongs inside as well, since that is where DDP decides; with only the
# backward in `no_sync` ([a real case](https://github.com/speechbrain/speechbrain/issues/1802)):

# %%
def backward_only(ddp):
    for number, (x, y) in enumerate(small, start=1):
        loss = F.mse_loss(ddp(x), y) / 4
        with nullcontext() if number == 4 else ddp.no_sync():
            loss.backward()

print(alone(lambda: messages(nn.Linear(3, 1), backward_only)), "messages")

# %% [markdown]
# ### Play with the shares
#
# The real sampler of torch deals out these shares: number and rank are given to it, so that
# it needs no process group.
#
# - Nine samples, two ranks: which sample is read twice? In an evaluation without shuffling,
#   is it always the same one?
# - `drop_last` repairs the counts. What does it cost an evaluation, and what a training of
#   many epochs?
# - Go through the epochs with `set_epoch` called, and then not.
# - More ranks than samples, with and without `drop_last`: how many steps will a rank make?

# %%
lk.explore("6.2-shards")

# %% [markdown]
# *You can stop here; the exercises start with the accuracy of all ranks.*
#
# ### Exercise · one accuracy from all ranks · 10 minutes, medium
#
# Each rank has evaluated its share. Deliver `global_accuracy(correct, n)`: the share of
# right answers over the whole data set, as a number, the same on every rank.
#
# - `correct` is a bool tensor: which of the samples that *this rank* has read are right, in
#   the order of the sampler. The process group is there.
# - `n` is the number of samples in the data set. Rank r of `world` gets the samples at the
#   places r, r + world, r + 2 · world, … of the sampler's list; at the place n and behind it
#   stand repeated samples, which must not count. A rank may have fewer samples than another.
#
# The function stands in a `%%module` cell, so that the ranks can import it:

# %%
# %%module global_metric
import torch
import torch.distributed as dist
import labkit as lk

def global_accuracy(correct, n):
    return lk.TODO

# %% [markdown]
# The check launches two ranks, once, and asks them about four data sets:

# %%
global_accuracy = lk.check("6.2-metric", global_accuracy)

# %% [markdown]
# Stuck? `lk.hint("6.2-metric")` gives one hint at a time, `lk.solution("6.2-metric")` an
# answer and why it is one.
#
# ### Exercise · a training script for several processes · 20 minutes, medium
#
# Below is a script for one process, as a function. It gets a `model`, a data set `data` and
# `step(model, optimizer, batch)`, which trains on one batch and returns its loss. Deliver
# the same function for several processes, with seven edits:
#
# 1. First the process group, with `nccl` where there are GPUs and `gloo` elsewhere; at the
#    very end it is destroyed.
# 2. The device: the GPU with the number LOCAL_RANK where `torch.cuda.is_available()`, else
#    the CPU.
# 3. The model is wrapped in DistributedDataParallel, and `step` gets the wrapper.
# 4. Each rank gets its share of the data, shuffled.
# 5. Each epoch has another order.
# 6. One line an epoch, from rank 0 alone, with the mean loss over *all* ranks.
# 7. Rank 0 alone saves, under the names of the plain model. When `train` returns, on
#    whichever rank, the file is complete.
#
# Take the `lk.TODO` away when you are done. What you import, import in this cell.

# %%
# %%module train_ddp
import torch
import labkit as lk

def train(model, data, step, path):
    model = model.to("cuda" if torch.cuda.is_available() else "cpu")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = torch.utils.data.DataLoader(data, batch_size=20, shuffle=True)
    for epoch in range(3):
        losses = [step(model, optimizer, batch) for batch in loader]
        print(f"epoch {epoch}: loss {sum(losses) / len(losses):.2f}")
    torch.save(model.state_dict(), path)
    return lk.TODO

# %% [markdown]
# The check launches it on two ranks, really. Before that it is rehearsed up to the wrapper,
# as if there were GPUs and as if there were none, so that both branches are looked at on any
# machine:

# %%
train = lk.check("6.2-ddp", train)

# %% [markdown]
# `lk.hint("6.2-ddp")` goes through the edits in order; `lk.solution("6.2-ddp")` shows them
# all. (A learning rate for one process is often raised with the number of ranks, since a
# step sees so many more samples. That is a decision about the training, not an edit.)
#
# On several machines the same file is started by the line of part 6.1. On two machines with
# four GPUs each the ranks are numbered through, 0 to 7, and LOCAL_RANK begins with 0 on each
# machine: that is why edit 2 takes it, and edits 6 and 7 do not. Only the machine of rank 0 gets the file,
# unless the path is on a shared disk. To go on from it, rank 0 is enough: it loads the file
# before the model is wrapped, and DDP sends its weights to all the others. That holds for
# weights and buffers. The state of an optimizer or a scheduler, and the number of the epoch,
# every rank has to load itself.

# %% [markdown]
# ### What the article says, and what this page measured
#
# First what was not measured above: setting a group up, and the loader.

# %%
def says(run):
    try:
        run()
    except (ValueError, RuntimeError) as error:
        return type(error).__name__
    return "nothing"

sampler = DistributedSampler(data, num_replicas=2, rank=0)
loader = DataLoader(data, batch_size=3, sampler=sampler)
both = says(lambda: DataLoader(data, sampler=sampler, shuffle=True))
on_cpu = says(lambda: alone(lambda: DDP(nn.Linear(2, 1), device_ids=[0])))
print(both, on_cpu, len(loader))

# %% [markdown]
# Without `torchrun` nobody tells the rank, and nccl wants a GPU. Then the values for the
# table's last row:

# %%
without = says(lambda: dist.init_process_group("gloo"))
nccl = says(lambda: alone(lambda: "nothing sent", backend="nccl"))
repeated = 4 * len(DistributedSampler(correct, 4, 0)) - len(correct)
unsaid = dict(
    mean=off("own_mean"), part=off("own_part"), sum=times / 8,
    stuck=[len(r["trace"]) for r in uneven], last=even[0]["trace"][3][1],
    steps=before,
    bypassed=alone(lambda: messages(Regression(3, 1), by_method)),
    plain=alone(lambda: messages(nn.Linear(3, 1), accumulate)),
    no_sync=alone(lambda: messages(nn.Linear(3, 1), accumulate_fixed)))

# %% [markdown]
# The statements of section 6.2:

# %% tags=["nbval-ignore-output"]
weights, buffers, gradients = zip(*(rank["seen"] for rank in first))
lk.verdicts(
    C6_2a=dict(weights=weights, buffers=buffers, gradients=gradients),
    C6_2b=dict(backend=first[0]["backend"], on_cpu=on_cpu, without=without,
               nccl=nccl, gpus=torch.cuda.device_count()),
    C6_2c=dict(orders=len({tuple(e) for e in epochs()}), repeated=repeated,
               never=counts()["never"], both=both, batches=len(loader)),
    C6_2d=dict(ranks=[int(rank["told"]["RANK"]) for rank in first],
               world=int(first[0]["told"]["WORLD_SIZE"])),
    C6_2e=dict(messages=alone(lambda: messages(nn.Linear(3, 1), by_wrapper))),
    C6_2f=unsaid,
)

# %% [markdown]
# **What you can do now**
# - Call `set_epoch`, with the same epoch and seed on all ranks, and say who sees what.
# - Count every sample once: shares cut without padding, counts added up.
# - Weigh the losses so that the ranks together have the gradient of one batch.
# - Name the parameters that an error about unused ones means.
# - Find where ranks wait: every collective is the next one for all of them; and end an
#   epoch of unequal length with `join()`.
# - Count messages: call the wrapper and not its module, and send once per update.
#
# **Keep this**
#
# | you want | write |
# |---|---|
# | a new order in each epoch | `sampler.set_epoch(epoch)` |
# | shares for an evaluation | `Subset(data, range(rank, len(data), world))` |
# | a loss whose gradient, averaged by DDP, is that of the mean over all samples | `loss_sum * world / n_all`, with `n_all` from `all_reduce` |
# | parameters that may be unused | `DDP(model, find_unused_parameters=True)` |
# | ranks with unequal work | `with ddp.join():` |
# | a loss that needs more than `forward` | let `forward` call it; train through `ddp(x)` |
# | to accumulate | `with ddp.no_sync():` around forward and backward, not at the last |
# | to see a hang soon | `init_process_group(..., timeout=timedelta(minutes=2))` |
#
# *You can stop here; the next part starts with BatchNorm on two ranks.*

# %% [markdown]
# ## 6.3 What each rank keeps to itself
#
# **After this part you can**
# - say what a checkpoint knows of BatchNorm's statistics, and what to use instead,
# - seed a script so that weights and augmentation are both as they should be,
# - say what DDP makes equal, and when,
# - save and load a wrapped model under the names of the plain one,
# - print a loss that is that of all ranks, and say which calls all of them must make,
# - write one checkpoint from many ranks.
#
# *One sitting, about 40 minutes. Needs ranks and `%%torchrun` (part 6.1) and what DDP
# averages (part 6.2). The ranks of this part stay on the CPU and talk through gloo, so
# that everybody sees the same numbers.*

# %% [markdown]
# ### ★ Two clinics, one model
#
# Two clinics read the same digits, and the scanner of the second is brighter. Each rank
# trains on the images of one clinic. `right` is the share of the test images, as one of
# the scanners gives them, that a model reads rightly.

# %%
# %%module scanners
import labkit as lk
import numpy as np
import torch
with np.load(lk.data_path("digits.npz")) as digits:
    images = torch.from_numpy(digits["images"]).float().flatten(1) / 16
    labels = torch.from_numpy(digits["labels"]).long()
def scans(scanner, part):
    return images[part] + scanner, labels[part]
def right(model, scanner):
    x, y = scans(scanner, slice(1000, None))
    return round((model.eval()(x).argmax(1) == y).float().mean().item(), 1)

# %% [markdown]
# The model, with whatever norm layer is asked for:

# %%
# %%module net
import torch
from torch import nn

def make(norm=nn.BatchNorm1d):
    torch.manual_seed(16)
    return nn.Sequential(
        nn.Linear(64, 32), norm(32), nn.ReLU(), nn.Linear(32, 10))

# %% [markdown]
# And the training. Every rank runs it, with its own images:

# %%
# %%module training
import torch
from torch.nn.parallel import DistributedDataParallel as DDP
def fit(model, x, y):
    ddp = DDP(model)
    optimizer = torch.optim.Adam(ddp.parameters(), lr=0.01)
    for _ in range(80):
        batch = torch.randperm(len(x))[:64]
        loss = torch.nn.functional.cross_entropy(ddp(x[batch]), y[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

# %% [markdown]
# `learn` makes a model, trains it, and reports what its rank then has: how well the model
# reads both kinds of images, and two values for later.

# %%
# %%module learning
import torch
from net import make
from scanners import right, scans
from training import fit

def learn(norm, scanner):
    model, (x, y) = make(norm), scans(scanner, slice(1000))
    fit(model, x, y)
    return {"right": [right(model, one) for one in (0, 1)],
            "kept": getattr(model[1], "running_mean", None),
            "own": model[0](x).mean(0)}

# %% [markdown]
# Each rank calls `learn` with BatchNorm and its clinic's scanner. Rank 0 saves its model, as
# in every script with several ranks. The weights have seen both clinics: the gradients are
# averaged.

# %%
lk.predict("6.3.1")

# %% [markdown]
# One launch runs it three times: as above, and in two variations that come below.

# %%
# %%torchrun --nproc 2 --out learned
import labkit as lk
import torch
import torch.distributed as dist
from learning import learn
dist.init_process_group("gloo")
rank = dist.get_rank()
mixed = torch.arange(1000)[:, None] % 2
lk.report(clinics=learn(torch.nn.BatchNorm1d, rank),
          layers=learn(torch.nn.LayerNorm, rank),
          mixed=learn(torch.nn.BatchNorm1d, mixed))
dist.destroy_process_group()

# %% [markdown]
# What the model of rank 0 reads of both:

# %%
def saved_by_rank_0():
    return learned[0]["clinics"]["right"]

lk.trap("6.3.1", saved_by_rank_0)

# %% [markdown]
# In training, BatchNorm uses the mean and variance of the batch in front of it, that of
# **this rank**: nothing is exchanged. In evaluation it uses what it kept, and that is not
# averaged over the ranks either: before each forward of training DDP copies rank 0's buffers
# over all others. (Its argument `forward_sync_buffers` says whether; before PyTorch 2.13 it
# was `broadcast_buffers`.) Look at one channel, the one that the brightness changes most:

# %%
clinic = [rank["clinics"] for rank in learned]
channel = (clinic[1]["own"] - clinic[0]["own"]).abs().argmax()
names = ("mean over own images", "mean that BatchNorm kept")
for name, key in zip(names, ("own", "kept")):
    for n, rank in enumerate(clinic):
        print(f"rank {n}, {name}: {rank[key][channel]:.1f}")

# %% [markdown]
# What rank 1 learns about its own images is overwritten in the next step. **BatchNorm's
# statistics in the checkpoint know the data of rank 0 only.**
#
# **Fix.** On GPUs, `nn.SyncBatchNorm` computes mean and variance over the batches of all
# ranks. What works everywhere is a norm that keeps nothing of the data and so has nothing
# to disagree about: `GroupNorm`, `LayerNorm`.

# %%
def saved_by_rank_0_fixed():
    return learned[0]["layers"]["right"]

lk.fix("6.3.1", saved_by_rank_0_fixed)

# %% [markdown]
# **Transfer.** Where the images of both clinics are dealt to both ranks, as a shuffling
# `DistributedSampler` does, is BatchNorm still a problem? The third training:

# %%
print("clinics apart:", learned[0]["clinics"]["right"])
print("clinics mixed:", learned[0]["mixed"]["right"])

# %% [markdown]
# Then rank 0's data are like everybody's. What stays is the size of the batch: 8 GPUs with
# 4 images each train with statistics of 4 images, not of 32. How far the mean of a batch
# is from the mean of all, for the pixel in the middle:

# %%
torch.manual_seed(0)
pixel = images[:, 36]
for size in (4, 32, 256):
    picks = [torch.randperm(len(pixel))[:size] for _ in range(500)]
    far = (pixel[torch.stack(picks)].mean(1) - pixel.mean()).abs().mean()
    print(f"batch of {size:3}: {far / pixel.std():.2f} standard deviations")

# %% [markdown]
# *In the field.* A library for detection found that [the accuracy in the
# log](https://github.com/open-mmlab/mmdetection/pull/4582), each rank with its own
# statistics, was not that of the saved file; another [averages the
# statistics](https://github.com/huggingface/pytorch-image-models/issues/110) over the ranks
# before it evaluates and saves. Before all ranks evaluate with `ddp.module` (part 6.2), give
# them rank 0's: `dist.broadcast(buffer, 0)` for each buffer. `mode_report` (chapter 05)
# lists the layers that keep some.

# %% [markdown]
# ### The advised layer, tried on a laptop
#
# Before the job goes to the cluster, the script is tried on a laptop. One process is enough
# to wrap a model: for the length of a call the page is a group of one again (`alone`, part
# 6.2).
# `convert_sync_batchnorm` replaces each BatchNorm layer. The model stays on the CPU:

# %%
def wrap():
    model = nn.SyncBatchNorm.convert_sync_batchnorm(make())
    return tuple(DDP(model)(images[:8]).shape)

lk.predict("6.3.2")

# %% [markdown]
# The second version converts where the model is on a GPU, and before it is wrapped:

# %%
def wrap_fixed():
    model = make()
    if next(model.parameters()).is_cuda:
        model = nn.SyncBatchNorm.convert_sync_batchnorm(model)
    return tuple(DDP(model)(images[:8]).shape)

lk.trap("6.3.2", lambda: alone(wrap), lambda: alone(wrap_fixed))

# %% [markdown]
# It exchanges statistics between GPUs only. On a machine that has some, the second version
# converts, once the model and `images` are moved there. Conversion itself warns of
# nothing. What a converted model does on the CPU, without any group, and in one:

# %%
def told(run, group=alone):
    try:
        group(run)
    except ValueError as error:
        return str(error).split(" or ")[0]
    return "works"

synced = nn.SyncBatchNorm.convert_sync_batchnorm(make())
def train():
    synced.train()(images[:8])

outcomes = {"no group": told(train, lambda f: f()), "wrapped": told(wrap),
            "train": told(train), "eval": told(lambda: synced.eval()(images))}
print(*(f"{what:8} {said}" for what, said in outcomes.items()), sep="\n")

# %% [markdown]
# Without a group it is an ordinary BatchNorm, and says nothing: the test on a laptop that
# starts no group passes. Evaluation needs no exchange, so a model trained with it can be used
# on any computer.
# *In the field:* [a script on a machine without
# GPUs](https://github.com/QData/spacetimeformer/issues/90).

# %% [markdown]
# ### The seed of every rank
#
# Each rank gets its own share of six images, and makes each a little brighter by a random
# amount. The script begins with a seed, as it should. `draws` returns the amounts:

# %%
# %%module brightness
import torch
from torch.utils.data import DataLoader, Dataset, DistributedSampler
class Brighter(Dataset):
    def __len__(self):
        return 6
    def __getitem__(self, index):
        return torch.rand(())
def draws(seed):
    torch.manual_seed(seed)
    loader = DataLoader(Brighter(), sampler=DistributedSampler(Brighter()))
    return [round(amount.item(), 2) for amount in loader]

# %% [markdown]
# Both ranks call `draws(0)`:

# %%
lk.predict("6.3.3")

# %% [markdown]
# The answer comes with that of the next trap: one launch runs both.

# %% [markdown]
# ### The file that only one rank has
#
# Pretrained weights lie on the disk of rank 0, here a single weight, 3. So rank 0 loads
# it, and all of them go on training from there. `finetuned` returns the weight of its rank
# after three steps.

# %%
# %%module finetune
import torch
import torch.distributed as dist

def new_model():
    torch.manual_seed(dist.get_rank())
    return torch.nn.Linear(1, 1, bias=False)

def load(model):
    if dist.get_rank() == 0:
        torch.nn.init.constant_(model.weight, 3.0)

# %% [markdown]
# Three steps, which pull the weight towards 0:

# %%
# %%module three_steps
import torch

def pull(ddp):
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        ddp(torch.ones(4, 1)).pow(2).mean().backward()
        optimizer.step()
    return round(ddp.module.weight.item(), 2)

# %% [markdown]
# The script:

# %%
# %%module starting
from finetune import load, new_model
from three_steps import pull
from torch.nn.parallel import DistributedDataParallel as DDP

def finetuned():
    model = new_model()
    ddp = DDP(model)
    load(model)
    return pull(ddp)

# %% [markdown]
# What do the two ranks return?

# %%
lk.predict("6.3.4")

# %% [markdown]
# The second version loads first and wraps then. `copied` gives a weight before and after
# it is wrapped.

# %%
# %%module starting_fixed
from finetune import load, new_model
from three_steps import pull
from torch.nn.parallel import DistributedDataParallel as DDP
def finetuned_fixed():
    model = new_model()
    load(model)
    ddp = DDP(model)
    return pull(ddp)
def copied():
    model = new_model()
    return model.weight.item(), DDP(model).module.weight.item()

# %% [markdown]
# Both traps, broken and fixed; the other seed is the rank's number:

# %%
# %%torchrun --nproc 2 --out starts
import labkit as lk
import torch.distributed as dist
from brightness import draws
from starting import finetuned
from starting_fixed import copied, finetuned_fixed

dist.init_process_group("gloo")
lk.report(same=draws(0), own=draws(dist.get_rank()))
lk.report(late=finetuned(), early=finetuned_fixed())
lk.report(copied=copied())
dist.destroy_process_group()

# %% [markdown]
# First the amounts of brightness on rank 0 and on rank 1:

# %%
lk.trap("6.3.3", lambda: [rank["same"] for rank in starts],
        lambda: [rank["own"] for rank in starts])

# %% [markdown]
# With one seed for all, eight GPUs draw the same numbers eight times. Use
# `torch.manual_seed(seed + rank)`, as [DETR
# does](https://github.com/facebookresearch/detr/issues/297). The loader seeds torch in its
# workers from the same generator. Whoever seeds workers by hand has to add the rank there
# too: [a widely used trainer](https://github.com/huggingface/transformers/issues/37932) did
# not.
#
# Then the weights after three steps:

# %%
lk.trap("6.3.4", lambda: [rank["late"] for rank in starts],
        lambda: [rank["early"] for rank in starts])

# %% [markdown]
# DDP copies rank 0's weights to the others **once, when it wraps**. From then on it
# averages gradients and never compares weights, so ranks that differ go on to differ, all
# making the same step from different places. Wrap last.
#
# The advice to seed all ranks alike *for the weights* is widespread, and DDP does not need
# it. Each rank made its model after another seed:

# %%
for n, rank in enumerate(starts):
    before, after = rank["copied"]
    print(f"rank {n}: {before:5.2f} before it is wrapped, {after:5.2f} after")

# %% [markdown]
# **One line is right for both purposes**: `torch.manual_seed(seed + rank)`, at the top. What
# has to be the same on all ranks, such as a split into training and validation, then needs a
# generator of its own. The samples for validation, on rank 0 and on rank 1:

# %%
from torch.utils.data import random_split

def held_out(rank, **options):
    torch.manual_seed(0 + rank)
    return sorted(random_split(range(10), [7, 3], **options)[1].indices)

print("seeded by rank:", [held_out(rank) for rank in (0, 1)])
alike = [held_out(rank, generator=torch.Generator().manual_seed(0))
         for rank in (0, 1)]
print("own generator: ", alike)

# %% [markdown]
# Readers of [nanoGPT](https://github.com/karpathy/nanoGPT/issues/22) have asked why that is
# no fault.

# %% [markdown]
# ### ★ The weights that the evaluation gets
#
# The training script saves and resumes, all day long, without a fault. (It runs in this
# process, in a group of one.)

# %%
import pathlib
import tempfile

folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
path, plain = (pathlib.Path(folder.name, n) for n in ("ddp.pt", "plain.pt"))
trained = make()
alone(lambda: fit(trained, *scans(0, slice(1000))))
ddp = alone(lambda: DDP(trained))
torch.save(ddp.state_dict(), path)
print("trained:", right(trained, 0))
print("resumed:", ddp.load_state_dict(torch.load(path, weights_only=True)))

# %% [markdown]
# The evaluation needs no ranks. It makes the plain model and loads the file, with
# `strict=False` since the day the head was changed:

# %%
def evaluate():
    model = make()
    state = torch.load(path, map_location="cpu", weights_only=True)
    model.load_state_dict(state, strict=False)
    return right(model, 0)

lk.predict("6.3.5")

# %% [markdown]
# Run it:

# %%
lk.trap("6.3.5", evaluate)

# %% [markdown]
# DDP is a module that holds yours under the name `module`. Its state is yours with a
# prefix, and the resuming script wraps before it loads, so it never notices. What a plain
# model finds in that file:

# %%
in_file = torch.load(path, weights_only=True).keys()
in_model = make().state_dict().keys()
print("in the file: ", *list(in_file)[:2])
print("in the model:", *list(in_model)[:2])
print("in both:", len(in_file & in_model), "of", len(in_model))
print("ddp.module is the model:", ddp.module is trained)

# %% [markdown]
# **Fix.** Save the state of the model inside. Its names are those of the plain model,
# whatever it was wrapped in, and the load can be strict.

# %%
def evaluate_fixed():
    torch.save(ddp.module.state_dict(), plain)
    model = make()
    state = torch.load(plain, map_location="cpu", weights_only=True)
    model.load_state_dict(state)
    return right(model, 0)

lk.fix("6.3.5", evaluate_fixed)

# %% [markdown]
# To resume, load into `ddp.module`, or into the model before it is wrapped.
#
# **Transfer.** For files that have the prefix already, torch has a function that takes it
# off. What does it leave of a model that was compiled as well, in either order?

# %%
from torch.nn.modules.utils import consume_prefix_in_state_dict_if_present

compiled = torch.compile(make(), backend="eager")
both = {"DDP(compiled)": alone(lambda: DDP(compiled)).state_dict(),
        "compiled(DDP)": torch.compile(ddp, backend="eager").state_dict()}
for name, state in both.items():
    before = next(iter(state))
    consume_prefix_in_state_dict_if_present(state, "module.")
    print(f"{name}: {before} → {next(iter(state))}")

# %% [markdown]
# It takes off one prefix, at the beginning, and says nothing where there is none. With two
# wrappers a file needs two passes, in the right order. `lk.diff_state` gives the line:

# %%
lk.diff_state(make(), both["DDP(compiled)"])

# %% [markdown]
# *In the field.* Chapter 07 tells how many projects have met this (trap 7.1.2). Whoever
# loads a file with prefixes has to know how the model was wrapped; **save without the prefix,
# and nobody needs to know.**

# %% [markdown]
# ### The loss in the log
#
# Rank 0 writes the log, as is usual. The loss of this step is 1.0 on rank 0 and 2.0 on
# rank 1.

# %%
# %%module logs
import torch.distributed as dist

def log(loss):
    if dist.get_rank() == 0:
        return loss.item()

# %% [markdown]
# Both ranks have equally many images, so the mean over all of them is 1.5.

# %%
lk.predict("6.3.6")

# %% [markdown]
# The second version adds up the losses of all ranks, **on** all ranks, and then lets rank
# 0 write:

# %%
# %%module logs_fixed
import torch.distributed as dist

def log_fixed(loss):
    loss = loss.detach().clone()
    dist.all_reduce(loss)
    if dist.get_rank() == 0:
        return loss.item() / dist.get_world_size()

# %% [markdown]
# Both, and at the end a `barrier`, where the ranks wait until all have come:

# %%
# %%torchrun --nproc 2 --out logged
import labkit as lk
import torch
import torch.distributed as dist
from logs import log
from logs_fixed import log_fixed

dist.init_process_group("gloo")
loss = torch.tensor(1.0 + dist.get_rank())
lk.report(alone=log(loss), together=log_fixed(loss))
dist.barrier()
dist.destroy_process_group()

# %% [markdown]
# The log:

# %%
lk.trap("6.3.6", lambda: logged[0]["alone"], lambda: logged[0]["together"])

# %% [markdown]
# (With shares of unequal size, add up sums and counts: part 6.2.) A wrong log is the
# smaller harm. Whatever *decides* by a loss of its own rank decides differently on each:

# %%
def rate_after(losses):
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(
        optimizer, patience=1)
    for loss in losses:
        scheduler.step(loss)
    return optimizer.param_groups[0]["lr"]

print(f"rank 0: {rate_after([1.0, 0.9, 0.8, 0.7]):g}")
print(f"rank 1: {rate_after([1.0, 1.1, 1.2, 1.1]):g}")

# %% [markdown]
# Two learning rates, and from there on two models; [a project noticed
# it](https://github.com/rmchurch/disruptcnn/issues/3) when a rate did not fall that
# should have. With early stopping one rank leaves the loop, and the other waits for it.

# %% [markdown]
# ### ★ Only rank 0 needs the mean
#
# Only rank 0 writes the log, so only rank 0 needs the mean. Somebody has tidied up:

# %%
# %%module logs_tidied
import torch.distributed as dist

def log_tidied(loss):
    loss = loss.detach().clone()
    if dist.get_rank() == 0:
        print("calls all_reduce")
        dist.all_reduce(loss)
        return loss.item() / dist.get_world_size()

# %% [markdown]
# The script is as before; after the log the ranks go on to the `barrier`.

# %%
lk.predict("6.3.7")

# %% [markdown]
# So that it comes to an end, each rank sets an alarm: three seconds later on rank 0, four
# on rank 1, `faulthandler` writes down the line that the rank is at. The second alarm also
# ends its rank, and with it the launch.

# %% tags=["nbval-ignore-output", "volatile"]
# %%torchrun --nproc 2 --out stuck --may-fail
import faulthandler
from contextlib import suppress

import torch
import torch.distributed as dist
from logs_tidied import log_tidied

dist.init_process_group("gloo")  # ends when all ranks are there
rank = dist.get_rank()
faulthandler.dump_traceback_later(3 + rank, exit=rank == 1)
with suppress(RuntimeError):  # rank 0 hears that rank 1 is gone
    log_tidied(torch.tensor(1.0 + rank))
    dist.barrier()

# %% [markdown]
# What became of it:

# %%
lk.trap("6.3.7", lambda: stuck)

# %% [markdown]
# `all_reduce` is a **collective**: it ends on a rank when all ranks have called it. Rank 1
# never does. It skips the block and calls the next collective, for which rank 0 would have
# to come: two ranks, each in a call that only the other can end. From what
# `faulthandler` wrote:

# %%
import re

call = re.compile(r'distributed_c10d\.py", line \d+,? in (\w+)')
waits = [" ".join(call.findall(text)[:1]) for text in stuck.output]
for rank, name in enumerate(waits):
    print(f"rank {rank} waits in {name}")

# %% [markdown]
# Without the alarm they would wait until the process group gives up, with gloo by default
# after

# %%
print(dist.distributed_c10d.default_pg_timeout)

# %% [markdown]
# **Fix.** The guard goes around what touches the outside world: the print, the file. What
# ranks do together stands outside of it. That is `log_fixed` of the trap before, and its
# launch came to its end:

# %%
lk.fix("6.3.7", lambda: logged)

# %% [markdown]
# **Transfer.** In each epoch rank 0 saves, and calls `dist.barrier()` under its guard; at the
# end of the epoch all ranks call another. Collectives of one kind meet in the order in which
# they are called (part 6.2). Three epochs, first with nothing but these barriers, then with a
# backward in each epoch: which calls meet, and when does it hang?

# %%
from itertools import zip_longest

def meetings(*epoch):
    zero = [*epoch, "after the save", "end of the epoch"] * 3
    one = [*epoch, "end of the epoch"] * 3
    pairs = zip_longest(zero, one, fillvalue="nothing")
    for n, (a, b) in enumerate(pairs, 1):
        print(f"{n}. rank 0: {a:18} rank 1: {b}")
        if "nothing" in (a, b) or ("backward" in (a, b) and a != b):
            print("   here it hangs")
            break

meetings()
meetings("backward")

# %% [markdown]
# With barriers alone it goes on until rank 1 has none left. In a training rank 1 is let into
# the second epoch, and its first backward needs rank 0, which waits at the end of the first
# for rank 1. Either way **it hangs later than where it is wrong.**
#
# **With nccl this trap can hang later as well.** Its barrier [is itself an
# all-reduce](https://github.com/pytorch/pytorch/issues/140257), of one number, so the two calls
# may meet: rank 0 then logs a mean without rank 1's loss, and is stuck only at its own
# barrier. Neither rank is told that it met the wrong call.
#
# *In the field.* The job stands still, the GPUs show full load or none, nothing is written.
# `ddp(x)` may send buffers and is a collective then, so [validation on rank 0 alone
# hangs](https://github.com/pytorch/pytorch/issues/54059); call
# [`ddp.module(x)`](https://github.com/jpata/particleflow/pull/233) there. To find the
# rank that is missing, set `TORCH_DISTRIBUTED_DEBUG=DETAIL` in the environment: then torch
# [compares the calls](https://docs.pytorch.org/docs/stable/distributed.html), and this
# script raises "Detected mismatch between collectives on ranks".

# %% [markdown]
# ### Every rank writes the checkpoint
#
# `torch.save(model.state_dict(), path)` stands in the script without any guard, and all
# ranks share the disk. To see every write, two open files play the two ranks here; each
# write is in two pieces, and `yield` hands over to the other rank.

# %%
import io

buffer = io.BytesIO()
torch.save(trained.state_dict(), buffer)
content, shared = buffer.getvalue(), path.with_name("shared.pt")

def save(rank):
    with open(shared, "wb") as file:
        for piece in (content[:4000], content[4000:]):
            file.write(piece)
            file.flush()
            yield

# %% [markdown]
# Rank 0 is done and goes on to load the best model; rank 1 was a little slower and has
# only begun.

# %%
def everyone_saves():
    ranks = [save(0), save(1)]
    for turn in (0, 0, 1):
        next(ranks[turn])
    return len(torch.load(shared, weights_only=True))

lk.predict("6.3.8")

# %% [markdown]
# In the second version only rank 0 saves:

# %%
def one_saves():
    ranks = [save(0)]
    for turn in (0, 0):
        next(ranks[turn])
    return len(torch.load(shared, weights_only=True))

lk.trap("6.3.8", everyone_saves, one_saves)

# %% [markdown]
# To open a file for writing empties it, whoever has filled it. It goes well as long as the
# ranks are equally fast and write the same bytes, which is why it passes most tests. The
# barrier belongs *after* the save: without it the other ranks load a file that is not there yet.
# *In the field:* [a segmentation library](https://github.com/Tramac/awesome-semantic-segmentation-pytorch/issues/67)
# without a guard; [an example of NVIDIA's](https://github.com/NVIDIA/apex/issues/886) with
# one for `local_rank == 0`, true once on each machine.
#
# ### Exercise · save once, load everywhere · 12 minutes, medium
#
# Deliver a class `OneFile`. Every rank calls `save(ddp, path)` with its DDP model and a
# `Path`, and then `load(model, path, device)` with a new, plain model on its own device.
#
# - Only rank 0 writes. When `save` comes back, on any rank, the new file is there.
# - The names in the file are those of the plain model.
# - No rank waits for one that does not come.
# - Killed in the middle of a save, the old file is still whole.
# - `load` returns the model; no weight goes by way of another rank's device, and no
#   program in the file is run.
#
# The check first plays each rank in this process. Then two real ranks save and load, and
# rank 0 is killed in the middle of a write; that takes some seconds.

# %%
class OneFile:
    def save(self, ddp, path):
        return lk.TODO

    def load(self, model, path, device):
        return lk.TODO

OneFile = lk.check("6.3-save", OneFile)

# %% [markdown]
# ### What the article says, and what this page measured
#
# First what was kept, and whether two writers leave a file:

# %%
own, kept = ([round(float(rank[key][channel]), 2) for rank in clinic]
             for key in ("own", "kept"))
try:
    torn = f"holds {everyone_saves()} tensors"
except (RuntimeError, OSError):
    torn = "cannot be read"
names = dict(prefixed=len(in_file & in_model), known=len(in_model),
             lost=evaluate(), kept=evaluate_fixed(),
             inside=ddp.module is trained)
print(own, kept, torn)

# %% [markdown]
# The six statements of section 6.3, in two tables:

# %%
lk.verdicts(
    C6_3a=dict(own=own, kept=kept, right=learned[0]["clinics"]["right"]),
    C6_3b=outcomes,
    C6_3c=dict(same=[rank["same"] for rank in starts],
               own=[rank["own"] for rank in starts]),
)

# %% [markdown]
# On weights and files:

# %%
lk.verdicts(
    C6_3d=dict(copied=[rank["copied"] for rank in starts],
               late=[rank["late"] for rank in starts]),
    C6_3e=names,
    C6_3f=dict(alone=logged[0]["alone"], together=logged[0]["together"],
               waits_0=waits[0], waits_1=waits[1], torn=torn),
)

# %% [markdown]
# One of these overturns common advice: **the ranks need not be seeded alike.** DDP copies
# rank 0's weights when it wraps; a seed that differs from rank to rank serves the
# augmentation, and does the weights no harm. Only what must be equal and is not sent, such as
# a random split, needs a seed without the rank.
#
# **What you can do now**
# - Say what a saved BatchNorm knows: rank 0's data, and choose SyncBatchNorm on GPUs, a
#   norm without kept statistics, or mixed shares.
# - Seed with `seed + rank`.
# - Say what DDP makes equal: weights and buffers once, buffers at the start of a forward,
#   gradients in each backward. Nothing else, and nothing that you change later.
# - Save `ddp.module.state_dict()`, and load strictly.
# - Log a loss of all ranks, with the collective outside of the guard.
# - Write a checkpoint once, whole, and let all ranks wait for it.
#
# **Keep this**
#
# | you want | write |
# |---|---|
# | BatchNorm over all GPUs | `nn.SyncBatchNorm.convert_sync_batchnorm(model)`, then DDP |
# | the same on any device | `nn.GroupNorm`, `nn.LayerNorm` |
# | different random numbers | `torch.manual_seed(seed + dist.get_rank())` |
# | weights from a file | load, then `DDP(model)` |
# | names without a prefix | `ddp.module.state_dict()` |
# | the loss of all ranks | `total = loss.detach().clone(); dist.all_reduce(total)` on **every** rank, then print `total / world` on one |
# | to validate on rank 0 alone | `ddp.module(x)` |
# | one checkpoint | rank 0 writes and renames; `dist.barrier()` on every rank |
# | to find who waits for whom | `TORCH_DISTRIBUTED_DEBUG=DETAIL torchrun …` |
#
# ### The chapter in five lines
#
# - One process per GPU, started by `torchrun`; `DataParallel` is for old code (6.1).
# - DDP averages gradients. Which samples, how many, and what a metric means is your
#   business: `set_epoch`, sums and counts, `join` (6.2).
# - All ranks call the same collectives in the same order, or all of them stop (6.2, 6.3).
# - DDP copies weights once. Wrap last, seed by rank, beware of what is kept per rank (6.3).
# - Rank 0 writes, under the plain names; everybody waits (6.3).
#
# ### Where to go next
#
# [Chapter 07](07_checkpoints.ipynb): what else a checkpoint must hold, and what it leaves
# out without a word. Chapter 08, performance, is in preparation.
#
# *You can stop here: this is the end of chapter 06.*
