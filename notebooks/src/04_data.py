# %% [markdown]
# # 4 · The data pipeline
#
# Photographs, names and digits on their way to the model: what a dataset keeps, what its
# workers repeat, and what padding adds. Three parts, each one sitting: 4.1 datasets and
# caches, 4.2 worker processes and their random numbers, 4.3 batches of unequal length.
# A ★ marks the traps of the core route.
#
# [Open this page in Colab](https://colab.research.google.com/github/pytorch-pitfall-lab/pytorch-pitfall-lab/blob/learn/notebooks/04_data.ipynb)
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

session = lk.setup(4, solve=solve, version=made_with)

# %% [markdown]
# Worker processes are started by `fork` on Linux, which was its default up to Python 3.13,
# and by `spawn` elsewhere. Every loader with workers on this page says which, so that you
# can change it here and run the page again. (A spawned worker imports torch first: then
# the page takes several minutes instead of one.)

# %%
import sys

start_method = "fork" if sys.platform == "linux" else "spawn"

# %% [markdown]
# ## 4.1 What a dataset hands out
#
# **After this part you can**
# - keep decoded data in memory, at the right place of a pipeline,
# - say what a worker process keeps, and for how long,
# - find the line that edits the dataset while it is being read,
# - feed a model from data in memory at the speed of indexing,
# - say which process runs `__getitem__`, `collate_fn` and the training loop.
#
# *One sitting, about 40 minutes. Needs Python classes. Any computer will do.*

# %% [markdown]
# ### A dataset and its loader
#
# The data of this part are 36 real photographs, as JPEG files. `load` decodes one and makes
# it small; `augment` mirrors it half of the time and draws a brightness.
#
# On most systems worker processes import what they run (part 4.2), and a notebook cannot be
# imported. `%%module` makes a cell a module of that name; its names are on the page too.

# %%
# %%module photo_files
import numpy as np
import torch
from PIL import Image

def load(path):
    with Image.open(path) as photo:
        small = np.array(photo.convert("RGB").resize((64, 64)))
    return torch.from_numpy(small).permute(2, 0, 1) / 255

def augment(x):
    x = x.flip(2) if torch.rand(()) < 0.5 else x
    return x * (0.5 + torch.rand(()))

# %% [markdown]
# A dataset has a length, and gives item `i`. This is what the ones below have in common,
# with a count of how often each photo is decoded. The counts lie in shared memory; why a
# plain number will not do, you will see.

# %%
# %%module photo_sets
import torch
from photo_files import load

class Photos(torch.utils.data.Dataset):
    def __init__(self, paths):
        self.paths = paths
        self.loads = torch.zeros(len(paths)).share_memory_()
    def __len__(self):
        return len(self.paths)
    def load(self, i):
        self.loads[i] += 1
        return load(self.paths[i])

# %% [markdown]
# A loader draws an order, asks for the items of a batch, and stacks them:

# %%
from torch.utils.data import DataLoader

class AugmentedPhotos(Photos):
    def __getitem__(self, i):
        return augment(self.load(i))

paths = sorted(lk.data_path("photos").glob("*.jpg"))
photos = AugmentedPhotos(paths)
loader = DataLoader(photos, batch_size=4, shuffle=True)
print("a batch:", tuple(next(iter(loader)).shape))
print(len(loader), "of them; decoded so far:", int(photos.loads.sum()))

# %% [markdown]
# ### ★ Every file is decoded again and again
#
# In each epoch each file is opened and decoded anew. So the dataset gets a cache: what has
# been made for photo `i` is kept, and handed out from then on.

# %%
# %%module photo_cache
from photo_files import augment
from photo_sets import Photos

class CachedPhotos(Photos):
    def __init__(self, paths):
        super().__init__(paths)
        self.cache = {}
    def __getitem__(self, i):
        if i not in self.cache:
            self.cache[i] = augment(self.load(i))
        return self.cache[i]

# %% [markdown]
# Three epochs, and how many different pictures they hand out:

# %%
def three_epochs(dataset):
    loader = DataLoader(dataset, batch_size=4, shuffle=True)
    pictures = [x.numpy().tobytes() for epoch in range(3)
                for batch in loader for x in batch]
    return {"handed out": len(pictures), "different": len(set(pictures))}

def cached():
    return three_epochs(CachedPhotos(paths))

lk.predict("4.1.1")

# %% [markdown]
# Run it:

# %%
lk.trap("4.1.1", cached)

# %% [markdown]
# The cache does what it was written for: it saves the work of making a picture. The work is
# to decode *and to draw*, and the draw was saved too. (The article's sample class keeps the
# transformed item as well.) After the first epoch no random number is asked for any more:

# %%
photos = CachedPhotos(paths)
for epoch in range(3):
    before = torch.get_rng_state()
    for i in range(len(photos)):
        photos[i]
    drawn = not torch.equal(before, torch.get_rng_state())
    print(f"epoch {epoch}: random numbers were drawn: {drawn}")

# %% [markdown]
# **Fix.** The cache goes before the first random step: what it holds is the same at every
# access anyway.

# %%
# %%module photo_fresh
from photo_cache import CachedPhotos
from photo_files import augment

class FreshPhotos(CachedPhotos):
    def __getitem__(self, i):
        if i not in self.cache:
            self.cache[i] = self.load(i)
        return augment(self.cache[i])

# %% [markdown]
# The same three epochs:

# %%
lk.fix("4.1.1", lambda: three_epochs(FreshPhotos(paths)))

# %% [markdown]
# One photo in five epochs, from the first dataset and from the second:

# %% tags=["nbval-ignore-output"]
from matplotlib.figure import Figure

torch.manual_seed(1)
figure = Figure(figsize=(6.4, 3), layout="constrained")
shown = {"the first: cached after the augmentation": CachedPhotos(paths),
         "the second: cached before it": FreshPhotos(paths)}
for part, (name, dataset) in zip(figure.subfigures(2), shown.items()):
    part.suptitle(name, fontsize=10)
    for axes in part.subplots(1, 5):
        axes.imshow(dataset[11].permute(1, 2, 0).clamp(0, 1))
        axes.set_axis_off()
lk.show_figure(figure, alt="Above, the same picture of a cup five times; "
               "below, five that differ in brightness and side.")

# %% [markdown]
# **Transfer.** A longer pipeline: make it grey, cut out a random part, subtract the mean of
# that part, turn it upside down. Only the cut is random. Up to where may its result be
# kept?

# %%
def cut(x):
    top, left = torch.randint(16, (2,)).tolist()
    return x[:, top:top + 48, left:left + 48]

steps = {"make it grey": lambda x: x.mean(0, keepdim=True), "cut": cut,
         "subtract the mean": lambda x: x - x.mean(),
         "turn upside down": lambda x: x.flip(1)}
first = second = load(paths[0])
for name, change in steps.items():
    first, second = change(first), change(second)
    alike = first.shape == second.shape and torch.equal(first, second)
    print(f"after {name:17}", "may be kept" if alike else "differs each time")

# %% [markdown]
# Up to the first random step, and not one further: what comes after it works on what it
# drew.
#
# *In the field.* [A tutorial on
# segmentation](https://github.com/tensorflow/tensorflow/issues/47755) cached after its
# augmentation, in another framework;
# [a voice control](https://github.com/chaosparrot/parrot.py/issues/14) notes the same about
# its audio dataset. Nothing fails; the model gets fewer pictures than you think. Read one
# item twice, without setting a seed in between: if the two are equal, it is frozen.

# %% [markdown]
# ### Two workers and a cache
#
# With the cache in the right place, the loader gets two worker processes. How many files
# are decoded in three epochs?

# %%
def decoded(dataset):
    loader = DataLoader(dataset, batch_size=4, shuffle=True, num_workers=2,
                        multiprocessing_context=start_method)
    for epoch in range(3):
        for batch in loader:
            pass
    return int(dataset.loads.sum())

def with_workers():
    return decoded(FreshPhotos(paths))

lk.predict("4.1.2")

# %% [markdown]
# A second version of the dataset:

# %%
# %%module photo_preloaded
import torch
from photo_files import augment
from photo_sets import Photos

class PreloadedPhotos(Photos):
    def __init__(self, paths):
        super().__init__(paths)
        self.x = torch.stack([self.load(i) for i in range(len(paths))])
    def __getitem__(self, i):
        return augment(self.x[i])

# %% [markdown]
# Both, counted in the same way:

# %%
lk.trap("4.1.2", with_workers, lambda: decoded(PreloadedPhotos(paths)))

# %% [markdown]
# Each worker has a copy of the dataset, as it is when the epoch starts. It fills the cache
# of its copy, and the copy ends with the epoch. (So would a plain counter: hence the shared
# memory.) `persistent_workers=True` lets the workers live on. But who gets which photo is
# drawn anew in each epoch, and a worker knows only what it has decoded itself.

# %%
def per_epoch(dataset, **workers):
    loader = DataLoader(dataset, batch_size=4, shuffle=True, **workers)
    counts = [0]
    for epoch in range(4):
        for batch in loader:
            pass
        counts.append(int(dataset.loads.sum()))
    return ", ".join(str(b - a) for a, b in zip(counts, counts[1:]))

# %% [markdown]
# Files decoded in each of four epochs:

# %%
torch.manual_seed(0)
two = dict(num_workers=2, multiprocessing_context=start_method)
ways = {"no workers": {}, "two workers": two,
        "two persistent": two | dict(persistent_workers=True)}
loads, kept = {}, {}
for name, workers in ways.items():
    photos = FreshPhotos(paths)
    loads[name] = per_epoch(photos, **workers)
    kept[name] = len(photos.cache)
    print(f"{name:15} {loads[name]:16} in the main process: {kept[name]}")

# %% [markdown]
# In the end each persistent worker has a cache with nearly all photos: the memory counts
# once per worker. With `PreloadedPhotos` there is one tensor, and it is full before the
# first worker starts.
#
# *In the field.* [A library whose `cache()` does nothing with
# workers](https://github.com/szymonmaszke/torchdatasets/issues/26), and [a point cloud
# network](https://github.com/yanx27/Pointnet_Pointnet2_pytorch/issues/43).

# %% [markdown]
# ### Normalise in the loop
#
# Validation has no augmentation, so the cached photo goes out as it is.

# %%
# %%module photo_plain
from photo_cache import CachedPhotos

class PlainPhotos(CachedPhotos):
    def __getitem__(self, i):
        if i not in self.cache:
            self.cache[i] = self.load(i)
        return self.cache[i]

# %% [markdown]
# One photo at a time (`batch_size=None`), as for photos of different sizes. The loop
# normalises in place, to save memory, and notes the mean of what the model would get:

# %%
def means(dataset, batch_size=None, **options):
    loader = DataLoader(dataset, batch_size, **options)
    seen = []
    for epoch in range(3):
        each = [x.sub_(0.5).div_(0.25).mean().item() for x in loader]
        seen.append(round(sum(each) / len(each), 1))
    return seen

def validate():
    return means(PlainPhotos(paths))

lk.predict("4.1.3")

# %% [markdown]
# A second version of the dataset:

# %%
# %%module photo_safe
from photo_plain import PlainPhotos

class SafePhotos(PlainPhotos):
    def __getitem__(self, i):
        return super().__getitem__(i).clone()

# %% [markdown]
# Both, over three epochs:

# %%
lk.trap("4.1.3", validate, lambda: means(SafePhotos(paths)))

# %% [markdown]
# In batches of four it does not show: they come from `torch.stack`, which copies. And with
# workers? The cache is in another process then.

# %%
batched = means(PlainPhotos(paths), batch_size=4)
ended = means(PlainPhotos(paths), **two)
living = means(PlainPhotos(paths), **two, persistent_workers=True)
print("batches:       ", batched)
print("two workers:   ", ended)
print("two persistent:", living)

# %% [markdown]
# **A persistent worker's cache can be written from the main process.** A tensor comes from
# a worker through shared memory. It is not copied into it: the cached tensor itself is
# moved there, and both processes look at the same numbers. Without `persistent_workers` the
# cache is gone before it could harm.
#
# *In the field.* MONAI copies what is cached before its random transforms run, and lets you
# [switch that off](https://github.com/Project-MONAI/MONAI/pull/3001); [a small
# dataset](https://github.com/lkriener/yin_yang_data_set/pull/4) learned to hand out copies.

# %% [markdown]
# ### ★ Normalise in the dataset
#
# The handwritten digits, 1,797 images of 8×8, as one NumPy array of numbers from 0 to 16.
# Their mean is 4.9 and their standard deviation 6. The dataset normalises each image in
# place, which saves a temporary.

# %%
# %%module digit_sets
import torch
from torch.utils.data import Dataset

class Digits(Dataset):
    def __init__(self, images):
        self.images = images
    def __len__(self):
        return len(self.images)
    def __getitem__(self, i):
        x = torch.as_tensor(self.images[i])
        return x.sub_(4.9).div_(6)

# %% [markdown]
# `spread` gives the standard deviation of all that an epoch hands out, for three epochs:

# %%
with np.load(lk.data_path("digits.npz")) as digits:
    images = digits["images"].astype(np.float32)
    labels = torch.from_numpy(digits["labels"])

def spread(dataset, **options):
    loader = DataLoader(dataset, batch_size=64, **options)
    return [round(torch.cat(list(loader)).std().item(), 2) for _ in range(3)]

def normalised():
    return spread(Digits(images.copy()))

lk.predict("4.1.4")

# %% [markdown]
# Run it:

# %%
lk.trap("4.1.4", normalised)

# %% [markdown]
# `images[i]` is a view of the array, `as_tensor` makes a tensor of the same memory, and a
# method that ends in `_` writes. In the third epoch all images are nearly
# the same grey: no error, and hardly anything left to learn from. Which of these lines write
# into the dataset?

# %%
lines = {
    "x - 4.9": lambda x: x - 4.9,
    "x -= 4.9": lambda x: x.__isub__(4.9),
    "x[:2] = 0": lambda x: x.__setitem__(slice(2), 0),
    "x.float().sub_(4.9)": lambda x: x.float().sub_(4.9),
    "x.clamp(1, 9)": lambda x: x.clamp(1, 9),
    "F.relu(x - 4.9, inplace=True)": lambda x: F.relu(x - 4.9, inplace=True),
    "F.threshold(x, 5, 0, inplace=True)":
        lambda x: F.threshold(x, 5, 0, inplace=True),
}

# %% [markdown]
# Each of them on an image that is stored as float32, and on one that is stored as uint8
# (where it can be run):

# %%
def writes(run, dtype):
    array = images[0].astype(dtype)
    try:
        run(torch.from_numpy(array))
    except RuntimeError:
        return "raises"
    return "leaves it" if np.array_equal(array, images[0]) else "writes"

for name, line in lines.items():
    told = [writes(line, dtype) for dtype in (np.float32, np.uint8)]
    print(f"{name:35} float32 {told[0]:9}  uint8 {told[1]}")

# %% [markdown]
# `float()` copies where it has to convert, and gives the tensor itself where it has not.
# So the fault can come with an improvement: somebody stores the images as float32, to
# convert only once.
#
# **Fix.** `x - 4.9` makes a new tensor, which belongs to whoever asked for it. (Not all that
# has no `_` does: `float()`, `to`, `view` and `x[i]` may give the stored memory.)

# %%
class DigitsFixed(Digits):
    def __getitem__(self, i):
        x = torch.as_tensor(self.images[i])
        return (x - 4.9) / 6

lk.fix("4.1.4", lambda: spread(DigitsFixed(images.copy())))

# %% [markdown]
# **Transfer.** The faulty `Digits` again, with two workers. Does the fault show? Take the
# array, then workers that live on, then a tensor in shared memory.

# %%
in_shared = torch.from_numpy(images.copy()).share_memory_()
print("array, two workers:   ", spread(Digits(images.copy()), **two))
print("array, two persistent:", spread(Digits(images.copy()), **two,
                                       persistent_workers=True))
print("shared, two workers:  ", spread(Digits(in_shared), **two))

# %% [markdown]
# Workers hide it as long as each epoch gets a new copy, and in shared memory there is no
# copy. A plain tensor gets there by itself when workers are started by `spawn` (Windows,
# macOS) or `forkserver` (Linux since Python 3.14): to send a tensor is to move it there.
# **The same program is right on one system and wrong on another.** What sending does:

# %%
from multiprocessing.reduction import ForkingPickler

plain = torch.from_numpy(images.copy())
before = plain.is_shared()
message = ForkingPickler.dumps(plain)
print("in shared memory before:", before, " after:", plain.is_shared())
print(f"{plain.nbytes:,} bytes; sent in under 1 kB:", len(message) < 1000)

# %% [markdown]
# *In the field.* `Normalize` in torchvision once wrote in place: images in memory were
# [normalised again in each epoch](https://github.com/pytorch/vision/issues/680). [A
# framework](https://github.com/facebookresearch/pycls/pull/21) that augmented in place
# trained well with workers, and failed without. A probe that part 4.2 explains reads
# some items twice and compares:

# %% tags=["nbval-ignore-output"]
watched = DataLoader(Digits(images.copy()), batch_size=64)
for finding in lk.watch_loader(watched).findings:
    print(finding)

# %% [markdown]
# ### A dataset that is one tensor
#
# The digits fit into memory many times over. `TensorDataset` wraps tensors as a dataset;
# this one counts how often it is asked.

# %%
from torch.utils.data import BatchSampler, RandomSampler, TensorDataset

class Counted(TensorDataset):
    calls = 0
    def __getitem__(self, index):
        self.calls += 1
        return super().__getitem__(index)

# %% [markdown]
# One epoch of shuffled batches:

# %%
pixels = torch.from_numpy(images)

def usual():
    dataset = Counted(pixels, labels)
    for batch in DataLoader(dataset, batch_size=64, shuffle=True):
        pass
    return dataset.calls

lk.predict("4.1.5")

# %% [markdown]
# A tensor takes a list of indices as well as one. In the second version a sampler gives the
# loader whole lists, and `batch_size=None` says that there is nothing left to stack:

# %%
def row_lists(dataset):
    order = RandomSampler(dataset)
    lists = BatchSampler(order, batch_size=64, drop_last=False)
    return DataLoader(dataset, sampler=lists, batch_size=None)

def by_lists():
    dataset = Counted(pixels, labels)
    for batch in row_lists(dataset):
        pass
    return dataset.calls

lk.trap("4.1.5", usual, by_lists)

# %% [markdown]
# What an epoch takes, in times of plain indexing. The same 29 batches each time:

# %%
def slices():
    order = torch.randperm(len(pixels))
    return [(pixels[rows], labels[rows]) for rows in order.split(64)]

def usual_loader():
    dataset = TensorDataset(pixels, labels)
    return DataLoader(dataset, batch_size=64, shuffle=True)

def brightness(epoch):
    return round(sum(x.sum().item() for x, y in epoch))

feeds = {"slices": slices,
         "lists": lambda: list(row_lists(Counted(pixels, labels))),
         "items": lambda: list(usual_loader())}
print({name: brightness(epoch()) for name, epoch in feeds.items()})

# %% [markdown]
# The times vary from machine to machine; the order does not:

# %% tags=["volatile", "nbval-ignore-output"]
lk.compare(feeds)

# %% [markdown]
# Item by item takes at least five times as long as `slices`. For data in memory those three
# lines are enough; take the loader with lists where you want workers or a sampler. A dataset
# of your own may have a method `__getitems__`, which the loader calls with all indices of a
# batch (measured at the end of this part); `TensorDataset` has none.
#
# *In the field.* [Asked for in 2018](https://github.com/pytorch/pytorch/issues/4959),
# [measured again in 2023](https://github.com/pytorch/pytorch/issues/106704), and open.

# %% [markdown]
# ### Who makes the batch
#
# The advice is to move heavy work into `collate_fn`, which sees the whole batch. Here it
# normalises, and hands out where it ran: the process, its number of threads, and how many
# items the call got.

# %%
# %%module batch_work
import os
import torch

def normalise(x):
    return (x - 0.45) / 0.25

def normalise_batch(items):
    n = len(items)
    x = normalise(torch.stack(items))
    where = torch.tensor([os.getpid(), torch.get_num_threads(), n])
    return x, where.expand(n, 3)

# %% [markdown]
# Two workers, nine batches, and the same normalisation item by item beside it:

# %%
import os

photos = PlainPhotos(paths)
loader = DataLoader(photos, batch_size=4, collate_fn=normalise_batch, **two)
whole, where = (torch.cat(parts) for parts in zip(*loader))
calls = round((1 / where[:, 2]).sum().item())  # n items, 1 / n each
decodes = int(photos.loads.sum())
in_main = int((where[:, 0] == os.getpid()).sum())
threads = int(where[:, 1].max())
same = torch.allclose(whole, torch.stack([normalise(load(p)) for p in paths]))
print("photos whose batch was made in the main process:", in_main)
print("threads:", threads, " the same values:", same)
print("calls:", calls, " decoded:", decodes)

# %% [markdown]
# `collate_fn` runs in the worker too: **the work stays on the CPU, in the same process.**
# What it saves is calls, one for each batch instead of one for each item. Decoding is not
# among them; that happened before. What the calls are worth in a batch of 36:

# %% tags=["volatile", "nbval-ignore-output"]
items = [load(path)[:, ::2, ::2].contiguous() for path in paths]
lk.compare({
    "one by one": lambda: torch.stack([normalise(x) for x in items]),
    "whole batch": lambda: normalise(torch.stack(items)),
})

# %% [markdown]
# The whole batch takes less than half the time here. What is meant for the GPU belongs in
# the training loop, after the batch has been sent there. One draw for each photo of the
# batch, on your device:

# %% tags=["nbval-ignore-output"]
def augment_batch(x):
    n = len(x)
    mirrored = torch.rand(n, 1, 1, 1, device=x.device) < 0.5
    factor = 0.5 + torch.rand(n, 1, 1, 1, device=x.device)
    return torch.where(mirrored, x.flip(3), x) * factor

batch = augment_batch(PreloadedPhotos(paths).x.to(session.device))
print(tuple(batch.shape), "on", batch.device)

# %% [markdown]
# ### Exercise · cache before augmenting · 12 minutes, medium
#
# Deliver the class `CachedDataset(paths, load, augment=None)`.
#
# - Item `i` is `augment(load(paths[i]))`; without `augment`, what was loaded, to the last
#   digit. All loaded tensors have one shape.
# - Each access augments anew, with random numbers from torch's global state.
# - Each path is loaded once, also with two workers and in three epochs.
# - `augment` may write into what it gets, and so may whoever gets an item: what is kept
#   does not change.

# %%
class CachedDataset(torch.utils.data.Dataset):
    def __init__(self, paths, load, augment=None):
        pass

    def __len__(self):
        return lk.TODO

    def __getitem__(self, i):
        return lk.TODO

CachedDataset = lk.check("4.1-cache", CachedDataset)

# %% [markdown]
# Stuck? `lk.hint("4.1-cache")` gives one hint at a time, `lk.solution("4.1-cache")` an
# answer and why it is one. Your class with the photos, three epochs:

# %%
noted = []

def load_noted(path):
    noted.append(path)
    return load(path)

mine = CachedDataset(paths, load_noted, augment)
three_epochs(mine) | {"decoded": len(noted)}

# %% [markdown]
# ### What the article says, and what this page measured
#
# What a loader asks of a dataset. First without `__len__`, then a stream, then batches in
# one call:

# %%
class OnlyItems:
    def __getitem__(self, i):
        return i

class Stream(torch.utils.data.IterableDataset):
    def __iter__(self):
        return iter(range(6))

class Batches(list):
    calls = 0
    def __getitems__(self, rows):
        self.calls += 1
        return [self[i] for i in rows]

# %% [markdown]
# Six items from each, three at a time:

# %%
def six(dataset, **options):
    return sum(len(b) for b in DataLoader(dataset, batch_size=3, **options))

try:
    without = six(OnlyItems())
except TypeError as error:
    without = type(error).__name__
many = Batches(range(6))
asks = dict(without=without, sampler=six(OnlyItems(), sampler=range(6)),
            stream=six(Stream()), plain=six(list(range(6))), items=six(many),
            calls=many.calls)
print(asks)

# %% [markdown]
# A binary file, written once. The dataset holds its name and opens it where it reads, so
# that no array has to be sent to a worker:

# %%
import pickle

from labkit.launch.folders import own_folder

# %% [markdown]
# The dataset, as a module (`own_folder` above gives a temporary folder that goes even where
# the kernel is killed):

# %%
# %%module photo_binary
import numpy as np
import torch

class BinaryPhotos(torch.utils.data.Dataset):
    def __init__(self, file, n):
        self.file, self.n = file, n
    def __len__(self):
        return self.n
    def __getitem__(self, i):
        stored = np.load(self.file, mmap_mode="r")
        return torch.tensor(stored[i]) / 255

# %% [markdown]
# Each photo is decoded once more, for the file. Three epochs from the file, and what would
# be sent to a worker that is not forked: with the dataset above, and with the open array.

# %%
preloaded = PreloadedPhotos(paths).x
with own_folder() as folder:
    file = folder / "photos.npy"
    np.save(file, (preloaded * 255).round().byte().numpy())
    binary = BinaryPhotos(file, len(paths))
    loader = DataLoader(binary, batch_size=4, **two)
    epochs = [torch.cat(list(loader)) for _ in range(3)]
    opened = np.load(file, mmap_mode="r")
    pickled = [len(pickle.dumps(held)) for held in (binary, opened)]
    nbytes = opened.nbytes
    del opened

# %% [markdown]
# The numbers:

# %%
binary_file = {"photos": len(paths), "bytes": nbytes, "name sent": pickled[0],
               "array sent": pickled[1],
               "same": all(torch.equal(e, preloaded) for e in epochs)}
print(f"photos: {nbytes:,} bytes; the same values:", binary_file["same"])
print("the name is sent in under 1 kB:", pickled[0] < 1000)
print(f"the open array is sent in {pickled[1]:,} bytes")

# %% [markdown]
# The rest has been measured above:

# %%
late, early = cached(), three_epochs(FreshPhotos(paths))
frozen = dict(seen=late["handed out"], frozen=late["different"],
              fresh=early["different"])
reads = dict(zip(("alone", "workers", "kept"), loads.values()))
held = sum(map(int, loads["two persistent"].split(", ")))
memory = dict(photos=len(paths), kept=held, main=kept["two persistent"],
              preloaded=decoded(PreloadedPhotos(paths)))
one, safe = validate(), means(SafePhotos(paths))
edited = dict(first=one[0], last=one[-1], persistent=living[-1],
              safe=safe[-1])

# %% [markdown]
# The statements of section 4.1:

# %% tags=["volatile", "nbval-ignore-output"]
lk.verdicts(
    C4_1a=asks,
    C4_1b=dict(places="the main process" if in_main else "worker processes",
               threads=threads, calls=calls, items=len(paths),
               loads=decodes, same=same),
    C4_1c=dict(rate=round(8 / 0.050)), C4_1d=frozen, C4_1e=reads,
    C4_1f=memory, C4_1g=edited,
    C4_1h=binary_file,
)

# %% [markdown]
# **What you can do now**
# - Put a cache before the first random step, and fill it before the workers start.
# - Say what a worker keeps: its copy of the dataset, for one epoch, or for as long as it
#   lives. It is never sent back.
# - Find the line that writes into a dataset: read an item, clone it, read it again from the
#   same random state, and compare.
# - Give a loader lists of indices where the data lie in one tensor.
# - Say where code runs: `__getitem__` and `collate_fn` in the worker, the loop in the main
#   process.
#
# **Keep this**
#
# | you want | write |
# |---|---|
# | to keep decoded data | `self.x = torch.stack([load(p) for p in paths])` in `__init__` |
# | an augmentation that stays random | `augment(self.x[i].clone())` in `__getitem__` |
# | items that nobody can spoil | `.clone()` on whatever is kept |
# | to normalise | `(x - mean) / std`, never `x.sub_(mean)` on what you were given |
# | data in memory, shuffled | `for rows in torch.randperm(n).split(64): x[rows], y[rows]` |
# | data larger than memory | one file, `np.load(file, mmap_mode="r")` in `__getitem__` |
# | work on the GPU | in the loop, after `.to(device)` |
# | to be sure that reading edits nothing | `a = dataset[0].clone()`, then `torch.equal(a, dataset[0])`, each after `torch.manual_seed(0)` |
#
# *You can stop here. The next part starts with the workers themselves: how many, how they
# start, and what they draw.*

# %% [markdown]
# ## 4.2 Workers
#
# **After this part you can**
# - say what a worker costs, and where one pays,
# - control what workers draw, and repeat a run,
# - write what travels to a worker so that it arrives on Linux, macOS and Windows,
# - share a stream out among workers, and tell workers that live on something new,
# - say what of your data a worker copies, and keep its memory from growing.
#
# *About 70 minutes: one long sitting, or two, with a break before the sweep. Needs datasets
# and loaders (part 4.1). Any computer will do; one trap counts bytes that only Linux tells.*

# %% [markdown]
# ### ★ Two helpers for the digits
#
# 256 digits, in memory. Advice that is found everywhere: `num_workers=2`, so that two
# processes prepare the next batches while yours computes.

# %%
import os
import tempfile

from torch.utils.data import DataLoader, TensorDataset

with np.load(lk.data_path("digits.npz")) as digits:
    some = torch.from_numpy(digits["images"][:256]).float()
    data = TensorDataset(some, torch.from_numpy(digits["labels"][:256]))

# %% [markdown]
# One epoch of it, and the shortest of three, in milliseconds. (`start_method` is how this
# page starts its workers.)

# %%
import timeit

def one_epoch():
    loader = DataLoader(data, batch_size=32, num_workers=2,
                        multiprocessing_context=start_method)
    return sum(len(x) for x, y in loader)

def shortest(epoch):
    return round(min(timeit.repeat(epoch, number=1, repeat=3)) * 1000, 1)

lk.predict("4.2.1")

# %% [markdown]
# Run it:

# %% tags=["volatile", "nbval-ignore-output"]
lk.trap("4.2.1", lambda: shortest(one_epoch))

# %% [markdown]
# A worker is a process. It has to be started, it gets the indices through one queue, and
# its batches come back through another. Who reads, and how often is a process started? This
# dataset tells: `get_worker_info()` knows the worker that it is called in, and is `None` in
# your own process. (Why it stands in a `%%module` cell, trap 4.2.5 explains.)

# %%
# %%module lab_who
import os

from torch.utils.data import Dataset, get_worker_info

class Who(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, i):
        info = get_worker_info()
        return os.getpid(), f"worker {info.id}" if info else "your process"

# %% [markdown]
# Two epochs, without workers, with two, and with two that live on:

# %%
def readers(workers, **options):
    if workers:
        options |= dict(multiprocessing_context=start_method)
    loader = DataLoader(Who(), batch_size=None, num_workers=workers,
                        **options)
    return [dict(loader) for _ in range(2)]

kinds = {"0": (0, {}), "2": (2, {}),
         "2, persistent": (2, dict(persistent_workers=True))}
who = {name: readers(n, **options) for name, (n, options) in kinds.items()}
for name, (first, second) in who.items():
    new = len(second.keys() - first.keys())
    print(f"{name:14}", *sorted(first.values()), f"· new in epoch 2: {new}")

# %% [markdown]
# Every epoch starts its workers anew. Where the time goes, `lk.watch_loader(loader)` tells,
# for your loaders too: it reads an epoch from a twin, and leaves yours as it was. Here the
# training step takes 30 ms. Look for the start-up, for the time to read an item, and for
# how busy the workers are. (The article calls waiting for more than 20 % of the time too
# much. The wait for the first batch counts as start-up here, not as waiting.)

# %% tags=["volatile", "nbval-ignore-output"]
import time

loader = DataLoader(data, batch_size=32, num_workers=2,
                    multiprocessing_context=start_method)
lk.watch_loader(loader, step=lambda batch: time.sleep(0.03), twice=False)

# %% [markdown]
# **Fix.** No workers. An item that is read in a few microseconds costs less than the way
# through a queue, however many processes there are.

# %% tags=["volatile", "nbval-ignore-output"]
def one_epoch_fixed():
    loader = DataLoader(data, batch_size=32)
    return sum(len(x) for x, y in loader)

lk.fix("4.2.1", lambda: shortest(one_epoch_fixed))

# %% [markdown]
# **Transfer.** Which of the two, `persistent_workers` and `prefetch_factor`, spares the
# start-up? And can they be had with `num_workers=0`?

# %%
def accepts(**options):
    try:
        DataLoader(data, **options)
    except ValueError as error:
        return str(error)
    return "accepted"

print(accepts(num_workers=2, persistent_workers=True))
refused = {o: accepts(num_workers=0, **{o: v})
           for o, v in [("persistent_workers", True), ("prefetch_factor", 2)]}
print(*refused.values(), sep="\n")

# %% [markdown]
# The table above has shown it: persistent workers are started once. They still send every
# batch through the queue. Workers pay where an item takes long to *make*, above all where
# it *waits*, for a disk or a network. How many, the sweep at the end of this part measures.
#
# *In the field.* [Lightning got it as a bug](https://github.com/Lightning-AI/pytorch-lightning/issues/17410):
# data in memory, and slow with workers. [PyTorch's documentation was to say
# so](https://github.com/pytorch/pytorch/pull/181501) after many such reports.

# %% [markdown]
# ### A formula for the number of workers
#
# The article has one: `min(4 * num_gpus, cpu_count // 2)`. A laptop with 8 cores and no
# GPU trains a small model on files from a network drive.

# %%
def formula(gpus, cores):
    return min(4 * gpus, cores // 2)

def who_reads():
    first, _ = readers(workers=formula(gpus=0, cores=8))
    return sorted(first.values())

lk.predict("4.2.2")

# %% [markdown]
# In the second version the number begins with the cores that this process may use:

# %% tags=["nbval-ignore-output"]
def cores_here():
    if hasattr(os, "sched_getaffinity"):  # Linux
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1

def who_reads_fixed(training_processes=1):
    share = max(1, cores_here() // training_processes)
    first, _ = readers(workers=min(share, 2))  # 2: to keep this page short
    return sorted(first.values())

lk.trap("4.2.2", who_reads, who_reads_fixed)

# %% [markdown]
# And where there are GPUs? The formula is asked in each training process:

# %%
machines = {"laptop, no GPU": (0, 8, 1), "1 GPU, 2 cores": (1, 2, 1),
            "1 GPU, 1 core": (1, 1, 1), "8 GPUs, 64 cores": (8, 64, 8)}
for name, (gpus, n, processes) in machines.items():
    each = formula(gpus, n)
    print(f"{name:17} {each:3} each, {each * processes:4} in all")

# %% [markdown]
# `os.cpu_count()` also counts cores that a batch system keeps from you. (Since Python 3.13
# `os.process_cpu_count()` does not. Neither of them knows what share of the processors' time
# a container gets.)
# No formula knows what an item costs: **take the cores for a start, and measure.**

# %% [markdown]
# ### ★ Noise for every item
#
# An augmentation adds noise. As NumPy advises, the dataset has a generator of its own:

# %%
# %%module lab_noise
import numpy as np
from torch.utils.data import Dataset

class Noisy(Dataset):
    def __init__(self):
        self.rng = np.random.default_rng(0)

    def __len__(self):
        return 8

    def __getitem__(self, i):
        return self.rng.normal()

# %% [markdown]
# Two workers, and two epochs of eight items. How many different noises are there?

# %%
def noises(init=None):
    loader = DataLoader(Noisy(), batch_size=None, num_workers=2,
                        worker_init_fn=init,
                        multiprocessing_context=start_method)
    return [list(loader) for epoch in range(2)]

def different():
    return len(set(sum(noises(), [])))

lk.predict("4.2.3")

# %% [markdown]
# Run it:

# %%
lk.trap("4.2.3", different)

# %% [markdown]
# Each worker gets a **copy of the dataset, generator and all**, with the state that it has
# in your process; and there it stands still, since nobody draws from it. The 16 noises:

# %%
for n, drawn in enumerate(noises(), 1):
    print(f"epoch {n}:", *(f"{value:5.2f}" for value in drawn))

# %% [markdown]
# Items 0, 2, 4, 6 come from worker 0, the others from worker 1. It is well known that
# `np.random` does this; but that is no longer so. One draw from each source, in two workers
# and two epochs:

# %%
# %%module lab_draws
import random

import numpy as np
import torch

own, mine = np.random.default_rng(0), random.Random(0)

def draw_from_each(items):
    return {"np.random": np.random.random(), "torch": torch.rand(()).item(),
            "random": random.random(),
            "default_rng(0)": own.random(), "Random(0)": mine.random()}

# %% [markdown]
# How many of the four are different:

# %%
loader = DataLoader([0, 1], collate_fn=draw_from_each, num_workers=2,
                    multiprocessing_context=start_method)
drawn = [batch for epoch in range(2) for batch in loader]
for source in drawn[0]:
    print(f"{source:15}", len({batch[source] for batch in drawn}))

# %% [markdown]
# Since version 1.9 torch seeds the three global generators in every worker, NumPy's too.
# Generators that somebody *holds*, a dataset, a transform or a module, it does not know.
# `watch_loader` finds them:

# %%
loader = DataLoader(Noisy(), batch_size=None, num_workers=2,
                    multiprocessing_context=start_method)
for finding in lk.watch_loader(loader).findings:
    print(finding)

# %% [markdown]
# **Fix.** `worker_init_fn` is called once in each worker, before the first item.
# `get_worker_info()` gives the worker's own copy of the dataset, and a seed that is another
# one for each worker and epoch.

# %%
# %%module lab_seeding
import numpy as np
from torch.utils.data import get_worker_info

def seed_generator(worker_id):
    info = get_worker_info()
    info.dataset.rng = np.random.default_rng(info.seed)

# %% [markdown]
# The same 16 draws:

# %%
def different_fixed():
    return len(set(sum(noises(seed_generator), [])))

lk.fix("4.2.3", different_fixed)

# %% [markdown]
# **Transfer.** `info.seed` is drawn from torch's generator in your process when an epoch
# begins. So `torch.manual_seed(0)` makes a run repeatable. Somebody wants each *epoch*
# repeatable, and seeds at its beginning. How many of the 16 are different now?

# %%
def run(init, each_epoch):
    loader = DataLoader(Noisy(), batch_size=None, num_workers=2,
                        worker_init_fn=init,
                        multiprocessing_context=start_method)
    torch.manual_seed(0)
    drawn = []
    for epoch in range(2):
        if each_epoch:
            torch.manual_seed(0)
        drawn += list(loader)
    return drawn

# %% [markdown]
# Seeded in each epoch, and seeded once:

# %%
again = run(seed_generator, each_epoch=True)
once = run(seed_generator, each_epoch=False)
print("each epoch:", len(set(again)), "different")
print("once:      ", len(set(once)), "different; a second run is the same:",
      once == run(seed_generator, each_epoch=False))

# %% [markdown]
# The *same* seed in each epoch replays the noise of the first. Seed once; or, to repeat any
# epoch alone, give each a seed of its own: `torch.manual_seed(1000 + epoch)`. (A loader with
# a `generator=` draws `info.seed` from that one instead.)
#
# *In the field.* [CenterNet](https://github.com/xingyizhou/CenterNet/issues/233) and [many
# others](https://github.com/pytorch/pytorch/issues/5059) met it with `np.random`, which
# torch cured. With generators that transforms hold it goes on:
# [torchsig](https://github.com/TorchDSP/torchsig/issues/343) wrote the same signals from
# every worker. PyTorch once seeded all generators that it could find, and [took it
# back](https://github.com/pytorch/pytorch/pull/107756).

# %% [markdown]
# ### A generator of torch's
#
# Up to Python 3.13 Linux **forks** its workers: they begin as copies of your process. macOS
# and Windows **spawn** new ones, and Python 3.14 on Linux has a **forkserver** start them.
# A worker of these two kinds is *sent* the dataset. Here it holds a generator of torch's:

# %%
# %%module lab_drops
import torch
from torch.utils.data import Dataset

class Drops(Dataset):
    def __init__(self, rng):
        self.rng = rng

    def __len__(self):
        return 4

    def __getitem__(self, i):
        return torch.rand((), generator=self.rng).item()

# %% [markdown]
# `other` is a method that sends the dataset, whichever this page uses: `spawn`, unless you
# chose another than `fork` above.

# %%
other = "spawn" if start_method == "fork" else start_method

def draw():
    dataset = Drops(torch.Generator().manual_seed(0))
    loader = DataLoader(dataset, batch_size=None, num_workers=1,
                        multiprocessing_context=other)
    return len(set(loader))

lk.predict("4.2.4")

# %% [markdown]
# Should a worker die, its last words go past the notebook, to file descriptor 2 of the
# process. This hands them on, as the error's text:

# %%
def with_last_words(run):
    kept, file = os.dup(2), tempfile.TemporaryFile()
    os.dup2(file.fileno(), 2)
    try:
        return run()
    except RuntimeError as error:
        file.seek(0)
        words = file.read().decode(errors="replace").strip()
        last = words.split("\n")[-1].removeprefix("RuntimeError: ")
        raise RuntimeError(last or str(error)) from error
    finally:
        os.dup2(kept, 2), os.close(kept), file.close()

# %% [markdown]
# In the second version the generator is made where it is used:

# %%
# %%module lab_make_generator
import torch
from torch.utils.data import get_worker_info

def make_generator(worker_id):
    info = get_worker_info()
    info.dataset.rng = torch.Generator().manual_seed(info.seed)

# %% [markdown]
# Both, each with a worker of its own:

# %%
def draw_fixed():
    loader = DataLoader(Drops(rng=None), batch_size=None, num_workers=1,
                        worker_init_fn=make_generator,
                        multiprocessing_context=other)
    return len(set(loader))

lk.trap("4.2.4", lambda: with_last_words(draw),
        lambda: with_last_words(draw_fixed))

# %% [markdown]
# What is sent of a generator is its state, a tensor, and a tensor travels as a piece of
# shared memory. This one is made for the journey and given back at once, before the worker
# has looked ([report](https://github.com/pytorch/pytorch/issues/146828)). Send a seed, or
# nothing.

# %% [markdown]
# ### ★ The pipeline on a colleague's computer
#
# It has run on a Linux server for years. The dataset scales its images with a small
# function, which every tutorial writes in place:

# %%
# %%module lab_images
from torch.utils.data import Dataset

class Images(Dataset):
    def __init__(self, x, transform):
        self.x, self.transform = x, transform

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.transform(self.x[i])

# %% [markdown]
# The colleague's computer spawns:

# %%
def scaled():
    dataset = Images(some[:4], transform=lambda x: x / 16)
    loader = DataLoader(dataset, num_workers=1, multiprocessing_context=other)
    return len(list(loader))

lk.predict("4.2.5")

# %% [markdown]
# Run it:

# %%
import warnings

warnings.filterwarnings("ignore", "Got pickle error")  # read further down
lk.trap("4.2.5", scaled)

# %% [markdown]
# What is sent is pickled, and pickle sends a function or a class **as a name**, to be looked
# up in the module of that name at the other end. What has no such name stays here. (So does
# an open file, for another reason: the system gave it to this process.)

# %%
# %%module lab_scale
def scale(x):
    return x / 16

# %% [markdown]
# Some pieces that datasets and loaders are made of:

# %%
import functools
import pickle

class InACell:
    pass

def outer():
    class Nested:
        pass
    def inner(x):
        return x
    return Nested(), inner

# %% [markdown]
# With names for them:

# %%
nested, inner = outer()
with open(os.devnull) as file:
    pieces = {"a module's function": scale,
              "a partial of it": functools.partial(scale),
              "a class in a cell": InACell(), "a lambda": lambda x: x,
              "a function in a function": inner,
              "a class in a function": nested, "an open file": file}

# %% [markdown]
# Which of them can be sent:

# %%
def can_be_sent(piece):
    try:
        pickle.dumps(piece)
    except (pickle.PicklingError, AttributeError, TypeError):
        return False
    return True

sent = {name: can_be_sent(piece) for name, piece in pieces.items()}
for name, can in sent.items():
    print(f"{name:25}", "can be sent" if can else "stays here")

# %% [markdown]
# **Fix.** A function that stands in a module: then its name is enough, and the worker
# imports it. On this page a `%%module` cell is that module; in a project, a file.

# %%
@functools.cache  # the table at the end asks once more
def scaled_fixed():
    dataset = Images(some[:4], transform=scale)
    loader = DataLoader(dataset, num_workers=1, multiprocessing_context=other)
    return len(list(loader))

lk.fix("4.2.5", scaled_fixed)

# %% [markdown]
# **Transfer.** The article's rule is that the class stands at the top level. This one does,
# in a notebook cell, and the table says that such a class can be sent. Does it arrive?

# %%
import multiprocessing
import re

class Halves(Images):
    def __getitem__(self, i):
        return self.x[i] / 2

def arrives(dataset, timeout=10):
    loader = DataLoader(dataset, num_workers=1, timeout=timeout,
                        multiprocessing_context=other)
    try:
        return with_last_words(lambda: f"{len(list(loader))} batches"), ""
    except RuntimeError as error:
        return str(error), re.sub(r"\d+", "…", str(error.__cause__))

# %% [markdown]
# The worker's last words, and what the loader says:

# %%
words, verdict = arrives(Halves(some[:4], transform=None))
print("worker:", words)
print("loader:", verdict)
print("processes left:", len(multiprocessing.active_children()))

# %% [markdown]
# The name is `__main__.Halves`, and the worker's `__main__` is not your notebook. Of a
# spawned worker's death a signal tells the loader at once. Windows has no such signal, and
# with a forkserver it goes elsewhere: there the loader waits until its `timeout` is over,
# or without one looks again every five seconds.
#
# And the warning that comes with the first kind of error, in new versions of torch:

# %%
import textwrap

with warnings.catch_warnings(record=True) as heard:
    warnings.simplefilter("always")
    try:
        scaled()
    except (AttributeError, pickle.PicklingError):
        print("warnings:", len(heard))
for warning in heard:
    print(textwrap.fill(str(warning.message), 76))

# %% [markdown]
# **Its last sentence is no cure**: Windows cannot fork; a process with threads that is forked
# may find a lock closed for ever, which is [why Python changed its
# default](https://docs.python.org/3/library/multiprocessing.html#contexts-and-start-methods);
# and a worker that is forked after CUDA was started [cannot use
# CUDA](https://docs.pytorch.org/docs/stable/notes/multiprocessing.html#cuda-in-multiprocessing).
#
# *In the field.* [A course's notebooks](https://github.com/computational-cell-analytics/dl-for-micro/issues/20)
# stopped with the worker's words on Windows, [others](https://github.com/pytorch/pytorch/issues/51344)
# just stood still. With Python 3.14 [Linux has the same
# rules](https://github.com/pytorch/pytorch/issues/169252). `lk.watch_loader(loader)` names
# what spawn could not send, also where your loader forks. A script that spawns, or uses a
# forkserver, needs `if __name__ == "__main__":` as well.

# %% [markdown]
# ### A stream with two workers
#
# 2,541 names of territories, read line by line:

# %%
# %%module lab_names
import csv

from torch.utils.data import IterableDataset

class Names(IterableDataset):
    def __init__(self, path):
        self.path = path

    def __iter__(self):
        with open(self.path, encoding="utf-8", newline="") as file:
            yield from csv.DictReader(file)

# %% [markdown]
# How many come out?

# %%
def count(stream=Names):
    dataset = stream(str(lk.data_path("names.csv")))
    loader = DataLoader(dataset, batch_size=64, num_workers=2,
                        multiprocessing_context=start_method)
    return sum(len(batch["name"]) for batch in loader)

lk.predict("4.2.6")

# %% [markdown]
# A second version of the stream:

# %%
# %%module lab_shared_names
import itertools

from lab_names import Names
from torch.utils.data import get_worker_info

class SharedNames(Names):
    def __iter__(self):
        info = get_worker_info()
        first, step = (info.id, info.num_workers) if info else (0, 1)
        yield from itertools.islice(super().__iter__(), first, None, step)

# %% [markdown]
# Both:

# %%
lk.trap("4.2.6", count, lambda: count(SharedNames))

# %% [markdown]
# A list is dealt out index by index; a stream has no indices, so each worker walks all of
# its copy. Reported for [streamed data
# sets](https://github.com/huggingface/datasets/issues/3423) and [record
# files](https://github.com/vahidk/tfrecord/issues/78); several training processes repeat it
# once more (chapter 06). `watch_loader` counts what comes twice.

# %% [markdown]
# ### The number of the epoch
#
# An augmentation grows stronger with the epochs, so the dataset is told which one it is.
# The workers live on, to spare their start:

# %%
# %%module lab_epochs
from torch.utils.data import Dataset

class Growing(Dataset):
    epoch = 0

    def __len__(self):
        return 2

    def __getitem__(self, i):
        return int(self.epoch)

    def set_epoch(self, epoch):
        self.epoch = epoch

# %% [markdown]
# The number that the items see, in three epochs:

# %%
def epochs_seen(dataset):
    loader = DataLoader(dataset, batch_size=None, num_workers=1,
                        persistent_workers=True,
                        multiprocessing_context=start_method)
    seen = []
    for epoch in range(3):
        dataset.set_epoch(epoch)
        seen.append(max(loader))
    return seen

lk.predict("4.2.7")

# %% [markdown]
# A second version of the dataset:

# %%
# %%module lab_shared_epochs
import torch
from lab_epochs import Growing

class SharedGrowing(Growing):
    def __init__(self):
        self.epoch = torch.zeros((), dtype=torch.int64).share_memory_()

    def set_epoch(self, epoch):
        self.epoch.fill_(epoch)

# %% [markdown]
# Both:

# %%
lk.trap("4.2.7", lambda: epochs_seen(Growing()),
        lambda: epochs_seen(SharedGrowing()))

# %% [markdown]
# A worker's copy is made when it starts; what you set later, you set on yours. [Asked
# for](https://github.com/pytorch/pytorch/issues/97326) in PyTorch, and [mended in
# this way](https://github.com/huggingface/datasets/pull/6710) in a large library whose streams
# were shuffled alike in every epoch.

# %% [markdown]
# ### A list of file names
#
# 300,000 names of files. A forked worker shares your memory, page by page, until one side
# *writes* to a page: then that page is copied. The dataset only reads.

# %%
# %%module lab_memory
from torch.utils.data import Dataset

class Table(Dataset):
    def __init__(self, rows):
        self.rows = rows

    def __len__(self):
        return 2

    def __getitem__(self, i):  # item 0 reads nothing, item 1 everything
        sum(len(self.rows[row]) for row in range(i * len(self.rows)))
        with open("/proc/self/smaps_rollup") as file:
            lines = dict(line.split(maxsplit=1) for line in file)
        return int(lines["Private_Dirty:"].split()[0]) * 1024

# %% [markdown]
# By how many bytes does the memory grow that is the worker's alone? Only Linux tells;
# elsewhere you see what we recorded there:

# %%
file_names = [f"photos/{n:08}.jpg" for n in range(300_000)]
tells = os.path.exists("/proc/self/smaps_rollup")
print("counted on this computer" if tells else "recorded on Linux")

def growth(rows):
    if not tells:
        return recorded[type(rows)]
    loader = DataLoader(Table(rows), batch_size=None, num_workers=1,
                        multiprocessing_context="fork")
    before, after = loader
    return after - before

lk.predict("4.2.8")

# %% [markdown]
# In the second version the names are one array:

# %% tags=["volatile", "nbval-ignore-output"]
recorded = {list: 24_300_000, np.ndarray: 210_000}  # on Linux
lk.trap("4.2.8", lambda: growth(file_names),
        lambda: growth(np.array(file_names)))

# %% [markdown]
# To read a Python object is to write: its reference count goes up and down, and lies in the
# same page. After an epoch each worker has a copy of its own. An array is one object, and
# reading its bytes writes nothing.
#
# And under spawn? What is sent of an array and of a tensor, of 16 million bytes each:

# %%
from multiprocessing.reduction import ForkingPickler

array, tensor = np.zeros(2_000_000), torch.zeros(4_000_000)
parcels = {"array": ForkingPickler.dumps(array),
           "tensor": ForkingPickler.dumps(tensor)}
parcel = {name: len(pickled) for name, pickled in parcels.items()}
arrived = pickle.loads(parcels["tensor"])
shared = arrived.data_ptr() == tensor.data_ptr()
for name, sent_bytes in parcel.items():
    print(f"{name:6}", "all of it" if sent_bytes > 16e6 else "under 1 kB")
print("the tensor that arrives is the same memory:", shared)

# %% [markdown]
# **A tensor that is only read is copied under no start method; an array is copied by spawn
# and forkserver, and a list of objects by each.** Keep large tables as tensors, or as arrays
# where you fork.
#
# *In the field.* [Known since 2018](https://github.com/pytorch/pytorch/issues/13246), and
# still costing [a node its
# memory](https://github.com/metatensor/metatrain/pull/1229). In a container, batches also
# need room in `/dev/shm`: workers that are [killed by a bus
# error](https://github.com/pytorch/pytorch/issues/5040) ran out of it. `watch_loader` finds
# containers that a worker copies by reading.

# %% [markdown]
# ### A sweep over the number of workers
#
# How many workers, then? Three kinds of item, on whatever machine this is: a photo that
# is decoded, which keeps a core busy; an item that is waited for, as from a storage far
# away, which keeps nobody busy; and one that costs nothing.

# %%
# %%module lab_sweep
import time

import numpy as np
from PIL import Image

import labkit as lk

FILES = sorted(lk.data_path("photos").glob("*.jpg"))
def decode(n):
    with Image.open(FILES[n % len(FILES)]) as photo:
        return np.array(photo.convert("RGB").resize((64, 64)))
def wait(n):
    time.sleep(0.004)
    return n

# %% [markdown]
# Anything with a length and an index will do as a dataset. The third kind only calls
# `abs`:

# %%
# %%module lab_items
class Items:
    def __init__(self, make, count):
        self.make, self.count = make, count

    def __len__(self):
        return self.count

    def __getitem__(self, n):
        return self.make(n)

# %% [markdown]
# One loader for each number of workers. They live on from epoch to epoch, so that their
# start, which trap 4.2.1 has shown, is not measured again.

# %%
import time

quick = session.budget == "quick"
counts, size = ([0, 1, 2, 4], 1) if quick else ([0, 1, 2, 4, 8, 16], 6)

def loaders(data):
    return {n: DataLoader(data, 4, num_workers=n, persistent_workers=n > 0,
                          multiprocessing_context=start_method if n else None)
            for n in counts}

# %% [markdown]
# The loaders take turns, so that a busy moment of the machine meets them all, and of
# each the shortest epoch counts. The first round starts the workers and is left out.

# %%
def seconds(loader):
    start = time.perf_counter()
    for batch in loader:
        pass
    return time.perf_counter() - start

def sweep(data, rounds=3 if quick else 5):
    ready, times = loaders(data), {n: [] for n in counts}
    for number in range(1 + rounds):
        for n in counts:
            times[n].append(seconds(ready[n]))
            print("▮", end="", flush=True)
    return {n: min(took[1:]) for n, took in times.items()}

# %% [markdown]
# A mark for each epoch that is done; behind the marks, how many times as fast each
# number of workers is as none. (With `lk.setup(..., budget="full")` it takes longer,
# and tries up to 16. Where workers are spawned, as on Windows, starting 21 of them
# takes half a minute.) What do you expect of each kind?

# %% tags=["volatile", "nbval-ignore-output"]
kinds = {"photo": Items(decode, 72 * size), "wait": Items(wait, 48 * size),
         "nothing": Items(abs, 320 * size)}
speed = {}
print(f"{'workers:':{8 + 4 * len(counts)}}", *(f"{n:5}" for n in counts))
for kind, dataset in kinds.items():
    print(f"{kind:8}", end="")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's own comes further down
        took = sweep(dataset)
    speed[kind] = {n: took[0] / took[n] for n in counts}
    print(*(f"{times:5.2f}" for times in speed[kind].values()))

# %% [markdown]
# Two more numbers for the picture: the cores that this process may use, and what the
# article's formula gives, with this machine's GPUs and with one.

# %% tags=["nbval-ignore-output"]
cores, gpus = cores_here(), torch.cuda.device_count()
formulas = {n: formula(n, os.cpu_count()) for n in sorted({gpus, 1})}
print(f"{cores} cores;", *(f"{n} GPUs: {w}" for n, w in formulas.items()))

# %% [markdown]
# The lines differ in colour, marker and dashes; the two numbers are upright lines:

# %%
from matplotlib.figure import Figure

looks = {"photo": ("#0072B2", "o-"), "wait": ("#B8500A", "s--"),
         "nothing": ("#00694E", "^-.")}

def draw_speeds(axes):
    for kind, (color, look) in looks.items():
        axes.plot(list(speed[kind]), list(speed[kind].values()), look,
                  color=color, label=kind)
    axes.axhline(1, color="#555555", lw=1)
    axes.axvline(cores, color="#BBBBBB", lw=7, zorder=0, label="cores")
    for style, (n, workers) in zip((":", "--"), formulas.items()):
        axes.axvline(workers, color="#CC79A7", lw=3, zorder=0, ls=style,
                     label=f"formula, {n} GPU")

# %% [markdown]
# Above the line at 1, workers pay:

# %% tags=["volatile", "nbval-ignore-output"]
figure = Figure(figsize=(7.2, 3.6), layout="constrained")
axes = figure.subplots()
draw_speeds(axes)
axes.set(xlabel="num_workers", ylabel="times as fast as none", xticks=counts)
axes.set_xlim(-0.04 * counts[-1], 1.04 * counts[-1])
axes.set_ylim(bottom=0)
figure.legend(loc="outside right center", frameon=False)
last = ", ".join(f"{k} {s[counts[-1]]:.2g}" for k, s in speed.items())
says = "How many times as fast each number of workers is as none; with"
lk.show_figure(figure, alt=f"{says} {counts[-1]} workers: {last}.")

# %% [markdown]
# What *waits* gains with further workers, on any number of cores, for waiting needs none,
# as long as there are batches to share out and the storage keeps up. What *computes* gains
# at most as many times as there are cores **that are free**: where other programs keep them
# busy, photos gain nothing or lose. What costs nothing **loses with any number of
# workers**: each batch goes through a queue.
#
# No formula can be right that does not know the item. The best number for each kind,
# here:

# %% tags=["volatile", "nbval-ignore-output"]
gains = {kind: max(times for n, times in s.items() if n)
         for kind, s in speed.items()}
best = {kind: max(s, key=s.get) for kind, s in speed.items()}
c42b = dict(wait_bound_speedup=gains["wait"],
            trivial_speedup=gains["nothing"])
c42c = dict(formula_no_gpu=formula(0, os.cpu_count()),
            formula_one_gpu=formula(1, os.cpu_count()),
            affinity=cores, best_wait_bound=best["wait"])
print(best)

# %% [markdown]
# Torch has an opinion too, about the most. It warns when a loader is *made* with more
# workers than cores that this process may use:

# %% tags=["volatile", "nbval-ignore-output"]
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    DataLoader(range(8), num_workers=cores + 1)
text = str(caught[0].message) if caught else "0 workers: 0 warnings"
asked, suggested = (int(n) for n in re.findall(r"\d+", text)[:2])
c42d = dict(warned=bool(caught), suggested=suggested)
print(text.split(", which")[0])

# %% [markdown]
# It counts cores, and items that wait need none: with fewer than four cores, the sweep
# has just gone past it. For items that compute it is a fair limit, **for all training
# processes together**: each of them makes its own workers.
#
# *In the field.* Lightning advised a process that had been given a few cores to take
# [80 workers](https://github.com/Lightning-AI/pytorch-lightning/issues/15572), because
# it counted the machine's. In a review of `num_workers=os.cpu_count()` somebody noticed
# that with 8 GPUs this is [eight times the
# cores](https://github.com/microsoft/hi-ml/pull/268).

# %% [markdown]
# ### The timetable of a loader
#
# What happens between the workers and your step follows four rules:
#
# 1. Batches go to the workers in turn: batch `k` to worker `k % num_workers`.
# 2. `prefetch_factor * num_workers` of them are handed out at the start. Whenever you
#    take a batch, one more is.
# 3. A worker makes its batches one after the other.
# 4. You get them **in order**, also when a later one is ready first.
#
# From these rules and two costs the whole timetable follows. Below, a loader really
# runs, once for each setting, with items that sleep, and a batch of one item; under it
# stands what the rules predict. Hatched is the time in which the trainer waits. The
# article's limit is marked: a loader that lets the trainer wait for more than 20 % of
# its time is to be tuned first. (Where workers are spawned, a new setting takes seconds.)
#
# - Add workers until waiting is within the limit. Which two numbers decide how many it
#   takes?
# - Set the workers to 0. Why does the trainer wait, although a step takes as long as
#   before?
# - With items of 8 ms: what does `prefetch_factor` change?
# - With *each 5th 50 ms*, 2 workers and a step of 10 ms: and now?

# %% tags=["volatile", "nbval-ignore-output"]
lk.explore("4.2-timeline")

# %% [markdown]
# Reading goes at `item / num_workers`: where that is longer than the step, the trainer
# waits for the difference, and no prefetching helps. **`prefetch_factor` helps where
# times are uneven**, and costs memory: so many batches lie ready. The rules leave out
# the start of the workers and the way of each batch to the trainer; the measured
# picture has both.
#
# Rule 4 can be switched off. Item 0 is slow here, and there are two workers:

# %%
# %%module lab_slow_first
import time

def first_is_slow(n):
    time.sleep(0.0 if n else 0.5)
    return n

# %% [markdown]
# The order in which four items arrive:

# %%
for in_order in (True, False):
    loader = DataLoader(Items(first_is_slow, 4), batch_size=None,
                        num_workers=2, in_order=in_order,
                        multiprocessing_context=start_method)
    print(f"in_order={in_order!s:5}", list(loader))

# %% [markdown]
# *In the field.* People [met rule 4](https://github.com/pytorch/pytorch/issues/78798)
# with files on remote systems; since version 2.6 there is
# [`in_order`](https://github.com/pytorch/pytorch/pull/141833). The price: the order
# depends on the clock, and a run cannot be repeated. For your own loaders
# `lk.watch_loader(loader, step).plot()` draws the measured half of the picture.

# %% [markdown]
# ### Exercise · choose num_workers from a sweep · 8 minutes, medium
#
# A sweep gave `rates`: for each number of workers that was tried, the batches per
# second that *one* training process reads while all `processes` of them run, each with
# so many workers. The step computes `needed` batches per second at most; reading faster
# is worth nothing. Each worker needs `worker_gb`, and `free_gb` are free for the
# workers of all the processes together. Rates that differ by no more than the share
# `noise` are equally good.
#
# **Write the choice.** Return the smallest number in `rates` that fits into the memory
# and is as good as the best that fits. 0 is always in `rates`, and always fits.

# %%
def choose_workers(rates, needed, processes, worker_gb, free_gb, noise=0.05):
    return lk.TODO

choose_workers = lk.check("4.2-workers", choose_workers)

# %% [markdown]
# Stuck? `lk.hint("4.2-workers")` gives one hint at a time, `lk.solution("4.2-workers")` an
# answer and why it is one. On this page's sweep, for a step that takes no time, a noise of
# a tenth, and workers of 0.2 GB:

# %% tags=["volatile", "nbval-ignore-output"]
for kind, rates in speed.items():
    n = choose_workers(rates, needed=float("inf"), processes=1,
                       worker_gb=0.2, free_gb=4, noise=0.1)
    print(f"{kind:8} {n}")

# %% [markdown]
# ### Exercise · random numbers for every worker · 10 minutes, medium
#
# Deliver `seed_worker(worker_id)`, a `worker_init_fn` for the dataset below. It has two
# generators: `dataset.rng` of NumPy's, and `dataset.transform.rng` of Python's.
#
# - No two workers, and no two epochs, draw the same numbers, from either.
# - The items of one worker differ.
# - The same `torch.manual_seed` gives the same numbers again.
#
# The transform first:

# %%
# %%module lab_jitter
import random

class Jitter:
    def __init__(self):
        self.rng = random.Random(0)

    def __call__(self, x):
        return x, self.rng.random()

# %% [markdown]
# And the dataset:

# %%
# %%module lab_dataset
import numpy as np
from lab_jitter import Jitter
from torch.utils.data import Dataset

class Augmented(Dataset):
    def __init__(self):
        self.rng, self.transform = np.random.default_rng(0), Jitter()

    def __len__(self):
        return 8

    def __getitem__(self, i):
        return self.transform(self.rng.random())

# %% [markdown]
# Your answer stands in a module, so that it reaches spawned workers too:

# %%
# %%module lab_answer
import labkit as lk

def seed_worker(worker_id):
    return lk.TODO

# %% [markdown]
# After each change run both cells, the one above and this:

# %%
seed_worker = lk.check("4.2-worker-init", seed_worker)

# %% [markdown]
# Stuck? `lk.hint("4.2-worker-init")` gives one hint at a time,
# `lk.solution("4.2-worker-init")` an answer and why it is one. With real workers, of 16
# draws so many are different:

# %%
loader = DataLoader(Augmented(), batch_size=None, num_workers=2,
                    worker_init_fn=seed_worker,
                    multiprocessing_context=start_method)
numpy, python = zip(*(item for epoch in range(2) for item in loader))
print("dataset.rng:", len(set(numpy)), " transform.rng:", len(set(python)))

# %% [markdown]
# ### What the article says, and what this page measured
#
# What the roles of a loader take, and a class inside a function, by both ways to start a
# worker (the refusals come before anything is started):

# %%
def starts(method, dataset, **options):
    loader = DataLoader(dataset, num_workers=1, **options,
                        multiprocessing_context=method)
    try:
        return len(list(loader)) > 0
    except (AttributeError, pickle.PicklingError, TypeError):
        return False

def in_a_function():
    class Inside(Images):
        pass
    return Inside(some[:2], scale)

# %% [markdown]
# A lambda in each role, and the nested class:

# %%
plain = Images(some[:2], scale)
roles = dict(
    transform=starts(other, Images(some[:2], lambda x: x)),
    collate_fn=starts(other, plain, collate_fn=lambda x: x),
    worker_init_fn=starts(other, plain, worker_init_fn=lambda i: None))
forks = start_method == "fork"
by_fork = starts("fork", in_a_function()) if forks else None
elsewhere = starts(other, in_a_function())
print("a lambda arrives: ", roles)
print("a class in a function arrives:", elsewhere, "· by fork:", by_fork)

# %% [markdown]
# The rest has been measured above:

# %% tags=["nbval-ignore-output"]
main_only, both = who["0"][0], who["2"][0]
tables = [file_names, np.array(file_names)]
grown = [growth(rows) if tells else None for rows in tables]
refuses = [role for role, accepted in roles.items() if not accepted]
kept_here = [name for name, can in sent.items() if not can]
says_no = all("num_workers" in said for said in refused.values())

# %% [markdown]
# The article's statements of section 4.2, one a line:

# %% tags=["volatile", "nbval-ignore-output"]
lk.verdicts(
    C4_2a=dict(none=", ".join(set(main_only.values())), refused=says_no,
               two=", ".join(sorted(both.values())),
               apart=os.getpid() not in both),
    C4_2b=c42b, C4_2c=c42c, C4_2d=c42d,
    C4_2e=dict(list=grown[0], fork_array=grown[1], nbytes=array.nbytes,
               **parcel, shared=shared),
    C4_2f=dict(refused=kept_here, roles=refuses),
    C4_2g=dict(fork=by_fork, elsewhere=elsewhere, method=other),
    C4_2h=dict(sent=sent["a class in a cell"], arrives=not verdict,
               module=scaled_fixed() == 4))

# %% [markdown]
# **What you can do now**
# - Say what a worker costs: its start in each epoch, and a way through a queue for each
#   batch. It pays where items wait, or compute while cores are free.
# - Seed what a dataset holds from `get_worker_info().seed`, and seed a run once.
# - Send a worker only what stands in a module; make generators and open files in it.
# - Deal a stream out by `info.id`, and put into shared memory what workers that live on
#   shall hear of.
# - Keep large tables as tensors or arrays, not as lists of objects.
#
# **Keep this**
#
# | you want | write |
# |---|---|
# | small data from memory | `num_workers=0` |
# | a number of workers | the cores that you may use, divided by the training processes; then measure |
# | workers that are started once | `persistent_workers=True` |
# | randomness of its own in each worker | `worker_init_fn`, with `get_worker_info().seed` |
# | code that runs on every system | datasets and functions in a module; try `multiprocessing_context="spawn"` |
# | each line of a stream once | `islice(lines, info.id, None, info.num_workers) if info else lines` |
# | to tell running workers something | a tensor with `share_memory_()` |
# | a million file names | one `np.array`, or a tensor |
# | to see what your loader does | `lk.watch_loader(loader)` |
#
# *You can stop here. The next part starts with names of different lengths.*

# %% [markdown]
# ## 4.3 Samples of unequal length
#
# **After this part you can**
# - write a collate that keeps the dtype of your samples, pads with a value that nothing else
#   has, and returns the mask,
# - find out whether a sample's result depends on its neighbours, and mend each of the four
#   places where padding gets into it,
# - say what attention gives for a row without anything to look at, and for its gradients,
# - hand a mask to any of PyTorch's attentions the right way round,
# - say what padding costs with your lengths, and how to order the samples to pay less.
#
# *One sitting, about 40 minutes. Needs `nn.Embedding` and the training loop. Any computer
# will do: everything runs in the main process.*

# %% [markdown]
# ### ★ Four names become one batch
#
# The data are names of countries and regions, each in one of sixteen languages: "Suède",
# "Švédsko" and "Zweden" are Sweden. Every letter gets a number, in the order of Unicode.

# %%
import csv
from torch.utils.data import DataLoader

with lk.data_path("names.csv").open(encoding="utf-8", newline="") as file:
    table = list(csv.DictReader(file))
letters = sorted({letter for row in table for letter in row["name"]})
number = {letter: n for n, letter in enumerate(letters)}
languages = sorted({row["language"] for row in table})
print(f"{len(table):,} names, {len(letters)} letters,",
      f"{len(languages)} languages")
print("number 0 is", repr(letters[0]), "and number 80 is", repr(letters[80]))

# %% [markdown]
# A sample is a tensor of numbers and the number of its language. They are shuffled once:

# %%
def spell(text):
    return torch.tensor([number[letter] for letter in text])

order = torch.randperm(len(table), generator=torch.Generator().manual_seed(0))
names = [(spell(table[n]["name"]), languages.index(table[n]["language"]))
         for n in order.tolist()]
print([len(name) for name, _ in names[:4]], "letters;", names[0][0].dtype)

# %% [markdown]
# The default collate stacks samples, so it needs equal shapes. This one fills a rectangle of
# zeros; the model begins with a vector for each number.

# %%
def first_collate(batch):
    parts, labels = zip(*batch)
    lengths = torch.tensor([len(part) for part in parts])
    ids = torch.zeros(len(parts), int(lengths.max()))
    for row, part in zip(ids, parts):
        row[:len(part)] = part
    return ids, lengths, torch.tensor(labels)

def first_batch():
    loader = DataLoader(names, batch_size=4, collate_fn=first_collate)
    ids, lengths, labels = next(iter(loader))
    return nn.Embedding(len(letters), 8)(ids).shape

lk.predict("4.3.1")

# %% [markdown]
# Run it:

# %%
lk.trap("4.3.1", first_batch)

# %% [markdown]
# `torch.zeros` makes float32, and **what is written into a tensor takes on the tensor's
# dtype**, without a word. That the embedding refuses is luck. What the same assignment does
# to an integer above 2²⁴, and to a float64 feature:

# %%
row = torch.zeros(2)
row[0] = torch.tensor(16777217)
row[1] = torch.tensor(0.1, dtype=torch.float64)
print("16777217 became", int(row[0]))
print("0.1 is off by  ", f"{abs(row[1].item() - 0.1):.1e}")

# %% [markdown]
# **Fix.** `pad_sequence` takes the dtype from the samples. It also takes the value to pad
# with. Zero is the usual one, and here 0 is the space, so the pads get a number of their
# own: the first that no letter has.

# %%
from torch.nn.utils.rnn import pad_sequence

PAD = len(letters)

def collate(batch):
    parts, labels = zip(*batch)
    lengths = torch.tensor([len(part) for part in parts])
    ids = pad_sequence(list(parts), batch_first=True, padding_value=PAD)
    return ids, lengths, torch.tensor(labels)

def first_batch_fixed():
    loader = DataLoader(names, batch_size=4, collate_fn=collate)
    ids, lengths, labels = next(iter(loader))
    return nn.Embedding(PAD + 1, 8)(ids).shape

lk.fix("4.3.1", first_batch_fixed)

# %% [markdown]
# **Transfer.** The quick cure for the error is to write `.long()` behind the batch of
# floats. A shop has 20 million articles. How many of the last thousand numbers survive?

# %%
articles = torch.arange(20_000_000 - 1000, 20_000_000)
floats = torch.zeros(1000)
floats[:] = articles
print("survive:", (floats.long() == articles).sum().item())

# %% [markdown]
# Every second one; the others became a neighbour, in silence.
#
# *In the field.* [A loader of cell data](https://github.com/chanzuckerberg/cellxgene-census/issues/554)
# returned wrong ids beyond 2²⁴, since they passed through float32 on their way to an integer;
# in [a tagger of names](https://github.com/dayyass/pytorch-ner/pull/44) the collator got its
# `dtype=long` after an embedding had refused its batch. No probe is needed: print the
# `dtype` of one batch.

# %% [markdown]
# ### ★ The same name, in other company
#
# A small model tells the language of a name: a vector a letter, their mean, a linear layer.
# How the mean is taken is left open.

# %%
class Reader(nn.Module):
    def __init__(self, pool):
        super().__init__()
        self.letters = nn.Embedding(PAD + 1, 32)
        self.pool, self.head = pool, nn.Linear(32, len(languages))

    def forward(self, ids, lengths):
        return self.head(self.pool(self.letters(ids), lengths))

def batches(samples, size, shuffle=False):
    return DataLoader(samples, size, shuffle, collate_fn=collate)

# %% [markdown]
# It learns from 2,000 names in batches of 64. `read` tells the languages of the 541 others,
# in batches of any size. There is neither Dropout nor BatchNorm in it.

# %%
def fit(pool):
    torch.manual_seed(0)
    model = Reader(pool)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.03)
    for _ in range(3):
        for ids, lengths, labels in batches(names[:2000], 64, shuffle=True):
            optimizer.zero_grad()
            F.cross_entropy(model(ids, lengths), labels).backward()
            optimizer.step()
    return model

# %% [markdown]
# Reading needs no gradients:

# %%
@torch.no_grad()
def read(model, size):
    loader = batches(names[2000:], size)
    return torch.cat([model(*batch[:2]).argmax(1) for batch in loader])

def mean(vectors, lengths):
    return vectors.mean(1)

def read_twice():
    model = fit(mean)
    other = read(model, 1) != read(model, 64)
    return round(other.float().mean().item(), 1)

lk.predict("4.3.2")

# %% [markdown]
# Run it:

# %%
lk.trap("4.3.2", read_twice)

# %% [markdown]
# A pad has a number, so it has a vector, and `mean(1)` counts it. How many pads a name gets
# depends on the longest name beside it. "Румъния", Romania in Bulgarian, with more and more
# pads:

# %% tags=["volatile", "nbval-ignore-output"]
model = fit(mean)
word = spell("Румъния")
for extra in (0, 5, 15, 40):
    padded = F.pad(word, (0, extra), value=PAD)[None]
    guess = languages[model(padded, None).argmax().item()]
    share = len(word) / padded.shape[1]
    print(f"{extra:2} pads: {guess}, {share:.0%} of the mean are letters")

# %% [markdown]
# The seven letters are all there, and count for less and less.
#
# **Fix.** The lengths say which places are letters. A sum over these alone, divided by their
# number, is the same whatever stands behind them.

# %%
def masked_mean(vectors, lengths):
    mask = torch.arange(vectors.shape[1]) < lengths[:, None]
    return (vectors * mask[..., None]).sum(1) / lengths[:, None].clamp(min=1)

def read_twice_fixed():
    model = fit(masked_mean)
    other = read(model, 1) != read(model, 64)
    return round(other.float().mean().item(), 1)

lk.fix("4.3.2", read_twice_fixed)

# %% [markdown]
# The model is not only steady now, it is better. The share of the 541 that is right, by
# the size of the batch:

# %% tags=["volatile", "nbval-ignore-output"]
truth = torch.tensor([label for _, label in names[2000:]])
right = {}
for pool in (mean, masked_mean):
    model = fit(pool)
    shares = [(read(model, size) == truth).float().mean().item()
              for size in (1, 64, 541)]
    right[pool.__name__] = [round(share, 2) for share in shares]
    print(f"{pool.__name__:11} batches of 1, 64, 541:", right[pool.__name__])

# %% [markdown]
# A pad whose vector is zero is often offered as the cure: `padding_idx=PAD`. How long is the
# mean of the seven letters then, with 14 pads behind them, against none?

# %%
vectors = nn.Embedding(PAD + 1, 32, padding_idx=PAD)
bare, long = (vectors(F.pad(word, (0, extra), value=PAD)[None]).mean(1)
              for extra in (0, 14))
print(f"{(long.norm() / bare.norm()).item():.2f} times as long")

# %% [markdown]
# A third: zeros add nothing to the sum, and it is still divided by 21. **`padding_idx` is
# no mask.**
#
# **Transfer.** The mean is one way in. Which of these let pads in too: BatchNorm, the last
# state of a recurrent network, the loss? First BatchNorm. Every letter is a 5 here and every
# pad a 0; what mean does it keep for evaluation?

# %%
ids, lengths, _ = collate(names[:64])
mask = torch.arange(ids.shape[1]) < lengths[:, None]
values = torch.where(mask, 5.0, 0.0)

def running_mean(x):
    norm = nn.BatchNorm1d(1, momentum=1.0)
    norm(x)
    return norm.running_mean.item()

norms = running_mean(values[:, None]), running_mean(values[mask][:, None])
print("all places: {:.2f}, letters only: {:.2f}".format(*norms))

# %% [markdown]
# `values[mask]` keeps the letters of all names and no pad, and BatchNorm takes one letter a
# row. What comes out has lost its places; an assignment by the same mask gives them back:

# %%
out = torch.zeros_like(values)
out[mask] = nn.BatchNorm1d(1)(values[mask][:, None])[:, 0]
print("letters:", values[mask].shape, " back in their places:", out.shape)

# %% [markdown]
# Now a GRU: how far is a name's last state from the one that it has when it is read
# alone, at most?

# %%
from torch.nn.utils.rnn import pack_padded_sequence

torch.manual_seed(0)
gru, embed = nn.GRU(32, 32, batch_first=True), nn.Embedding(PAD + 1, 32)
with torch.no_grad():
    alone = [gru(embed(name[None]))[1][0, 0] for name, _ in names[:64]]
    packed = pack_padded_sequence(
        embed(ids), lengths, batch_first=True, enforce_sorted=False)
    last = {"padded": gru(embed(ids))[1][0], "packed": gru(packed)[1][0]}
apart = {k: (v - torch.stack(alone)).abs().max().item()
         for k, v in last.items()}
print({name: f"{far:.4f}" for name, far in apart.items()})

# %% [markdown]
# Packed, each name stops at its last letter. Last the loss: a "model" that knows nothing but
# how often each number occurs in the batch, pads included.

# %%
occurs = torch.bincount(ids.flatten(), minlength=PAD + 1)
logits = (occurs + 1).log().expand(ids.numel(), -1)
losses = [F.cross_entropy(logits, ids.flatten(), ignore_index=ignored).item()
          for ignored in (-100, PAD)]
print("all places: {:.1f}, letters only: {:.1f}".format(*losses))

# %% [markdown]
# All three let them in, and the loss flatters: two thirds of its targets are pads, which are
# easy. `ignore_index=PAD` leaves them out, of the sum and of the number that it is divided
# by.
#
# *In the field.* [Means over the outputs of a
# Transformer](https://github.com/huggingface/transformers/issues/17463) depended on the size
# of the batch; [a search for theorems](https://github.com/lean-dojo/ReProver/issues/34) gave
# another ranking for each. The test takes two lines: one sample alone, the same sample beside
# a long one, and compare.

# %% [markdown]
# ### Play with the order
#
# Padding costs time as well: pads are computed like letters. These are the real lengths of
# the names. Begin with batches of 32 in random order, then of 4 and of 256. Then take buckets
# of names of about one length, and make them narrower: what do you gain, and what does the
# picture at the lower right say about the price? Last, batches of 256, sorted: do they still
# waste less than buckets?

# %%
lk.explore("4.3-padding")

# %% [markdown]
# Sorted names come in the same batches in every epoch, the short ones first: little is left
# of chance. Buckets are shuffled inside, and their batches among each other. Each may end
# with a batch that is not full, so narrow buckets leave many of these. In batches of 256
# the last of the sorted ones holds all the long names, of very different lengths: there
# narrow buckets waste less than sorting.

# %% [markdown]
# ### A name of which nothing is left
#
# A model for Latin letters gets the names with all others dropped. "Є" is the first Cyrillic
# letter; of "Ангуила" nothing is left. Such names take no part in the loss.

# %%
latin = [(name[name < number["Є"]], label) for name, label in names]
latin_ids, latin_lengths, _ = collate(latin[:16])
hidden = torch.arange(latin_ids.shape[1]) >= latin_lengths[:, None]
print("empty names:", sum(len(name) == 0 for name, _ in latin))
print("lengths here:", latin_lengths.tolist())

# %% [markdown]
# Attention looks at all letters of a name, and is told which places are pads:

# %%
def attention_step(hidden):
    torch.manual_seed(0)
    embed = nn.Embedding(PAD + 1, 16)
    attend = nn.MultiheadAttention(16, 2, batch_first=True)
    x = embed(latin_ids)
    out, _ = attend(x, x, x, key_padding_mask=hidden)
    loss = out[latin_lengths > 0].square().mean()
    loss.backward()
    grads = [p.grad for p in (*attend.parameters(), embed.weight)]
    return {"loss is finite": loss.isfinite().item(), "gradients": len(grads),
            "with NaN": sum(g.isnan().any().item() for g in grads)}

# %% [markdown]
# One step with the mask of the pads:

# %%
def step():
    return attention_step(hidden)

lk.predict("4.3.3")

# %% [markdown]
# In the second version no row is masked entirely:

# %%
def step_fixed():
    seen = hidden.clone()
    seen[:, 0] = False
    return attention_step(seen)

lk.trap("4.3.3", step, step_fixed)

# %% [markdown]
# A softmax over nothing but −∞ is 0 ÷ 0. Leaving the row out of the loss makes its gradient
# 0, and 0 times NaN is NaN again on the way back, in weights that all rows share. Whether
# you get it depends on the call, and on the mode:

# %%
def empty_row(train, need_weights):
    torch.manual_seed(0)
    attend = nn.MultiheadAttention(16, 2, batch_first=True).train(train)
    x, hidden = torch.randn(1, 3, 16), torch.ones(1, 3, dtype=torch.bool)
    with torch.set_grad_enabled(train):
        out, _ = attend(x, x, x, hidden, need_weights=need_weights)
    return "NaN" if out.isnan().any() else "finite"

rows = {weights: [empty_row(train, weights) for train in (True, False)]
        for weights in (True, False)}
for weights, (training, evaluation) in rows.items():
    print(f"need_weights={weights!s:5} in training: {training:6}",
          f" in evaluation: {evaluation}")

# %% [markdown]
# So `need_weights=False` trains well and may still give NaN in evaluation, under `no_grad`,
# where another kernel is taken. (`masked_mean` would divide 0 by 0 as well, but for its
# `clamp`.) Better is a name that is never empty: give letters that you
# do not know a number of their own instead of dropping them, or drop the sample in the
# collate.
#
# *In the field.* [Open since 2020](https://github.com/pytorch/pytorch/issues/41508). A common
# way to get there is two masks, one for pads and one for time, that together leave a row
# nothing. That evaluation differs [is reported
# too](https://github.com/pytorch/pytorch/pull/190486).

# %% [markdown]
# ### The faster call
#
# `nn.MultiheadAttention` is replaced by `scaled_dot_product_attention`. Which places does
# the result for "Suède" depend on? `looked_at` counts those that get a gradient.

# %%
texts = ["Suède", "Zweden", "Švédsko", "Saint Kitts ve Nevis"]
four, sizes, _ = collate([(spell(text), 0) for text in texts])
pads = torch.arange(four.shape[1]) >= sizes[:, None]
real, sdpa = ~pads, F.scaled_dot_product_attention

def looked_at(attend):
    torch.manual_seed(0)
    x = torch.randn(*four.shape, 16, requires_grad=True)
    attend(torch.ones(len(four), 1, 16), x)[0].sum().backward()
    seen = x.grad[0].abs().sum(-1) > 0
    return {"letters": seen[real[0]].sum().item(),
            "pads": seen[pads[0]].sum().item()}

# %% [markdown]
# With the module it was `module(query, x, x, key_padding_mask=pads)`. The mask goes along:

# %%
def attend(query, x):
    return sdpa(query, x, x, attn_mask=pads[:, None])

lk.predict("4.3.4")

# %% [markdown]
# The second version turns the mask round:

# %%
def attend_fixed(query, x):
    return sdpa(query, x, x, attn_mask=~pads[:, None])

lk.trap("4.3.4", lambda: looked_at(attend), lambda: looked_at(attend_fixed))

# %% [markdown]
# In the modules a True in a mask means *ignored*; in `scaled_dot_product_attention` it means
# *takes part*. A float mask is added to the scores, in both. To try masks on both:

# %%
module = nn.MultiheadAttention(16, 2, batch_first=True)

def by_module(m):
    return looked_at(lambda q, x: module(q, x, x, key_padding_mask=m)[0])

def by_function(m):
    return looked_at(lambda q, x: sdpa(q, x, x, attn_mask=m[:, None]))

# %% [markdown]
# Before you run this: which of the seven give "Suède" its five letters, and no pad?

# %%
added = real.float().log()  # log 1 is 0, log 0 is -inf
quiz = {"module, pads": by_module(pads), "module, ~pads": by_module(real),
        "module, log of ~pads": by_module(added),
        "function, pads": by_function(pads),
        "function, ~pads": by_function(real),
        "function, ~pads as float": by_function(real.float()),
        "function, log of ~pads": by_function(added)}
for name, seen in quiz.items():
    print(f"{name:24} {seen}")

# %% [markdown]
# Four are right. Turned into floats, a mask of 1 and 0 is added as it is: the scores of the
# letters grow by 1, and nothing is hidden. The tokenizers of Hugging Face return an
# `attention_mask` of int64 with 1 for a token: the modules take `attention_mask == 0`, the
# function `attention_mask.bool()`. In a [notebook of a
# well-known book](https://github.com/rasbt/LLMs-from-scratch/issues/1061) the mask for the
# function was the wrong way round, and tokens saw the future, until a reader noticed.

# %% [markdown]
# ### Exercise · a collate with dtype, mask and pad value · 10 minutes, medium
#
# `batch` is a list of pairs: a one-dimensional tensor, and a label, a Python number.
# **Return three tensors: the padded samples, a mask, the labels.**
#
# - Samples in rows, in the order in which they come, each from the left; as wide as the
#   longest; dtype of the samples; `pad` in all other places.
# - The mask is boolean, of the same shape, True where a value of a sample stands, also where
#   this value equals `pad`.
# - Labels in one dimension, whole numbers as int64, floats as float32.

# %%
def padded_batch(batch, pad):
    return lk.TODO

padded_batch = lk.check("4.3-collate", padded_batch)

# %% [markdown]
# Stuck? `lk.hint("4.3-collate")` gives one hint at a time, `lk.solution("4.3-collate")` an
# answer and why it is one. For a loader, `functools.partial` fixes the second argument:

# %%
from functools import partial

loader = DataLoader(names, 4, collate_fn=partial(padded_batch, pad=PAD))
x, keep, y = next(iter(loader))
print(tuple(x.shape), x.dtype, keep.sum(1).tolist(), y.tolist())

# %% [markdown]
# ### What the article says, and what this page measured
#
# What the default collate makes of unequal samples, and of lists:

# %%
from torch.utils.data import default_collate

def outcome(run, *args):
    try:
        return run(*args)
    except Exception as error:
        return f"{type(error).__name__}: {error}"

a, b = torch.arange(3), torch.arange(2)
said = outcome(default_collate, [a, b])
turned = [t.tolist() for t in default_collate([[1, 2, 3], [4, 5, 6]])]
print(said, "two lists of three:", turned, sep="\n")

# %% [markdown]
# Two lists of three numbers become three tensors of two: lists are collated place by place.
# The article's sample does what `first_collate` does. What that makes of other samples than
# one-dimensional tensors, and of labels that are vectors:

# %%
kinds = {"tensors": [(a, 0), (b, 1)], "lists": [([1, 2], 0), ([3], 1)],
         "arrays": [(a.numpy(), 0), (b.numpy(), 1)],
         "features": [(torch.ones(3, 4), 0), (torch.ones(2, 4), 1)],
         "vector labels": [(a, torch.ones(2)), (b, torch.ones(2))]}
results = {}
for kind, batch in kinds.items():
    made = outcome(first_collate, batch)
    results[kind] = made.split(":")[0] if isinstance(made, str) else "runs"
    print(f"{kind:14} {results[kind]}")

# %% [markdown]
# Zero as the pad: how many names have a space, whose number is 0, so that a mask `ids != 0`
# hides it; and what `padding_idx=0` does to the vector of the space.

# %%
spaces = sum((name == 0).any().item() for name, _ in names)
embed = nn.Embedding(len(letters), 8, padding_idx=0)
embed(spell("Saint Kitts ve Nevis")).sum().backward()
learns = {letter: embed.weight.grad[number[letter]].any().item()
          for letter in " K"}
print(f"{spaces:,} of {len(names):,} names have a space; learns: {learns}")

# %% [markdown]
# That happens: for [a model in which the exclamation mark is number
# 0](https://github.com/OpenGVLab/InternVL/issues/908), a collate hid all of them.
# Last, whether a pad's vector gets a gradient, by the kind of mean:

# %%
def pad_learns(pool):
    model, (ids, lengths, labels) = Reader(pool), collate(names[:64])
    F.cross_entropy(model(ids, lengths), labels).backward()
    return model.letters.weight.grad[PAD].any().item()

print({pool.__name__: pad_learns(pool) for pool in (mean, masked_mean)})
ids, lengths, _ = collate(names[:64])
big = first_collate([(torch.tensor([16777217]), 0)])[0]
as_float = first_collate([(torch.tensor([0.1]).double(), 0)])[0]

# %% [markdown]
# The values for the table, by row:

# %%
stacked = dict(batch=tuple(ids.shape), dtype=str(ids.dtype)[6:],
               longest=lengths.max().item())
sample = dict(dtype=str(big.dtype)[6:], big=int(big[0, 0]),
              double=str(as_float.dtype)[6:],
              error=outcome(nn.Embedding(9, 1), big))
leaks = dict(right, spaces=spaces, learns=learns[" "], norms=norms,
             losses=losses, **apart)
learned = [pad_learns(pool) for pool in (mean, masked_mean)]
step_nan = step()["with NaN"]

# %% [markdown]
# The statements of section 4.3:

# %% tags=["volatile", "nbval-ignore-output"]
lk.verdicts(
    C4_3a=dict(said=said, turned=turned),
    C4_3b=stacked,
    C4_3c=sample,
    C4_3d=results,
    C4_3e=leaks,
    C4_3f=dict(pad_learns=learned, step=step_nan, rows=rows, quiz=quiz),
)

# %% [markdown]
# The article's usual advice holds with a condition: zero is a good pad only where nothing
# else is zero. A mask from lengths, not from values, makes the pad's value harmless.
#
# **What you can do now**
# - Write a collate that keeps dtypes, pads with a number of its own, and returns a mask.
# - Compare a sample alone with the same sample in company, and mend the mean, BatchNorm, the
#   last state and the loss.
# - Expect NaN from a row that is masked entirely, also where its loss is left out, and keep
#   such rows out of the batch.
# - Say for each call whether True hides a place or lets it take part.
# - Choose between shuffled, bucketed and sorted batches by the share that is padding.
#
# **Keep this**
#
# | you want | write |
# |---|---|
# | a padded batch | `pad_sequence(parts, batch_first=True, padding_value=PAD)` |
# | a mask, True for what is real | `torch.arange(ids.shape[1]) < lengths[:, None]` |
# | a mean | `(x * mask[..., None]).sum(1) / lengths[:, None].clamp(min=1)` |
# | BatchNorm | `out = torch.zeros_like(x); out[mask] = norm(x[mask])`: one row for each real place, and back |
# | the last state of an RNN | `pack_padded_sequence(x, lengths.cpu(), batch_first=True, enforce_sorted=False)` |
# | the loss | `F.cross_entropy(logits, targets, ignore_index=PAD)` |
# | `nn.MultiheadAttention`, `nn.Transformer…` | `key_padding_mask=~mask`: True hides |
# | `F.scaled_dot_product_attention` | `attn_mask=mask[:, None, None, :]` for heads: True takes part |
# | to be sure | the same sample alone and beside a long one gives the same |
#
# ### The chapter in five lines
#
# - Keep what is the same at every access, before the first random step, and hand out what
#   nobody can write into (4.1).
# - A worker is a process with a copy of the dataset: what it fills, counts or draws stays
#   there, and what it needs must be importable by name (4.1, 4.2).
# - Seed what a dataset holds from `get_worker_info().seed`, and share a stream out (4.2).
# - Workers pay where an item takes long; how many, a sweep says and no formula (4.2).
# - Pad with a value that nothing else has, make the mask from the lengths, and test that a
#   sample gives the same alone and in company (4.3).
#
# ### Where to go next
#
# Whether your own data arrive as they should, this chapter's probe tells:
# `lk.watch_loader(loader, step)` measures how long training waits for the loader, and finds
# samples that come twice or never, workers that draw the same random numbers, and what cannot
# be sent to a worker.
#
# *You can stop here: this is the end of chapter 04. The next page is [chapter 05, the
# training loop](05_training.ipynb): modes, schedules, clipping and mixed precision.*
