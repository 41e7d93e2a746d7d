# %% [markdown]
# # 2 · Tensors
#
# What a tensor is in memory, who shares that memory, and what happens to it on the way
# through broadcasting, in-place edits and devices. Three parts, each one sitting:
# 2.1 creation and layout, 2.2 broadcasting and in-place edits, 2.3 devices. A ★ marks
# the traps of the core route.
#
# [Open this page in Colab](https://colab.research.google.com/github/pytorch-pitfall-lab/pytorch-pitfall-lab/blob/learn/notebooks/02_tensors.ipynb)
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

session = lk.setup(2, solve=solve, version=made_with)

# %% [markdown]
# ## 2.1 Creation and layout
#
# **After this part you can**
# - say, before running, whether a tensor shares memory with the array it came from,
# - make a batch from arrays with one copy, in the dtype that the model needs,
# - predict whether `view` works, and say which two axes are to blame where it does not,
# - choose between `view`, `reshape` and `transpose`, also where you write to the result.
#
# *One sitting, about 40 minutes. You need NumPy's indexing; any computer will do.*

# %% [markdown]
# ### ★ The labels are tidied up after the hand-over
#
# The labels lie in a NumPy array, and the targets are made from it. Later, long after
# the targets were handed over, another part of the program changes the array.

# %%
def make_targets():
    labels = np.array([1, 2, 3])
    targets = torch.from_numpy(labels)
    labels[0] = 100
    return targets

lk.predict("2.1.1")

# %% [markdown]
# Run it, and see whether your prediction holds:

# %%
lk.trap("2.1.1", make_targets)

# %% [markdown]
# `from_numpy` makes a tensor that describes the array's own memory: nothing is copied,
# and a write through either name is seen through both. The addresses show it:

# %%
a = np.zeros(3)
t = torch.from_numpy(a)
copy = torch.tensor(a)
print("from_numpy, same address:  ", t.data_ptr() == a.ctypes.data)
print("torch.tensor, same address:", copy.data_ptr() == a.ctypes.data)
a[0], t[1] = 100, 7
print("array", a, "and tensor", t.tolist())

# %% [markdown]
# In training nothing fails: the targets are simply wrong from then on.
#
# **Fix.** `torch.tensor` always copies, so a later write cannot reach the targets. Copy
# once, where data is handed over.

# %%
def make_targets_fixed():
    labels = np.array([1, 2, 3])
    targets = torch.tensor(labels)
    labels[0] = 100
    return targets

lk.fix("2.1.1", make_targets_fixed)

# %% [markdown]
# **Not every assignment is a write.** `a = a + 1` makes a new array and gives it the old
# name. The tensor still uses the memory of the first array:

# %%
a = a + 1
print("array", a, "and tensor", t.tolist())

# %% [markdown]
# **Transfer.** `torch.as_tensor` promises to share where it can. `b` holds float64, and
# float32 is asked for. Does `shared` see the 100? Does `converted`?

# %%
b = np.zeros(3)
shared = torch.as_tensor(b)
converted = torch.as_tensor(b, dtype=torch.float32)
b[0] = 100
print("shared:   ", shared.tolist())
print("converted:", converted.tolist())

# %% [markdown]
# Asking for another dtype copies, and nothing says so. The function's name does not tell
# whether memory is shared. Equal `data_ptr`s prove it; a slice shares too, at another
# address, and `np.shares_memory(b, shared.numpy())` finds that as well.
#
# *In the field.* A widely used course showed `array = array + 1` as proof that the two
# are independent ([report](https://github.com/mrdbourke/pytorch-deep-learning/issues/926)),
# and a transform that worked in place normalised the stored samples again in every epoch
# ([report](https://github.com/pytorch/vision/issues/680)). In both, comparing `data_ptr`
# shows the shared memory.

# %% [markdown]
# ### Features from NumPy go into the first layer
#
# The features were computed with NumPy, in its default precision. The layer is as
# PyTorch makes it.

# %%
def score():
    features = torch.from_numpy(np.random.rand(4, 3))
    return nn.Linear(3, 2)(features).dtype

lk.predict("2.1.2")

# %% [markdown]
# The second version says which dtype the model works in:

# %%
def score_fixed():
    features = torch.from_numpy(np.random.rand(4, 3)).float()
    return nn.Linear(3, 2)(features).dtype

lk.trap("2.1.2", score, score_fixed)

# %% [markdown]
# An array keeps its dtype on the way in, and NumPy's decimals are float64; from Python's
# decimals PyTorch makes float32. Class targets, one number each, have a rule of their own:
# use int64, from 0 to the number of classes less one (3 here); −100 means "ignore". `uint8`
# is taken for flat batches only, and floats only as probabilities, in the logits' shape.

# %%
logits = torch.zeros(3, 4)
classes = [0, 1, 2]
for labels in np.int32(classes), np.float32(classes), np.int64([0, 1, 4]):
    try:
        F.cross_entropy(logits, torch.from_numpy(labels))
    except (RuntimeError, IndexError) as error:
        print(f"{labels.dtype} {labels}: {error}")

# %% [markdown]
# ### A thousand small arrays become one batch
#
# Each sample arrives as an array. The batch is made in one call.

# %%
import warnings

arrays = list(np.random.rand(1000, 64).astype(np.float32))
# what PyTorch has to say about this is shown after the result
warnings.filterwarnings("ignore", message="Creating a tensor from a list")

def make_batch():
    return torch.tensor(arrays)

lk.predict("2.1.3")

# %% [markdown]
# The second version lets NumPy stack first and shares the result:

# %% tags=["volatile", "nbval-ignore-output"]
def make_batch_fixed():
    return torch.from_numpy(np.stack(arrays))

lk.trap("2.1.3", make_batch, make_batch_fixed)

# %% [markdown]
# What costs is the way through Python, value by value. A nested list of numbers, from
# `.tolist()`, is no better; `data` is one array of the same values:

# %% tags=["volatile", "nbval-ignore-output"]
data = np.stack(arrays)
routes = lk.compare(
    {
        "from_numpy(np.stack(arrays))": make_batch_fixed,
        "torch.tensor(data.tolist())": lambda: torch.tensor(data.tolist()),
        "torch.tensor(arrays)": make_batch,
    }
)
routes

# %% [markdown]
# PyTorch does warn about lists of arrays, but once per process, and that was used up
# above. Asked to warn always, it says:

# %%
torch.set_warn_always(True)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    torch.tensor(arrays[:1])
torch.set_warn_always(False)
print(str(caught[0].message).split(" Please")[0])

# %% [markdown]
# *In the field.* A large library replaced `torch.tensor` by `from_numpy` for arrays,
# because the call could seem to hang
# ([report](https://github.com/huggingface/transformers/pull/33201)).

# %% [markdown]
# #### Does it make loading 40 % faster?
#
# *An aside of three minutes; the rest of the page does not need it.* The article saw a loader become 40 % faster when `torch.tensor` gave way to
# `from_numpy`. Here are two loaders: one copies arrays that are ready, one decodes JPEGs.

# %%
import io

from PIL import Image
from torch.utils.data import DataLoader

small = np.random.randint(0, 256, (8, 96, 96, 3), dtype=np.uint8)
files = [io.BytesIO() for _ in small]
for pixels, file in zip(small, files):
    Image.fromarray(pixels).resize((192, 192)).save(file, "JPEG")
ready = list(np.random.rand(8, 3, 192, 192).astype(np.float32))

# %% [markdown]
# `load` makes one array, `to_tensor` is the call that we change; everything runs in
# this process (`num_workers=0`).

# %%
def decode(n):
    return np.array(Image.open(files[n]))

def epoch(load, to_tensor):
    def collate(batch):
        return torch.stack([to_tensor(load(n)) for n in batch])

    loader = DataLoader(range(8), batch_size=4, collate_fn=collate)
    return lambda: [batch.shape for batch in loader]

# %% [markdown]
# The share of the time that the change saves, in each loader:

# %% tags=["volatile", "nbval-ignore-output"]
saved = {}
for name, load in {"copying": ready.__getitem__, "decoding": decode}.items():
    timing = lk.compare(
        {
            "torch.tensor": epoch(load, torch.tensor),
            "from_numpy": epoch(load, torch.from_numpy),
        },
        seconds=1.0,
    )
    saved[name] = 1 - timing.ratio
    print(f"{name}: {saved[name]:.0%} saved")

# %% [markdown]
# The saving is real where copying is all the work there is. **Beside a decoder it hardly
# matters which of the two calls you use**: measure where the time goes before you change
# it.

# %% [markdown]
# ### ★ A transpose in front of the head
#
# The last layer of a model flattens what it gets. Somebody put a transpose in front.

# %%
def flatten():
    x = torch.arange(12).view(3, 4)
    return x.transpose(0, 1).view(-1)

lk.predict("2.1.4")

# %% [markdown]
# Run it:

# %%
lk.trap("2.1.4", flatten)

# %% [markdown]
# A tensor is memory plus a walk through it: `stride[i]` says how many cells to go when
# index `i` grows by one. `transpose` swaps the strides and leaves the memory alone.

# %%
x = torch.arange(12).view(3, 4)
print("x:            shape", tuple(x.shape), "stride", x.stride())
y = x.transpose(0, 1)
print("x.transpose:  shape", tuple(y.shape), "stride", y.stride())

# %% [markdown]
# `view` copies nothing, so it needs strides that walk the new shape through the same
# memory. It can split any axis. It can merge axis `i` with the next one only where
# `stride[i] == stride[i+1] * size[i+1]`: whoever walks on past the end of a row
# must land on the next row. For `x` that is 4 = 1·4, true. After the transpose it would
# have to be 1 = 4·3. Axes of size 1 do not count: nobody steps along them.
#
# The article, like much advice, says that `view` needs contiguous memory. **It does
# not: it needs strides that fit.**
#
# **Fix.** `reshape` makes the view where the strides fit, and copies where they do not.

# %%
def flatten_fixed():
    x = torch.arange(12).view(3, 4)
    return x.transpose(0, 1).reshape(-1)

lk.fix("2.1.4", flatten_fixed)

# %% [markdown]
# **Transfer.** Neither of these two is contiguous, and each has six values. On which
# does `view(-1)` work: every second column, or the first two columns?

# %%
for name, y in {"x[:, ::2]": x[:, ::2], "x[:, :2]": x[:, :2]}.items():
    try:
        said = f"works, stride {y.view(-1).stride()}"
    except RuntimeError:
        said = "raises"
    sizes = tuple(y.shape)
    print(f"{name:9} stride {y.stride()}, size {sizes}: view(-1) {said}")

# %% [markdown]
# Every second column: 4 = 2·2, so steps of 2 visit them all. The first two columns: 4 is
# not 1·2, since two cells are skipped after each row.
#
# *In the field.* A top-k accuracy that transposes and then flattens stopped training
# scripts in many projects ([one of them](https://github.com/open-mmlab/mmpretrain/pull/104)).
# The message does not say which axis is to blame: print `x.stride()` beside `x.shape`.

# %% [markdown]
# ### Play with the walk
#
# `x` counts up, up to three steps make `y` of it, and then `view` is tried. A *wall*
# stands between two axes that cannot be merged. Find
#
# - a `y` that is not contiguous and has no wall,
# - a view that works although `y` has a wall,
# - a step that copies.

# %%
lk.explore("2.1-strides")

# %% [markdown]
# ### A write through a flattened name
#
# One score is masked through a flattened form of the tensor.

# %%
def mask_first():
    scores = torch.ones(2, 3).t()
    scores.reshape(-1)[0] = 0
    return scores

lk.predict("2.1.5")

# %% [markdown]
# The second version writes to the tensor itself:

# %%
def mask_first_fixed():
    scores = torch.ones(2, 3).t()
    scores[0, 0] = 0
    return scores

lk.trap("2.1.5", mask_first, mask_first_fixed)

# %% [markdown]
# After a transpose, `reshape(-1)` has to copy, and the write went to the copy. Without
# the transpose, the same line works:

# %%
scores = torch.ones(3, 2)
scores.reshape(-1)[0] = 0
print(scores.tolist())

# %% [markdown]
# To write through a flat form, use `view`: where `reshape` would copy, `view` raises.

# %% [markdown]
# ### ★ The next layer wants the batch first
#
# A recurrent layer put time first: its output has one column for each sequence. Here
# 10, 11, 12 is the first sequence and 20, 21, 22 the second.

# %%
def batch_first():
    x = torch.tensor([[10, 20], [11, 21], [12, 22]])  # (time, batch)
    return x.view(2, 3)  # (batch, time)

lk.predict("2.1.6")

# %% [markdown]
# Run it:

# %%
lk.trap("2.1.6", batch_first)

# %% [markdown]
# `view` reads the values in their old order and deals them out into the new shape. It
# knows sizes, not what an axis means. The model trains on mixed sequences, and nothing
# fails. The strides tell the two operations apart:

# %%
x = torch.tensor([[10, 20], [11, 21], [12, 22]])
print("view:     ", x.view(2, 3).stride(), x.view(2, 3).tolist())
print("transpose:", x.transpose(0, 1).stride(), x.transpose(0, 1).tolist())

# %% [markdown]
# **Fix.** `transpose` and `permute` move axes, so each value keeps its place on each of
# them; `view` and `reshape` only cut one long row of values into other lengths.

# %%
def batch_first_fixed():
    x = torch.tensor([[10, 20], [11, 21], [12, 22]])  # (time, batch)
    return x.transpose(0, 1)  # (batch, time)

lk.fix("2.1.6", batch_first_fixed)

# %% [markdown]
# **Transfer.** A pure red picture, pixel by pixel, shall become planes of red, green and
# blue. Which line gives a red plane that is all 255?

# %%
red = torch.tensor([255, 0, 0]).expand(2, 2, 3)  # (height, width, colour)
print("reshape:", red.reshape(3, 2, 2)[0].tolist())
print("permute:", red.permute(2, 0, 1)[0].tolist())

# %% [markdown]
# *In the field.* In a published model `view` turned (100, 3, …) into (3, 100, …); with
# one image in a batch it had never shown
# ([report](https://github.com/Jingkang50/OpenPSG/issues/56)). No probe finds this: test
# with values that say where they come from, as above.

# %% [markdown]
# ### One row is changed in a table of equal rows
#
# Every row starts equal, so the table is made from one row. Then one element is set.

# %%
def set_one():
    rows = torch.zeros(3).expand(2, 3)
    rows[0, 0] = 5
    return rows

lk.predict("2.1.7")

# %% [markdown]
# The second version gives every row memory of its own:

# %%
def set_one_fixed():
    rows = torch.zeros(3).expand(2, 3).clone()
    rows[0, 0] = 5
    return rows

lk.trap("2.1.7", set_one, set_one_fixed)

# %% [markdown]
# An expanded axis has stride 0: all its rows are the same cells
# ([report](https://github.com/pytorch/pytorch/issues/7509)).

# %% [markdown]
# ### Counting classes with an index
#
# Class 0 occurs three times and class 2 once. Each occurrence adds one.

# %%
def count():
    counts = torch.zeros(3)
    counts[torch.tensor([0, 0, 0, 2])] += 1
    return counts

lk.predict("2.1.8")

# %% [markdown]
# The second version adds up where an index repeats:

# %%
def count_fixed():
    counts = torch.zeros(3)
    classes = torch.tensor([0, 0, 0, 2])
    return counts.index_add_(0, classes, torch.ones(4))

lk.trap("2.1.8", count, count_fixed)

# %% [markdown]
# `counts[i] += 1` reads all the cells, adds, and writes back; of several writes to one
# cell one is left ([report](https://github.com/pytorch/pytorch/issues/165503)). For plain
# counts there is `torch.bincount(classes)`.

# %% [markdown]
# ### Exercise · One copy · 6 minutes, easy
#
# `arrays` is a list of equally shaped float32 arrays, at least one. **Return one float32
# tensor with a new first axis.** It owns its data: a later write to an array does not
# reach it. The data is copied once, in blocks and not value by value; the check counts.

# %%
def batch(arrays):
    return lk.TODO

batch = lk.check("2.1-batch", batch)

# %% [markdown]
# ### Exercise · Will it view? · 6 minutes, medium
#
# `x` is `torch.arange(24)`. **Return, for each line, whether it works (True) or raises
# (False)**: a dict from letter to bool, or a list of ten.
#
# | | line | | line |
# |---|---|---|---|
# | a | `x.view(4, 6).t().view(24)` | f | `x.view(4, 6)[::2].view(12)` |
# | b | `x.view(1, 24).t().view(24)` | g | `x.view(2, 3, 4).transpose(0, 1).view(3, 8)` |
# | c | `x.view(4, 6)[:, ::2].view(12)` | h | `x.view(2, 3, 4).transpose(0, 1).view(3, 2, 2, 2)` |
# | d | `x.view(4, 6)[:, :3].view(12)` | i | `x.expand(2, 24).view(48)` |
# | e | `x.view(4, 6)[1:3].view(12)` | j | `x.view(4, 6).t().view(2, 3, 4)` |

# %%
def view_works():
    return lk.TODO

view_works = lk.check("2.1-view-quiz", view_works)

# %% [markdown]
# ### What the article says, and what this page measured
#
# Folded cells collect the values for these tables. Run them; there is no need to read
# them. First creation:

# %% jupyter={"source_hidden": true}
dtypes = "? u1 i1 i2 i4 i8 f2 f4 f8 c8".split()  # NumPy's short names
made = [np.ones(3, dtype) for dtype in dtypes]
copied = sum(torch.tensor(m).data_ptr() != m.ctypes.data for m in made)
m = np.zeros(3)
t = torch.from_numpy(m)
same = torch.as_tensor(m).data_ptr() == m.ctypes.data
other = torch.as_tensor(m, dtype=torch.float32).data_ptr() == m.ctypes.data
m[0], t[1] = 100, 7
to_tensor, to_array = t[0].item() == 100, m[1] == 7
m = m + 1
rebound = t[0].item() == m[0]

# %% [markdown]
# How a dtype is chosen, from an array and from a list:

# %% jupyter={"source_hidden": true}
def kind(t):
    return str(t.dtype).removeprefix("torch.")

whole = np.array([1, 2, 3])
kinds = dict(array=whole.dtype.name, whole=kind(torch.from_numpy(whole)),
             decimal=kind(torch.from_numpy(np.array([0.5]))),
             listed=kind(torch.tensor([0.5])))
slow = dict(
    list=routes.ratios["torch.tensor(arrays)"],
    tolist=routes.ratios["torch.tensor(data.tolist())"],
)

# %% [markdown]
# The first half of the table, on making tensors:

# %% tags=["volatile"]
lk.verdicts(
    C2_1a=dict(copied=copied, dtypes=len(dtypes)),
    C2_1b=dict(same=same, other=other),
    C2_1c=dict(to_tensor=to_tensor, to_array=bool(to_array), rebound=rebound),
    C2_1d=kinds,
    C2_1e=slow,
    C2_1f=saved,
)

# %% [markdown]
# Now layout: which views of tensors that are not contiguous work, and how many of those
# that come after a transpose raise.

# %% jupyter={"source_hidden": true}
def works(y, *sizes):
    try:
        y.view(*sizes)
    except RuntimeError:
        return False
    return True

z = torch.arange(24)
p, q = z.view(4, 6), z.view(2, 3, 4).transpose(0, 1)
layouts = [(p.t(), 24), (z.view(1, 24).t(), 24), (q, 3, 2, 2, 2)]
layouts += [(p[:, ::2], 12), (p[:, :3], 12), (p[::2], 12)]

# %% [markdown]
# A write after `contiguous()` or `reshape`, and the bytes that layout costs:

# %% jupyter={"source_hidden": true}
w = torch.zeros(256, 256)
w.t().contiguous().view(-1)[0] = w.t().reshape(-1)[0] = 1
lost = w.count_nonzero().item() == 0
with lk.track_memory() as nothing:
    same_tensor = w.contiguous() is w
with lk.track_memory() as turning:
    w.t().contiguous()
with lk.track_memory() as views:
    [w.t().view(256, 16, 16) for _ in range(100)]
with lk.track_memory() as copying:
    w.t().reshape(-1)

# %% [markdown]
# The second half, on layout:

# %%
equal = torch.equal(p.t().contiguous().view(-1), p.t().reshape(-1))
turned = [works(y, *to) for y, *to in layouts[:3]]
strided = [works(y, *to) for y, *to in layouts if not y.is_contiguous()]
already, turn = nothing.peak_bytes, turning.peak_bytes
lk.verdicts(
    C2_1g=dict(worked=sum(strided), tried=len(strided)),
    C2_1h=dict(raised=turned.count(False), tried=len(turned)),
    C2_1i=dict(same_values=equal, write_lost=lost),
    C2_1j=dict(itself=same_tensor, already=already, turned=turn),
    C2_1k=dict(views=views.peak_bytes, copy=copying.peak_bytes),
)

# %% [markdown]
# **Two of these overturn common advice.** `view` does not need contiguous memory. And a
# transpose by itself costs nothing: what may cost is a copy after it, or an operation that
# then walks through memory in large steps. Measure before you rearrange a `forward`.
#
# ### What you can do now
#
# - Sharing: `from_numpy` always, `as_tensor` of an array unless dtype or device changes,
#   `torch.tensor` never; `np.shares_memory` settles it on the CPU.
# - Batches: stack in NumPy, share the result; look at the dtype before the model does.
# - `view`: merge axis `i` with the next only where `stride[i] == stride[i+1] * size[i+1]`;
#   where that fails, those two axes are to blame.
# - `transpose` and `permute` move axes; `view` and `reshape` recut. A write through
#   `reshape` may be lost.
#
# **Keep this**
#
# | you want | write | copies |
# |---|---|---|
# | a tensor that is safe from later writes | `torch.tensor(array)` | once |
# | a tensor on the array's memory | `torch.from_numpy(array)` | never |
# | a batch from arrays | `torch.from_numpy(np.stack(arrays))` | once |
# | another shape, or an error | `x.view(...)` | never |
# | another shape, whatever it takes | `x.reshape(...)` | if it must |
# | axes in another order | `x.transpose(...)`, `x.permute(...)` | never |
# | rows to write to, from one row | `row.expand(n, -1).clone()` | once |
# | sums where an index repeats | `index_add_`, `bincount` | – |
#
# *You can stop here. The next part, 2.2, starts with what autograd saves, and with a
# network that reads digits.*

# %% [markdown]
# ## 2.2 Broadcasting and in-place
#
# **After this part you can**
# - see from two shapes what will be combined with what,
# - say how many bytes broadcasting takes in a sum, in a chain and in a matrix product,
# - predict which in-place edits autograd handles rightly, which it refuses, and which it
#   does not notice,
# - use `no_grad` for edits where that is right, and only there.
#
# *One sitting, about 40 minutes. Needs strides and shared memory (part 2.1). Any computer
# will do.*

# %% [markdown]
# ### What autograd keeps, and how it notices an edit
#
# To go backward, an operation needs some of the values it met on the way forward. It
# saves them in its node of the graph: not as copies, but as references to the same
# memory. Some operations save their input, some their result, some neither.
#
# Memory can be written to. So every tensor has a **version**, a number that goes up with
# each in-place operation (`add_`, `+=`, `y[0] = …`), and a node remembers the version at
# which it saved a value. `backward` compares the two, and refuses a saved value that has
# been edited since.

# %%
x = torch.tensor([0.0, 1.0], requires_grad=True)
y = x.exp()
saved = y.grad_fn._saved_result
print(y.grad_fn.name(), "saved its result: version", y._version)
print("the same memory as y:", saved.data_ptr() == y.data_ptr())
y.mul_(2)
print("after y.mul_(2):  version", y._version)

# %% [markdown]
# That is all this part needs to know of autograd. Its first three traps are about
# broadcasting; the other three edit tensors in place.
#
# ### ★ One number per image
#
# A small network looks at a handwritten digit and answers with its value, 0 to 9, as one
# number. (A classifier would do better; a single output is the point here.) The data are
# 1,797 real images of 64 pixels.

# %%
digits = np.load(lk.data_path("digits.npz"))
images = torch.from_numpy(digits["images"]).float().flatten(1) / 16
images -= images.mean(0)
values = torch.from_numpy(digits["labels"]).float()
variance = values.var(correction=0)
print("images", tuple(images.shape), " values", tuple(values.shape))
print(f"variance of the values: {variance:.1f}")

# %% [markdown]
# The usual loop; the loss comes in as a function of predictions and targets.

# %%
def fit(loss_of):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(20):
        for rows in torch.randperm(len(images)).split(100):
            loss = loss_of(model(images[rows]), values[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return model

# %% [markdown]
# The loss is the mean squared error, written out. `train()` returns how much of the
# variance is left as error after training, on the training data themselves.

# %%
def share_left(model):
    with torch.no_grad():
        error = (model(images).squeeze(1) - values).square().mean()
    return round(float(error / variance), 1)

def train():
    def loss_of(prediction, y):
        return ((prediction - y) ** 2).mean()

    return share_left(fit(loss_of))

lk.predict("2.2.1")

# %% [markdown]
# Twenty passes over the data take a second or two.

# %%
lk.trap("2.2.1", train)

# %% [markdown]
# The model returns `(N, 1)`, the targets are `(N,)`. Broadcasting aligns shapes at their
# right end and fills up with ones on the left: `(N, 1)` meets `(1, N)`, and the difference
# is `(N, N)`, every prediction against every target. Which model does such a loss prefer?

# %%
perfect = values[:, None]
constant = torch.full_like(perfect, values.mean())
print("shape of the difference:", tuple((perfect - values).shape))
for name, answers in {"perfect": perfect, "the mean": constant}.items():
    loss = ((answers - values) ** 2).mean()
    print(f"loss of answers that are {name}: {loss:.1f}")

# %% [markdown]
# A perfect model has twice the loss of one that answers the mean to everything. So
# training ends at the mean, and the loss settles at the variance of the targets, 8.2. A
# loss that settles there is the sign to look for.
#
# **Fix.** Give both sides one shape, so that each prediction meets its own target.
# `squeeze(1)` names the axis to drop; a bare `squeeze()` would also drop a batch of one.

# %%
def train_fixed():
    def loss_of(prediction, y):
        prediction = prediction.squeeze(1)
        assert prediction.shape == y.shape
        return ((prediction - y) ** 2).mean()

    return share_left(fit(loss_of))

lk.fix("2.2.1", train_fixed)

# %% [markdown]
# **Transfer.** A model that reads every digit rightly returns its answers as `(N, 1)`.
# What accuracy does `(answers == values).float().mean()` report, with ten digits about
# equally often? And which of torch's own losses would have spoken up?

# %%
import warnings

accuracy = (perfect == values).float().mean()
print(f"accuracy of perfect answers: {accuracy:.2f}")
for loss_of in (F.mse_loss, F.l1_loss, F.huber_loss):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        loss_of(perfect, values)
    print(loss_of.__name__, "warns:", len(caught) == 1)
try:
    F.binary_cross_entropy_with_logits(perfect, values)
except ValueError as error:
    print("binary cross-entropy raises:", error)

# %% [markdown]
# Three warn and go on, one raises. A loss or a metric that is written by hand says nothing.
#
# *In the field.* [Reported in 2019](https://github.com/pytorch/pytorch/issues/16045), which
# led to the warning; [found again in
# 2026](https://github.com/LAMDA-Tabular/TALENT/pull/92) in a benchmark of methods for
# tables. No probe replaces the `assert` on two shapes in front of the loss.

# %% [markdown]
# ### Which of these 500 points are neighbours?
#
# All squared distances between 500 points with 64 features: one new axis here, one there,
# and broadcasting does the rest.

# %%
points = torch.randn(500, 64, generator=torch.Generator().manual_seed(0))

def distances():
    return ((points[:, None] - points) ** 2).sum(-1)

lk.predict("2.2.2")

# %% [markdown]
# The fix does the same for four points at a time:

# %%
def in_chunks(x):
    chunks = x.split(4)
    return torch.cat([((c[:, None] - x) ** 2).sum(-1) for c in chunks])

lk.trap("2.2.2", distances, lambda: in_chunks(points))

# %% [markdown]
# It is the chain that costs: the difference and its square have one axis more than the
# result. **Broadcasting alone copies nothing in a sum**, whatever the article says: an
# addition allocates its result, and a loop of them holds two, the old one and the new.
# The peak in bytes, where a result has 1000 · 1000 · 4:

# %%
column, row = torch.randn(1000, 1), torch.randn(1, 1000)

def add_in_a_loop(rounds):
    for _ in range(rounds):
        total = column + row
    return total

def peak_of(work):
    with lk.track_memory() as memory:
        work()
    return memory.peak_bytes

print("one addition:    ", peak_of(lambda: column + row))
print("1,000 in a loop: ", peak_of(lambda: add_in_a_loop(1000)))

# %% [markdown]
# There are more ways to these distances. Compare them by their accuracy too, and also for
# data far from the origin, as coordinates on a map or timestamps are.

# %%
def by_products(x):
    n = x.square().sum(1)
    return n[:, None] + n - 2 * x @ x.T

def by_cdist(x):
    return torch.cdist(x, x) ** 2

def without_matmul(x):
    mode = "donot_use_mm_for_euclid_dist"
    return torch.cdist(x, x, compute_mode=mode) ** 2

# %% [markdown]
# "Right" means here: between the first 100 points no value is off by 0.001 or more; a
# typical value is 128.

# %%
ways = {"three axes": lambda x: ((x[:, None] - x) ** 2).sum(-1),
        "chunks": in_chunks, "|x|² + |y|² − 2 x·y": by_products,
        "cdist ** 2": by_cdist, "cdist ** 2, no matmul": without_matmul}
print(" " * 22, "peak in MB   right near 0   right near 1000")
for name, way in ways.items():
    right = []
    for x in (points[:100], points[:100] + 1000):
        truth = ways["three axes"](x.double())
        off = (way(x) - truth).abs().max()
        right.append("yes" if off < 0.001 else "no")
    peak = peak_of(lambda: way(points)) / 1e6
    print(f"{name:22} {peak:8.0f}      {right[0]:12}   {right[1]}")

# %% [markdown]
# `cdist` gives distances, not squares, and by default it uses the form with products as
# soon as one side has more than 25 points. That form gets a small number as the difference
# of two huge ones, and near 1000 the digits that matter are gone. **A lighter way is a fix
# only if its values are still right.**
#
# *In the field.* With the default `cdist`, [points were at a distance from
# themselves](https://github.com/pytorch/pytorch/issues/57690).

# %% [markdown]
# ### Eight heads for 32 sentences
#
# `tokens` holds 32 sentences of 128 tokens with 128 features, `heads` holds eight matrices
# of 128 × 128. Every sentence goes through every head.

# %%
tokens = torch.randn(32, 128, 128)
heads = torch.randn(8, 128, 128)

def per_head():
    return tokens[:, None] @ heads

lk.predict("2.2.3")

# %% [markdown]
# The fix says with `einsum` which axis belongs to whom. It then makes one large product:
# 32 · 128 rows times 8 · 128 columns.

# %%
def per_head_einsum():
    return torch.einsum("stf,hfg->shtg", tokens, heads)

lk.trap("2.2.3", per_head, per_head_einsum)

# %% [markdown]
# `matmul` hands its work to a batched product, which knows *one* batch axis and no
# broadcasting. So it expands both operands to `(32, 8, …)` and merges 32 and 8 into one
# axis of 256. Part 2.1 told when that is free: where a `view` can do it. An axis that was
# stretched has stride 0, and beside a real axis it cannot be merged, so the operand is
# copied out. Peak memory, in multiples of the result:

# %%
full = torch.randn(32, 8, 128, 128)
cases = {"(32, 1, …) @ (8, …)": (tokens[:, None], heads),
         "(32, 8, …) @ (8, …)": (full, heads),
         "(32, 8, …) @ (1, …)": (full, heads[:1]),
         "(32, 8, …) @ (128, 128)": (full, heads[0])}
for name, (left, right) in cases.items():
    print(f"{name:24} {peak_of(lambda: left @ right) / full.nbytes:.1f}")

# %% [markdown]
# Both operands stretched, one stretched, one stretched along the whole batch (two axes of
# stride 0 do merge), and one without a batch. `einsum` helped in the first case since the
# operands share no batch axis. In the second they do:

# %%
by_einsum = peak_of(lambda: torch.einsum("shtf,hfg->shtg", full, heads))
print(f"einsum, second case: {by_einsum / full.nbytes:.1f}")
print("contiguous, first case:", per_head_einsum().is_contiguous())

# %% [markdown]
# *In the field.* One product took [40
# GB](https://github.com/pytorch/pytorch/issues/154128); another took [66 GiB, and 2 GiB with
# `einsum`](https://github.com/pytorch/pytorch/issues/149302).
#
# ### Try it: two shapes
#
# Type two shapes, press Enter, and choose an operation. The upper half shows the axes,
# aligned at the right (`–`: no axis, Σ: summed away). The lower half shows bytes, measured
# just now, without the gradient that comes in. Find
#
# - a pair that clashes, and the one number that cures it,
# - an operation that keeps something for the backward,
# - a `@` that takes three times its result, and one that takes its result alone.

# %%
lk.explore("2.2-broadcast")

# %% [markdown]
# ### ★ Somebody moved the ReLU
#
# A residual block adds its input to what its layer made of it, in place, to save memory.
# Until yesterday the ReLU came after the addition; now it comes first.

# %%
layer = nn.Linear(2, 2)
nn.init.eye_(layer.weight)
nn.init.zeros_(layer.bias)

def block():
    x = torch.tensor([[1.0, -2.0]], requires_grad=True)
    h = F.relu(layer(x))
    h += x
    h.sum().backward()
    return x.grad

lk.predict("2.2.4")

# %% [markdown]
# The layer's weights are set to the identity, so here `h` starts as the ReLU of `x`.

# %%
lk.trap("2.2.4", block)

# %% [markdown]
# The ReLU saved its result at version 0, and `backward` found it at version 1. So whether
# an edit is refused depends on what was saved. Here are a dozen operations. For each,
# guess: if `add_(1)` edits the result, does `backward` refuse?

# %%
dozen = {"sigmoid": torch.sigmoid, "tanh": torch.tanh, "exp": torch.exp,
         "sqrt": torch.sqrt, "softmax": lambda x: x.softmax(0),
         "relu": F.relu, "gelu": F.gelu, "silu": F.silu, "sin": torch.sin,
         "x * x": lambda x: x * x, "x ** 3": lambda x: x**3,
         "x + 1": lambda x: x + 1}

def refused(call):
    try:
        call()
    except RuntimeError:
        return True
    return False

# %% [markdown]
# Each node tells what it saved: its result as `_saved_result`, its input as `_saved_self`.

# %%
kept, raised = {}, {}
for name, operation in dozen.items():
    x = torch.tensor([0.2, 0.5, 0.8], requires_grad=True)
    y = operation(x)
    kept[name] = "neither"
    for what in ("result", "self"):
        if hasattr(y.grad_fn, f"_saved_{what}"):
            kept[name] = "its result" if what == "result" else "its input"
    y.add_(1)
    raised[name] = refused(lambda: y.sum().backward())
    said = "raises" if raised[name] else "fine"
    print(f"{name:8} saved {kept[name]:11} {said}")

# %% [markdown]
# Where the slope follows easily from the result, an operation often saves the result: the
# slope of `exp` *is* its result. ReLU does so; GELU, SiLU and LeakyReLU save their input.
#
# **Fix.** `h = h + x` makes a new tensor, so the saved one stays as it was.

# %%
def block_fixed():
    x = torch.tensor([[1.0, -2.0]], requires_grad=True)
    h = F.relu(layer(x))
    h = h + x
    h.sum().backward()
    return x.grad

lk.fix("2.2.4", block_fixed)

# %% [markdown]
# **Transfer.** Which of these are refused: `relu_` after a Linear layer, `relu_` after a
# sigmoid, the block as it was before the move? A Linear layer saves its input.

# %%
x = torch.tensor([[1.0, -2.0]], requires_grad=True)
tries = {
    "relu_ after Linear": lambda: F.relu_(layer(x)),
    "relu_ after sigmoid": lambda: F.relu_(torch.sigmoid(x)),
    "the old block": lambda: F.relu(layer(x).add_(x)),
}
for name, forward in tries.items():
    no = refused(lambda: forward().sum().backward())
    print(f"{name:20}", "raises" if no else "fine")

# %% [markdown]
# **"Never in place in `forward`" is stricter than needed**: a result that was not saved may
# be edited, and the edit is recorded. But how much is there to gain? Bytes of a forward
# through eight layers, with `nn.ReLU()` and with `nn.ReLU(inplace=True)`:

# %%
def bytes_of_forward(activation):
    model, batch = nn.Sequential(), torch.randn(1024, 256)
    for _ in range(8):
        model.extend([nn.Linear(256, 256), activation])
    with lk.track_memory() as memory:
        loss = model(batch).sum()
    stays = memory.live_bytes - loss.nbytes
    return {"peak": memory.peak_bytes, "kept": stays}

plain, inplace = bytes_of_forward(nn.ReLU()), bytes_of_forward(nn.ReLU(True))
for name, taken in {"ReLU()": plain, "ReLU(inplace=True)": inplace}.items():
    peak, stays = taken["peak"] / 1e6, taken["kept"] / 1e6
    print(f"{name:19} peak {peak:.1f} MB, for the backward {stays:.1f} MB")

# %% [markdown]
# **With a ReLU, in place saves one tensor for a moment**: its result is kept either way. It
# is another matter with `nn.LeakyReLU`, which saves its input, but in place its result:

# %%
for inside in (False, True):
    taken = bytes_of_forward(nn.LeakyReLU(inplace=inside))
    stays = taken["kept"] / 1e6
    print(f"LeakyReLU(inplace={inside!s}): for the backward {stays:.1f} MB")

# %% [markdown]
# *In the field.* An upgrade of PyTorch turned [three in-place
# operations](https://github.com/vislearn/FrEIA/pull/164) into this error; [`sigmoid` raises
# where the same function written out does
# not](https://github.com/pytorch/pytorch/issues/9391). With
# `torch.autograd.set_detect_anomaly(True)`, PyTorch also prints the line of the forward
# whose saved value was edited.

# %% [markdown]
# ### A limit, set by hand
#
# Large activations are cut off at 5. The edit goes through `.data`, to keep autograd out of
# it.

# %%
def limited():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x.exp()
    y.data.clamp_(max=5)
    y.sum().backward()
    return x.grad

lk.predict("2.2.5")

# %% [markdown]
# The fix lets autograd see the limit: `clamp` is an operation with a slope of its own.

# %%
def limited_fixed():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x.exp().clamp(max=5)
    y.sum().backward()
    return x.grad

lk.trap("2.2.5", limited, limited_fixed)

# %% [markdown]
# `.data` is the same memory with a version counter of its own. There are four ways to edit
# a tensor without recording it; each of these sets to 0 a result that `exp` has saved.
# Which of the four does the check notice?

# %%
def inside_no_grad(y):
    with torch.no_grad():
        y.zero_()

ways_in = {"detach()": lambda y: y.detach().zero_(),
           "no_grad": inside_no_grad,
           ".data": lambda y: y.data.zero_(),
           ".numpy()": lambda y: y.detach().numpy().fill(0)}

# %% [markdown]
# The true gradient at 1 is 2.718.

# %%
outcome = {}
for way_in, edit in ways_in.items():
    x = torch.tensor([1.0], requires_grad=True)
    y = x.exp()
    edit(y)
    silent = not refused(y.backward)
    outcome[way_in] = "caught"
    if silent:
        outcome[way_in] = f"silent, gradient {x.grad.item():.0f}"
    print(f"{way_in:9} version {y._version}   {outcome[way_in]}")

# %% [markdown]
# `.detach()` shares memory *and* version: use it instead of `.data`. NumPy knows of no
# version, so an array behind `from_numpy` that is refilled before `backward` is not noticed
# either. *In the field.* [`.data` or
# `.detach()`](https://github.com/pytorch/pytorch/issues/6990), asked and answered.
#
# Other edits do not look like edits. These are recorded, so the gradient is right, but it
# is that of another function than was meant:

# %%
def shifted(z):
    z += 1
    return z

caller, skip = torch.tensor([-1.0, 2.0]), torch.tensor([-1.0, 2.0])
shifted(caller)
print("the caller's tensor, after a callee's z += 1:", caller.tolist())
print("x + relu(x):         ", (skip + F.relu(skip)).tolist())
relu = nn.ReLU(inplace=True)
print("x + nn.ReLU(True)(x):", (skip + relu(skip)).tolist())

# %% [markdown]
# The last line is [a real residual
# block](https://github.com/rosinality/vq-vae-2-pytorch/issues/60): its shortcut carried
# `relu(x)` where `x` was meant.

# %% [markdown]
# ### ★ Wrapped up, to be on the safe side
#
# Activations are rescaled in place. Somebody had read that in-place edits can be used
# freely inside `no_grad`, and wrapped the line.

# %%
def scale():
    w = torch.tensor(1.0, requires_grad=True)
    h = w * 3
    with torch.no_grad():
        h.mul_(10)
    loss = h.sum()
    loss.backward()
    return {"loss": loss.item(), "gradient": w.grad.item()}

lk.predict("2.2.6")

# %% [markdown]
# The loss is 30 at `w = 1`, and would be 60 at `w = 2`.

# %%
lk.trap("2.2.6", scale)

# %% [markdown]
# `no_grad` protects nothing. It turns recording off: the values of `h` change, the graph
# behind `h` does not. The version of `h` goes up, but only saved values are checked, and
# no operation here saved `h`.

# %%
w = torch.tensor(1.0, requires_grad=True)
h = w * 3
with torch.no_grad():
    h.mul_(10)
print("h is", h.item(), "at version", h._version)
before, _ = h.grad_fn.next_functions[0]
print("its graph:", h.grad_fn.name(), "of", before.name())
h.backward()
print("gradient:", w.grad.item())

# %% [markdown]
# One multiplication is in the graph, where two were done; `AccumulateGrad` stands for `w`.
#
# **This overturns common advice.** Inside `no_grad` an in-place edit is not safe: autograd
# does not know of it, and returns the gradient of another function. [The documentation
# says](https://docs.pytorch.org/docs/stable/autograd.html#in-place-correctness-checks) that
# in-place code which raises no error has right gradients; that is true of recorded edits
# only.
#
# **Fix.** Take `no_grad` away: the edit becomes a node of the graph, with its own slope.

# %%
def scale_fixed():
    w = torch.tensor(1.0, requires_grad=True)
    h = w * 3
    h.mul_(10)
    loss = h.sum()
    loss.backward()
    return {"loss": loss.item(), "gradient": w.grad.item()}

lk.fix("2.2.6", scale_fixed)

# %% [markdown]
# **Transfer.** A ReLU by hand: `with torch.no_grad(): cut.clamp_(min=0)`. Which gradient
# does an entry get that was cut to 0? And where is `no_grad` right?

# %%
v = torch.tensor([-1.0, 2.0], requires_grad=True)
cut = v * 3
with torch.no_grad():
    cut.clamp_(min=0)
cut.sum().backward()
print("after the cut:", cut.tolist(), " gradient:", v.grad.tolist())
with torch.no_grad():
    v -= 0.5 * v.grad
print("after a step: ", v.tolist(), " is a leaf:", v.is_leaf)

# %% [markdown]
# The cut entry gets 3, as if it had passed. And `no_grad` is right for **leaves** (tensors
# that no recorded operation made, such as weights) **between a `backward` and the next
# forward**: updates, initial values, averages of weights. No graph depends on their values
# then, and this is what optimizers do.
#
# *In the field.* Activations are normalised, masked or clipped "without gradient" in the
# middle of `forward`. Nothing fails, and the model is a little worse than it could be.
# `gradcheck` compares gradients with differences of values, and finds it:

# %%
def scaled(w):
    h = w * 3
    with torch.no_grad():
        h.mul_(10)
    return h

one = torch.ones(1, dtype=torch.float64, requires_grad=True)
print("passes:", torch.autograd.gradcheck(scaled, one, raise_exception=False))

# %% [markdown]
# ### Exercise · Distances within a budget · 8 minutes, medium
#
# Deliver the squared distances between the rows of `x`, (N, D), and of `y`, (M, D), as an
# (N, M) tensor: `d[i, j] = ((x[i] - y[j]) ** 2).sum()`, but not entry by entry, which is
# too slow. New tensors and arrays take at most **four times the result's bytes** at their
# peak. No value below 1000 is off by more than **0.01**, be it one cloud of points around
# 1000 or two clouds far apart. (Larger ones float32 cannot tell so finely.)

# %%
def pairwise(x, y):
    return lk.TODO

pairwise = lk.check("2.2-pairwise", pairwise)

# %% [markdown]
# Stuck? `lk.hint("2.2-pairwise")` gives one hint at a time, `lk.solution("2.2-pairwise")`
# the reference.
#
# ### What the article says, and what this page measured
#
# The folded cells collect the figures that are still missing. Run them; there is no need
# to read them. First, NumPy's rules on seven pairs of shapes:

# %% jupyter={"source_hidden": true}
def shape_of_sum(library, a, b):
    try:
        return tuple((library.ones(a) + library.ones(b)).shape)
    except (RuntimeError, ValueError):
        return "refused"

pairs = [((3, 4), (4,)), ((3, 1), (3,)), ((2, 1, 4), (5, 1)), ((), (3,)),
         ((3, 4), (3,)), ((0, 3), (1, 1)), ((2, 3), (3, 2))]
same = all(shape_of_sum(torch, *p) == shape_of_sum(np, *p) for p in pairs)
grow = refused(lambda: torch.ones(4, 1).add_(torch.ones(1, 4)))
C2_2a = dict(tried=len(pairs), same=same, refused=grow)

# %% [markdown]
# The bytes of additions, and of the backward of a product `a * b`, which does write out
# blocks of the result's size before it sums them:

# %% jupyter={"source_hidden": true}
a, b = column.clone().requires_grad_(), row.clone().requires_grad_()
product, incoming = a * b, torch.ones(1000, 1000)
back = peak_of(lambda: torch.autograd.grad(product, (a, b), incoming))
add = peak_of(lambda: column + row)
C2_2b = dict(result=product.nbytes, forward=add, backward=back)
peaks = {f"peak_{n}": peak_of(lambda: add_in_a_loop(n)) for n in (10, 1000)}
chain = peak_of(lambda: ways["three axes"](points))
C2_2c = dict(result=product.nbytes, pairwise=chain, small=1_000_000, **peaks)
C2_2d = dict(result=full.nbytes, matmul=peak_of(per_head),
             einsum=peak_of(per_head_einsum),
             flat=peak_of(lambda: full @ heads[0]))

# %% [markdown]
# Three recorded edits, against the same functions without edits; and the edits that are
# refused at once:

# %% jupyter={"source_hidden": true}
def slope(function):
    x = torch.tensor([0.5, -2.0], requires_grad=True)
    return torch.autograd.grad(function(x).sum(), x)[0]

edits = [(lambda x: x.clone().add_(1).square(), lambda x: (x + 1).square()),
         (lambda x: F.relu_(layer(x)), lambda x: F.relu(layer(x))),
         (lambda x: (x * 3).mul_(10), lambda x: x * 30)]
right = sum(torch.equal(slope(f), slope(g)) for f, g in edits)
leaf = torch.ones(4, requires_grad=True)
chunk = (leaf * 1).chunk(2)[0]
no_edit = refused(lambda: leaf.add_(1)) and refused(lambda: chunk.add_(1))

# %% [markdown]
# And what the cells above have found, in short:

# %% jupyter={"source_hidden": true}
caught = " or ".join(f"`{w}`" for w in ways_in if outcome[w] == "caught")
silent = " or ".join(f"`{w}`" for w in ways_in if outcome[w] != "caught")
z = torch.tensor([-1.0, 2.0])
C2_2g = dict(caught=caught, silent=silent, residual=(z + F.relu_(z)).tolist())
C2_2h = dict(callee=caller.tolist(), module=skip.tolist(), refused=no_edit)
exactly = all(raised[name] == (kept[name] == "its result") for name in dozen)
C2_2f = dict(tried=len(dozen), raised=sum(raised.values()), exactly=exactly)
freed = plain["peak"] - inplace["peak"]
C2_2e = dict(plain=plain["kept"], inplace=inplace["kept"], freed=freed)
recorded = float(slope(edits[2][0])[0])

# %% [markdown]
# The table:

# %%
lk.verdicts(
    C2_2a=C2_2a,
    C2_2b=C2_2b,
    C2_2c=C2_2c,
    C2_2d=C2_2d,
    C2_2e=C2_2e,
    C2_2f=C2_2f,
    C2_2g=C2_2g,
    C2_2h=C2_2h,
    C2_2i=dict(right=right, tried=len(edits)),
    C2_2j=dict(loss=h.item(), gradient=w.grad.item(), recorded=recorded),
)

# %% [markdown]
# ### What you can do now
#
# - see from two shapes what will be combined with what,
# - say how many bytes broadcasting takes: in a sum those of the result, in a chain those of
#   every axis in between, in a matrix product also a full copy of a stretched operand,
# - predict which in-place edits autograd handles rightly, refuses, or does not notice,
# - use `no_grad` for edits where no gradient flows: leaves between steps, statistics, tests.
#
# **Keep this**
#
# | in your code | remember |
# |---|---|
# | `prediction - y` | `(N, 1) - (N,)` is `(N, N)`: assert equal shapes before every loss and metric |
# | `a + b`, `a * b` | stretched operands cost nothing; the backward of `*` makes full blocks |
# | `a[:, None] - b` | count the axes of what is in between, not of the result |
# | `a @ b` | a batch axis that is stretched beside a real one is copied out: measure `einsum` beside it |
# | `h += x`, `relu_` | refused if the old value was saved (sigmoid, tanh, exp, sqrt, softmax, ReLU save their result), and at once on a leaf, a `chunk` or expanded rows |
# | `.data`, `.detach().numpy()` | edits move no version: wrong gradients without a word; edit by `.detach().add_()` and the like |
# | `with torch.no_grad():` | edits inside are not in the graph: only where no gradient flows |
#
# *You can stop here; the next part starts with the device a tensor lives on, and needs
# nothing from this one.*

# %% [markdown]
# ## 2.3 Devices
#
# **After this part you can**
# - write code that uses a GPU where there is one and runs where there is none,
# - make new tensors where the data are, in their dtype,
# - say what `.to` reaches and what it leaves behind,
# - prove without a GPU that a module follows its input to any device and dtype.
#
# *One sitting, about 35 minutes. No GPU is needed; where there is one, the page uses it. Read 2.1 first.*

# %% [markdown]
# ### The demo goes to a machine without a GPU
#
# `without_gpu` shows what a line does there. Where there is no GPU it just runs the line; elsewhere it runs it in a new
# process from which every GPU is hidden.

# %%
import os
import sys
from subprocess import run

def without_gpu(line):
    if not torch.cuda.is_available():
        return str(eval(line))
    hidden = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    done = run([sys.executable, "-c", f"import torch; print({line})"],
               env=hidden, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    return done.stdout.strip()

# %% [markdown]
# The article warns of `.cuda()` and advises `.to`. This is `.to`:

# %%
def move():
    return without_gpu('torch.ones(2).to("cuda").device')

lk.predict("2.3.1")

# %% [markdown]
# The same, where the program asks first:

# %% tags=["nbval-ignore-output"]
def move_fixed():
    device = '"cuda" if torch.cuda.is_available() else "cpu"'
    return without_gpu(f"torch.ones(2).to({device}).device")

lk.trap("2.3.1", move, move_fixed)

# %% [markdown]
# **It is the question that helps, not `.to` in place of `.cuda()`.** Ask once, at the top of the program, and pass the
# device on. The text of the error depends on how torch was built: a build for CPUs says "not compiled with CUDA", a
# build for CUDA looks for a driver first.
#
# ### ★ A constant that was always there
#
# The rest of this part needs a second device. Where there is no GPU, `meta` will do: its
# tensors have a shape, a dtype and a device, but no values. Nothing is computed on it; the
# rules about devices are those of a GPU, with one exception that is shown below.

# %% tags=["nbval-ignore-output"]
second = "cuda" if torch.cuda.is_available() else "meta"
print("second device on this page:", second)

# %% [markdown]
# A model ran on the CPU for months, and now goes to another device. Its `forward` adds an offset that it makes on the spot.

# %%
def add_offset():
    x = torch.ones(32, 10, device=second)
    offset = torch.zeros(10)
    return (x + offset).shape

lk.predict("2.3.2")

# %% [markdown]
# Run it:

# %% tags=["nbval-ignore-output"]
lk.trap("2.3.2", add_offset)

# %% [markdown]
# `+` checks the devices of its operands, on `meta` as on a GPU. And `torch.zeros` does not
# look at the tensors around it. It uses the default device, and that is the CPU, wherever
# your model is:

# %%
print("default device:", torch.get_default_device())
print("torch.zeros(10) is on:", torch.zeros(10).device)

# %% [markdown]
# On a GPU the message reads differently. A *fake* tensor, which has no memory either, can claim to be on CUDA, so it
# shows that message on any machine (in the words of your version of torch):

# %% tags=["nbval-ignore-output"]
from torch._subclasses.fake_tensor import FakeTensorMode

with FakeTensorMode(), torch.no_grad():
    try:
        torch.ones(32, 10, device="cuda") + torch.zeros(10)
    except RuntimeError as error:
        print(error)

# %% [markdown]
# **Fix.** `x.new_zeros(10)` takes the device *and* the dtype from `x`, so it is right wherever the module goes.

# %% tags=["nbval-ignore-output"]
def add_offset_fixed():
    x = torch.ones(32, 10, device=second)
    offset = x.new_zeros(10)
    return (x + offset).shape

lk.fix("2.3.2", add_offset_fixed)

# %% [markdown]
# **The common advice, `torch.zeros(10, device=x.device)`, is half of it.** It also cures the error, but leaves the dtype
# at float32, and one float32 operand turns a bfloat16 activation into float32: twice the bytes, without a word.

# %%
half = torch.ones(2, 10, dtype=torch.bfloat16)
by_device = (half + torch.zeros(10, device=half.device)).dtype
by_tensor = (half + half.new_zeros(10)).dtype
print("device=x.device gives", by_device)
print("x.new_zeros gives    ", by_tensor)

# %% [markdown]
# **Transfer.** Which of these three can be added to an `x` on the second device: the number `0.5`, `torch.tensor(0.5)`,
# `torch.tensor([0.5])`? The last two were made on the CPU.

# %% tags=["nbval-ignore-output"]
def added_to_second(operand, x=torch.ones(3, device=second)):
    try:
        return (x + operand).device.type
    except RuntimeError as error:
        return type(error).__name__

accepted = {
    "number": added_to_second(0.5),
    "scalar": added_to_second(torch.tensor(0.5)),
    "vector": added_to_second(torch.tensor([0.5])),
}
print(accepted)

# %% [markdown]
# A CPU tensor without axes (0-dim) counts as a number in `+` and its like. One pair of
# brackets more, and it raises. One on another device is no number either:

# %% tags=["nbval-ignore-output"]
elsewhere = added_to_second(torch.tensor(0.5, device=second), torch.ones(3))
print("scalar there, vector here:", elsewhere)

# %% [markdown]
# *In the field.* Position tables and masks are the usual suspects, since they are made from a length inside `forward`:
# [a Transformer's positional encoding](https://github.com/wingedsheep/transformer/issues/4) is one of many. A unit test
# that calls the module once on `meta` finds most such lines on any machine, and the exercise below does that. Not all:
# in a matrix product, `meta` is laxer than a GPU.

# %%
mixed = torch.ones(2, 3, device="meta") @ torch.ones(3, 2)
print("a meta matrix times a CPU matrix is on:", mixed.device)

# %% [markdown]
# ### A batch for a float64 model
#
# The batch is converted before it goes into the model.

# %%
def convert():
    x = torch.ones(3)
    x.to(torch.float64)
    return x.dtype

lk.predict("2.3.3")

# %% [markdown]
# With an assignment:

# %%
def convert_fixed():
    x = torch.ones(3)
    x = x.to(torch.float64)
    return x.dtype

lk.trap("2.3.3", convert, convert_fixed)

# %% [markdown]
# A tensor's `.to` returns the converted tensor and leaves the old one as it is. A module's `.to` is the other way round:
# it changes the parameters in place and returns the module itself. The same name, two contracts:

# %%
t, layer = torch.ones(3), nn.Linear(3, 2)
t.to(torch.float64)
layer.to(torch.float64)
print("tensor:", t.dtype, " layer:", layer.weight.dtype)

# %% [markdown]
# ### ★ Hidden layers in a list
#
# A network for the digits takes its hidden layers as a list, so that depth is easy to change. The images are real:
# 1,200 for training, the other 597 to test.

# %%
with np.load(lk.data_path("digits.npz")) as data:
    x = torch.from_numpy(data["images"]).float().flatten(1) / 16
    y = torch.from_numpy(data["labels"])

class Net(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.hidden = hidden
        self.out = nn.Linear(16, 10)
    def forward(self, x):
        for layer in self.hidden:
            x = torch.relu(layer(x))
        return self.out(x)

# %% [markdown]
# Training is the usual loop:

# %%
def train(model, steps=200):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for _ in range(steps):
        loss = F.cross_entropy(model(x[:1200]), y[:1200])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(round(loss.item(), 1))
    return losses

# %% [markdown]
# After it, compare each layer with a copy of its weights from before. `loss` is the first and the last one, `right` the
# share of test digits that are read rightly.

# %%
def fit(make_hidden):
    torch.manual_seed(1)
    model = Net(make_hidden([nn.Linear(64, 16), nn.Linear(16, 16)]))
    layers = [*model.hidden, model.out]
    before = [layer.weight.detach().clone() for layer in layers]
    losses = train(model)
    changed = [not torch.equal(w, n.weight) for w, n in zip(before, layers)]
    right = (model(x[1200:]).argmax(1) == y[1200:]).float().mean()
    first_and_last = [losses[0], losses[-1]]
    right = round(right.item(), 1)
    return {"changed": changed, "loss": first_and_last, "right": right}

# %% [markdown]
# The hidden layers go in as the list they are:

# %%
def fit_list():
    return fit(list)

lk.predict("2.3.4")

# %% [markdown]
# Run it:

# %%
lk.trap("2.3.4", fit_list)

# %% [markdown]
# `nn.Module` keeps a register of its parts. A module or an `nn.Parameter` is entered when
# it is assigned, a buffer (a tensor that is saved and not trained) by `register_buffer`. A
# list is none of these, so its layers are in no register, and whatever goes by the register
# misses them: `parameters()`, `state_dict()`, `.to`. What needs no register works:
# `forward` runs, and gradients arrive.

# %%
model = Net([nn.Linear(64, 16), nn.Linear(16, 16)])
model(x[:8]).sum().backward()
print("gradient in the list:", model.hidden[0].weight.grad is not None)
print("parameters:", [name for name, _ in model.named_parameters()])
print("saved:     ", list(model.state_dict()))
model.to(torch.float64)
listed, registered = model.hidden[0].weight.dtype, model.out.weight.dtype
print("after .to(float64): hidden", listed, "out", registered)

# %% [markdown]
# **Fix.** `nn.ModuleList` is a list that is a module, so assigning it registers every layer in it.

# %%
def fit_module_list():
    return fit(nn.ModuleList)

lk.fix("2.3.4", fit_module_list)

# %% [markdown]
# The broken run learned something too: its last layer was trained on what two random layers made of the image. So the
# loss fell, and nothing looked broken.
#
# **Transfer.** The same register decides about constants. `Scaled` keeps one tensor as a plain attribute and one as a
# buffer. Which of them does `.to` convert, and which is saved?

# %%
class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.plain = torch.ones(3)
        self.register_buffer("kept", torch.ones(3))

scaled = Scaled().to(torch.float64)
print("plain", scaled.plain.dtype, " kept", scaled.kept.dtype)
print("saved:", list(scaled.state_dict()))

# %% [markdown]
# *In the field.* [pytorch#715](https://github.com/pytorch/pytorch/issues/715) and a dozen like it: on a GPU it shows as
# a device error, on the CPU it does not show at all. A probe sees only what is registered, so before training compare
# the number of parameters with what you expect. For a dictionary of layers there is `nn.ModuleDict`, for a list of
# parameters `nn.ParameterList`.
#
# ### The second half of the training wants more precision
#
# After the first step the model is converted to float64, and so are the data.

# %%
def two_steps():
    model = nn.Linear(64, 10)
    optimizer = torch.optim.Adam(model.parameters())
    for dtype in (torch.float32, torch.float64):
        model.to(dtype)
        F.cross_entropy(model(x.to(dtype)), y).backward()
        optimizer.step()
    return model.weight.dtype

lk.predict("2.3.5")

# %% [markdown]
# The second version has one line more, in which the optimizer loads its own state:

# %%
def two_steps_fixed():
    model = nn.Linear(64, 10)
    optimizer = torch.optim.Adam(model.parameters())
    for dtype in (torch.float32, torch.float64):
        model.to(dtype)
        optimizer.load_state_dict(optimizer.state_dict())
        F.cross_entropy(model(x.to(dtype)), y).backward()
        optimizer.step()
    return model.weight.dtype

lk.trap("2.3.5", two_steps, two_steps_fixed)

# %% [markdown]
# Adam keeps two running averages of every weight's gradient. They are made at the first step, in the dtype and on the
# device of that moment, and `model.to` does not know of them. `load_state_dict` converts what it loads to the parameter
# it belongs to. The usual order needs no such line: move the model first, then make the optimizer.
#
# ### Exercise · A module that goes anywhere · 8 minutes, medium
#
# Deliver a module `Standardized(mean, std)` that computes `linear(cat([(x - mean) / std, ones], dim=1))`. The column
# `ones`, in place of a bias, is made in `forward`.
#
# - `mean` and `std` (64 values each) are constants of the data: they follow `.to`, are saved in the `state_dict`, and
#   are not trained.
# - `linear` is `nn.Linear(65, 10, bias=False)`, under that name.
# - It works on any device and in any floating dtype that the module was moved to, `meta` and float64 included; `x` comes
#   on the module's device and in its dtype, and so is the result.

# %%
class Standardized(nn.Module):
    def __init__(self, mean, std):
        super().__init__()

    def forward(self, x):
        return lk.TODO

Standardized = lk.check("2.3-module", Standardized)

# %% [markdown]
# Stuck? `lk.hint("2.3-module")` gives one hint at a time, `lk.solution("2.3-module")` an answer and why it is one.
#
# ### What the article says, and what this page measured
#
# Folded cells collect the values; run them, and read what they print. Both spellings of a hard-coded device, on a
# machine without a GPU:

# %% tags=["nbval-ignore-output"] jupyter={"source_hidden": true}
def error_of(line):
    try:
        return without_gpu(line)
    except (AssertionError, RuntimeError) as error:
        return str(error)

calls = "torch.ones(2).cuda()", 'torch.ones(2).to("cuda")'
said = [error_of(call) for call in calls]
print(*said, sep="\n")

# %% [markdown]
# Then what the article's line picks on this machine, and what `torch.accelerator` finds. Ask it whether there is one
# before asking which: without one, `current_accelerator()` raises in some versions and names a missing GPU in others.

# %% tags=["nbval-ignore-output"] jupyter={"source_hidden": true}
picked = torch.device("cuda" if torch.cuda.is_available() else "cpu").type
found = "cpu"
if torch.accelerator.is_available():
    found = torch.accelerator.current_accelerator().type
others = " and ".join(n for n in ("mps", "xpu") if hasattr(torch, n))
print("picked:", picked, " found:", found, " torch also has:", others)

# %% [markdown]
# How many tensors does one `model.to` visit when there is nothing to do?

# %% jupyter={"source_hidden": true}
from torch.overrides import TorchFunctionMode

class CountMoves(TorchFunctionMode):
    moves = 0
    def __torch_function__(self, function, types, args=(), kwargs=None):
        self.moves += function is torch.Tensor.to
        return function(*args, **(kwargs or {}))

deep = nn.Sequential(*[nn.Linear(4, 4) for _ in range(100)])
with CountMoves() as count:
    deep.to("cpu")
every = len(list(deep.parameters()))
print("visited", count.moves, "of", every, "parameters")

# %% [markdown]
# So move the model once, before the loop; a batch may be moved wherever it is convenient. What torch itself says about
# `.cuda()`, also in a worker process, can be read on any machine. The error that a forked worker gets:

# %% jupyter={"source_hidden": true}
import inspect
import re

unmoved = torch.ones(3)
cuda_doc, to_doc = torch.Tensor.cuda.__doc__, torch.Tensor.to.__doc__
on_gpu = unmoved.to(second) if second == "cuda" else None
cuda_same = None if on_gpu is None else on_gpu.cuda() is on_gpu
source = inspect.getsource(torch.cuda)
message = re.search(r'"(Cannot re-init[^"]*subprocess)', source).group(1)
print(message)

# %% [markdown]
# Last, what a default device reaches: it decides about new tensors and new layers, and not about what comes from NumPy.

# %% jupyter={"source_hidden": true}
with torch.device("meta"):
    new_layer = nn.Linear(2, 2).weight.device.type
    array = torch.from_numpy(np.ones(2)).device.type
print("a layer:", new_layer, " from_numpy:", array)

# %% [markdown]
# And the optimizer's state after `model.to`:

# %% jupyter={"source_hidden": true}
left = nn.Linear(64, 10)
optimizer = torch.optim.Adam(left.parameters())
left(x).sum().backward()
optimizer.step()
left.to(torch.float64)
state = str(optimizer.state[left.weight]["exp_avg"].dtype)
tensor = str(convert())
print("weight", left.weight.dtype, " Adam's average", state)

# %% [markdown]
# The article's statements of section 2.3, one a line:

# %% tags=["nbval-ignore-output"]
itself = unmoved.to("cpu") is unmoved
copied = unmoved.to("cpu", copy=True) is not unmoved
lk.verdicts(
    C2_3a=dict(cuda=said[0], to=said[1]),
    C2_3b=dict(picked=picked, accelerator=found, others=others),
    C2_3c=dict(same=itself, copied=copied, visited=count.moves,
               parameters=every,
               one_name=torch.device("cuda") == torch.device("cuda:0")),
    C2_3d=dict(cuda_documented="no copy is performed" in cuda_doc,
               to_documented="``self`` is returned" in to_doc,
               to_same=itself, cuda_same=cuda_same),
)

# %% [markdown]
# And the rows about workers, new tensors and what is left behind:

# %%
lk.verdicts(
    C2_3e=dict(message=message),
    C2_3f=dict(**accepted, layer=new_layer, from_numpy=array),
    C2_3g=dict(by_device=str(by_device), by_tensor=str(by_tensor)),
    C2_3h=dict(tensor=tensor, layer=str(registered), listed=str(listed),
               state=state),
)

# %% [markdown]
# **Two of these overturn common advice.** `.cuda()` is not the slow spelling of `.to`: both are documented to give the
# tensor itself back when it is already there (chapter 08 shows what does wait for a GPU). And `device=x.device` is not
# enough where dtypes differ.
#
# ### What you can do now
#
# - Use a GPU where there is one: ask once, then pass `device` on.
# - Make new tensors from `x` (`new_zeros`, `zeros_like`), so that device and dtype are right.
# - Say what `.to` reaches: parameters and buffers of registered modules, and nothing else.
# - Prove it without a GPU: call the module on `meta` and in float64.
#
# **Keep this**
#
# | you want | write |
# |---|---|
# | the device of this machine | `torch.accelerator.current_accelerator()` if `torch.accelerator.is_available()`, else the CPU |
# | a new tensor in `forward` | `x.new_zeros(10)`, `torch.zeros_like(x)` |
# | a constant in a module | `self.register_buffer("mean", mean)` |
# | several layers | `nn.ModuleList`, `nn.ModuleDict` |
# | to move a tensor | `x = x.to(device)` |
# | to move a model | `model.to(device)`, once, before the optimizer is made |
#
# *You can stop here. The next page is chapter 03, autograd: what is recorded while tensors are computed, and how that
# goes wrong.*
