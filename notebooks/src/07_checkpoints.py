# %% [markdown]
# # 7 · Saving and loading
#
# What a checkpoint holds, what it silently leaves out, and what loads without a word and
# is wrong. Three parts, each one sitting: 7.1 what is in a `state_dict`, 7.2 everything a
# training needs to go on as if nothing had happened, 7.3 other devices, other machines,
# other people's files.
# A ★ marks the traps of the core route.
#
# [Open this page in Colab](https://colab.research.google.com/github/pytorch-pitfall-lab/pytorch-pitfall-lab/blob/learn/notebooks/07_checkpoints.ipynb)
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

session = lk.setup(7, solve=solve, version=made_with)

# %% [markdown]
# ## 7.1 What is in a `state_dict`
#
# **After this part you can**
# - keep the weights of the best epoch, and show that they are the ones you put back,
# - load a checkpoint that does not fit entirely, and prove what was loaded,
# - say what an error of `load_state_dict` has done to the model before it came,
# - list what a model needs and its `state_dict` does not hold,
# - write a partial load that you need not trust.
#
# *One sitting, about 40 minutes. Needs modules, parameters and buffers. Any computer will
# do.*

# %% [markdown]
# ### ★ The weights of the best epoch
#
# A classifier for the digits. Almost half the labels that it learns from are wrong: it
# first learns the digits, then the mistakes. The best weights are somewhere on the way.

# %%
import copy
import io

with np.load(lk.data_path("digits.npz")) as digits:
    images = torch.from_numpy(digits["images"]).float().flatten(1) / 16
    labels = torch.from_numpy(digits["labels"]).long()
torch.manual_seed(0)
x, y, noisy = images[:400], labels[:400], labels[:400].clone()
noisy[:200] = torch.randint(10, (200,))

# %% [markdown]
# The model of this part, in a body and a head:

# %%
class Digits(nn.Module):
    def __init__(self, classes=10):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(64, 64), nn.BatchNorm1d(64), nn.ReLU())
        self.head = nn.Linear(64, classes)

    def forward(self, x):
        return self.head(self.body(x))

# %% [markdown]
# One update from all images, and the share of 797 other images that a model gets right:

# %%
def update(model, optimizer, y):
    model.train()
    optimizer.zero_grad()
    F.cross_entropy(model(x), y).backward()
    optimizer.step()

@torch.no_grad()
def accuracy(model):
    model.eval()
    right = model(images[1000:]).argmax(1) == labels[1000:]
    return right.float().mean().item()

# %% [markdown]
# `fit()` remembers the weights of the best epoch, puts them back at the end, and returns
# two accuracies: the best it saw, and that of the model it made.

# %%
def fit():
    torch.manual_seed(0)
    model, best = Digits(), 0
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for epoch in range(80):
        update(model, optimizer, noisy)
        if (now := accuracy(model)) > best:
            best, kept = now, model.state_dict()
    model.load_state_dict(kept)
    return round(best, 1), round(accuracy(model), 1)

lk.predict("7.1.1")

# %% [markdown]
# Run it:

# %%
lk.trap("7.1.1", fit)

# %% [markdown]
# A `state_dict` is a dictionary of names and tensors, and the tensors are **the model's
# own memory**, not a copy. Every update after the best epoch wrote into `kept` as well; in
# the end the model was loaded with itself. Change a weight, and see which ways of keeping
# it notice:

# %%
model = Digits()
state, file = model.state_dict(), io.BytesIO()
torch.save(state, file)
file.seek(0)
kept = {"state_dict()": state, "dict(...)": dict(state),
        ".copy()": state.copy(), "deepcopy": copy.deepcopy(state),
        "a file": torch.load(file, weights_only=True)}
with torch.no_grad():
    model.head.bias.fill_(7)
for way, held in kept.items():
    print(f"{way:13}", "follows" if held["head.bias"][0] == 7 else "stays")

# %% [markdown]
# Copying the dictionary copies the names. A file is a copy too, and outlives the process.
#
# **Fix.** `copy.deepcopy` gives every tensor memory of its own, which no update reaches.

# %%
def fit_fixed():
    torch.manual_seed(0)
    model, best = Digits(), 0
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for epoch in range(80):
        update(model, optimizer, noisy)
        if (now := accuracy(model)) > best:
            best, kept = now, copy.deepcopy(model.state_dict())
    model.load_state_dict(kept)
    return round(best, 1), round(accuracy(model), 1)

lk.fix("7.1.1", fit_fixed)

# %% [markdown]
# **Transfer.** To spare the GPU's memory, somebody keeps the best weights on the CPU:
# `{name: value.cpu() for name, value in model.state_dict().items()}`. On a GPU that is a
# copy. Is it one in a test on a CPU?

# %%
weight = Digits().state_dict()["head.weight"]
ways = {"cpu()": weight.cpu(), "float()": weight.float(),
        "detach()": weight.detach(), "clone()": weight.clone(),
        "to(..., copy=True)": weight.to("cpu", copy=True)}
for name, held in ways.items():
    same = held.data_ptr() == weight.data_ptr()
    print(f"{name:18}", "the model's memory" if same else "a copy")

# %% [markdown]
# `cpu` and `float` return the tensor itself where there is nothing to do. Write
# `value.clone()`, or `value.to("cpu", copy=True)`.
#
# *In the field.* An official PyTorch tutorial kept its best model in this way until
# somebody noticed ([report](https://github.com/pytorch/tutorials/pull/188)); a library for
# time series did years later
# ([report](https://github.com/WenjieDu/PyPOTS/issues/667)). The cure for all of them is
# one line after the load: measure again, and compare with the best that was noted.
# `lk.diff_state(model, kept)` says whether `kept` is still the model's own memory.

# %% [markdown]
# ### ★ A checkpoint from the run on several GPUs
#
# The model has got a buffer since, `temperature`. Old checkpoints lack it, so somebody
# wrote `strict=False`, and it has worked ever since.

# %%
class Calibrated(Digits):
    def __init__(self):
        super().__init__()
        self.register_buffer("temperature", torch.ones(()))

    def forward(self, x):
        return super().forward(x) / self.temperature

# %% [markdown]
# Today's checkpoint comes from a script that trains on several GPUs. There the model sits
# in a wrapper, under the name `module`; that is what `DataParallel` and
# `DistributedDataParallel` do.

# %%
class Wrapped(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.module = model

torch.manual_seed(0)
trained = Digits()
optimizer = torch.optim.Adam(trained.parameters(), lr=0.01)
for _ in range(30):
    update(trained, optimizer, y)
checkpoint = copy.deepcopy(Wrapped(trained).state_dict())
print(f"accuracy of the trained model: {accuracy(trained):.1f}")

# %% [markdown]
# The accuracy of the model that is loaded from it:

# %%
def load():
    torch.manual_seed(2)
    model = Calibrated()
    model.load_state_dict(checkpoint, strict=False)
    return round(accuracy(model), 1)

lk.predict("7.1.2")

# %% [markdown]
# Run it:

# %%
lk.trap("7.1.2", load)

# %% [markdown]
# Names are compared letter by letter. `load_state_dict` does tell what it left out, in
# what it returns; `load` threw that away.

# %%
model = Calibrated()
answer = model.load_state_dict(checkpoint, strict=False)
print("in both:", len(set(model.state_dict()) & set(checkpoint)))
for kind in ("missing_keys", "unexpected_keys"):
    names = getattr(answer, kind)
    print(f"{kind}: {len(names)}, {names[0]}, {names[1]}, …")

# %% [markdown]
# **Fix.** Take the prefix off, then state what may be missing. The `assert` compares names,
# so another prefix is found too. (A new dict loses the state's `_metadata`, its versions;
# `torch.nn.modules.utils.consume_prefix_in_state_dict_if_present` keeps it.)

# %%
def load_fixed():
    torch.manual_seed(2)
    model = Calibrated()
    state = {name.removeprefix("module."): value
             for name, value in checkpoint.items()}
    answer = model.load_state_dict(state, strict=False)
    assert answer.missing_keys == ["temperature"], answer
    assert not answer.unexpected_keys, answer
    return round(accuracy(model), 1)

lk.fix("7.1.2", load_fixed)

# %% [markdown]
# To print the two lists is common advice, and better than nothing. **A line in a log stops
# nobody; an `assert` does** (where `python -O` may run, raise instead).
#
# **Transfer.** The head is renamed to `out`, and nothing else changes. Seven of nine
# tensors still fit. How much of the accuracy is left?

# %%
renamed = {name.replace("head", "out"): value
           for name, value in trained.state_dict().items()}
torch.manual_seed(2)
model = Digits()
missing, _ = model.load_state_dict(renamed, strict=False)
print(f"loaded {9 - len(missing)} of 9, accuracy {accuracy(model):.1f}")

# %% [markdown]
# One tensor that stays random is enough: counting what fits is no measure.
#
# *In the field.* A library offered pretrained weights in four sizes, and none was ever
# loaded ([report](https://github.com/torchgeo/torchgeo/issues/4036)); a prefix `model.`
# from a training framework did the same
# ([report](https://github.com/pytorch/examples/issues/1029)). Other prefixes come from
# `torch.compile` (part 7.3). The first evaluation after a load should be one whose result
# is known.

# %% [markdown]
# ### A head for two classes
#
# The same checkpoint is to start a model for two classes, even and odd. Its head has
# another shape and is to stay new, which `strict=False` is there for.

# %%
def start():
    torch.manual_seed(1)
    model = Digits(classes=2)
    return model.load_state_dict(trained.state_dict(), strict=False)

lk.predict("7.1.3")

# %% [markdown]
# In the second version only what has the right shape is handed over:

# %%
def start_fixed():
    torch.manual_seed(1)
    model = Digits(classes=2)
    own = model.state_dict()
    fits = {name: value for name, value in trained.state_dict().items()
            if value.shape == own[name].shape}
    answer = model.load_state_dict(fits, strict=False)
    assert answer.missing_keys == ["head.weight", "head.bias"]
    return answer

lk.trap("7.1.3", start, start_fixed)

# %% [markdown]
# `strict` is about names only. And the error comes last: what fits is copied by then. Code
# that catches it, or a notebook that goes on, has a model that is neither old nor new.

# %%
def changed_by(state, strict):
    torch.manual_seed(1)
    model = Digits(classes=2)
    before = copy.deepcopy(model.state_dict())
    try:
        model.load_state_dict(state, strict=strict)
    except RuntimeError:
        after = model.state_dict()
        return [n for n in after if not torch.equal(after[n], before[n])]

for strict in (False, True):
    changed = changed_by(trained.state_dict(), strict)
    print(f"strict={strict}: raised, and changed {len(changed)} of 9 tensors")

# %% [markdown]
# ### A model that keeps what it has seen
#
# A classifier by the nearest centre: it takes the mean of each class and keeps it.

# %%
class Nearest(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(64, 32)
        self.centres = torch.zeros(10, 32)

    def fit(self):
        z = self.embed(x).detach()
        self.centres = torch.stack([z[y == c].mean(0) for c in range(10)])

    def forward(self, x):
        return -torch.cdist(self.embed(x), self.centres)

# %% [markdown]
# One is fitted, and its state is loaded into a second. What `load_state_dict` says, and
# the accuracies of both:

# %%
def restore(kind=Nearest):
    torch.manual_seed(0)
    fitted, restored = kind(), kind()
    fitted.fit()
    answer = restored.load_state_dict(fitted.state_dict())
    before, after = (round(accuracy(m), 1) for m in (fitted, restored))
    return str(answer), before, after

lk.predict("7.1.4")

# %% [markdown]
# In the second version the last line of `__init__` is another; the centres are a buffer:

# %%
class NearestFixed(Nearest):
    def __init__(self):
        nn.Module.__init__(self)
        self.embed = nn.Linear(64, 32)
        self.register_buffer("centres", torch.zeros(10, 32))

lk.trap("7.1.4", restore, lambda: restore(NearestFixed))

# %% [markdown]
# A module saves what is registered: parameters, buffers, and those of its submodules. What
# else a model may hold, and what of it is saved:

# %%
class Everything(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 4)
        self.out = nn.Linear(4, 20, bias=False)
        self.out.weight = self.embed.weight  # tied
        self.norm = nn.BatchNorm1d(4)
        self.register_buffer("mask", torch.ones(4), persistent=False)
        self.plain = torch.ones(4)
        self.layers = [nn.Linear(4, 4)]
        self.steps = 0

# %% [markdown]
# Its names, and how many tensors the two tied ones stand for:

# %%
state = Everything().state_dict()
names = list(state)
print(*names, sep="\n")
pair = ("embed.weight", "out.weight")
tied = len({state[name].data_ptr() for name in pair})
print("tensors behind the two tied names:", tied)

# %% [markdown]
# Absent: the buffer with `persistent=False`, the plain tensor, the layer in a Python list
# (an `nn.ModuleList` would be there) and the counter. The tied weight stands there twice:
# one tensor under two names.

# %% [markdown]
# ### Play with a checkpoint
#
# A small language model, really loaded each time. Lines join names that are in both.
#
# - Find all the ways in which nothing is said and something is not loaded.
# - Load an untied checkpoint into the tied model. Which of its two tensors wins?
# - Which step *before loading* repairs which checkpoint, and which hides what is wrong?

# %%
lk.explore("7.1-diff")

# %% [markdown]
# ### Exercise · a partial load that you need not trust · 10 minutes, medium
#
# Deliver `partial_load(model, state, allowed=())`: it loads what fits, refuses the rest
# unless it was allowed, and returns the sorted names of what it loaded.
#
# - A name fits if model and `state` both have it, with the same shape.
# - Any other name, of either side, must begin with one of the strings in `allowed`.
#   Otherwise `ValueError`, and its message has every such name; where the shapes differ,
#   both shapes too.
# - Before an error nothing in the model has changed. The model shares no memory with
#   `state`.

# %%
def partial_load(model, state, allowed=()):
    return lk.TODO

partial_load = lk.check("7.1-partial-load", partial_load)

# %% [markdown]
# Stuck? `lk.hint("7.1-partial-load")` gives one hint at a time,
# `lk.solution("7.1-partial-load")` an answer and why it is one. What it does with the
# checkpoint of trap 7.1.2:

# %%
try:
    partial_load(Calibrated(), checkpoint, allowed=("temperature",))
except ValueError as error:
    print("refused, naming", str(error).count("module."), "of module. names")

# %% [markdown]
# ### What the article says, and what this page measured
#
# A state with one name missing and one too many:

# %%
import warnings

odd = {n: v for n, v in trained.state_dict().items() if n != "head.bias"}
odd["extra"] = torch.ones(1)
try:
    Digits().load_state_dict(odd)
    lines = []
except RuntimeError as error:
    lines = [line.strip() for line in str(error).splitlines()[1:]]
print(*lines, sep="\n")

# %% [markdown]
# The same under `strict=False`, with an ear for warnings:

# %%
with warnings.catch_warnings(record=True) as heard:
    warnings.simplefilter("always")
    missing, unexpected = Digits().load_state_dict(odd, strict=False)
print("missing", missing, "unexpected", unexpected, "warnings", len(heard))

# %% [markdown]
# A NaN of another shape and type, under `strict=True`:

# %%
scale = nn.ParameterDict({"gain": nn.Parameter(torch.tensor(1.0))})
other = torch.tensor([float("nan")], dtype=torch.float64)
print(scale.load_state_dict({"gain": other}))
gain = scale["gain"].detach()
print(other.shape, other.dtype, "->", gain.shape, gain.dtype, gain.item())
taken = dict(shape=gain.dim() != other.dim(), cast=gain.dtype != other.dtype,
             nan=bool(gain.isnan()))

# %% [markdown]
# The rest has been measured above:

# %%
state = trained.state_dict()
own = {v.data_ptr() for v in [*trained.parameters(), *trained.buffers()]}
shared = sum(v.data_ptr() in own for v in state.values())
seen, copied = fit(), fit_fixed()
norm = [n.split(".")[1] for n in names if n.startswith("norm.")]
absent = [n for n in ("mask", "plain", "layers", "steps")
          if not any(n in name for name in names)]
changed = changed_by(state, strict=False)

# %% [markdown]
# The article's statements of section 7.1, one a line:

# %%
lk.verdicts(
    C7_1a=dict(kind=type(state).__name__, shared=shared, tensors=len(state),
               best=seen[0], put_back=seen[1], copied=copied[1]),
    C7_1b=dict(norm=", ".join(norm), absent=", ".join(absent), tied=tied),
    C7_1c=dict(lines=len(lines), missing=lines[0].startswith("Missing")),
    C7_1d=dict(missing=len(missing), unexpected=len(unexpected),
               warnings=len(heard)),
    C7_1e=dict(raised=changed is not None, changed=len(changed),
               tensors=len(state), **taken),
)

# %% [markdown]
# The article prints both lists, and that is right as far as it goes. Two things it does
# not say cost more than a forgotten layer: **what `state_dict()` returns is no copy, and
# `strict=False` neither skips another shape nor leaves the model alone when it fails.**
#
# **What you can do now**
# - Keep the best weights in memory of their own, and measure once they are back.
# - Load in part, with an `assert` on the names that may be missing.
# - After an error of `load_state_dict`, throw the model away and make a new one.
# - Register what a model needs: parameter, buffer, `ModuleList`; save counters beside it.
# - Let a function of your own refuse what was not allowed, before it copies anything.
#
# **Keep this**
#
# | you want | write |
# |---|---|
# | the weights of this moment | `copy.deepcopy(model.state_dict())`, or a file |
# | a copy on the CPU | `value.to("cpu", copy=True)` |
# | a load that may leave names out | `lost, extra = model.load_state_dict(state, strict=False)` |
# | and then | `assert lost == ["temperature"] and not extra` |
# | names without the wrapper | `name.removeprefix("module.")` |
# | a new head | keep what has the same `shape`; assert the rest |
# | a tensor that is saved, not trained | `self.register_buffer("centres", ...)` |
#
# You can stop here; the next part starts with a training that is interrupted.

# %% [markdown]
# ## 7.2 A checkpoint that resumes
#
# **After this part you can**
# - say what a run needs besides its weights, and what each missing piece costs,
# - keep a checkpoint loadable with `weights_only=True`, and say what a refused one holds,
# - put building and loading into the one order that suits every scheduler,
# - prove that a resumed run ends with the same bits as one that ran through,
# - write a checkpoint so that a kill in the middle of the write loses nothing.
#
# *One sitting, about 40 minutes. Needs what a `state_dict` holds (part 7.1). Any computer
# will do; the exercise at the end starts and kills a process of its own.*

# %% [markdown]
# ### ★ The first ten steps after a restart
#
# A small classifier for the digits, and a folder for its checkpoints:

# %%
import os
import tempfile
from pathlib import Path

folder = tempfile.TemporaryDirectory()
path = Path(folder.name) / "checkpoint.pt"
with np.load(lk.data_path("digits.npz")) as digits:
    x = torch.from_numpy(digits["images"][:1400]).float().flatten(1) / 16
    y = torch.from_numpy(digits["labels"][:1400])

# %% [markdown]
# Three functions that the whole part uses:

# %%
def build(kind=torch.optim.Adam, lr=0.01, **options):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    return model, kind(model.parameters(), lr=lr, **options)
def train(model, optimizer, steps=28):
    for batch in torch.randperm(len(x)).split(50)[:steps]:
        loss = F.cross_entropy(model(x[batch]), y[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
def loss_of(model):
    return F.cross_entropy(model(x), y).item()

# %% [markdown]
# Fifteen epochs with Adam, and then the checkpoint:

# %%
model, optimizer = build()
for epoch in range(15):
    train(model, optimizer)
state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
torch.save(state | {"rng": torch.get_rng_state()}, path)

# %% [markdown]
# Later the run goes on from that file. `resume` takes ten steps and returns the highest
# loss among them, as a multiple of the loss at the time of saving, rounded.

# %%
def highest(model, optimizer):
    before, losses = loss_of(model), []
    torch.manual_seed(1)
    for _ in range(10):
        train(model, optimizer, steps=1)
        losses.append(loss_of(model))
    return round(max(losses) / before)
def resume():
    model, optimizer = build()
    model.load_state_dict(torch.load(path, weights_only=True)["model"])
    return highest(model, optimizer)

lk.predict("7.2.1")

# %% [markdown]
# The weights are exactly those that were saved. Run it:

# %%
lk.trap("7.2.1", resume)

# %% [markdown]
# Adam divides a running mean of each gradient by the root of a running mean of its square.
# A new Adam has seen one gradient, so for each weight the two are as good as equal: the
# first step moves a weight by `lr`, however small its gradient is, unless it is zero. The
# length of the first step, and the shares of the weights that move by almost the full `lr`,
# and not at all:

# %%
def first_step(keep):
    saved, (model, optimizer) = torch.load(path, weights_only=True), build()
    model.load_state_dict(saved["model"])
    if keep:
        optimizer.load_state_dict(saved["optimizer"])
    start = nn.utils.parameters_to_vector(model.parameters()).detach()
    torch.manual_seed(1)
    train(model, optimizer, steps=1)
    moved = nn.utils.parameters_to_vector(model.parameters()).detach() - start
    full = (moved.abs() > 0.0099).float().mean().item()
    return moved.norm().item(), full, (moved == 0).float().mean().item()

# %% [markdown]
# With the saved state, and with a new one:

# %%
first = {name: first_step(name == "kept") for name in ("kept", "new")}
for name, (length, full, none) in first.items():
    print(f"{name:4}: length {length:.1f}, full {full:.1f}, none {none:.1f}")

# %% [markdown]
# With a new optimizer nearly all weights move by the full `lr`, or not at all: these have a
# gradient of exactly zero, as that of a pixel that is blank in all 50 images.
#
# **Fix.** Save the optimizer's state and load it: then the running means go on where they
# were, and so do the steps.

# %%
def resume_fixed():
    model, optimizer = build()
    checkpoint = torch.load(path, weights_only=True)
    model.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    return highest(model, optimizer)

lk.fix("7.2.1", resume_fixed)

# %% [markdown]
# **Transfer.** The article says that the loss first rises and then falls. For every
# optimizer? Each of these ran fifteen epochs, and went on with a new optimizer:

# %%
kinds = {
    "Adam 0.01": dict(), "Adam 0.001": dict(lr=0.001),
    "RMSprop 0.01": dict(kind=torch.optim.RMSprop),
    "SGD 0.1": dict(kind=torch.optim.SGD, lr=0.1),
    "SGD 0.1, momentum": dict(kind=torch.optim.SGD, lr=0.1, momentum=0.9),
}

# %% [markdown]
# Is the highest loss of the next ten steps more than twice what it was?

# %%
rises = {}
for name, options in kinds.items():
    model, optimizer = build(**options)
    for _ in range(15):
        train(model, optimizer)
    new = type(optimizer)(model.parameters(), **optimizer.defaults)
    rises[name] = highest(model, new)
for name, times in rises.items():
    print(f"{name:18}", "yes" if times > 2 else "no")

# %% [markdown]
# It depends on what the state does. In RMSprop and Adam it is a *divisor*, and without it
# the steps are too long, by an amount that the learning rate scales; a momentum that begins
# anew only makes them shorter for a while.
#
# *In the field.* A widely used GAN restarts without it
# ([question](https://github.com/NVlabs/stylegan2-ada-pytorch/issues/108)); a package for
# atomic models saw jumps that undid most of the training
# ([report](https://github.com/metatensor/metatrain/issues/203)). Whether a state fits is
# shown by `lk.diff_state(optimizer, path, key="optimizer")` (more of it in part 7.3).

# %% [markdown]
# ### ★ A number among the tensors
#
# The usual checkpoint holds the best validation loss so far. Here it is the mean of three
# batches.

# %%
def keep_best():
    best = np.mean([0.31, 0.22, 0.27])
    torch.save({"epoch": 3, "best_loss": best}, Path(folder.name) / "best.pt")
    checkpoint = torch.load(Path(folder.name) / "best.pt", weights_only=True)
    return checkpoint["best_loss"]

lk.predict("7.2.2")

# %% [markdown]
# `weights_only=True` is the default since torch 2.6. Run it:

# %%
lk.trap("7.2.2", keep_best)

# %% [markdown]
# `np.mean` returns an `np.float64`, which looks like a number and is pickled as a call of a
# NumPy function. `torch.save` writes whatever can be pickled; the restricted reader builds
# tensors and plain Python values, and calls nothing else. What passes, and what does not:

# %%
import argparse
import collections
import datetime
import random

values = {
    "float": 0.5, "int": 3, "str": "adam", "None": None,
    "tensor": torch.ones(2), "dict and list": {"a": [1]}, "set": {1},
    "bytes": b"a", "torch.dtype": torch.float,
    "OrderedDict": collections.OrderedDict(a=1),
    "random.getstate()": random.getstate(),
    "torch.get_rng_state()": torch.get_rng_state(),
}

# %% [markdown]
# And some that are often in a checkpoint:

# %%
values |= {
    "np.float64": np.float64(0.5), "np.float32": np.float32(0.5),
    "array": np.ones(2), "np.random.get_state()": np.random.get_state(),
    "Path": Path("a"), "Namespace": argparse.Namespace(lr=0.1),
    "datetime": datetime.datetime(2025, 1, 1), "range": range(3),
    "defaultdict": collections.defaultdict(list),
    "a whole model": nn.Linear(2, 2),
}

# %% [markdown]
# Each is saved and loaded:

# %%
import pickle

def loads(value, file=Path(folder.name) / "value.pt"):
    torch.save({"value": value}, file)
    try:
        torch.load(file, weights_only=True)
    except pickle.UnpicklingError:
        return False
    return True

passing = [name for name, value in values.items() if loads(value)]
refused = [name for name in values if name not in passing]
print("load:   ", *passing[:6], "\n         ", *passing[6:], sep="  ")
print("refused:", *refused[:6], "\n         ", *refused[6:], sep="  ")

# %% [markdown]
# **Fix.** Make it plain before it is saved: `float(best)`, `str(path)`, `vars(args)`,
# `array.tolist()` or `torch.from_numpy(array)`.

# %%
def keep_best_fixed():
    best = float(np.mean([0.31, 0.22, 0.27]))
    torch.save({"epoch": 3, "best_loss": best}, Path(folder.name) / "best.pt")
    checkpoint = torch.load(Path(folder.name) / "best.pt", weights_only=True)
    return checkpoint["best_loss"]

lk.fix("7.2.2", keep_best_fixed)

# %% [markdown]
# **Transfer.** The file is already written, it is yours, and holds a `Namespace`. Does that
# leave only `weights_only=False`, as the message says first?

# %%
file = Path(folder.name) / "value.pt"
torch.save({"args": argparse.Namespace(lr=0.1)}, file)
tools = torch.serialization
print("it holds:", *tools.get_unsafe_globals_in_checkpoint(file))
with tools.safe_globals([argparse.Namespace]):
    print(torch.load(file, weights_only=True)["args"])

# %% [markdown]
# **The first advice of this message switches the protection off.** The second one names
# what is let in: one class, for one block. *In the field.* Programs that have long saved
# such numbers could no longer read their own files
# ([nerfstudio](https://github.com/nerfstudio-project/nerfstudio/pull/3702)).

# %% [markdown]
# ### ★ A schedule goes on
#
# Ten steps of warm-up to a rate of 0.1, then a cosine:

# %%
schedules = torch.optim.lr_scheduler
def sequential(optimizer):
    warm_up = schedules.LinearLR(optimizer, start_factor=0.01, total_iters=10)
    rest = schedules.CosineAnnealingLR(optimizer, T_max=90)
    return schedules.SequentialLR(optimizer, [warm_up, rest], milestones=[10])
def sgd():
    return torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=0.1)

# %% [markdown]
# `rates` takes steps, and notes the rate of each:

# %%
def rates(optimizer, scheduler, steps):
    found = []
    for _ in range(steps):
        found.append(round(optimizer.param_groups[0]["lr"], 4))
        optimizer.step(), scheduler.step()
    return found

# %% [markdown]
# Both are saved after 20 steps. The unbroken run goes on like this, at once, after 30 more
# steps and after 60:

# %%
def saved_after(steps, schedule):
    optimizer = sgd()
    scheduler = schedule(optimizer)
    rates(optimizer, scheduler, steps)
    states = [dict(optimizer.state_dict()), dict(scheduler.state_dict())]
    torch.save(states, Path(folder.name) / "schedule.pt")
    return rates(optimizer, scheduler, 70)

unbroken = saved_after(20, sequential)
print(unbroken[0], unbroken[30], unbroken[60])

# %% [markdown]
# The restart loads the optimizer, then makes the scheduler and loads that:

# %%
def go_on():
    states = torch.load(Path(folder.name) / "schedule.pt", weights_only=True)
    optimizer = sgd()
    optimizer.load_state_dict(states[0])
    scheduler = sequential(optimizer)
    scheduler.load_state_dict(states[1])
    return rates(optimizer, scheduler, 70)[::30]

lk.predict("7.2.3")

# %% [markdown]
# Everything that was saved is loaded. Run it:

# %%
lk.trap("7.2.3", go_on)

# %% [markdown]
# Making a scheduler is not harmless: it takes its first step. Most kinds write the rate of
# step 0 into the optimizer, over the one just loaded. The scheduler's own state, loaded
# afterwards, has counters and base rates, and writes no rate back. And a cosine computes
# each rate *from the one before*, so what is wrong here stays wrong.

# %%
states = torch.load(file.with_name("schedule.pt"), weights_only=True)
optimizer = sgd()
optimizer.load_state_dict(states[0])
group = optimizer.param_groups[0]
print("rate after load_state_dict:", round(group["lr"], 3))
sequential(optimizer)
print("after making the scheduler:", round(group["lr"], 3))

# %% [markdown]
# **Fix.** Make everything, then load everything: what making writes is then overwritten by
# what was saved, and not the other way round.

# %%
def go_on_fixed():
    states = torch.load(Path(folder.name) / "schedule.pt", weights_only=True)
    optimizer = sgd()
    scheduler = sequential(optimizer)
    optimizer.load_state_dict(states[0])
    scheduler.load_state_dict(states[1])
    return rates(optimizer, scheduler, 70)[::30]

lk.fix("7.2.3", go_on_fixed)

# %% [markdown]
# **Transfer.** Which other schedulers mind? For each, how many of the 70 rates after the
# restart are wrong, in this order and in the right one:

# %%
makers = {
    "SequentialLR": sequential,
    "LinearLR": lambda o: schedules.LinearLR(o, 0.01, total_iters=50),
    "LambdaLR": lambda o: schedules.LambdaLR(o, lambda n: min(1, n / 50)),
    "OneCycleLR": lambda o: schedules.OneCycleLR(o, 0.1, total_steps=100),
    "CosineAnnealingLR": lambda o: schedules.CosineAnnealingLR(o, T_max=90),
    "StepLR": lambda o: schedules.StepLR(o, step_size=15),
}

# %% [markdown]
# The three orders there are:

# %%
def wrong_rates(schedule, order):
    want = saved_after(20, schedule)
    saved = torch.load(file.with_name("schedule.pt"), weights_only=True)
    optimizer, scheduler = sgd(), None
    for act in order:
        if act == "make":
            scheduler = schedule(optimizer)
        else:
            part = optimizer if act == "optimizer" else scheduler
            part.load_state_dict(saved[act == "scheduler"])
    return sum(a != b for a, b in zip(rates(optimizer, scheduler, 70), want))

# %% [markdown]
# Loaded before made; made before loaded, in both orders:

# %%
early = {n: wrong_rates(s, ("optimizer", "make", "scheduler"))
         for n, s in makers.items()}
late = {n: [wrong_rates(s, ("make", *order)) for order in
            (("optimizer", "scheduler"), ("scheduler", "optimizer"))]
        for n, s in makers.items()}
for name, count in early.items():
    print(f"{name:18} early: {count:2} wrong   made first: {late[name]}")

# %% [markdown]
# Some never recover, some are off for one step, some do not mind: a new CosineAnnealingLR
# or StepLR leaves the rate that it finds; above, the warm-up and SequentialLR wrote over
# it. The order "make, then load" is right for all of them, and needs no list.
#
# *In the field.* Known for SequentialLR
# ([report](https://github.com/pytorch/pytorch/issues/119168)), and mended by this order in
# [one library](https://github.com/torch-points3d/torch-points3d/pull/630) after another.
# `preview_schedule` (chapter 05) shows the rates that a scheduler will give.

# %% [markdown]
# ### The next epoch, three times
#
# Model and optimizer come from the checkpoint, complete. Then one epoch:

# %%
def parts():
    model, optimizer = build()
    checkpoint = torch.load(path, weights_only=True)
    torch.seed()  # from the clock, as many scripts do
    model.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    return checkpoint, model, optimizer
def next_epoch():
    checkpoint, model, optimizer = parts()
    train(model, optimizer)
    return loss_of(model)

lk.predict("7.2.4")

# %% [markdown]
# The checkpoint of this page also holds `torch.get_rng_state()`:

# %% tags=["nbval-ignore-output"]
def next_epoch_fixed():
    checkpoint, model, optimizer = parts()
    torch.set_rng_state(checkpoint["rng"])
    train(model, optimizer)
    return loss_of(model)

lk.trap("7.2.4", next_epoch, next_epoch_fixed)

# %% [markdown]
# The order of the samples is drawn anew in each epoch, and dropout draws in each step. Is
# the fixed run also the *right* one? Compare it, bit by bit, with a run that was never
# interrupted:

# %%
def weights_after(epochs, restore):
    checkpoint, model, optimizer = parts()
    if restore:
        torch.set_rng_state(checkpoint["rng"])
    for _ in range(epochs):
        train(model, optimizer)
    return nn.utils.parameters_to_vector(model.parameters()).detach()

# %% [markdown]
# Seventeen epochs at a stretch, and two epochs after a restart:

# %%
model, optimizer = build()
for epoch in range(17):
    train(model, optimizer)
whole = nn.utils.parameters_to_vector(model.parameters()).detach()
same = {on: torch.equal(weights_after(2, on), whole) for on in (True, False)}
print("same bits: with the random state", same[True], " without", same[False])

# %% [markdown]
# A script that seeds when it starts is no better: it repeats the order of epoch 0.

# %%
build()  # seeds with 0, as every start does
orders = [torch.randperm(len(x))[:4].tolist() for epoch in range(16)]
build()
again = torch.randperm(len(x))[:4].tolist()
print("epoch 0:", orders[0], " epoch 15:", orders[15], " resumed:", again)

# %% [markdown]
# Python's `random`, NumPy and each GPU have a state of their own: `random.getstate()`,
# `np.random.get_state()` (its array as a tensor), `torch.cuda.get_rng_state_all()`. So has
# each `torch.Generator` that you made, for a loader for instance: `generator.get_state()`.
# A checkpoint in the middle of an epoch also needs the number of batches that are done. A
# GradScaler and a running average of the weights (EMA) have a `state_dict` too.

# %% [markdown]
# ### The same file, loaded to the device
#
# The training runs on a GPU, so the checkpoint is loaded to it. Where there is none, the
# device `meta` stands in: it holds no data, and is not the CPU either.

# %%
where = "cuda" if torch.cuda.is_available() else "meta"
def restore():
    checkpoint = torch.load(path, map_location=where, weights_only=True)
    torch.set_rng_state(checkpoint["rng"])
    return torch.equal(torch.get_rng_state(), checkpoint["rng"])

lk.predict("7.2.5")

# %% [markdown]
# The second version loads to the CPU; `load_state_dict` copies to wherever the model is.

# %%
def restore_fixed():
    checkpoint = torch.load(path, map_location="cpu", weights_only=True)
    torch.set_rng_state(checkpoint["rng"])
    return torch.equal(torch.get_rng_state(), checkpoint["rng"])

lk.trap("7.2.5", restore, restore_fixed)

# %% [markdown]
# `map_location` moves *every* tensor of the file, and the state of the CPU's generator is
# one. *In the field:* [a training framework](https://github.com/pytorch/ignite/issues/2076)
# and [a library for molecules](https://github.com/lanl/hippynn/pull/12).

# %% [markdown]
# ### Two layers of the same shape
#
# The gradients of `query` are large, those of `key` are small. Adam keeps a mean of each;
# `means` shows their sizes.

# %%
def make(names):
    torch.manual_seed(0)
    model = nn.ModuleDict({n: nn.Linear(8, 8, bias=False) for n in names})
    return model, torch.optim.Adam(model.named_parameters(), lr=0.01)
def means(model, optimizer):
    mean = {name: optimizer.state[layer.weight]["exp_avg"]
            for name, layer in model.items()}
    return {name: round(m.norm().item(), 2) for name, m in mean.items()}

# %% [markdown]
# A step, and a checkpoint:

# %%
model, optimizer = make(["query", "key"])
rows = torch.ones(4, 8)
(10 * model["query"](rows) + 0.1 * model["key"](rows)).sum().backward()
optimizer.step()
saved = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
print(means(model, optimizer))

# %% [markdown]
# Before the restart somebody has put the layers into alphabetical order.

# %%
def tidy():
    model, optimizer = make(["key", "query"])
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    return means(model, optimizer)

lk.predict("7.2.6")

# %% [markdown]
# The model's state is found by name, the optimizer's by position. Given
# `named_parameters()`, as here (torch 2.6 and later), an optimizer saves the names too, so
# the state can be put into their order:

# %%
def by_name(saved, optimizer):
    group = saved["param_groups"][0]
    names = optimizer.param_groups[0]["param_names"]
    places = [group["param_names"].index(name) for name in names]
    state = {n: saved["state"][place] for n, place in enumerate(places)}
    return {"state": state, "param_groups": [group | {"param_names": names}]}

# %% [markdown]
# With it:

# %%
def tidy_fixed():
    model, optimizer = make(["key", "query"])
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(by_name(saved["optimizer"], optimizer))
    return means(model, optimizer)

lk.trap("7.2.6", tidy, tidy_fixed)

# %% [markdown]
# With other shapes the load still passes, and the next `step` usually raises ([one
# program](https://github.com/X-LANCE/text2sql-lgesql/issues/18)); with equal ones nothing
# does. What else `load_state_dict` of an optimizer does without a word:

# %%
_, other = make(["query", "key"])
other = torch.optim.Adam(other.param_groups[0]["params"], lr=0.5)
other.load_state_dict(saved["optimizer"])
half = torch.optim.Adam([p.detach().bfloat16().requires_grad_()
                         for p in model.parameters()])
half.load_state_dict(saved["optimizer"])
kept = half.state[half.param_groups[0]["params"][0]]["exp_avg"].dtype
live = optimizer.state[model["query"].weight]["exp_avg"]
alias = saved["optimizer"]["state"][0]["exp_avg"] is live
print("made with lr 0.5, now", other.param_groups[0]["lr"])
print("loaded into bfloat16:", kept, "  state_dict() is live:", alias)

# %% [markdown]
# The saved rate replaces the one you passed; the state takes the weights' dtype, and
# `state_dict()` without a copy goes on changing, as in part 7.1. Does a model or an
# optimizer keep the very tensors that it loads?

# %%
held = other.state[other.param_groups[0]["params"][0]]
print("the optimizer keeps them:",
      held["exp_avg"] is saved["optimizer"]["state"][0]["exp_avg"])
weights = {name: value.clone() for name, value in model.state_dict().items()}
model.load_state_dict(weights)
parameters = dict(model.named_parameters())
print("the model keeps them:    ",
      any(parameters[n].data_ptr() == weights[n].data_ptr() for n in weights))

# %% [markdown]
# A state that is to be loaded more than once is therefore loaded as `copy.deepcopy(state)`.

# %% [markdown]
# ### Killed while it saves
#
# The checkpoint of epoch 3 is there. While that of epoch 4 is written over it, the process
# is killed: the first 4,000 bytes have arrived.

# %%
target = Path(folder.name) / "last.pt"
def killed():
    torch.save(state | {"epoch": 3}, target)
    new = io.BytesIO()
    torch.save(state | {"epoch": 4}, new)
    target.write_bytes(new.getvalue()[:4000])
    return torch.load(target, weights_only=True)["epoch"]

lk.predict("7.2.7")

# %% [markdown]
# The second version writes beside it. `os.replace(beside, target)` would come next, and
# moves the name in one step; it is never reached.

# %%
def killed_fixed():
    torch.save(state | {"epoch": 3}, target)
    new, beside = io.BytesIO(), target.with_suffix(".new")
    torch.save(state | {"epoch": 4}, new)
    beside.write_bytes(new.getvalue()[:4000])
    return torch.load(target, weights_only=True)["epoch"]

lk.trap("7.2.7", killed, killed_fixed)

# %% [markdown]
# That is the message people search for, and for a large file nearly always the one. A short
# rest, up to some 64 kB, gives others, so do not catch one type only. This file has about
# 60 kB; cut at 40 places, evenly spread over it:

# %% tags=["nbval-ignore-output"]
torch.save(state, target)
whole, errors = target.read_bytes(), collections.Counter()
for part in range(40):
    target.write_bytes(whole[: len(whole) * part // 40])
    try:
        torch.load(target, weights_only=True)
    except Exception as error:
        errors[type(error).__name__] += 1
print(*(f"{name}: {count}" for name, count in errors.most_common()), sep="  ")

# %% [markdown]
# *In the field.* [Lightning](https://github.com/Lightning-AI/pytorch-lightning/issues/688)
# wrote in place until a kill showed it.

# %% [markdown]
# ### Play with a restart
#
# A real training on the digits, killed and resumed; grey is the same run without a kill.
#
# - With Adam, save *the model*. How many steps until the loss is back?
# - Find an optimizer that does not need its state. Does it end with the same weights?
# - Which choices never leave the grey line?

# %% tags=["nbval-ignore-output"]
lk.explore("7.2-resume")

# %% [markdown]
# ### Exercise · a training that may be killed at any moment · 15 minutes, hard
#
# This loop starts again after every kill, always with the same first line:

# %%
def run(checkpoint, path, makers, epochs):
    torch.manual_seed(0), random.seed(0)
    first, model, optimizer, scheduler = checkpoint.start(path, *makers)
    for epoch in range(first, epochs):
        for batch in torch.randperm(len(x)).split(50):
            bright = random.uniform(0.8, 1.2)
            loss = F.cross_entropy(model(x[batch] * bright), y[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        scheduler.step()
        checkpoint.save(path, epoch, model, optimizer, scheduler)

# %% [markdown]
# **Write the class.** `start` makes `make_model()`, `make_optimizer(model)` and
# `make_scheduler(optimizer)`; if there is a checkpoint at `path` (a `Path`), it loads it. It
# returns the epoch to begin with and the three. `save` leaves a whole file at `path`,
# whenever it is killed. The model has dropout, the schedule a warm-up.
#
# The check runs your class in a process of its own, kills it with SIGKILL at three random
# moments, once tears a write in the middle, and compares every weight with an unbroken run,
# bit for bit. It takes some seconds.

# %%
class Checkpoint:
    def save(self, path, epoch, model, optimizer, scheduler):
        return lk.TODO

    def start(self, path, make_model, make_optimizer, make_scheduler):
        return lk.TODO

Checkpoint = lk.check("7.2-resume", Checkpoint)

# %% [markdown]
# ### What the article says, and what this page measured
#
# First what Adam keeps, and what of a `LambdaLR` is saved. (`None`: the function is not
# saved, so the restarted script must give the same one.)

# %%
entries = sorted(state["optimizer"]["state"][0])
scheduler = schedules.LambdaLR(sgd(), lambda n: 0.9**n)
lambdas = scheduler.state_dict()["lr_lambdas"]
saved_after(20, sequential)  # writes schedule.pt anew, which go_on() reads
resumed_rates = dict(first=go_on()[0], right=unbroken[0])
print(entries, lambdas)

# %% [markdown]
# The statements of section 7.2 about what must be in a checkpoint:

# %%
lk.verdicts(
    C7_2a=dict(kept=first["kept"][0], new=first["new"][0], entries=entries),
    C7_2b=rises,
    C7_2c=dict(passing=len(passing), refused=refused),
    C7_2d=dict(restored=same[True], without=same[False], lambdas=str(lambdas),
               replays=again == orders[0]),
)

# %% [markdown]
# And about loading it:

# %%
lk.verdicts(
    C7_2e=dict(early=early, late=max(max(counts) for counts in late.values()),
               **resumed_rates),
    C7_2f=dict(before=means(model, optimizer), after=tidy(),
               lr=other.param_groups[0]["lr"], dtype=str(kept), alias=alias),
)

# %% [markdown]
# Two of these overturn common advice. **A complete checkpoint is more than model,
# optimizer, scheduler and epoch**: without the random states the run goes on, but as
# another run. And **the order matters**: make everything first, load afterwards.
#
# **What you can do now**
# - Say what is missing from a checkpoint by what happens after a restart: a jump of the
#   loss, a wrong rate, a repeated order.
# - Keep only plain values and tensors in a file, and let in a class by name where you must.
# - Make first and load then, whatever the scheduler.
# - Prove a restart by comparing bits with a run that was not interrupted.
# - Save under another name, and move the name.
#
# **Keep this**
#
# | you want | write |
# |---|---|
# | to go on training | model, optimizer, scheduler, GradScaler, EMA weights, `epoch + 1` |
# | the same run, bit for bit | also each random state: torch, CUDA, `random`, NumPy, your generators |
# | a number in a checkpoint | `float(best)`, never an `np.float64` |
# | to load | `torch.load(path, map_location="cpu", weights_only=True)` |
# | the right order | make model, `.to(device)`, optimizer, scheduler; then load |
# | a state that survives reordering | `Adam(model.named_parameters())`, and match names |
# | a save that survives a kill | `torch.save(state, new)` beside it, `os.replace(new, path)` |
# | to let in one class | `with torch.serialization.safe_globals([Class]):` |
#
# *You can stop here. The next part, 7.3, starts with a checkpoint that was saved on a
# machine you do not have.*

# %% [markdown]
# ## 7.3 Loading somewhere else
#
# **After this part you can**
# - open a checkpoint on a machine that lacks the device it was saved on,
# - say what `load_state_dict` keeps of the model, and what `assign=True` replaces,
# - save a part of a tensor without the rest of it,
# - load what a compiled model saved into one that is not compiled,
# - open a file that is not yours without running what is in it.
#
# *One sitting, about 30 minutes. Needs `strict` (part 7.1). No GPU is needed.*

# %% [markdown]
# ### A model to send around
#
# A small network learns to read handwritten digits: 1,200 images for training, the other
# 597 to test. `share_right` is the share of these that it reads rightly, to one digit.

# %%
with np.load(lk.data_path("digits.npz")) as data:
    pixels = torch.from_numpy(data["images"]).float().flatten(1) / 16
    labels = torch.from_numpy(data["labels"]).long()
x_train, x_test = pixels[:1200], pixels[1200:]
y_train, y_test = labels[:1200], labels[1200:]

def new_model(seed=1):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))

def share_right(model):
    with torch.no_grad():
        right = model(x_test).argmax(1) == y_test
    return round(right.float().mean().item(), 1)

# %% [markdown]
# Sixty steps are enough here:

# %%
original = new_model(seed=0)
optimizer = torch.optim.Adam(original.parameters(), lr=0.01)
for _ in range(60):
    loss = F.cross_entropy(original(x_train), y_train)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("trained:  ", share_right(original))
print("a new one:", share_right(new_model()))

# %% [markdown]
# ### ★ The file goes to a machine without a GPU
#
# The weights were saved on a machine with a GPU; your laptop has none. Two patches let
# you see this on any computer: `saved_on_gpu` makes `torch.save` write the file as it does
# for weights on `cuda:0`, and `no_gpu` hides a GPU if you have one. Saving, loading and
# the values are real.

# %%
import pathlib
import tempfile
from unittest import mock

folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
path = pathlib.Path(folder.name, "model.pt")
saved_on_gpu = mock.patch.object(
    torch.serialization, "location_tag", lambda storage: "cuda:0"
)
no_gpu = mock.patch.object(torch.cuda, "is_available", lambda: False)

# %% [markdown]
# Saved there, opened here:

# %%
with saved_on_gpu:
    torch.save(original.state_dict(), path)

def open_file():
    with no_gpu:
        return list(torch.load(path, weights_only=True))

lk.predict("7.3.1")

# %% [markdown]
# Run it:

# %%
lk.trap("7.3.1", open_file)

# %% [markdown]
# The file says for each storage where it was: a **tag** such as `cpu` or `cuda:0`.
# `torch.load` reads the values into ordinary memory and then puts them back to that place.
# `map_location` may be a function; it is asked about each storage, and so it can tell
# which tags there are:

# %%
tags = []

def note(storage, tag):
    tags.append(tag)
    return storage

torch.load(path, map_location=note, weights_only=True)
print("tags in the file:", tags)

# %% [markdown]
# **Fix.** `map_location="cpu"` overrules the tags: everything stays in ordinary memory,
# which every machine has.

# %%
def open_file_fixed():
    with no_gpu:
        state = torch.load(path, map_location="cpu", weights_only=True)
    return list(state)

lk.fix("7.3.1", open_file_fixed)

# %% [markdown]
# **This one line is right on every machine**, also on one with GPUs: `load_state_dict`
# does not put the file's tensors into the model, it copies their values into the tensors
# that the model has, wherever they are and whatever their dtype. (A GPU as `map_location`
# would also move what must stay where it is, such as the state of the random generator:
# part 7.2.) Here into a model on your device, in float16:

# %% tags=["nbval-ignore-output"]
state = torch.load(path, map_location="cpu", weights_only=True)
model = new_model().to(session.device, torch.float16)
before = model[0].weight
model.load_state_dict(state)
after = model[0].weight
copied = after is before
print("in the file: ", state["0.weight"].device.type, state["0.weight"].dtype)
print("in the model:", after.device.type, after.dtype)
print("still the same tensor object:", copied)
rounded = not torch.equal(after.float().cpu(), state["0.weight"])
print("rounded on the way:", rounded)

# %% [markdown]
# The other direction is no problem: what was saved on a CPU has the tag `cpu`. That the
# copy into float16 rounds, nobody tells you.
#
# **Transfer.** With `assign=True` the file's tensors *become* the parameters, instead of
# being copied. The optimizer was made before. Does its step still move the model?

# %%
def moved_by_a_step(assign):
    model = new_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model.load_state_dict(state, assign=assign)
    before = model[0].weight.detach().clone()
    F.cross_entropy(model(x_train), y_train).backward()
    optimizer.step()
    return not torch.equal(model[0].weight, before)

for assign in (False, True):
    print(f"assign={assign}: the step moves it:", moved_by_a_step(assign))

# %% [markdown]
# The optimizer holds the parameters that were there when it was made, and these are no
# longer in the model. No error, and training changes nothing. Load first, then make the
# optimizer; the documentation of `load_state_dict` says so, in a warning. (The order of
# part 7.2 is for a load that copies, the default.) What `assign=True` is for: a model that
# was built on `meta`, without values, has nothing that could be copied into.

# %%
with torch.device("meta"):
    empty = new_model()
empty.load_state_dict(state, assign=True)
print("built on meta, then loaded:", share_right(empty))

# %% [markdown]
# What the file lacks, a buffer with `persistent=False` for instance, stays where it was, and
# nothing is said:

# %%
with torch.device("meta"):
    scaled = nn.Linear(2, 1)
    scaled.register_buffer("scale", torch.ones(1), persistent=False)
print(scaled.load_state_dict(nn.Linear(2, 1).state_dict(), assign=True))
print("weight on", scaled.weight.device, "· scale on", scaled.scale.device)

# %% [markdown]
# *In the field.* [A toolbox for deployment](https://github.com/open-mmlab/mmdeploy/pull/1324)
# is one of many projects that learned `map_location` from this error. With several GPUs
# there is no error, and that is worse: in [PyTorch's own
# example](https://github.com/pytorch/examples/issues/1078) every process put its copy on the
# GPU of the one that saved. `lk.diff_state(model, path)` reads the file on the CPU and names
# devices that are not here.

# %% [markdown]
# ### One vector out of a thousand
#
# Embeddings are computed in batches and kept one a file. Here is a batch of 1,000 vectors
# of 256 numbers, so one vector has 1,024 bytes.

# %%
embeddings = torch.randn(1000, 256)
one = pathlib.Path(folder.name, "vector-0.pt")

def save_vector():
    torch.save(embeddings[0], one)
    return one.stat().st_size

lk.predict("7.3.2")

# %% [markdown]
# The second version saves a copy:

# %%
def save_vector_fixed():
    torch.save(embeddings[0].clone(), one)
    return one.stat().st_size

lk.trap("7.3.2", save_vector, save_vector_fixed)

# %% [markdown]
# `torch.save` writes whole storages, so that tensors which share memory still share it when
# they come back. The vector is a view of the batch. Whoever gets the file gets all of it:

# %%
torch.save(embeddings[0], one)
vector = torch.load(one, weights_only=True)
whole = vector.as_strided((1000, 256), (256, 1))
print("loaded:", tuple(vector.shape))
print("in memory:", vector.untyped_storage().nbytes(), "bytes")
print("the other 999 can be read:", torch.equal(whole, embeddings))

# %% [markdown]
# Which of these would have helped, beside `clone`? Bytes of the storage that would be
# written:

# %%
ways = {"contiguous()": embeddings[0].contiguous(),
        "detach()": embeddings[0].detach(),
        "split(1)": embeddings.split(1)[0],
        "a list of rows": embeddings[[0]],
        "clone()": embeddings[0].clone()}
for name, tensor in ways.items():
    print(f"{name:15} {tensor.untyped_storage().nbytes():9,}")

# %% [markdown]
# A row is contiguous already, so `contiguous()` gives it back as it is. An index that is a
# list copies; slices, `split` and `detach` are views.
#
# *In the field.* [Reported again and again](https://github.com/pytorch/pytorch/issues/40157);
# kept as it is on purpose. [A cache of text
# embeddings](https://github.com/YalaLab/pillar-pretrain/issues/12) wrote the whole batch
# into every file, and every load read the whole batch for one row.

# %% [markdown]
# ### The training script compiles, the evaluation does not
#
# The training script wraps its model in `torch.compile` and saves. The evaluation script
# builds the plain model; it loads with `strict=False`, since its authors once changed the
# head. (`backend="eager"` spares you the wait. The names are those of the default.)

# %%
compiled = torch.compile(original, backend="eager")
sent = pathlib.Path(folder.name, "compiled.pt")
torch.save(compiled.state_dict(), sent)

def evaluate():
    model = new_model()
    state = torch.load(sent, map_location="cpu", weights_only=True)
    model.load_state_dict(state, strict=False)
    return share_right(model)

lk.predict("7.3.3")

# %% [markdown]
# The second version takes a prefix off the names, and stays strict:

# %%
def evaluate_fixed():
    model = new_model()
    state = torch.load(sent, map_location="cpu", weights_only=True)
    state = {k.removeprefix("_orig_mod."): v for k, v in state.items()}
    model.load_state_dict(state)
    return share_right(model)

lk.trap("7.3.3", evaluate, evaluate_fixed)

# %% [markdown]
# `torch.compile` returns a new module that holds yours under the name `_orig_mod`. A strict
# load would have said so:

# %%
try:
    new_model().load_state_dict(compiled.state_dict())
except RuntimeError as error:
    print(str(error).splitlines()[-1].strip()[:75], "…")

# %% [markdown]
# `diff_state` compares the names before anything is loaded, and gives the line that mends
# them:

# %%
lk.diff_state(new_model(), sent)

# %% [markdown]
# Better not to write the prefix at all. Your own module is still there, with the same
# parameters: save *its* state. Or compile in place, with `model.compile()`:

# %%
in_place = new_model()
in_place.compile(backend="eager")
saved = {"torch.compile(model)": compiled, "the model itself": original,
         "model.compile()": in_place}
for name, module in saved.items():
    print(f"{name:21}", list(module.state_dict())[:2])
inside = compiled.state_dict()["_orig_mod.0.weight"]
print("one memory:", inside.data_ptr() == original[0].weight.data_ptr())

# %% [markdown]
# *In the field.* [A book's training script](https://github.com/rasbt/LLMs-from-scratch/issues/580)
# and [a flood forecast](https://github.com/google-research/flood-forecasting/pull/263) met it
# with an error, as they loaded strictly; [OpenCLIP](https://github.com/mlfoundations/open_clip/pull/639)
# saves the state of the original model. DistributedDataParallel does the same with `module.`
# (chapter 06).

# %% [markdown]
# ### A file from somebody else
#
# Weights come from a colleague, a forum, a hub. A checkpoint is a zip archive: the values of
# the tensors, and one *pickle*, Python's format for objects, with all the rest. An object
# may tell pickle how to make it anew: with a function and its arguments. This one is
# harmless; its function makes an empty folder called `proof`.

# %%
import os

class Config:
    def __init__(self, place):
        self.place = place

    def __reduce__(self):
        return os.mkdir, (f"{self.place}/proof",)

# %% [markdown]
# `open_with` makes such a file in a folder of its own, opens it, and lists the folder.
# `unpickle` hands the pickle to Python, as `torch.load` did by default before version 2.6
# and does under `weights_only=False`. (A file with tensors takes a few lines more.)

# %%
import pickle
import zipfile

def open_with(load):
    with tempfile.TemporaryDirectory() as place:
        file = pathlib.Path(place, "weights.pt")
        torch.save({"layers": 2, "config": Config(place)}, file)
        load(file)
        return sorted(os.listdir(place))

def unpickle(file):
    with zipfile.ZipFile(file) as archive:
        return pickle.loads(archive.read("weights/data.pkl"))

# %% [markdown]
# Nothing is called, the file is only opened:

# %%
def open_weights():
    return open_with(unpickle)

lk.predict("7.3.4")

# %% [markdown]
# The second version opens it with `weights_only=True`, and takes no for an answer:

# %%
def cautious(file):
    try:
        return torch.load(file, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError:
        return "refused"

def open_weights_fixed():
    return open_with(cautious)

lk.trap("7.3.4", open_weights, open_weights_fixed)

# %% [markdown]
# **To unpickle is to run a program.** It could as well have read your keys. With
# `weights_only=True` nothing is made but what is on a short list: tensors, numbers, strings,
# lists, dictionaries and a few more. Since 2.6 that is the default. What a file wants beyond
# the list can be read off without calling it:

# %%
import re

def look(file):
    unsafe = torch.serialization.get_unsafe_globals_in_checkpoint(file)
    print("it wants to call:", [name.split(".")[-1] for name in unsafe])

print("in the folder:", open_with(look))
try:
    open_with(torch.load)
except pickle.UnpicklingError as error:
    print(re.search(r"Re-running.*?execution", str(error)).group())

# %% [markdown]
# **That last sentence is not a recipe.** Where the file is your own, save plain values, or
# name the types that you allow (part 7.2). Never write `except UnpicklingError` with
# `weights_only=False` under it: then the file decides how it is read.
#
# *In the field.* `weights_only=True` had holes too, closed in version
# [2.6](https://github.com/pytorch/pytorch/security/advisories/GHSA-53q9-r3pm-6pq6) and in
# [2.10](https://github.com/pytorch/pytorch/security/advisories/GHSA-63cw-57p8-fm3p): it is
# a good lock, not a reason to open everything. For weights that go to others there is the
# format `safetensors`, which holds nothing but tensors. `diff_state` runs nothing that is
# in a file, and names what the file wants to run.

# %% [markdown]
# ### What the article says, and what this page measured
#
# The section makes two statements. For the second one, a file that is saved right here:

# %%
def raises(file, **options):
    try:
        with no_gpu:
            torch.load(file, weights_only=True, **options)
    except RuntimeError:
        return True
    return False

here = pathlib.Path(folder.name, "here.pt")
torch.save(new_model().state_dict(), here)
tags.clear()
torch.load(here, map_location=note, weights_only=True)
print("tags in the file:", tags)

# %% [markdown]
# The statements of section 7.3:

# %% tags=["nbval-ignore-output"]
places = {tensor.device.type for tensor in state.values()}
documented = "moved to the device they were saved from" in torch.load.__doc__
lk.verdicts(
    C7_3a=dict(raises=raises(path), place="/".join(places),
               mapped=raises(path, map_location="cpu")),
    C7_3b=dict(tag="/".join(set(tags)), raises=raises(here), copied=copied,
               device=after.device.type, documented=documented),
)

# %% [markdown]
# **What you can do now**
# - Open any checkpoint on any machine: `map_location="cpu"`, then `load_state_dict`.
# - Say what is kept: the model's tensors, their device and dtype; with `assign=True` the
#   file's, and then the optimizer comes after.
# - Clone a part before you save it.
# - Recognise a wrapper's prefix, take it off, and stay strict.
# - Leave `weights_only` on, and take its refusal for an answer.
#
# **Keep this**
#
# | you want | write |
# |---|---|
# | to open a file anywhere | `torch.load(path, map_location="cpu", weights_only=True)` |
# | to load into a model on `meta` | `load_state_dict(state, assign=True)`, then the optimizer |
# | to save a part of a tensor | `torch.save(x[:10].clone(), path)` |
# | to save a compiled model | the state of the model inside, or `model.compile()` |
# | a name without wrappers | `name.replace("_orig_mod.", "").removeprefix("module.")` |
# | to see first what would be loaded | `lk.diff_state(model, path, key="model")` |
# | to see what a file would call | `torch.serialization.get_unsafe_globals_in_checkpoint(path)` |
#
# ### The chapter in five lines
#
# - A `state_dict` is the live memory of the model, under names: clone what you want to keep,
#   and assert that every name found its place (7.1).
# - A run goes on as if nothing had happened only if everything was saved that it reads:
#   weights, optimizer, scheduler, scaler, random states, the place in the data. Build all
#   of it first, then load (7.2; with `assign=True` the optimizer comes after the load, 7.3).
# - Write to a temporary file and rename it, so that there is always a whole one (7.2).
# - A file carries devices, whole storages, prefixes and possibly a program with it: say
#   where it shall go, clone, compare names, leave `weights_only` on (7.3).
# - `lk.diff_state(model, path)` compares names, shapes, dtypes and devices before you load; of
#   a whole checkpoint say which entry, `key="model"` (7.1–7.3).
#
# *You can stop here: this is the end of chapter 07. On the core route chapter 08 comes next,
# performance: what a step costs in time and memory, and how to measure that honestly.*
