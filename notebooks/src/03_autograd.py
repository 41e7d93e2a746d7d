# %% [markdown]
# # 3 · Autograd
#
# What is recorded while a model runs forward, what the way back needs of it, and where
# the way back is lost. Three parts, each one sitting: 3.1 the graph and how long it
# lives, 3.2 gradients that add up, on purpose and by accident, 3.3 what cuts a gradient,
# and what turns it into another number.
# A ★ marks the traps of the core route.
#
# [Open this page in Colab](https://colab.research.google.com/github/pytorch-pitfall-lab/pytorch-pitfall-lab/blob/learn/notebooks/03_autograd.ipynb)
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

session = lk.setup(3, solve=solve, version=made_with)

# %% [markdown]
# ## 3.1 The graph
#
# **After this part you can**
# - say what autograd records, what each step of it keeps, and for how long,
# - find the variable that holds an epoch of graphs in memory,
# - carry a state from one batch to the next without the history behind it,
# - say why `retain_graph=True`, which the error message offers, is rarely the cure,
# - read a graph, and see in it which weight gets no gradient, or a wrong one.
#
# *One sitting, about 30 minutes. Needs what autograd saves (first page of part 2.2). Any
# computer will do.*

# %% [markdown]
# ### A record of what ran
#
# An operation on a tensor that requires a gradient leaves a **node**, if it has a
# derivative and recording is on: it knows how to go backward through that operation, and
# which nodes come next. The result holds its node in `grad_fn`. Nodes and their links are
# the graph.

# %%
def layer(x, w):
    z = (x * w).sum()
    return z.relu() if x.mean() > 0 else z.exp()

w = torch.ones(3, requires_grad=True)
for x in (torch.ones(3), -torch.ones(3)):
    y = layer(x, w)
    behind = y.grad_fn.next_functions[0][0]
    print(y.grad_fn.name(), "->", behind.name())
print("of x alone:", (x * 2).grad_fn)

# %% [markdown]
# The graph is made anew in every call, from what really ran: a `print`, a condition or a
# loop in `forward` needs no special care. It lives as long as somebody holds its end.

# %% [markdown]
# ### The loss of an epoch, added up
#
# A classifier for the digits is validated after each epoch, in 30 batches of 60 images.
# The losses are added, to report their mean.

# %%
with np.load(lk.data_path("digits.npz")) as digits:
    images = torch.from_numpy(digits["images"]).float().flatten(1) / 16
    labels = torch.from_numpy(digits["labels"])
batches = list(zip(images.split(60), labels.split(60)))
model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10))

# %% [markdown]
# The tensors of one batch take 0.13 MB, most of it the 256 hidden values, before and after
# the ReLU.

# %%
def validate():
    total = 0
    for x, y in batches:
        loss = F.cross_entropy(model(x), y)
        total += loss
    return total / len(batches)

lk.predict("3.1.1")

# %% [markdown]
# The second version adds numbers:

# %%
def validate_fixed():
    total = 0
    for x, y in batches:
        loss = F.cross_entropy(model(x), y)
        total += loss.item()
    return total / len(batches)

lk.trap("3.1.1", validate, validate_fixed)

# %% [markdown]
# `total` is the end of a graph that goes through all 30 losses, and each of them holds what
# its batch saved. (The second version takes more than one batch's share: `loss` still holds
# the last graph while the next batch runs.) In a training loop `backward` frees what was
# saved; the nodes themselves stay. Count them:

# %%
def nodes(tensor):
    found, todo = set(), [tensor.grad_fn]
    while todo:
        node = todo.pop()
        if node is not None and node not in found:
            found.add(node)
            todo += [child for child, _ in node.next_functions]
    return len(found)

# %% [markdown]
# A training loop, with the loss added up as before:

# %%
total = 0
for n, (x, y) in enumerate(batches, 1):
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    total += loss
    if n in (1, 10, 30):
        print(f"after {n:2} batches: {nodes(total)} nodes behind total")

# %% [markdown]
# So a training loop leaks too, slowly: nodes, no tensors. For validation there is a
# better cure than `.item()`: under `no_grad` nothing is recorded in the first place.

# %%
def peak(validate):
    with lk.track_memory() as memory:
        validate()
    return f"{memory.peak_bytes / 1e3:.0f} kB"

print("total += loss:           ", peak(validate))
print("total += loss.item():    ", peak(validate_fixed))
print("the first under no_grad: ", peak(torch.no_grad()(validate)))

# %% [markdown]
# *In the field.* An official training example kept its losses in this way
# ([report](https://github.com/google/brax/pull/152)), and so did many loops that ran out
# of memory late in an epoch ([one](https://github.com/samuelyu2002/ImVisible/issues/2)).
# On a GPU `.item()` waits for the result; `total += loss.detach()` does not (chapter 08).

# %% [markdown]
# ### ★ A stream that is read in chunks
#
# Sixteen streams of pixel rows, 100 digits each, one under the other. A recurrent network
# predicts the next row. 800 steps are too many for one backward, so the streams come in
# chunks of 20 steps, and the state is handed on from chunk to chunk.

# %%
rows = images[:1600].reshape(16, 800, 8)  # (stream, step, pixel)

def make():
    torch.manual_seed(0)
    rnn, head = nn.GRU(8, 32, batch_first=True), nn.Linear(32, 8)
    parameters = [*rnn.parameters(), *head.parameters()]
    return rnn, head, torch.optim.Adam(parameters, lr=0.01)

# %% [markdown]
# `read()` returns the last loss:

# %%
def read():
    (rnn, head, optimizer), state = make(), None
    for chunk in rows.split(20, dim=1):
        out, state = rnn(chunk[:, :-1], state)
        loss = F.mse_loss(head(out), chunk[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return round(loss.item(), 2)

lk.predict("3.1.2")

# %% [markdown]
# Run it:

# %%
lk.trap("3.1.2", read)

# %% [markdown]
# The state is more than its numbers: it is the end of the first chunk's graph. The second
# loss reaches through it into nodes whose saved values the first `backward` has freed.

# %%
rnn, head, _ = make()
first, second = rows[:, :20], rows[:, 20:40]
_, state = rnn(first)
print("the state ends a graph of", nodes(state), "nodes")
out, _ = rnn(second, state)
print("behind the second chunk:", nodes(out), "nodes")
out, _ = rnn(second, state.detach())
print("with the state detached:", nodes(out), "nodes")

# %% [markdown]
# **The message offers a cure.** "Specify `retain_graph=True`" keeps the saved values. One
# function with switches, to measure what that does:

# %%
def read_part(chunks, update=False, cut=False):
    (rnn, head, optimizer), state = make(), None
    for chunk in rows[:, : 20 * chunks].split(20, dim=1):
        out, state = rnn(chunk[:, :-1], state)
        loss = F.mse_loss(head(out), chunk[:, 1:])
        loss.backward(retain_graph=not cut)
        if update:
            optimizer.step()
        if cut:
            state = state.detach()

# %% [markdown]
# With the updates of `read`, and the argument that the message asks for:

# %%
try:
    read_part(2, update=True)
except RuntimeError as error:
    print(str(error).split(":")[0])

# %% [markdown]
# The old part of the graph kept the weights that it was computed with, and `step` has
# changed them in place: trap 2.2.4 again. Without updates in between it does run. The
# price is the memory of all chunks so far; each backward also walks through all of them.

# %%
def peaks(cut):
    found = []
    for chunks in (5, 10, 20):
        with lk.track_memory() as memory:
            read_part(chunks, cut=cut)
        found.append(f"{memory.peak_bytes / 1e6:.1f} MB")
    return found

print("5, 10 and 20 chunks:", *peaks(cut=False))

# %% [markdown]
# **Fix.** `detach` hands on the values and leaves the history behind. The gradient then
# reaches back through one chunk at most, which is what training in chunks means.

# %%
def read_fixed():
    (rnn, head, optimizer), state = make(), None
    for chunk in rows.split(20, dim=1):
        out, state = rnn(chunk[:, :-1], state)
        loss = F.mse_loss(head(out), chunk[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        state = state.detach()
    return round(loss.item(), 2)

lk.fix("3.1.2", read_fixed)

# %% [markdown]
# Its memory does not grow with the number of chunks:

# %%
print("5, 10 and 20 chunks:", *peaks(cut=True))

# %% [markdown]
# If the gradient should go all the way back, add the losses up and call `backward` once.
#
# **Transfer.** An LSTM carries a pair, `(h, c)`. Is it enough to detach `h`, which is what
# the layer puts out?

# %%
def chunks_read(cut):
    lstm, state = nn.LSTM(8, 32, batch_first=True), None
    for n, chunk in enumerate(rows[:, :60].split(20, dim=1)):
        out, state = lstm(chunk, state)
        try:
            out.mean().backward()
        except RuntimeError:
            return f"raises in chunk {n + 1}"
        state = cut(*state)
    return "runs"

print("h alone:", chunks_read(lambda h, c: (h.detach(), c)))
print("both:   ", chunks_read(lambda h, c: (h.detach(), c.detach())))

# %% [markdown]
# **What counts is which tensors were saved, not the second call.** Going backward twice is
# allowed where no node on the way had saved a tensor:

# %%
def twice(function):
    y = function(torch.ones(3, requires_grad=True)).sum()
    y.backward()
    try:
        y.backward()
    except RuntimeError:
        return "raises"
    return "runs"

print("w + 1:  ", twice(lambda w: w + 1))
print("w.exp():", twice(lambda w: w.exp()))

# %% [markdown]
# So a loop can seem right until somebody puts an activation into it.
#
# *In the field.* A network for brain scans met the error, followed the advice, and ran out
# of memory ([report](https://github.com/sgadgil6/cnslab_fmri/issues/4)); readers of
# tutorials ask why the line that cuts the state is there
# ([report](https://github.com/MorvanZhou/PyTorch-Tutorial/issues/57)). `nodes(loss)`,
# printed batch by batch, shows the history growing before any error does.

# %% [markdown]
# ### What recording costs
#
# The same four layers with and without a graph, once tiny and once of usual size:

# %% tags=["volatile", "nbval-ignore-output"]
def recording(width, batch):
    net = nn.Sequential(*[nn.Linear(width, width) for _ in range(4)])
    x = torch.randn(batch, width)
    def unrecorded():
        with torch.no_grad():
            return net(x)
    ways = {"no_grad": unrecorded, "recorded": lambda: net(x)}
    return lk.compare(ways).ratio

costs = dict(tiny=recording(16, 16), usual=recording(1024, 16))
for name, ratio in costs.items():
    print(f"{name}: recording takes {ratio:.2f} times as long")

# %% [markdown]
# A node costs the same for a small matrix as for a large one; what differs is the work
# beside it.

# %% [markdown]
# ### Play with the graph
#
# `x` is data, `w` and `b` are weights, `h` is a value that `y` may use. Boxes are the nodes
# that PyTorch made for `y`, read from `grad_fn`; "keeps" is what each saved. Both lines
# can be changed: functions of torch, the models `mlp` and `rnn`.
#
# - Set *y gets* to `h.item()`. Which weight gets a wrong gradient, and why not `b`?
# - Let `x` need a gradient too. What does `MmBackward0` keep now?
# - Find a `y` whose nodes keep nothing of their own. Then try `y = rnn(x).sum()`.

# %%
lk.explore("3.1-graph")

# %% [markdown]
# ### What the article says, and what this page measured
#
# The graph of one function in two calls, and what is recorded without a weight:

# %%
w = torch.ones(3, requires_grad=True)
ends = [layer(x, w) for x in (-torch.ones(3), torch.ones(3))]
names = [end.grad_fn.name() for end in ends]
constant = (torch.ones(3) * 2).grad_fn is None
with lk.track_memory() as holding:
    validate()
with lk.track_memory() as adding:
    validate_fixed()
held, passing = holding.peak_bytes, adding.peak_bytes
freed = nodes(total)
print(names, held, passing, freed)

# %% [markdown]
# The article's statements of section 3.1, one a line:

# %% tags=["volatile"]
lk.verdicts(
    C3_1a=dict(first=names[0], second=names[1], constant=constant),
    C3_1b=costs,
    C3_1c=dict(held=held, passing=passing, nodes=freed, batches=len(batches)),
)

# %% [markdown]
# One of these overturns common advice, and it is PyTorch's own: **an error message that
# names an argument does not say that you want it.** `retain_graph=True` is for two losses
# that share a graph, within one step.
#
# **What you can do now**
# - Say what is recorded: what ran, node by node, with what each needs to go back.
# - Find who holds a graph: whatever still has a `grad_fn` when the batch is done.
# - Carry values on and cut the history: `detach`, every part of the state.
# - See in a graph which weight is reached, and by how many ways.
#
# **Keep this**
#
# | you want | write |
# |---|---|
# | a loss for the log | `total += loss.item()`, or `loss.detach()` |
# | a validation | `with torch.no_grad():` |
# | a state for the next batch | `state = state.detach()`; of an LSTM both parts |
# | one gradient through all chunks | add the losses, one `backward` |
# | two backwards through one graph | `retain_graph=True` in all but the last |
# | to see the graph | `y.grad_fn`, `.next_functions`, `._saved_result` and its like |
#
# *You can stop here. The next part, 3.2, starts with three lines that every training loop
# has, and their order.*

# %% [markdown]
# ## 3.2 Accumulation and zeroing
#
# **After this part you can**
# - say where in a loop `zero_grad` may stand, and the one place where it must not,
# - accumulate gradients over batches that do not fit together, also when they are unequal,
#   padded, or do not come out even,
# - check an accumulated gradient against that of the big batch, and know when the two
#   cannot agree,
# - tell a gradient of None from one of zero, and find weights that are never stepped.
#
# *One sitting, about 40 minutes. Needs the graph (part 3.1). Any computer will do.*

# %% [markdown]
# The model of this part is small and always starts with the same weights. `gradient` puts
# all its gradients into one long vector, to compare them.

# %%
with np.load(lk.data_path("digits.npz")) as digits:
    images = torch.from_numpy(digits["images"]).float().flatten(1) / 16
    labels = torch.from_numpy(digits["labels"])

def make_model(norm=nn.Identity()):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(64, 32), norm, nn.ReLU(),
                         nn.Linear(32, 10))

def gradient(model):
    return torch.cat([p.grad.flatten() for p in model.parameters()])

# %% [markdown]
# ### ★ A training loop after a review
#
# Three lines of a loop were put into another order: compute the gradients, clear them, and
# make the step. It runs 100 times over the digits.

# %%
def train():
    model, losses = make_model(), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    for _ in range(100):
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.zero_grad()
        optimizer.step()
        losses.append(round(loss.item(), 1))
    return [losses[0], losses[-1]]

lk.predict("3.2.1")

# %% [markdown]
# A second, and it is done:

# %%
lk.trap("3.2.1", train)

# %% [markdown]
# `backward` adds to `.grad`, `step` reads it, `zero_grad` sets it to None. What does `step`
# do with a parameter whose gradient is None?

# %%
w = torch.ones(2, requires_grad=True)
optimizer = torch.optim.SGD([w], lr=0.2)
w.sum().backward()
print("after backward: ", w.grad)
optimizer.zero_grad()
print("after zero_grad:", w.grad)
optimizer.step()
print("after step, w is", w.tolist())

# %% [markdown]
# It passes over it. A model may rightly have such parameters, so there is no warning.
#
# **Fix.** Nothing may come between `backward` and `step` that clears what is handed over.

# %%
def train_fixed():
    model, losses = make_model(), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    for _ in range(100):
        loss = F.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(round(loss.item(), 1))
    return [losses[0], losses[-1]]

lk.fix("3.2.1", train_fixed)

# %% [markdown]
# **Which orders are right?** The article says that `zero_grad` must come before `backward`.
# Here are all its places, and one order more; the last loss of 100 tells.

# %%
def last_loss(order):
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    lines = {"zero": optimizer.zero_grad, "step": optimizer.step,
             "backward": lambda: loss.backward()}
    for _ in range(100):
        for line in order.split():
            if line == "forward":
                loss = F.cross_entropy(model(images), labels)
            else:
                lines[line]()
    return round(loss.item(), 4)

# %% [markdown]
# The last line obeys the article's rule to the letter:

# %%
orders = ["zero forward backward step", "forward zero backward step",
          "forward backward step zero", "forward backward zero step",
          "forward zero step backward"]
reached = {order: last_loss(order) for order in orders}
for order, loss in reached.items():
    print(f"{order:28} {loss:.4f}")

# %% [markdown]
# Three places are equally good, to the last digit, and one of them is after `step`. **The
# rule is not "before backward".** Read the loop as a circle, *forward, backward, step*:
# `zero_grad` may stand anywhere on it, except between *backward* and *step*. (After `step`
# only if nothing else fills `.grad`: no backward before the loop, no other model's loss.)
#
# **Transfer.** And `step` itself: may it come between *forward* and *backward*, once there
# are gradients from the round before?

# %%
try:
    print(last_loss("forward step zero backward"))
except RuntimeError as error:
    print(str(error).split(":")[0])

# %% [markdown]
# It raises: the graph was recorded with weights that `step` then changed (trap 2.2.4).
#
# *In the field.* Readers of tutorials keep asking whether the place of `zero_grad` matters
# ([one](https://github.com/yunjey/pytorch-tutorial/issues/238),
# [another](https://github.com/patrickloeber/pytorchTutorial/issues/19)); a warning for the
# opposite fault, no `zero_grad` at all, has been [asked for since
# 2020](https://github.com/pytorch/pytorch/issues/47175). A report on one step of your own
# loop names both faults:

# %%
model = make_model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.2)

def one_step():
    F.cross_entropy(model(images), labels).backward()
    optimizer.zero_grad()
    optimizer.step()

lk.gradient_report(model, step=one_step)

# %% [markdown]
# ### ★ An update every four batches
#
# A batch of the wanted size does not fit into memory. So gradients of four smaller ones are
# added up before each update. An epoch has ten small batches.
#
# The sum of a single weight has the slope 1. As a loss, it makes `.grad` count the batches
# that went into an update.

# %%
def count_batches():
    weight, updates = torch.zeros(1, requires_grad=True), []
    for epoch in range(2):
        for i in range(10):
            weight.sum().backward()  # adds 1 to weight.grad
            if (i + 1) % 4 == 0:
                updates.append(int(weight.grad))
                weight.grad = None  # zero_grad
    return {"updates": updates, "left": 20 - sum(updates)}

lk.predict("3.2.2")

# %% [markdown]
# Count:

# %%
lk.trap("3.2.2", count_batches)

# %% [markdown]
# This is the loop of the article, and of many others. What it does to a real gradient: ten
# batches of 32 digits, and for each update the gradient of its four batches as one, at the
# weights of that moment.

# %%
def big_batch(model, window):
    x, y = map(torch.cat, zip(*window))
    loss = F.cross_entropy(model(x), y)
    grads = torch.autograd.grad(loss, list(model.parameters()))
    return torch.cat([grad.flatten() for grad in grads])

def distance(found, right):
    return ((found - right).norm() / right.norm()).item()

# %% [markdown]
# An error of 1 is as long as the right gradient itself:

# %%
batches = list(zip(images[:320].split(32), labels[:320].split(32)))
model, errors = make_model(), []
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
for i, (x, y) in [*enumerate(batches), *enumerate(batches)]:  # two epochs
    (F.cross_entropy(model(x), y) / 4).backward()
    if (i + 1) % 4 == 0:
        right = big_batch(model, batches[i - 3 : i + 1])
        errors.append(round(distance(gradient(model), right), 2))
        optimizer.step()
        optimizer.zero_grad()
print("errors of the four updates:", errors)

# %% [markdown]
# The first update of the second epoch adds up six batches and divides by four: 1.5 times
# the mean of the six. Two of them belong to the epoch before. (They are not stale: no
# update came in between.)
#
# **Fix.** Make the window the unit: take the next four batches, or as many as are left,
# and divide by how many there are.

# %%
from itertools import islice

def count_batches_fixed():
    weight, updates = torch.zeros(1, requires_grad=True), []
    for epoch in range(2):
        batches = iter(range(10))
        while window := list(islice(batches, 4)):
            weight.grad = None  # zero_grad
            for _ in window:
                weight.sum().backward()  # really: loss / len(window)
            updates.append(int(weight.grad))
    return {"updates": updates, "left": 20 - sum(updates)}

lk.fix("3.2.2", count_batches_fixed)

# %% [markdown]
# Holding four batches costs little: what is large is the graph of a batch, and there is
# one at a time. (`islice` needs the iterator: over a list it starts again each time.)
#
# **Transfer.** The usual patch is one condition more: `or i + 1 == len(batches)`, so that
# the rest gets its update too. The loss is still divided by 4. What is the error of that
# last update?

# %%
rest = batches[8:]
for divisor in (4, len(rest)):
    model = make_model()
    for x, y in rest:
        (F.cross_entropy(model(x), y) / divisor).backward()
    off = distance(gradient(model), big_batch(model, rest))
    print(f"divided by {divisor}: error {off:.2f}")

# %% [markdown]
# Half of the gradient is missing: an update, and half a step.
#
# *In the field.* A much used trainer ran windows over the end of an epoch until 2023
# ([report](https://github.com/huggingface/transformers/pull/22098)); another divided the
# short window by the configured number of steps
# ([report](https://github.com/modelscope/ms-swift/pull/10084)); a third counted 15 batches
# where 8 were meant, and reported an accuracy above 100 %
# ([report](https://github.com/meta-pytorch/torchtune/pull/2745)). Count the batches of
# each update, as above, over two epochs.

# %% [markdown]
# ### ★ Four batches, the last one small
#
# 26 images come in batches of 8, 8, 8 and 2, all in one window. The loss of each is
# divided by four. `accumulated()` returns the error against one batch of 26.

# %%
window = list(zip(images[:26].split(8), labels[:26].split(8)))

def accumulated():
    model = make_model()
    for x, y in window:
        loss = F.cross_entropy(model(x), y)
        (loss / len(window)).backward()
    return round(distance(gradient(model), big_batch(model, window)), 2)

lk.predict("3.2.3")

# %% [markdown]
# Run it:

# %%
lk.trap("3.2.3", accumulated)

# %% [markdown]
# `cross_entropy` returns a mean, and a mean of means gives every batch the same weight,
# however many images share it.

# %%
for x, y in (window[0], window[-1]):
    weight = 1 / len(window) / len(y)
    print(f"one of {len(y)} images weighs {weight:.3f},",
          f"its due is {1 / 26:.3f}")

# %% [markdown]
# **Fix.** Add up the losses of the images, and divide by their number in the whole window.

# %%
def accumulated_fixed():
    model = make_model()
    count = sum(len(y) for _, y in window)
    for x, y in window:
        losses = F.cross_entropy(model(x), y, reduction="sum")
        (losses / count).backward()
    return round(distance(gradient(model), big_batch(model, window)), 2)

lk.fix("3.2.3", accumulated_fixed)

# %% [markdown]
# **Transfer.** Four sentences, each padded to eight words: a batch is a sentence, a row a
# word. Labels of padding are −100, which `cross_entropy` leaves out. Are the batches equal
# now?

# %%
padded = list(zip(images[:32].split(8), labels[:32].clone().split(8)))
for (_, y), words in zip(padded, (8, 8, 8, 1)):
    y[words:] = -100
model = make_model()
for x, y in padded:
    (F.cross_entropy(model(x), y) / len(padded)).backward()
tokens_off = distance(gradient(model), big_batch(model, padded))
print(f"error of the gradient: {tokens_off:.1f}")

# %% [markdown]
# Rows are not what counts: labels are. And a batch of nothing but padding? Its mean is 0/0.

# %%
none = torch.full((8,), -100)
model = make_model()
loss = F.cross_entropy(model(images[:8]), none)
loss.backward()
print("loss:", loss.item(), "  gradient:", gradient(model).norm().item())
summed = F.cross_entropy(model(images[:8]), none, reduction="sum")
print("sum: ", summed.item())

# %% [markdown]
# The gradient is harmless, the loss in your log is not: one such batch makes the mean of an
# epoch NaN.
#
# *In the field.* In 2024 several trainers of language models turned out to average means
# ([transformers](https://github.com/huggingface/transformers/pull/34191),
# [torchtune](https://github.com/meta-pytorch/torchtune/pull/1875)). No probe finds it: the
# gradient is finite and plausible. Compare once with one big batch, as above, and with
# dropout off: it draws other masks for other batches.

# %% [markdown]
# ### Equal batches, and a BatchNorm
#
# Now all is even: four batches of eight. The model has a BatchNorm.

# %%
even = list(zip(images[:32].split(8), labels[:32].split(8)))

def with_norm(norm, window=even):
    model = make_model(norm)
    for x, y in window:
        (F.cross_entropy(model(x), y) / len(window)).backward()
    return distance(gradient(model), big_batch(model, window))

def normalised():
    return round(with_norm(nn.BatchNorm1d(32)), 2)

lk.predict("3.2.4")

# %% [markdown]
# The second version normalises each image by itself, in groups of features:

# %%
def normalised_fixed():
    return round(with_norm(nn.GroupNorm(4, 32)), 2)

lk.trap("3.2.4", normalised, normalised_fixed)

# %% [markdown]
# No weighting cures this: accumulated, a BatchNorm is another model. The smaller the batches,
# the more so:

# %%
pairs = list(zip(images[:32].split(2), labels[:32].split(2)))
print(f"sixteen batches of two: {with_norm(nn.BatchNorm1d(32), pairs):.1f}")

# %% [markdown]
# Projects say so in their answers
# ([one](https://github.com/ultralytics/yolov5/issues/1630)); statistics over a whole window
# have been [asked for since 2020](https://github.com/pytorch/pytorch/issues/46516).

# %% [markdown]
# ### A log of gradient norms
#
# A model has two heads. This week only the first is trained. The log takes the norm of every
# gradient, and lists what it has found.

# %%
def norms(logged=lambda p: True):
    model = nn.ModuleDict({"main": make_model(), "extra": nn.Linear(64, 2)})
    F.cross_entropy(model["main"](images), labels).backward()
    named = [(n, p) for n, p in model.named_parameters() if logged(p)]
    return list({n: p.grad.norm() for n, p in named})

lk.predict("3.2.5")

# %% [markdown]
# The second version lists what has a gradient:

# %%
def norms_fixed():
    return norms(logged=lambda p: p.grad is not None)

lk.trap("3.2.5", norms, norms_fixed)

# %% [markdown]
# None is not zero to an optimizer either. Adam trains a weight for five steps; then five
# steps follow in which the loss does not use it. How far does it go in those?

# %%
def moved(set_to_none):
    w = torch.ones(1, requires_grad=True)
    optimizer = torch.optim.Adam([w], lr=0.1)
    for step in range(10):
        optimizer.zero_grad(set_to_none=set_to_none)
        if step < 5:
            w.sum().backward()
        elif step == 5:
            start = w.item()
        optimizer.step()
    return abs(w.item() - start)

print(f"None: {moved(True):.2f}   zeros: {moved(False):.2f}")

# %% [markdown]
# Zeros let momentum (and weight decay) go on; None leaves the weight alone. Since PyTorch
# 2.0 None is the default, which stopped scripts that read `.grad` between steps
# ([report](https://github.com/pytorch/examples/pull/1172)).

# %% [markdown]
# ### A new head for a new task
#
# A model for ten classes gets a head for two. The optimizer stands ready.

# %%
def first_step(head_first=False):
    model, head = make_model(), nn.Linear(32, 2)
    if head_first:
        model[-1] = head
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    model[-1] = head
    before = head.weight.clone()
    F.cross_entropy(model(images), labels % 2).backward()
    optimizer.step()
    moved = not torch.equal(head.weight, before)
    return {"gradient": head.weight.grad is not None, "moved": moved}

lk.predict("3.2.6")

# %% [markdown]
# The second version puts the head in before the optimizer is made:

# %%
def first_step_fixed():
    return first_step(head_first=True)

lk.trap("3.2.6", first_step, first_step_fixed)

# %% [markdown]
# The rest of the model goes on learning, as in trap 2.3.4, so the loss gives no warning.
# `add_param_group` adds parameters to an optimizer that there is. A check in PyTorch was
# [asked for in 2018](https://github.com/pytorch/pytorch/issues/14467); `gradient_report`
# names parameters that get a gradient and are never stepped.

# %% [markdown]
# ### Play with accumulation
#
# Real gradients of real digits. The bars say what one label weighs, the arrows show both
# gradients. Mend the start with *sum ÷ all labels*. Then give every batch the same size,
# and choose BatchNorm. Then pad.

# %%
lk.explore("3.2-accumulation")

# %% [markdown]
# ### Exercise · accumulate, and be right · 10 minutes, medium
#
# Deliver `accumulate(model, optimizer, batches, steps)`: one epoch of updates. It returns
# their number.
#
# - `batches` can be gone through once and gives `(x, y)`; a label of −100 is none. There is
#   one update for every `steps` batches, and one for those that are left.
# - Each update's gradient is that of the mean cross-entropy over all labels of its window,
#   however they are spread. At least one label is in each.
# - The model sees one batch at a time; gradients that lie around before do not count.

# %%
def accumulate(model, optimizer, batches, steps):
    return lk.TODO

accumulate = lk.check("3.2-accumulate", accumulate)

# %% [markdown]
# Stuck? `lk.hint("3.2-accumulate")` gives one hint at a time, `lk.solution("3.2-accumulate")`
# an answer and why it is one.

# %% [markdown]
# ### What the article says, and what this page measured
#
# Two backwards without `zero_grad`; and a window of four whose loss is not divided, for a
# mean and for a sum:

# %%
def gradient_of(window, loss_of):
    model = make_model()
    for x, y in window:
        loss_of(model(x), y).backward()
    return gradient(model)

def summed(z, y):
    return F.cross_entropy(z, y, reduction="sum") / 4

right = big_batch(make_model(), even)
once = gradient_of(even[:1], F.cross_entropy).norm()
doubled = gradient_of(even[:1] * 2, F.cross_entropy).norm()
undivided = (gradient_of(even, F.cross_entropy).norm() / right.norm()).item()
sum_over_four = (gradient_of(even, summed).norm() / right.norm()).item()

# %% [markdown]
# What the missing division does to 50 steps of two optimizers, as a share of the weights:

# %%
def trained(kind, divisor):
    model = make_model()
    optimizer = kind(model.parameters(), lr=0.01)
    for _ in range(50):
        optimizer.zero_grad()
        for x, y in even:
            (F.cross_entropy(model(x), y) / divisor).backward()
        optimizer.step()
    return torch.cat([p.detach().flatten() for p in model.parameters()])

apart = {kind.__name__: distance(trained(kind, 1), trained(kind, 4))
         for kind in (torch.optim.Adam, torch.optim.SGD)}
print({name: f"{value:.2f}" for name, value in apart.items()})

# %% [markdown]
# Clipping the gradient after every batch, instead of once in a window:

# %%
def clipped(each):
    model = make_model()
    for n, (x, y) in enumerate(batches[:4], 1):
        (F.cross_entropy(model(x), y) / 4).backward()
        if each or n == 4:
            nn.utils.clip_grad_norm_(model.parameters(), 0.01)
    return gradient(model)

cosine = F.cosine_similarity(clipped(True), clipped(False), dim=0).item()
print(f"cosine between the two directions: {cosine:.2f}")

# %% [markdown]
# The article's statements of section 3.2, first on zeroing and on adding up:

# %%
order_names = ("before", "within", "after", "gap", "obeying")
places = dict(zip(order_names, reached.values()))
untrained = F.cross_entropy(make_model()(images), labels).item()
counted = count_batches()
lk.verdicts(
    C3_2a=dict(first=round(untrained, 4), **places),
    C3_2b=dict(ratio=(doubled / once).item()),
    C3_2e=dict(**counted, error=errors[2]),
)

# %% [markdown]
# Then on how near the big batch it comes:

# %%
equal, weighted = with_norm(nn.Identity()), accumulated_fixed()
unequal, batchnorm = accumulated(), normalised()
per_epoch = len(count_batches_fixed()["updates"]) // 2
lk.verdicts(
    C3_2c=dict(equal=equal, weighted=weighted, unequal=unequal,
               padded=tokens_off, batchnorm=batchnorm),
    C3_2d=dict(undivided=undivided, summed=sum_over_four,
               adam=apart["Adam"], sgd=apart["SGD"]),
    C3_2f=dict(updates=per_epoch, batches=10, cosine=cosine),
)

# %% [markdown]
# Two of these overturn common advice. `zero_grad` need not come before `backward`: it must
# not come between `backward` and `step`. And dividing by the number of steps is right for
# equal batches and a mean; for unequal and padded ones too it is **sum, and divide by the
# count of the window** (with class weights, by the sum of the labels' weights).
#
# **What you can do now**
# - Place `zero_grad`: anywhere but between `backward` and `step`.
# - Accumulate by windows, the last and shorter one included, and by labels.
# - Compare with the big batch once, dropout off; with BatchNorm do not expect it to agree.
# - Read None as "nothing has arrived since it was cleared", and compare the optimizer's list
#   with the model's.
#
# **Keep this**
#
# | you want | write |
# |---|---|
# | a step | `zero_grad`, forward, backward, step; never zero between the last two |
# | windows | `it = iter(loader)`, then `while window := list(islice(it, 4)):` |
# | the mean over a window | `reduction="sum"`, divided by all its labels |
# | to clip; to step a scheduler that counts steps | once per update |
# | the same gradient in small batches | GroupNorm or LayerNorm |
# | a log of gradients | `if p.grad is not None` |
# | a new layer | first the layer, then the optimizer; or `add_param_group` |
#
# *You can stop here. The next part, 3.3, starts with a layer that weighs its input by the
# input's own sum.*

# %% [markdown]
# ## 3.3 What cuts the gradient
#
# **After this part you can**
# - say of a line in `forward` whether a gradient passes it, ends at it, becomes 0 in it,
#   or whether the line raises,
# - tell a cut way from a wrong number, and prove with `gradcheck` that a gradient is right,
# - mask a function that is not defined everywhere without a NaN in the gradient,
# - put `detach` on the right side where two models train against each other,
# - find the parameters that a cut has left without a gradient.
#
# *One sitting, about 40 minutes. Needs the graph (part 3.1). Any computer will do.*

# %% [markdown]
# ### ★ A factor that is only a number
#
# A layer weighs its input by the input's own sum. The sum is a single number, so it is
# read out with `.item()`. The model trains, and nobody looks at this line again.

# %%
def weigh():
    x = torch.tensor([1.0, 2.0, 1.5], requires_grad=True)
    total = x.sum().item()
    loss = (x * total).sum()
    loss.backward()
    return x.grad

lk.predict("3.3.1")

# %% [markdown]
# The loss is the sum times the sum: (x₁ + x₂ + x₃)².

# %%
lk.trap("3.3.1", weigh)

# %% [markdown]
# `x` reaches the loss by two ways: directly, and through `total`. `.item()` turned the
# second into a constant. The slopes can be had without autograd: move one entry a little
# and see what the loss does.

# %%
def loss_of(x):
    return (x * x.sum().item()).sum()

x = torch.tensor([1.0, 2.0, 1.5], dtype=torch.float64, requires_grad=True)
little = torch.tensor([0.001, 0.0, 0.0], dtype=torch.float64)
moved = (loss_of(x + little) - loss_of(x - little)).item() / 0.002
told = torch.autograd.grad(loss_of(x), x)[0][0].item()
print(f"moving the first entry: {moved:.2f}")
print(f"autograd:               {told:.2f}")
passes = torch.autograd.gradcheck(loss_of, x, raise_exception=False)
print("gradcheck passes:", passes)

# %% [markdown]
# `gradcheck` does the same for every entry. It wants float64, since it divides small
# differences.
#
# **Fix.** Stay with the tensor: what is computed from tensors is recorded, and both ways
# are in the graph.

# %%
def weigh_fixed():
    x = torch.tensor([1.0, 2.0, 1.5], requires_grad=True)
    total = x.sum()
    loss = (x * total).sum()
    loss.backward()
    return x.grad

lk.fix("3.3.1", weigh_fixed)

# %% [markdown]
# **Transfer.** Shares: `x / x.sum().item()`. They add up to 1, whatever `x` is, so the
# slope of their sum is 0. Which slope does autograd report? And what happens if the
# *whole* loss goes through `.item()`?

# %%
x = torch.tensor([1.0, 2.0, 1.5], requires_grad=True)
(x / x.sum().item()).sum().backward()
print(f"shares: {x.grad[0]:.3f}")
whole_raises = False
try:
    torch.tensor(x.sum().item()).backward()
except RuntimeError as error:
    whole_raises = True
    print("the whole loss:", error)

# %% [markdown]
# **`backward` raises only where no way is left at all.** As long as one is, it runs: what
# lost one of its ways gets a wrong number, what lost them all gets None. `.item()` is right
# where a number leaves the model for good: to be printed, logged, or compared with a limit.
#
# *In the field.* Somebody who had written `math.pow(x, 3)` got PyTorch to [warn about such
# conversions](https://github.com/pytorch/pytorch/pull/143261); `.item()` is taken as
# meant, and gets no warning. `gradient_report`, which comes next, points at an `.item()`
# that it sees on the way to the loss; whether the number is wrong, `gradcheck` tells.

# %% [markdown]
# ### A matrix made of four numbers
#
# Fifty points were turned by an angle and shifted, and a small model has to find out by
# how much. `matrix_of` makes the rotation matrix from cosine and sine.

# %%
class Turn(nn.Module):
    def __init__(self, matrix_of):
        super().__init__()
        self.angle = nn.Parameter(torch.tensor(0.0))
        self.shift = nn.Parameter(torch.zeros(2))
        self.matrix_of = matrix_of

    def forward(self, x):
        matrix = self.matrix_of(self.angle.cos(), self.angle.sin())
        return x @ matrix.T + self.shift

# %% [markdown]
# The angle to be found is 1, the shift is (1, 0):

# %%
points = torch.randn(50, 2, generator=torch.Generator().manual_seed(0))
cosine, sine = np.cos(1.0), np.sin(1.0)
turn = torch.tensor([[cosine, -sine], [sine, cosine]], dtype=torch.float32)
turned = points @ turn.T + torch.tensor([1.0, 0.0])

def fit_turn(model):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(100):
        optimizer.zero_grad()
        F.mse_loss(model(points), turned).backward()
        optimizer.step()
    return round(model.angle.item(), 2)

# %% [markdown]
# The first version writes the matrix down as it stands in the book:

# %%
import warnings

# what newer versions of PyTorch say here is told after the prediction
warnings.filterwarnings("ignore", message="Converting a")

def find_angle():
    return fit_turn(Turn(lambda c, s: torch.tensor([[c, -s], [s, c]])))

lk.predict("3.3.2")

# %% [markdown]
# The second version stacks the four tensors:

# %%
def find_angle_fixed():
    return fit_turn(Turn(lambda c, s: torch.stack([c, -s, s, c]).view(2, 2)))

lk.trap("3.3.2", find_angle, find_angle_fixed)

# %% [markdown]
# `torch.tensor` makes a leaf out of values, whatever they came from; `torch.stack` and
# `torch.cat` are recorded. Newer versions of PyTorch warn at the first version's line, once
# a process; this page has switched it off, as many logs do. What they say:

# %%
torch.set_warn_always(True)
with warnings.catch_warnings(record=True) as heard:
    warnings.simplefilter("always")
    torch.tensor([torch.ones((), requires_grad=True)])
torch.set_warn_always(False)
print(*(str(warning.message)[:60] for warning in heard[:1]))

# %% [markdown]
# *In the field.* [A loss that should have balanced the experts
# of a model](https://github.com/laekov/fastmoe/issues/49) was built this way, and never
# did anything.
#
# `gradient_report` looks at every parameter of a model; `loss` is a function that computes
# the loss anew:

# %%
model = Turn(lambda c, s: torch.tensor([[c, -s], [s, c]]))
lk.gradient_report(model, loss=lambda: F.mse_loss(model(points), turned))

# %% [markdown]
# ### ★ A logarithm, only where it is defined
#
# Some counts are 0, and there the logarithm is not wanted. The condition is written with
# tensors, so that the gradient can pass: with `torch.where`.

# %%
def slopes():
    x = torch.tensor([0.0, 4.0], requires_grad=True)
    y = torch.where(x > 0, x.log(), 0.0)
    y.sum().backward()
    return x.grad

lk.predict("3.3.3")

# %% [markdown]
# The right slopes are 0, where `y` is the constant 0, and 1/4.

# %%
lk.trap("3.3.3", slopes)

# %% [markdown]
# `where` chooses between two results that are both there already. On the way back it sends
# 0 to the one it did not take, and that 0 goes on, into the logarithm. Watch it:

# %%
x = torch.tensor([0.0, 4.0], requires_grad=True)
logs = x.log()
logs.retain_grad()
torch.where(x > 0, logs, 0.0).sum().backward()
print("comes back to the logarithm:", logs.grad.tolist())
print("slope of the logarithm:     ", (1 / x).tolist())
print("their product:              ", x.grad.tolist())

# %% [markdown]
# **Fix.** Put a mask *in front* too. On the way back it sends 0 to each `x` that it has
# replaced, whatever comes. The 1 that stands in for it keeps the logarithm's slope finite,
# so that no NaN arises on the way either.

# %%
def slopes_fixed():
    x = torch.tensor([0.0, 4.0], requires_grad=True)
    positive = x > 0
    inside = torch.where(positive, x, 1.0)
    y = torch.where(positive, inside.log(), 0.0)
    y.sum().backward()
    return x.grad

lk.fix("3.3.3", slopes_fixed)

# %% [markdown]
# **This overturns common advice.** "Use `torch.where` or a mask instead of `if`" keeps the
# graph whole, and puts a NaN into it where the masked function has no finite slope. Here
# are seven masks, for three functions `f`; guess which are safe.

# %%
where, zeros = torch.where, torch.zeros(3)
after = {
    "where": lambda f, x, ok: where(ok, f(x), 0.0),
    "masked_fill": lambda f, x, ok: f(x).masked_fill(~ok, 0.0),
    "times ok": lambda f, x, ok: f(x) * ok,
    "nan_to_num": lambda f, x, ok: f(x).nan_to_num(0, 0, 0),
}
before = {
    "where, twice": lambda f, x, ok: where(ok, f(where(ok, x, 1.0)), 0.0),
    "clamp, where": lambda f, x, ok: where(ok, f(x.clamp(min=1e-6)), 0.0),
    "only x[ok]": lambda f, x, ok: zeros.masked_scatter(ok, f(x[ok])),
}

# %% [markdown]
# Each at -1, 0 and 4, where only 4 is wanted:

# %%
functions = {"log": torch.log, "sqrt": torch.sqrt, "1/x": torch.reciprocal}

def has_nan(mask, f):
    x = torch.tensor([-1.0, 0.0, 4.0], requires_grad=True)
    mask(f, x, x > 0).sum().backward()
    return x.grad.isnan().any().item()

found = {}
for name, mask in (after | before).items():
    found[name] = {n: has_nan(mask, f) for n, f in functions.items()}
    said = {n: "NaN" if nan else "fine" for n, nan in found[name].items()}
    print(f"{name:13}", *(f"{n}: {what:5}" for n, what in said.items()))

# %% [markdown]
# What comes after the function is too late, all of it. The same hides in a length that is
# written out, at 0:

# %%
lengths = {"written out": lambda x: x.square().sum().sqrt(),
           "norm": torch.norm}
for name, length in lengths.items():
    x = torch.zeros(3, requires_grad=True)
    length(x).backward()
    print(f"{name:12}", x.grad.tolist())

# %% [markdown]
# **Transfer.** A batch of 64 rows goes through a linear layer, and one of the results is
# negative. How many of the layer's three weights get a NaN?

# %%
layer, rows = nn.Linear(3, 1, bias=False), torch.ones(64, 3)
nn.init.ones_(layer.weight)
rows[0] = -1
h = layer(rows)
torch.where(h > 0, h.sqrt(), 0.0).sum().backward()
negative, nan = (h < 0).sum().item(), layer.weight.grad.isnan().sum().item()
print("negative results:", negative, " weights with a NaN:", nan)
torch.optim.SGD(layer.parameters(), lr=0.1).step()
print("results that are NaN after a step:", layer(rows).isnan().sum().item())

# %% [markdown]
# All three: a weight's gradient is a sum over the rows. After one step the weights are NaN,
# and so is all that comes out of them. Anomaly detection names the operation:

# %%
x = torch.tensor([0.0, 4.0], requires_grad=True)
with torch.autograd.set_detect_anomaly(True), warnings.catch_warnings():
    warnings.simplefilter("ignore")  # the same, with the line in forward
    try:
        torch.where(x > 0, x.log(), 0.0).sum().backward()
    except RuntimeError as error:
        print(error)

# %% [markdown]
# *In the field.* Reported [in 2019](https://github.com/pytorch/pytorch/issues/23395) and
# [again in 2026](https://github.com/pytorch/pytorch/issues/187297): it follows from how
# autograd works, and stays. [A library for gravitational
# lenses](https://github.com/Ciela-Institute/caustics/pull/83) found it in two of its mass
# profiles. `gradient_report` with a `loss` finds the parameters and the operation;
# `set_detect_anomaly` (slow: for the search only) stops at it.

# %% [markdown]
# ### A generator and its critic
#
# `D` learns to tell real points from made ones, `G` makes them. The loss of `D` shall not
# train `G`, so what `G` made is detached.

# %%
def bce(score, target):
    target = torch.full_like(score, target)
    return F.binary_cross_entropy_with_logits(score, target)

def models():
    torch.manual_seed(0)
    G = nn.Linear(2, 2)
    D = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1))
    return G, D, torch.randn(16, 2) + 3, torch.randn(16, 2)

# %% [markdown]
# `update` is the usual three lines; what comes out is how far the weights have moved.

# %%
def update(model, loss):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    start = [p.detach().clone() for p in model.parameters()]
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    pairs = zip(model.parameters(), start)
    return round(sum((p - s).abs().sum().item() for p, s in pairs), 2)

# %% [markdown]
# One step of each:

# %%
def gan_step():
    G, D, real, noise = models()
    fake = G(noise).detach()
    moved_d = update(D, bce(D(real), 1.0) + bce(D(fake), 0.0))
    return {"D": moved_d, "G": update(G, bce(D(fake), 1.0))}

lk.predict("3.3.4")

# %% [markdown]
# The second version detaches in the one place where it is meant:

# %%
def gan_step_fixed():
    G, D, real, noise = models()
    fake = G(noise)
    moved_d = update(D, bce(D(real), 1.0) + bce(D(fake.detach()), 0.0))
    return {"D": moved_d, "G": update(G, bce(D(fake), 1.0))}

lk.trap("3.3.4", gan_step, gan_step_fixed)

# %% [markdown]
# What each loss does to each model, with `detach` and without (the size of the gradient):

# %%
G, D, real, noise = models()
losses = {"D's": lambda fake: bce(D(real), 1.0) + bce(D(fake), 0.0),
          "G's": lambda fake: bce(D(fake), 1.0)}
gan = {}
for name, how in [(n, h) for n in losses for h in ("detached", "as it is")]:
    fake = G(noise) if how == "as it is" else G(noise).detach()
    G.zero_grad(), D.zero_grad()
    losses[name](fake).backward()
    gan[name, how] = g, d = G.weight.grad, D[0].weight.grad
    size = "None" if g is None else f"{g.norm():.2f}"
    print(f"{name} loss, {how}: G {size:4}  D {d.norm():.2f}")

# %% [markdown]
# In its own loss `D` loses nothing by the `detach`: the same gradient, and no way back
# through `G`. Without it `G` gets a gradient too. Does it at least help? The cosine of the
# angle between it and the gradient of the loss that `G` should follow:

# %%
own, others = gan["G's", "as it is"][0], gan["D's", "as it is"][0]
print(f"{F.cosine_similarity(own.flatten(), others.flatten(), dim=0):.1f}")

# %% [markdown]
# It pulls the other way, towards fakes that are easily told. `zero_grad` throws it away,
# if it is called in time; not to compute it is better.
#
# *In the field.* [A `detach` in the generator's
# loss](https://github.com/nikhilsinghmus/image2reverb/issues/37) of a published model,
# confirmed as a bug when a reader asked: a second loss trained the generator, so nothing
# stood still.

# %% [markdown]
# ### A function that only NumPy has
#
# One step of the model is easier in NumPy. There and back again:

# %%
def squash():
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    y = torch.from_numpy(np.tanh(w.numpy()))
    y.sum().backward()
    return w.grad

lk.predict("3.3.5")

# %% [markdown]
# The second version uses the function that torch has:

# %%
def squash_fixed():
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    y = torch.tanh(w)
    y.sum().backward()
    return w.grad

lk.trap("3.3.5", squash, squash_fixed)

# %% [markdown]
# `np.exp(w)` and `np.asarray(w)` ask for the array too. And then the way that the message
# recommends, with one more parameter, `b`:

# %%
def refuses(call):
    try:
        call()
    except RuntimeError:
        return True
    return False

w, b = (torch.ones(2, requires_grad=True) for _ in range(2))
ways = {"numpy": torch.Tensor.numpy, "exp": np.exp, "asarray": np.asarray}
refused = {name: refuses(lambda: way(w)) for name, way in ways.items()}
(torch.from_numpy(np.tanh(w.detach().numpy())) + b).sum().backward()
print("raise:", *(name for name, no in refused.items() if no))
print("after detach: w", w.grad, " b", b.grad)

# %% [markdown]
# **The advice in this message is right for a plot, and wrong in `forward`.** It turns a loud
# error into a silent cut. *In the field.* [A capsule
# network](https://github.com/phanideepgampa/stacked-capsule-networks/issues/3) turned its
# templates with an image library; its author thinks it may be why the published results
# could not be reproduced. Where it must be NumPy, write the backward too:

# %%
class Tanh(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = torch.from_numpy(np.tanh(x.detach().numpy()))
        ctx.save_for_backward(y)
        return y
    @staticmethod
    def backward(ctx, slope):
        return slope * (1 - ctx.saved_tensors[0] ** 2)

x = torch.tensor([0.5, 1.0], dtype=torch.float64, requires_grad=True)
print("gradcheck passes:", torch.autograd.gradcheck(Tanh.apply, x))

# %% [markdown]
# ### Which of these lines let a gradient through?
#
# For each, guess one of four: passes, cut (no history), zero (a history, but the gradient
# is 0), raises. `x` holds 0.2, 0.7 and 1.5.

# %%
lines = {
    "x * 2": lambda x: x * 2, "2 / x": lambda x: 2 / x,
    "x ** 2.0": lambda x: x**2.0, "x // 2": lambda x: x // 2,
    "x.double()": lambda x: x.double(), "x.long()": lambda x: x.long(),
    "x.round()": torch.round, "x.floor()": torch.floor,
    "x.sign()": torch.sign, "x > 0": lambda x: x > 0,
    "bernoulli(x / 2)": lambda x: torch.bernoulli(x / 2),
    "x.argmax()": torch.argmax, "x.unique()": torch.unique,
    "x.sort().values": lambda x: x.sort().values, "x.data": lambda x: x.data,
    "x.sort().indices": lambda x: x.sort().indices,
    "multinomial(x, 1)": lambda x: x.multinomial(1), "histc(x)": torch.histc,
}

# %% [markdown]
# And those that make a new tensor, or look something up:

# %%
lines |= {
    "tensor(x.tolist())": lambda x: torch.tensor(x.tolist()),
    "tensor([x[0], x[1]])": lambda x: torch.tensor([x[0], x[1]]),
    "stack([x[0], x[1]])": lambda x: torch.stack([x[0], x[1]]),
    "as_tensor(x)": torch.as_tensor,
    "zeros(3).copy_(x)": lambda x: torch.zeros(3).copy_(x),
    "nn.Parameter(x * 2)": lambda x: nn.Parameter(x * 2),
    "linspace(0, x[0], 3)": lambda x: torch.linspace(0, x[0], 3),
    "table[x.long()]": lambda x: torch.arange(3.0)[x.long()],
    "one_hot(x.long())": lambda x: F.one_hot(x.long()),
    "where(x > 1, 1.0, 0.0)": lambda x: torch.where(x > 1, 1.0, 0.0),
}

# %% [markdown]
# Now each of them is tried:

# %%
def fate(line):
    x = torch.tensor([0.2, 0.7, 1.5], requires_grad=True)
    try:
        y = line(x)
        if y.requires_grad:
            y.sum().backward()
    except RuntimeError:
        return "raises"
    if x.grad is None:
        return "cut"
    return "passes" if x.grad.any() else "zero"

# %% [markdown]
# And sorted by what became of the gradient:

# %%
fates = {name: fate(line) for name, line in lines.items()}
for kind in ("passes", "zero", "raises", "cut"):
    print(f"{kind}:")
    names = [name for name, became in fates.items() if became == kind]
    for n in range(0, len(names), 3):
        print("   ", *(f"{name:22}" for name in names[n : n + 3]))

# %% [markdown]
# Constants do no harm in themselves; `//` and `unique` have no backward in PyTorch, and say
# so. What answers with whole numbers or with yes and no (indices, classes, comparisons) has
# no slope, and is cut; steps such as `round` have the slope 0, are recorded, and pass
# nothing on; what makes a tensor from *values* is cut, with a warning at the most.
#
# ### Exercise · a logarithm that is safe to train through · 4 minutes, easy
#
# **Return the logarithm where `x` is positive, and 0 elsewhere**: right values (also at
# 1e-30), and right gradients: 1/x above 0, and 0, never NaN, at 0 and below.

# %%
def safe_log(x):
    return lk.TODO

safe_log = lk.check("3.3-safe-log", safe_log)

# %% [markdown]
# ### Exercise · one step of a GAN · 6 minutes, medium
#
# **Do one step of `D`, then one of `G`, each by the gradient of its own loss**, and return
# the two losses as numbers. The loss of `D` is `bce(D(real), 1.0) + bce(D(fake), 0.0)`, and
# it does not go back into `G`; that of `G` is `bce(D(fake), 1.0)`, with `D` as it is after
# its step. Your function will be called again with the same models: no step uses what
# another has left behind.

# %%
def one_gan_step(G, D, real, noise, optimizer_g, optimizer_d):
    return lk.TODO

one_gan_step = lk.check("3.3-gan-step", one_gan_step)

# %% [markdown]
# ### Exercise · three cuts in one model · 8 minutes, medium
#
# The values of this model are right. In three places its way back is cut.

# %%
class Cut(nn.Module):
    def __init__(self):
        super().__init__()
        self.angle = nn.Parameter(torch.tensor(0.5))
        self.size = nn.Parameter(torch.tensor(2.0))
        self.hidden, self.out = nn.Linear(2, 3), nn.Linear(3, 1)
    def forward(self, x):
        c, s = self.angle.cos(), self.angle.sin()
        x = x @ torch.tensor([[c, -s], [s, c]]) * self.size.item()
        h = np.tanh(self.hidden(x).detach().numpy())
        return self.out(torch.from_numpy(h))

# %% [markdown]
# After a backward, without a `loss`, the report only lists who got a gradient. With `loss`
# it also looks for the line. Try both on `Cut`, and on `Mended` while you work:

# %%
model = Cut()
model(points).square().sum().backward()
lk.gradient_report(model)

# %% [markdown]
# **Write `forward` anew**: the same values, and every parameter gets its right gradient.
# The parameters stay as they are.

# %%
class Mended(Cut):
    def forward(self, x):
        return lk.TODO

Mended = lk.check("3.3-three-cuts", Mended)

# %% [markdown]
# ### What the article says, and what this page measured
#
# First `detach` and `no_grad`: who needs a gradient afterwards, and what happens to an edit
# through a detached name.

# %%
x = torch.tensor([1.0, 2.0], requires_grad=True)
y = x.exp()
cut = y.detach()
with torch.no_grad():
    under_no_grad = x * 2
with torch.inference_mode():
    under_inference = x * 2
cut.zero_()
edit_refused = refuses(y.sum().backward)

# %% [markdown]
# Then the numbers for the table, from the cells above:

# %%
kinds = list(fates.values())
constants = [fates[name] for name in ("x * 2", "2 / x", "x ** 2.0")]
after_nan = [nan for name in after for nan in found[name].values()]
before_nan = [nan for name in before for nan in found[name].values()]
detached, leaked = gan["D's", "detached"], gan["D's", "as it is"]
same_d = torch.equal(detached[1], leaked[1])

# %% [markdown]
# The statements of section 3.3 about what cuts, and when:

# %%
lk.verdicts(
    C3_3a=dict(needs=cut.requires_grad, shares=cut.data_ptr() == y.data_ptr(),
               refused=edit_refused),
    C3_3b=dict(no_grad=under_no_grad.requires_grad,
               inference=under_inference.requires_grad,
               outside=(x * 2).requires_grad),
    C3_3c=dict(raised=sum(refused.values()), tried=len(refused),
               detached=str(w.grad)),
    C3_3d=dict(constants=constants.count("passes"), tried=len(kinds),
               cut=kinds.count("cut"), zero=kinds.count("zero"),
               raised=kinds.count("raises")),
)

# %% [markdown]
# And those about what to do:

# %%
lk.verdicts(
    C3_3e=dict(detached=str(detached[0]), same=same_d,
               leaked=leaked[0].norm().item(),
               own=str(gan["G's", "detached"][0])),
    C3_3f=dict(item=told, truth=round(moved, 3), raises=whole_raises),
    C3_3g=dict(after=len(after_nan), after_nan=sum(after_nan),
               before=len(before_nan), before_nan=sum(before_nan)),
)

# %% [markdown]
# **What you can do now**
# - Say what a line does to a gradient: pass, cut, zero, raise; and ask `requires_grad` and
#   `grad` where you are not sure.
# - Suspect a number where a way is cut and another is left, and prove it with `gradcheck`.
# - Mask in front of the function, so that it never sees what it cannot take.
# - Detach where a tensor is only data for what follows, and nowhere else.
# - Read from `gradient_report` which parameters a cut has left out.
#
# **Keep this**
#
# | you want | write |
# |---|---|
# | a factor that is computed from tensors | the tensor, not `.item()` |
# | a tensor from several tensors | `torch.stack`, `torch.cat`, not `torch.tensor` |
# | f where it is defined, 0 elsewhere | `torch.where(ok, f(torch.where(ok, x, 1.0)), 0.0)` |
# | the discriminator's loss | `D(fake.detach())` |
# | the generator's loss | `D(fake)`, and `D` is reset before its next backward |
# | a NumPy function in `forward` | torch's own, or a `torch.autograd.Function` |
# | a number for a log or a plot | `loss.item()`, `x.detach().cpu().numpy()` |
# | proof that a gradient is right | `torch.autograd.gradcheck(f, x)`, in float64 |
# | the operation whose backward made a NaN | `torch.autograd.set_detect_anomaly(True)` |
#
# *You can stop here: this is the end of chapter 03. The next page is [chapter 04, the data
# pipeline](04_data.ipynb): what a dataset keeps, what its workers repeat, and what padding
# adds.*
