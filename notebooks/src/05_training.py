# %% [markdown]
# # 5 · Training
#
# What a training loop gets wrong without a word: the mode of a model, the course of its
# learning rate, and the range of its numbers. Three parts, each one sitting: 5.1 train
# and eval mode, 5.2 learning-rate schedules and warm-up, 5.3 clipping and mixed precision.
# A ★ marks the traps of the core route.
#
# [Open this page in Colab](https://colab.research.google.com/github/pytorch-pitfall-lab/pytorch-pitfall-lab/blob/learn/notebooks/05_training.ipynb)
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

session = lk.setup(5, solve=solve, version=made_with)

# %% [markdown]
# ## 5.1 Train and eval mode
#
# **After this part you can**
# - say which modules answer differently in the two modes, and what each then does,
# - keep a validation from changing the model that it measures,
# - name what such a validation spoils, and what it leaves alone,
# - keep a frozen backbone frozen, and notice a training that runs in eval mode,
# - write an `evaluate` that leaves every mode as it found it.
#
# *One sitting, about 40 minutes. Needs the usual training loop; any computer will do.*
#
# The data are 1,797 handwritten digits of 64 pixels, in three lists of batches:

# %%
with np.load(lk.data_path("digits.npz")) as data:
    images = torch.from_numpy(data["images"]).float().flatten(1) / 16
    labels = torch.from_numpy(data["labels"])

def batches(rows, size):
    return list(zip(images[rows].split(size), labels[rows].split(size)))

train_loader = batches(slice(0, 1000), 50)
val_loader = batches(slice(1000, 1400), 20)
test_loader = batches(slice(1400, None), 50)

# %% [markdown]
# The model has the two modules that this part is about. A new module is in train mode.

# %%
def make_model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(64, 64), nn.BatchNorm1d(64), nn.ReLU(),
                         nn.Dropout(0.5), nn.Linear(64, 10))

def train_epoch(model, optimizer, loader=train_loader):
    for x, y in loader:
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

# %% [markdown]
# Ten epochs take a moment:

# %%
net = make_model()
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
for epoch in range(10):
    train_epoch(net, optimizer)

# %% [markdown]
# ### ★ How good is it?
#
# Training is over. The validation loss is the mean over the 20 batches, always the same
# ones, in the same order, without gradients.

# %%
def validate():
    with torch.no_grad():
        losses = [F.cross_entropy(net(x), y) for x, y in val_loader]
    return round(torch.stack(losses).mean().item(), 2)

lk.predict("5.1.1")

# %% [markdown]
# Run it three times:

# %%
lk.trap("5.1.1", validate)

# %% [markdown]
# `no_grad` stops the recording of gradients and nothing else: the modules are still in
# train mode. There, Dropout sets values to zero, other ones in each call (and enlarges the
# rest to make up for them). BatchNorm subtracts the mean of *this batch* and divides by its
# standard deviation, so one image's score depends on the images beside it. Here is the
# score that one image gets for its own digit, with Dropout switched off:

# %%
import copy

def score(mode, size):
    model = copy.deepcopy(net).train(mode)
    model[3].eval()  # no dropout: only BatchNorm is looked at
    with torch.no_grad():
        return model(images[1000 : 1000 + size])[0, labels[1000]].item()

print("in a batch of  2      20     400")
for mode in ("train", "eval"):
    scores = [score(mode == "train", size) for size in (2, 20, 400)]
    print(f"{mode:5} mode ", *[f"{s:4.0f}  " for s in scores])

# %% [markdown]
# **Fix.** `net.eval()` switches both: Dropout hands its input on, and BatchNorm takes the
# mean and variance that it has collected while training, which are constants.

# %%
def validate_fixed():
    net.eval()
    with torch.no_grad():
        losses = [F.cross_entropy(net(x), y) for x, y in val_loader]
    return round(torch.stack(losses).mean().item(), 2)

lk.fix("5.1.1", validate_fixed)

# %% [markdown]
# **Transfer.** Which of these seven give another answer in eval mode than in train mode?

# %%
modules = {"Linear": nn.Linear(8, 8), "Dropout": nn.Dropout(0.5),
           "BatchNorm1d": nn.BatchNorm1d(8), "LayerNorm": nn.LayerNorm(8),
           "GroupNorm": nn.GroupNorm(2, 8), "RReLU": nn.RReLU(),
           "BatchNorm1d without running statistics":
               nn.BatchNorm1d(8, track_running_stats=False)}
sample = torch.randn(4, 8)
for name, module in modules.items():
    answers = module.train()(sample), module.eval()(sample)
    print(f"{name:39}", "same" if torch.equal(*answers) else "another answer")

# %% [markdown]
# The last one uses the batch in both modes: `eval` has no statistics to go to. `RReLU`
# draws its slope at random in train mode only. `eval` is only a flag; each module decides
# what to make of it.
#
# *In the field.* The code behind a published paper evaluated under `inference_mode` and
# never called `eval` ([report](https://github.com/ipolharvard/ethos-ares/issues/20)).
# Validate twice: two numbers that differ are a sign. Two equal ones prove nothing, since
# BatchNorm answers the same batches alike: look at `model.training` too.

# %% [markdown]
# ### ★ A look at images from another scanner
#
# A second scanner makes grey paper: every pixel is brighter by 1. In the middle of training,
# somebody wants to know how the model would do on such images. `share_right` has `no_grad`.

# %%
grey_loader = [(x + 1, y) for x, y in val_loader]

@torch.no_grad()
def share_right(model, loader):
    right = sum((model(x).argmax(1) == y).sum().item() for x, y in loader)
    return right / sum(len(y) for _, y in loader)

# %% [markdown]
# Before and after that look, the model is measured on the test images of the old scanner,
# in eval mode.

# %%
def look_at_grey():
    model = copy.deepcopy(net)
    before = share_right(model.eval(), test_loader)
    model.train()
    share_right(model, grey_loader)
    after = share_right(model.eval(), test_loader)
    return {"before": round(before, 1), "after": round(after, 1)}

lk.predict("5.1.2")

# %% [markdown]
# Run it:

# %%
lk.trap("5.1.2", look_at_grey)

# %% [markdown]
# In train mode, each forward also moves BatchNorm's running statistics: nine tenths old, one
# tenth from this batch. That is no gradient step, so switching gradients off does not stop
# it. Below, a new BatchNorm (running mean 0) sees batches whose mean is 1:

# %%
for context in (torch.no_grad, torch.inference_mode):
    bn, means = nn.BatchNorm1d(1), []
    with context():
        for number in range(20):
            bn(torch.ones(20, 1))
            means.append(round(bn.running_mean.item(), 2))
    told = [means[n - 1] for n in (1, 10, 20)]
    print(f"{context.__name__:14} after 1, 10 and 20 batches:", told)

# %% [markdown]
# Twenty batches replace 88 % of what training has collected.
#
# **Fix.** In eval mode, BatchNorm reads its statistics and writes none.

# %%
def look_at_grey_fixed():
    model = copy.deepcopy(net)
    before = share_right(model.eval(), test_loader)
    share_right(model.eval(), grey_loader)
    after = share_right(model.eval(), test_loader)
    return {"before": round(before, 1), "after": round(after, 1)}

lk.fix("5.1.2", look_at_grey_fixed)

# %% [markdown]
# **Transfer.** `share_right` also returned a number for the grey images. Was it too low, or
# too high?

# %%
for mode in ("train", "eval"):
    model = copy.deepcopy(net).train(mode == "train")
    share = share_right(model, grey_loader)
    print(f"grey images read rightly in {mode:5} mode: {share:.1f}")

# %% [markdown]
# Far too high: with the mean of a grey batch subtracted, the paper is white again. In use,
# images come one at a time, in eval mode. **Validation in train mode can hide the very
# difference that it should find**: here a shift that each batch's own mean removes.
#
# *In the field.* Without `eval`, says a reader of its code, a benchmark read 99.6 % instead of
# about 90 % ([report](https://github.com/floodsung/LearningToCompare_FSL/issues/48)); a tree
# detector validates in train mode on purpose, and its makers are uneasy about it
# ([report](https://github.com/weecology/DeepForest/issues/477)).

# %% [markdown]
# ### What it spoils, and what it leaves alone
#
# The article warns of *small* validation sets, and of what they do to further training. Try
# both. First, the test images after one validation in train mode; the model reads 0.9 of
# them before it.

# %%
def after_looking_at(loader):
    model = copy.deepcopy(net).train()
    share_right(model, loader)
    return share_right(model.eval(), test_loader)

tiny = batches(slice(1000, 1020), 2)
looks = {"20 images of the old scanner, in twos": tiny,
         "400 images of the old scanner": val_loader,
         "20 grey images, one batch": grey_loader[:1],
         "400 grey images": grey_loader}
after = {name: after_looking_at(loader) for name, loader in looks.items()}
for name, share in after.items():
    print(f"{name:38} {share:.1f}")

# %% [markdown]
# **Here it is not the small set that spoils, but the strange one**, and the more batches of
# it, the more. Next, the following training step: its gradients from a clean and from a spoiled
# model, on the same batch with the same dropout.

# %%
def gradients(spoiled, frozen):
    model = copy.deepcopy(net).train()
    if spoiled:
        share_right(model, grey_loader)
    model[1].train(not frozen)
    torch.manual_seed(0)
    F.cross_entropy(model(images[:50]), labels[:50]).backward()
    return torch.cat([p.grad.flatten() for p in model.parameters()])

for frozen in (False, True):
    same = torch.equal(gradients(False, frozen), gradients(True, frozen))
    print("BatchNorm", "frozen:" if frozen else "live:  ", "identical", same)

# %% [markdown]
# In train mode BatchNorm never reads its running statistics, so training goes on bit by bit
# as if nothing had happened (save that Dropout has drawn some random numbers). A frozen
# BatchNorm, in eval mode, does read them. And training batches wash the statistics clean,
# here without any step, as one repairs a spoiled checkpoint:

# %%
spoiled = copy.deepcopy(net).train()
share_right(spoiled, grey_loader)
washed = {0: share_right(spoiled.eval(), test_loader)}
for count in (10, 20):
    share_right(spoiled.train(), train_loader[count - 10 : count])
    washed[count] = share_right(spoiled.eval(), test_loader)
print({count: round(share, 1) for count, share in washed.items()})

# %% [markdown]
# What is left is the number itself: schedules and checkpoints are steered by it. The mean
# loss, in whatever mode the model is:

# %%
from torch.optim.lr_scheduler import ReduceLROnPlateau

@torch.no_grad()
def mean_loss(model, loader):
    losses = [F.cross_entropy(model(x), y) for x, y in loader]
    return torch.stack(losses).mean().item()

# %% [markdown]
# Two trainings from the same seed, which differ in the mode of their validation on the grey
# images. It looks at a copy, and each epoch sets the seed, so that only its number can have
# an effect.

# %%
def steered_by(mode):
    model, seen = make_model(), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    plateau = ReduceLROnPlateau(optimizer, patience=1, factor=0.5)
    for epoch in range(6):
        torch.manual_seed(epoch)
        train_epoch(model.train(), optimizer)
        looker = copy.deepcopy(model).train(mode == "train")
        seen.append(mean_loss(looker, grey_loader))
        plateau.step(seen[-1])
    return optimizer.param_groups[0]["lr"], seen.index(min(seen)) + 1

# %% [markdown]
# The learning rate at the end, and the epoch whose checkpoint would be kept as the best:

# %%
steered = {mode: steered_by(mode) for mode in ("train", "eval")}
for mode, (lr, best) in steered.items():
    print(f"validated in {mode} mode: learning rate {lr}, best epoch {best}")

# %% [markdown]
# So the article is half right: later *training* is touched only through frozen layers and
# through decisions. What suffers is every evaluation, prediction and checkpoint until the
# statistics are washed.

# %% [markdown]
# ### Dropout as a function
#
# A model calls dropout as a function in `forward`. `same_twice` asks it the same thing twice,
# in eval mode.

# %%
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden, self.out = nn.Linear(64, 64), nn.Linear(64, 10)
    def forward(self, x):
        return self.out(F.dropout(F.relu(self.hidden(x)), 0.5))

def same_twice():
    model = Net().eval()
    return torch.equal(model(images), model(images))

lk.predict("5.1.3")

# %% [markdown]
# The second version hands the mode on:

# %%
class NetFixed(Net):
    def forward(self, x):
        h = F.relu(self.hidden(x))
        return self.out(F.dropout(h, 0.5, training=self.training))

def same_twice_fixed():
    model = NetFixed().eval()
    return torch.equal(model(images), model(images))

lk.trap("5.1.3", same_twice, same_twice_fixed)

# %% [markdown]
# `eval` sets a flag on modules, and a function has none: `training=True` is its default
# ([report](https://github.com/facebookresearch/DME/issues/3)). The attention function does not
# even have the argument; give it `dropout_p=0.0` in eval mode:

# %%
q = torch.randn(1, 4, 8)
attend = F.scaled_dot_product_attention
twice = [attend(q, q, q, dropout_p=0.5) for _ in range(2)]
print("attention, the same twice:", torch.equal(*twice))

# %% [markdown]
# ### The backbone is frozen
#
# The first layers shall stay as they are: no gradients, eval mode. Only the last layer learns
# the grey images. `features` is what the frozen part makes of the test images.

# %%
def fine_tune(epochs=2):
    model = copy.deepcopy(net)
    backbone = model[:3].requires_grad_(False).eval()
    features = backbone(images[1400:])
    optimizer = torch.optim.Adam(model[4].parameters())
    for epoch in range(epochs):
        model.train()
        train_epoch(model, optimizer, grey_loader)
    return torch.equal(backbone.eval()(images[1400:]), features)

lk.predict("5.1.4")

# %% [markdown]
# The second version has one line more, right after `train()`:

# %%
def fine_tune_fixed(epochs=2):
    model = copy.deepcopy(net)
    backbone = model[:3].requires_grad_(False).eval()
    features = backbone(images[1400:])
    optimizer = torch.optim.Adam(model[4].parameters())
    for epoch in range(epochs):
        model.train()
        backbone.eval()
        train_epoch(model, optimizer, grey_loader)
    return torch.equal(backbone.eval()(images[1400:]), features)

lk.trap("5.1.4", fine_tune, fine_tune_fixed)

# %% [markdown]
# `train()` reaches every module, also those you had put into eval mode, and
# `requires_grad=False` says nothing about running statistics, which have no gradient
# ([report](https://github.com/pytorch/pytorch/issues/86590)). In a class of your own,
# override `train(self, mode=True)`: `super().train(mode)`, then `self.backbone.eval()`,
# then `return self`, which `model.eval()` hands on.
#
# `mode_report` looks for both faults, this one and the one before, in any model. Give it a
# few inputs, so that it can try two forwards; it leaves the model as it was.

# %% tags=["nbval-ignore-output"]
tuned = nn.Sequential(copy.deepcopy(net[:3]).requires_grad_(False), Net())
lk.mode_report(tuned.train(), images[:8])

# %% [markdown]
# ### A thousand images in batches of 27
#
# One epoch over the training images, as the loader gives them:

# %%
from torch.utils.data import DataLoader, TensorDataset

dataset = TensorDataset(images[:1000], labels[:1000])

def epoch_of_27():
    model = make_model()
    return sum(len(model(x)) for x, _ in DataLoader(dataset, batch_size=27))

lk.predict("5.1.5")

# %% [markdown]
# The second version leaves the incomplete batch out:

# %%
def epoch_of_27_fixed():
    model = make_model()
    loader = DataLoader(dataset, batch_size=27, drop_last=True)
    return sum(len(model(x)) for x, _ in loader)

lk.trap("5.1.5", epoch_of_27, epoch_of_27_fixed)

# %% [markdown]
# 1,000 is 37 · 27 + 1, and one value has no spread to divide by. The size of the data set
# decides, so it shows after the data have changed, at the end of an epoch
# ([report](https://github.com/fastai/fastai/issues/1352)). Drop the rest while training, never
# while validating.

# %% [markdown]
# ### ★ A run that logs where it starts
#
# A deeper model, six blocks of Linear, BatchNorm and ReLU. Each epoch begins with an
# evaluation, so that the log also shows where the run started.

# %%
def make_deep():
    torch.manual_seed(0)
    layers = []
    for block in range(6):
        layers += [nn.Linear(64, 64), nn.BatchNorm1d(64), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(64, 10))

def evaluated(model):
    model.eval()
    return round(share_right(model, test_loader), 1)

# %% [markdown]
# `run` trains for five epochs and returns the share of test images read rightly:

# %%
def run():
    model = make_deep()
    model.train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(5):
        evaluated(model)
        train_epoch(model, optimizer)
    return evaluated(model)

lk.predict("5.1.6")

# %% [markdown]
# Run it:

# %%
lk.trap("5.1.6", run)

# %% [markdown]
# After the first evaluation nobody called `train()`. Parameters learn in either mode, so
# nothing complains. But in eval mode BatchNorm reads its running statistics, and nobody
# collects any: mean 0 and variance 1, as made. It normalises nothing, and from block to block
# less of the image is left. The spread of what reaches the last layer, before training:

# %%
for mode in ("train", "eval"):
    model = make_deep().train(mode == "train")
    h = model[:-1](images[:1000])
    count = model[1].num_batches_tracked.item()
    print(f"{mode:5} mode: spread over the images {h.std(0).mean():.3f},",
          f"batches counted {count}")

# %% [markdown]
# **Fix.** Call `train()` at the head of every epoch, not once before the loop; better still,
# let the evaluation put back what it found (the exercise below).

# %%
def run_fixed():
    model = make_deep()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(5):
        evaluated(model)
        model.train()
        train_epoch(model, optimizer)
    return evaluated(model)

lk.fix("5.1.6", run_fixed)

# %% [markdown]
# **Transfer.** The same fault in the small model from above, evaluated at the *end* of each
# epoch. Would its accuracy have told you? And what does?

# %%
def run_small(back):
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(10):
        train_epoch(model, optimizer)
        evaluated(model)
        model.train(back)
    return evaluated(model), model[1].num_batches_tracked.item()

for back in (False, True):
    right, counted = run_small(back)
    print("back in train mode:", back, " right:", right, " counted:", counted)

# %% [markdown]
# To the digit shown, the accuracy tells nothing. `num_batches_tracked` does: 20 of 200. Nine
# epochs had no dropout, and the statistics are nine epochs old.
#
# *In the field.* [A segmentation trainer](https://github.com/wkentaro/pytorch-fcn/issues/57)
# ran the rest of each epoch in eval mode after a validation in its middle; the sign was a
# training loss that jumped as each epoch began. In [another
# project](https://github.com/fartashf/vsepp/issues/4) the published results were made that
# way, and mending it changes them. `mode_report` runs your evaluation and says what it leaves
# behind:

# %%
model = make_deep()
lk.mode_report(model, evaluate=lambda: evaluated(model))

# %% [markdown]
# ### The model ends in probabilities
#
# For the reader's convenience the model returns probabilities. `fit` is ten epochs with
# cross-entropy; it returns the loss on the training images and the share read rightly.

# %%
def fit(*end):
    model = nn.Sequential(*make_model(), *end)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for epoch in range(10):
        train_epoch(model, optimizer)
    loss = F.cross_entropy(model.eval()(images[:1000]), labels[:1000]).item()
    return {"loss": round(loss, 1), "right": evaluated(model)}

def fit_probabilities():
    return fit(nn.Softmax(dim=1))

lk.predict("5.1.7")

# %% [markdown]
# The second version returns what the last layer gives:

# %%
def fit_logits():
    return fit()

lk.trap("5.1.7", fit_probabilities, fit_logits)

# %% [markdown]
# `cross_entropy` takes logits and applies the softmax itself. Numbers between 0 and 1, taken
# as logits, give the right one of ten digits at most e ÷ (e + 9) = 0.23, a loss of 1.46. A loss
# that comes to rest there is the sign; the accuracy may be good
# ([report](https://github.com/Lightning-Universe/lightning-bolts/issues/654)).

# %% [markdown]
# ### Exercise · An evaluation that leaves no trace · 10 minutes, medium
#
# `loader` is a list of batches `(x, y)`, of whatever sizes. **Return the mean cross-entropy
# per image, as a Python float.**
#
# - The whole model is in eval mode while it is measured.
# - No gradients are recorded meanwhile; afterwards they are again, if they were before.
# - Every module is then in the mode in which it was: a frozen BatchNorm that was in eval mode
#   still is, and the rest of the model is in train mode again.
# - Each image counts the same, also those of a smaller last batch.

# %%
def evaluate(model, loader):
    return lk.TODO

evaluate = lk.check("5.1-evaluate", evaluate)

# %% [markdown]
# Stuck? `lk.hint("5.1-evaluate")` gives one hint at a time, `lk.solution("5.1-evaluate")` an
# answer and why it is one.
#
# ### What the article says, and what this page measured
#
# First, what the two calls reach, and what Dropout does in each mode:

# %%
model = nn.Sequential(make_model(), nn.Sequential(nn.Dropout(0.5)))
itself = model.eval() is model
modes = [m.training for m in model.modules()]
model.append(nn.Dropout(0.5))
reach = dict(modules=len(modes), reached=modes.count(False), itself=itself,
             late=model[-1].training)
ones = torch.ones(1000)
drop = nn.Dropout(0.5)
ways = dict(train=drop(ones), eval=drop.eval()(ones))
ways["function"] = F.dropout(ones, 0.5)
zeros = {way: t.eq(0).sum().item() for way, t in ways.items()}

# %% [markdown]
# BatchNorm in both modes, without running statistics, and with a single image:

# %%
bn, x = nn.BatchNorm1d(8), sample + 3
plain = nn.BatchNorm1d(8, track_running_stats=False)
batch_mean = bn(x).mean(0).abs().max().item()
updated = bool(bn.running_mean.abs().min() > 0)
by_hand = (x - bn.running_mean) / (bn.running_var + bn.eps).sqrt()
from_running = torch.allclose(bn.eval()(x), by_hand, atol=1e-4)
without = torch.equal(plain.train()(x), plain.eval()(x))
try:
    single = bool(bn.train()(x[:1]).numel())
except ValueError:
    single = False

# %% [markdown]
# And five validations of one model in each mode:

# %%
def losses_in(mode):
    model = copy.deepcopy(net).train(mode == "train")
    return [mean_loss(model, val_loader) for _ in range(5)]

noisy, steady = losses_in("train"), losses_in("eval")
print("different losses in train mode:", len(set(noisy)))
print("different losses in eval mode: ", len(set(steady)))

# %% [markdown]
# The modes themselves:

# %%
alone, crowd = score(True, 2), score(True, 400)
lk.verdicts(
    C5_1a=reach,
    C5_1b=zeros,
    C5_1c=dict(batch=batch_mean < 1e-4, updated=updated, running=from_running,
               without=without, single=single),
    C5_1d=dict(different=len(set(noisy)), steady=len(set(steady)),
               least=min(noisy), right=steady[0], alone=alone, crowd=crowd),
)

# %% [markdown]
# What a validation in train mode does, and the rule that avoids it:

# %%
live = torch.equal(gradients(False, False), gradients(True, False))
frozen = torch.equal(gradients(False, True), gradients(True, True))
small, large, _, grey = after.values()
before = share_right(net.eval(), test_loader)
lk.verdicts(
    C5_1e=dict(before=before, small=small, large=large, grey=grey,
               moved=means[-1]),
    C5_1f=dict(train=live, frozen=frozen, washed=washed[20],
               rates=[lr for lr, _ in steered.values()],
               best=[best for _, best in steered.values()]),
    C5_1g=dict(rule=run_fixed(), without=run(), kept=fine_tune()),
)

# %% [markdown]
# **What you can do now**
# - Dropout and BatchNorm are the usual two that answer differently; LayerNorm and GroupNorm
#   do not. Functions have no mode: hand `self.training` on.
# - Validate in eval mode *and* without gradients: the first keeps the model as it is, the
#   second saves memory.
# - A validation in train mode spoils evaluations, checkpoints, frozen layers and what is
#   decided by its number; gradients in train mode are untouched.
# - After each `train()`, put the frozen part back into eval mode. `num_batches_tracked` says
#   how much of a training ran in train mode.
# - In `evaluate`, note each module's mode and put it back; sum over images, not over batches.
#
# **Keep this**
#
# | you want | write |
# |---|---|
# | to train | `model.train()` at the head of every epoch |
# | to validate | `model.eval()`, `with torch.no_grad():`, and each mode back afterwards |
# | a frozen backbone | `backbone.requires_grad_(False)`, and `backbone.eval()` after each `model.train()` |
# | dropout as a function | `F.dropout(h, p, training=self.training)` |
# | no batch of one | `DataLoader(..., drop_last=True)`, for training only |
# | a loss for classes | `F.cross_entropy(logits, y)`, no softmax before it |
# | to look into a model | `lk.mode_report(model, inputs, evaluate)` |
#
# *You can stop here. The next part, 5.2, starts with a learning rate that changes while it
# trains, and asks whether that is worth it.*

# %% [markdown]
# ## 5.2 Learning-rate schedules and warm-up
#
# **After this part you can**
# - say which learning rate every optimizer step will use, before the run is started,
# - step a schedule in the unit that it was written in: optimizer steps or epochs,
# - write a warm-up that wastes no step, and a cosine that ends where it should,
# - feed a plateau scheduler the right number, the right way round, at the right time,
# - tell from several seeds whether a schedule or a warm-up was worth it.
#
# *One sitting, about 40 minutes. You need to know what a training loop does. Any
# computer will do.*

# %% [markdown]
# ### Does a schedule pay?
#
# A scheduler changes `lr` in each of `optimizer.param_groups` (`OneCycleLR` and `CyclicLR`
# the momentum too). Whether that is of use, ten epochs on the digits can tell: 1,300 of
# them to train on, 497 held out, which serve as validation and as test here.

# %%
from matplotlib.figure import Figure
from torch.optim.lr_scheduler import CosineAnnealingLR, LambdaLR, StepLR
from torch.optim.lr_scheduler import ReduceLROnPlateau, SequentialLR

digits = np.load(lk.data_path("digits.npz"))
order = torch.randperm(1797, generator=torch.Generator().manual_seed(0))
x = torch.from_numpy(digits["images"]).float().flatten(1)[order] / 16
y = torch.from_numpy(digits["labels"])[order]

# %% [markdown]
# The model is small, and an epoch has 13 steps of 100 digits. The learning rate is the
# `rate` for short.

# %%
def make(rate, seed=0):
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    return model, torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9)

def batches():
    return torch.randperm(1300).split(100)

def rate_of(optimizer):
    return round(optimizer.param_groups[0]["lr"], 12)

# %% [markdown]
# One optimizer step, and the test, which gives a loss and an accuracy:

# %%
def train_step(model, optimizer, rows):
    loss = F.cross_entropy(model(x[rows]), y[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()

def test(model):
    with torch.no_grad():
        scores, labels = model(x[1300:]), y[1300:]
        right = (scores.argmax(1) == labels).float().mean()
        return F.cross_entropy(scores, labels).item(), right.item()

# %% [markdown]
# Four rates, each kept constant and each taken down to zero along a cosine; every run
# with five seeds. Both kinds get the same first weights and the same batches.

# %%
def test_error(rate, kind, seed):
    model, optimizer = make(rate, seed)
    scheduler = CosineAnnealingLR(optimizer, T_max=10 * 13)
    for epoch in range(10):
        for rows in batches():
            train_step(model, optimizer, rows)
            if kind == "cosine":
                scheduler.step()
    return 100 * (1 - test(model)[1])

kinds = ("constant", "cosine")
cases = [(rate, kind) for rate in (0.05, 0.2, 0.5, 0.8) for kind in kinds]
errors = {c: [test_error(*c, seed) for seed in range(5)] for c in cases}

# %% [markdown]
# A picture has one mark for each run and a bar for the mean of its five:

# %%
def dots(results, ylabel):
    figure = Figure(figsize=(7.2, 3), layout="constrained")
    axes = figure.add_subplot(xlabel="learning rate", ylabel=ylabel)
    for n, ((rate, kind), runs) in enumerate(results.items()):
        c, mark = (("#0072B2", "o"), ("#D55E00", "s"))[n % 2]
        at = n + 0.25 * (-1) ** n  # both kinds of a rate stand close together
        name = kind if n < 2 else None
        axes.plot([at] * len(runs), runs, mark, c=c, mfc="none", label=name)
        axes.plot([at - 0.2, at + 0.2], [np.mean(runs)] * 2, c=c)
    axes.set_xticks(np.arange(0.5, n, 2), [r for r, _ in results][::2])
    axes.legend(frameon=False)
    return figure

# %% [markdown]
# With five runs a mean proves little. The words ask for more: a difference counts if it
# points the same way in every seed.

# %%
def compared(results):
    items, said = list(results.items()), []
    for (case, one), (other, two) in zip(items[::2], items[1::2]):
        lower = sum(b < a for a, b in zip(one, two))
        higher = sum(b > a for a, b in zip(one, two))
        seen = {lower: "lower in every seed", higher: "higher in every seed"}
        said.append(f"at {case[0]} {case[1]} {np.mean(one):.1f}, "
                    f"{other[1]} {np.mean(two):.1f} "
                    f"({seen.get(len(one), 'no clear difference')})")
    return "; ".join(said)

# %% [markdown]
# Here are the forty runs:

# %% tags=["volatile", "nbval-ignore-output"]
lk.show_figure(
    dots(errors, "test error, %"),
    alt=f"Test error in per cent, mean of five seeds: {compared(errors)}.",
)

# %% [markdown]
# The same in words, and the best rate of each kind:

# %% tags=["volatile", "nbval-ignore-output"]
print(compared(errors).replace("; ", "\n"))
for kind in kinds:
    mean, rate = min((np.mean(errors[c]), c[0]) for c in cases if kind in c)
    print(f"best {kind}: {mean:.1f} % at {rate}")

# %% [markdown]
# A cosine spends half of its steps below half the rate. Where the rate is small, that is
# training time lost; where it is so large that the loss would bounce to the end, it is
# the cure. **A schedule is compared at its own best rate**: at one rate alone, either of
# the two can be made to win.

# %% [markdown]
# ### The first epoch of a gentle start
#
# The rate shall grow over the first five epochs. The scheduler is stepped where most
# examples do it, at the end of the epoch.

# %%
def first_epoch():
    model, optimizer = make(rate=0.2)
    scheduler = LambdaLR(optimizer, lambda n: min(1.0, n / 5))
    before = model[0].weight.detach().clone()
    for rows in batches():
        train_step(model, optimizer, rows)
    scheduler.step()
    return round((model[0].weight - before).norm().item(), 1)

lk.predict("5.2.1")

# %% [markdown]
# The second version counts from one:

# %%
def first_epoch_fixed():
    model, optimizer = make(rate=0.2)
    scheduler = LambdaLR(optimizer, lambda n: min(1.0, (n + 1) / 5))
    before = model[0].weight.detach().clone()
    for rows in batches():
        train_step(model, optimizer, rows)
    scheduler.step()
    return round((model[0].weight - before).norm().item(), 1)

lk.trap("5.2.1", first_epoch, first_epoch_fixed)

# %% [markdown]
# `LambdaLR` asks for `n = 0` as soon as it is made. Stepped after every optimizer step
# the same warm-up loses one step and does no harm; a reinforcement-learning library
# [was told of that one](https://github.com/verl-project/verl/issues/3674).

# %% [markdown]
# ### ★ A warm-up of 1,000, and thirty epochs
#
# The warm-up comes from a paper, the loop from a tutorial. The rate shall rise to 0.2.

# %%
def warm_up(n):
    return min(1.0, n / 1000)

def last_rate():
    model, optimizer = make(rate=0.2)
    scheduler = LambdaLR(optimizer, warm_up)
    for epoch in range(30):
        for rows in batches():
            train_step(model, optimizer, rows)
        scheduler.step()
    return rate_of(optimizer)

lk.predict("5.2.2")

# %% [markdown]
# Thirty epochs take a moment.

# %%
lk.trap("5.2.2", last_rate)

# %% [markdown]
# A scheduler knows neither epochs nor steps: it counts the calls of its own `step()`, and
# calls the count `last_epoch`. No data and no model are needed to see what it will do:

# %%
model, optimizer = make(rate=0.2)
scheduler = LambdaLR(optimizer, warm_up)
for calls in (0, 30, 390, 1000):
    while scheduler.last_epoch < calls:
        optimizer.step()
        scheduler.step()
    print(f"last_epoch {calls:4}: rate {rate_of(optimizer):.3f}")

# %% [markdown]
# The paper counted optimizer steps. Even counted so, 1,000 are too many here, where the
# whole run has 30 · 13 = 390.
#
# **Fix.** Step the scheduler in the unit that its numbers are in, and take the numbers
# from the length of the run, so that they cannot fall apart.

# %%
def last_rate_fixed():
    model, optimizer = make(rate=0.2)
    rising = 0.1 * 30 * len(batches())  # a tenth of all steps
    scheduler = LambdaLR(optimizer, lambda n: min(1.0, (n + 1) / rising))
    for epoch in range(30):
        for rows in batches():
            train_step(model, optimizer, rows)
            scheduler.step()
    return rate_of(optimizer)

lk.fix("5.2.2", last_rate_fixed)

# %% [markdown]
# **Transfer.** Now the other way round: `T_max` is the number of epochs, 30, and the
# scheduler is stepped after every optimizer step. The cosine is at zero after 30 of the
# 390 steps. And after 45, and 60?

# %%
model, optimizer = make(rate=0.2)
scheduler = CosineAnnealingLR(optimizer, T_max=30)
for calls in (0, 15, 30, 45, 60):
    while scheduler.last_epoch < calls:
        optimizer.step()
        scheduler.step()
    print(f"after {calls:2} steps: rate {rate_of(optimizer):.3f}")

# %% [markdown]
# `T_max` is half a wave, not an end: the rate goes up and down 6½ times in this run, and
# no message says so.
#
# *In the field.* With gradients accumulated over several batches, a trainer stepped its
# scheduler after each of them, and the schedule ended several times too early
# ([mended here](https://github.com/starVLA/starVLA/pull/210)).

# %% [markdown]
# #### Look before you train
#
# `preview_schedule` runs a scheduler without the training, on copies, and names what looks
# wrong. Here is the cosine of the transfer:

# %%
model, optimizer = make(rate=0.2)
scheduler = CosineAnnealingLR(optimizer, T_max=30)
lk.preview_schedule(optimizer, scheduler, 390, steps_per_epoch=13)

# %% [markdown]
# A loop that steps once an epoch says so: `stepped="epoch"`. Of a function in a
# `LambdaLR` no probe can know what it was meant to do: there, read the row of rates.

# %% [markdown]
# ### Play with a schedule and its loop
#
# The schedule and the run begin in step. Change only when it is stepped: what is left of
# the schedule, and how many steps are wasted? Then let the rate rise where it should
# fall. Then make a run whose first epoch is for nothing.

# %%
lk.explore("5.2-schedule")

# %% [markdown]
# ### Two calls at the end of the loop
#
# Both the optimizer and the scheduler are stepped once an epoch here. The rate shall drop
# to a tenth every two.

# %%
def rates_used():
    model, optimizer = make(rate=0.1)
    scheduler = StepLR(optimizer, step_size=2, gamma=0.1)
    used = []
    for epoch in range(4):
        scheduler.step()
        used.append(rate_of(optimizer))
        train_step(model, optimizer, torch.arange(100))
    return used

lk.predict("5.2.3")

# %% [markdown]
# The second version steps the optimizer first:

# %%
def rates_used_fixed():
    model, optimizer = make(rate=0.1)
    scheduler = StepLR(optimizer, step_size=2, gamma=0.1)
    used = []
    for epoch in range(4):
        used.append(rate_of(optimizer))
        train_step(model, optimizer, torch.arange(100))
        scheduler.step()
    return used

lk.trap("5.2.3", rates_used, rates_used_fixed)

# %% [markdown]
# The warning comes at the scheduler's first call only. Here are the rates:

# %%
import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    print("scheduler first:", rates_used())
print("optimizer first:", rates_used_fixed())

# %% [markdown]
# The same warning comes from a right loop whose first step was skipped by a `GradScaler`
# ([report](https://github.com/pytorch/pytorch/issues/44511)); there it is harmless.

# %% [markdown]
# ### A loss that falls, and a patient scheduler
#
# `ReduceLROnPlateau` lowers the rate when the loss stops falling. Every batch has a loss.

# %%
def plateau():
    model, optimizer = make(rate=0.1)
    scheduler = ReduceLROnPlateau(optimizer, patience=3)
    for epoch in range(10):
        for rows in batches():
            loss = train_step(model, optimizer, rows)
            scheduler.step(loss)
    return rate_of(optimizer)

lk.predict("5.2.4")

# %% [markdown]
# The second version gives it the loss on the held-out digits, once an epoch:

# %%
def plateau_fixed():
    model, optimizer = make(rate=0.1)
    scheduler = ReduceLROnPlateau(optimizer, patience=3)
    for epoch in range(10):
        for rows in batches():
            train_step(model, optimizer, rows)
        loss, accuracy = test(model)
        scheduler.step(loss)
    return rate_of(optimizer)

lk.trap("5.2.4", plateau, plateau_fixed)

# %% [markdown]
# Patience is a number of calls, and the first cut comes one call later than many expect:
# with 3, at the fourth call without a new best
# ([explained here](https://github.com/pytorch/pytorch/issues/119763)).

# %% [markdown]
# ### The accuracy rises, and a scheduler watches
#
# This loop reports accuracy, so accuracy is what the scheduler gets, once an epoch.

# %%
def watch():
    model, optimizer = make(rate=0.02)
    scheduler = ReduceLROnPlateau(optimizer, patience=3)
    for epoch in range(9):
        for rows in batches():
            train_step(model, optimizer, rows)
        loss, accuracy = test(model)
        scheduler.step(accuracy)
    return rate_of(optimizer)

lk.predict("5.2.5")

# %% [markdown]
# The second version says which way is better:

# %%
def watch_fixed():
    model, optimizer = make(rate=0.02)
    scheduler = ReduceLROnPlateau(optimizer, mode="max", patience=3)
    for epoch in range(9):
        for rows in batches():
            train_step(model, optimizer, rows)
        loss, accuracy = test(model)
        scheduler.step(accuracy)
    return rate_of(optimizer)

lk.trap("5.2.5", watch, watch_fixed)

# %% [markdown]
# The default is `mode="min"`. Published training code
# [had it wrong](https://github.com/md-mohaiminul/ViS4mer/issues/4), and so had
# [a library's wrapper](https://github.com/facebookresearch/fairseq/issues/2205).
# `preview_schedule(..., metrics=[...])` finds it from the numbers of an earlier run.

# %% [markdown]
# ### Is warm-up worth it?
#
# Transformers are said to need it. A small one shall tell from the name of a country, in
# one of sixteen languages, which language it is: "Sverige" and "Švédsko" are Sweden. The
# names are real and have all lengths; we take the first 12 characters.

# %%
import csv

with lk.data_path("names.csv").open(encoding="utf-8", newline="") as file:
    table = list(csv.DictReader(file))
texts = [row["name"][:12].ljust(12) for row in table]
letters = {letter: n for n, letter in enumerate(sorted(set("".join(texts))))}
languages = sorted({row["language"] for row in table})
order = torch.randperm(len(table), generator=torch.Generator().manual_seed(0))
names = torch.tensor([[letters[c] for c in text] for text in texts])[order]
numbers = [languages.index(row["language"]) for row in table]
spoken = torch.tensor(numbers)[order]
print(f"{len(names)} names, {len(letters)} letters,",
      f"{len(languages)} languages")

# %% [markdown]
# Two encoder layers as PyTorch makes them, and the mean over the places:

# %%
class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.letters = nn.Embedding(len(letters), 32)
        self.places = nn.Parameter(torch.randn(12, 32))
        kind = dict(dim_feedforward=64, dropout=0.0, batch_first=True)
        layers = [nn.TransformerEncoderLayer(32, 2, **kind) for _ in range(2)]
        self.layers = nn.Sequential(*layers)
        self.head = nn.Linear(32, len(languages))

    def forward(self, names):
        read = self.layers(self.letters(names) + self.places)
        return self.head(read.mean(1))

# %% [markdown]
# Forty steps with Adam; with warm-up, the first ten of them rise to the full rate.

# %%
def read(rate, kind, seed):
    torch.manual_seed(seed)
    model, losses = Reader(), []
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    scheduler = LambdaLR(optimizer, lambda n: min(1.0, (n + 1) / climb[kind]))
    for rows in torch.randint(2041, (40, 64)):
        losses.append(F.cross_entropy(model(names[rows]), spoken[rows]))
        optimizer.zero_grad()
        losses[-1].backward()
        optimizer.step()
        scheduler.step()
    return model, [loss.item() for loss in losses]

# %% [markdown]
# What counts: the accuracy on the 500 names that were held back, and the highest loss of
# the first 20 steps, where instability would show. Two rates, four seeds each.

# %%
climb = {"without": 1, "with warm-up": 10}  # steps to the full rate
ways = [(r, k) for r in (0.005, 0.03) for k in ("without", "with warm-up")]
accuracy, early = {way: [] for way in ways}, {way: [] for way in ways}
for way in ways:
    for seed in range(4):
        model, losses = read(*way, seed)
        with torch.no_grad():
            right = model(names[2041:]).argmax(1) == spoken[2041:]
        accuracy[way].append(100 * right.float().mean().item())
        early[way].append(max(losses[:20]))

# %% [markdown]
# The accuracy in the end:

# %% tags=["volatile", "nbval-ignore-output"]
lk.show_figure(
    dots(accuracy, "accuracy, %"),
    alt=f"Accuracy in per cent, mean of four seeds: {compared(accuracy)}.",
)

# %% [markdown]
# In words, and the highest early loss beside it (an untrained model guesses, and has a
# loss of log 16 ≈ 2.8):

# %% tags=["volatile", "nbval-ignore-output"]
print("accuracy", *compared(accuracy).split("; "), sep="\n")
print("highest loss of 20 steps", *compared(early).split("; "), sep="\n")

# %% [markdown]
# Two questions, two answers. In the first steps the high rate throws the loss well above
# that of guessing; with warm-up it stays close to it. The accuracy in the end is another
# matter: read it off the lines above, where "no clear difference" means that the seeds
# disagree. And neither way makes the high rate as good as the low one. **Warm-up softens
# the first steps at a high rate; whether a run gains by it is a measurement**, and one with
# larger models and longer runs may come out otherwise.

# %% [markdown]
# ### Exercise · warm-up and cosine in one function · 10 minutes, medium
#
# **Return the factor of the peak rate for an optimizer step**, 0 for the first: an even
# climb from `1 / warmup` to 1, which is reached at step `warmup - 1`; then half a cosine
# down to `floor`, reached at step `total - 1`; then `floor` for good. With `warmup=0` the
# first step has the peak. The factor depends on the step alone, so that a resumed run
# goes on where it was. (`total` is larger than `warmup`; `math` or `torch`, as you like.)

# %%
import math

def warmup_cosine(step, warmup, total, floor=0.0):
    return lk.TODO

warmup_cosine = lk.check("5.2-warmup-cosine", warmup_cosine)

# %% [markdown]
# The function at work, in the unit of optimizer steps:

# %%
model, optimizer = make(rate=0.5)
scheduler = LambdaLR(optimizer, lambda n: warmup_cosine(n, 13, 130, 0.01))
for rows in [rows for epoch in range(10) for rows in batches()]:
    train_step(model, optimizer, rows)
    scheduler.step()
print(f"last rate {rate_of(optimizer):.3f}")
print("accuracy over 0.9:", test(model)[1] > 0.9)

# %% [markdown]
# ### What the article says, and what this page measured
#
# The values are taken again here. First the rates, from a scheduler without a model:

# %%
def sgd(rate=1.0):
    return torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=rate)

def after_ten(scheduler, *metric):
    for _ in range(10):
        scheduler.optimizer.step()
        scheduler.step(*metric)
    return rate_of(scheduler.optimizer)

# %% [markdown]
# What a call came to: accepted, warned, or the name of its error.

# %%
def outcome(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            call()
        except (TypeError, ValueError) as error:
            return type(error).__name__
    return "warned" if caught else "accepted"

# %% [markdown]
# The three schedulers in ten calls, and what a plateau scheduler takes:

# %%
exist = dict(
    step=after_ten(StepLR(sgd(), 5)),
    cosine=after_ten(CosineAnnealingLR(sgd(), 10)),
    plateau=after_ten(ReduceLROnPlateau(sgd(), patience=3), 1.0),
    verbose=outcome(lambda: StepLR(sgd(), 5, verbose=True)),
)
one = sgd()
parts = [ReduceLROnPlateau(one), StepLR(one, 5)]
missing = outcome(parts[0].step)
inside = outcome(lambda: SequentialLR(one, parts, [5]))
nan = after_ten(ReduceLROnPlateau(sgd(), patience=3), float("nan"))

# %% [markdown]
# The rate at the end of ten epochs, by what the plateau scheduler is given:

# %%
def final_rate(watched):
    model, optimizer = make(rate=0.1)
    scheduler = ReduceLROnPlateau(optimizer, patience=3)
    for epoch in range(10):
        for rows in batches():
            loss = train_step(model, optimizer, rows)
            if watched == "batch":
                scheduler.step(loss)
        if watched != "batch":
            scheduler.step(test(model)[watched == "accuracy"])
    return rate_of(optimizer)

# %% [markdown]
# The call at which a patience of 3 ends, when nothing improves:

# %%
patient = ReduceLROnPlateau(sgd(), patience=3)
first = 0
while rate_of(patient.optimizer) == 1:
    patient.step(1.0)
    first += 1

# %% [markdown]
# The sample's warm-up over 390 steps, and the rate that would follow:

# %%
def rates_over(factor, every):
    scheduler, rates = LambdaLR(sgd(), factor), []
    for step in range(1, 392):
        rates.append(rate_of(scheduler.optimizer))
        scheduler.optimizer.step()
        if step % every == 0:
            scheduler.step()
    return rates

epoch, step = (rates_over(warm_up, every) for every in (13, 1))
plus_one = rates_over(lambda n: min(1.0, (n + 1) / 1000), 13)
counts = [rates.count(0) for rates in (epoch, step, plus_one)]
zeros = dict(zip(("per_epoch", "per_step", "plus_one"), counts))

# %% [markdown]
# The order of the two steps:

# %%
def in_order(first):
    scheduler, used = StepLR(sgd(0.1), 2), []
    for _ in range(4):
        if first == "scheduler":
            scheduler.step()
        used.append(rate_of(scheduler.optimizer))
        scheduler.optimizer.step()
        if first == "optimizer":
            scheduler.step()
    return used

# %% [markdown]
# A first step that a `GradScaler` skips, because the gradient is infinite:

# %%
def scaled_step():
    scheduler = StepLR(sgd(), 5)
    scaler = torch.amp.GradScaler("cpu")
    weight = scheduler.optimizer.param_groups[0]["params"][0]
    scaler.scale((weight * float("inf")).sum()).backward()
    scaler.step(scheduler.optimizer)
    scheduler.step()

# %% [markdown]
# Who warns, and the rates in both orders:

# %%
warned = outcome(lambda: in_order("scheduler")) == "warned"
skipped = outcome(scaled_step) == "warned"
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    orders = dict(right=in_order("optimizer"), ahead=in_order("scheduler"))

# %% [markdown]
# And the runs with and without warm-up: at how many of the rates did every seed agree?

# %%
signs = [
    {np.sign(b - a) for a, b in zip(accuracy[without], accuracy[warm])}
    for without, warm in (ways[:2], ways[2:])
]
warmed = dict(rates=2, seeds=4)
warmed |= dict(better=signs.count({1}), worse=signs.count({-1}))
mean = {way: np.mean(early[way]) for way in ways}
warmed["rise_without"] = max(mean[way] for way in ways if way[1] == "without")
warmed["rise_with"] = max(mean[way] for way in ways if way[1] != "without")

# %% [markdown]
# The table:

# %% tags=["volatile"]
rising = final_rate("accuracy") / 0.1
kept, lost = final_rate("loss"), final_rate("batch")
lk.verdicts(
    C5_2a=exist,
    C5_2b=dict(rising=rising, nan=nan, missing=missing, inside=inside),
    C5_2c=dict(first=first, default=parts[0].patience,
               epoch=kept, batch=lost),
    C5_2d=zeros,
    C5_2e=dict(epoch=epoch[-1], step=step[-1]),
    C5_2f=warmed,
    C5_2g=orders | dict(warned=warned, skipped=skipped),
)

# %% [markdown]
# ### What you can do now
#
# - The rate of every step: run the scheduler without the model, or let
#   `preview_schedule` do it.
# - The unit: a scheduler counts calls. Numbers in steps go with a call after each step,
#   numbers in epochs with a call after each epoch; accumulated batches are no steps.
# - Warm-up: `(n + 1) / warmup`; a cosine needs an end, or it rises again.
# - A plateau scheduler: the validation metric, once an epoch, with `mode="max"` where
#   more is better.
# - Worth it or not: both at their own best rate, several seeds, and the spread beside
#   the mean.
#
# **Keep this**
#
# | you want | write |
# |---|---|
# | the rate in use | `optimizer.param_groups[0]["lr"]` |
# | the order in the loop | `optimizer.step()`, then `scheduler.step()` |
# | a length in steps | `epochs * len(loader)`, divided by the batches accumulated |
# | warm-up without a wasted step | `LambdaLR(optimizer, lambda n: min(1, (n + 1) / warmup))` |
# | a cosine that stays down | your `warmup_cosine`, or `T_max` = all the calls of the run |
# | a cut when the loss stands still | `ReduceLROnPlateau(optimizer, patience=3)`, once an epoch |
# | a cut when the accuracy does | the same with `mode="max"` |
# | a look before the run | `lk.preview_schedule(optimizer, scheduler, steps)` |
#
# *You can stop here. The next part, 5.3, starts with a recurrent network that reads the
# digits row by row.*

# %% [markdown]
# ## 5.3 Clipping and mixed precision
#
# **After this part you can**
# - put gradient clipping where it works, and choose its limit from norms you have seen,
# - say which of your gradients float16 can hold, and what a loss scale does for them,
# - write the float16 step in the one right order, with clipping and accumulation,
# - decide between float32, bfloat16 and float16, and measure what it brings here.
#
# *One sitting, about 40 minutes. You need the training loop (chapter 03 explains its
# parts). Any computer will do: float16 and bfloat16 run on a CPU too.*

# %% [markdown]
# ### A network reads images row by row
#
# The digits again: 1,500 of the images to train on, in batches of 128, the other 297 to
# test.

# %%
with np.load(lk.data_path("digits.npz")) as data:
    x = torch.from_numpy(data["images"]).float().flatten(1) / 16
    y = torch.from_numpy(data["labels"])

def batches(steps, size=128):
    for step in range(steps):
        rows = torch.arange(step * size, (step + 1) * size) % 1500
        yield x[rows], y[rows]

# %% [markdown]
# A recurrent network takes each image as a sequence of eight rows, in pixels from 0 to 16.
# Its recurrence starts as the identity, a common choice with ReLU.

# %%
class RowReader(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.RNN(8, 64, nonlinearity="relu", batch_first=True)
        nn.init.eye_(self.rnn.weight_hh_l0)
        self.head = nn.Linear(64, 10)
    def forward(self, x):
        return self.head(self.rnn(16 * x.view(-1, 8, 8))[0][:, -1])

def reader():
    torch.manual_seed(0)
    model = RowReader()
    return model, torch.optim.SGD(model.parameters(), lr=0.3)

# %% [markdown]
# The loop is the usual one:

# %%
def read_rows():
    model, optimizer = reader()
    losses = []
    for xb, yb in batches(100):
        loss = F.cross_entropy(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return round(sum(losses[-20:]) / 20, 1)

lk.predict("5.3.1")

# %% [markdown]
# The second version has one line more, and the same learning rate:

# %%
def read_rows_fixed():
    model, optimizer = reader()
    losses = []
    for xb, yb in batches(100):
        loss = F.cross_entropy(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), max_norm=0.5)
        optimizer.step()
        losses.append(loss.item())
    return round(sum(losses[-20:]) / 20, 1)

lk.trap("5.3.1", read_rows, read_rows_fixed)

# %% [markdown]
# `clip_grad_norm_` takes all gradients as one long vector. Where its length is over the
# limit, all of them are multiplied by limit ÷ length: the direction stays. It returns the
# length *before* that. With an infinite limit it measures and changes nothing, as long as
# the length is finite (Inf ÷ Inf is NaN):

# %%
model, optimizer = reader()
for xb, yb in batches(4):
    optimizer.zero_grad()
    F.cross_entropy(model(xb), yb).backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm=float("inf"))
    optimizer.step()
    print(f"norm {norm:.2g}")

# %% [markdown]
# Log that number in every run. A limit a little above the norms of a healthy stretch
# takes off the peaks and leaves the rest alone.

# %% [markdown]
# ### A line that is easy to add
#
# A small classifier of the digits, for the rest of this part. `moved` says how far its
# weights are from where they began, as one length.

# %%
def small_model():
    torch.manual_seed(0)
    layers = [nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh()]
    return nn.Sequential(*layers, nn.Linear(64, 10))

def flat(model):
    return torch.cat([p.detach().flatten() for p in model.parameters()])

def moved(model):
    return (flat(model) - flat(small_model())).norm().item()

# %% [markdown]
# The loss is a hundred times the usual one. The learning rate is 1, so that one step of
# SGD is as long as the gradient, and the limit is 1.

# %%
def step_length():
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    loss = 100 * F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
    loss.backward()
    optimizer.step()
    return round(moved(model), 1)

lk.predict("5.3.2")

# %% [markdown]
# The second version clips between `backward` and `step`:

# %%
def step_length_fixed():
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    loss = 100 * F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
    optimizer.step()
    return round(moved(model), 1)

lk.trap("5.3.2", step_length, step_length_fixed)

# %% [markdown]
# After `step` it would be as useless as before `backward`, and as quiet. Before `backward`
# the norm that it returns is 0 every time: a log shows that.

# %% [markdown]
# ### ★ A side task with a small weight
#
# Mixed precision keeps the weights in float32, and lets autocast compute the matrix
# products, forward and backward, in 16 bits. One helper for all of this part:

# %%
def loss_in(dtype, model, xb, yb):
    sixteen = dtype.itemsize == 2  # in float32 there is nothing to cast
    with torch.amp.autocast(xb.device.type, dtype=dtype, enabled=sixteen):
        return F.cross_entropy(model(xb), yb)

def report(model):
    with torch.no_grad():
        right = (model(x[1500:]).argmax(1) == y[1500:]).float().mean().item()
    pairs = zip(model.parameters(), small_model().parameters())
    layers = [not torch.equal(p, q) for p, q in pairs]
    return {"right": round(right, 1), "parameters moved": sum(layers)}

# %% [markdown]
# Reading the digit is one term among others here, with the weight 0.000001. Such weights
# are real: [one well-known autoencoder](https://github.com/CompVis/latent-diffusion/blob/main/configs/autoencoder/autoencoder_kl_64x64x3.yaml)
# gives its KL term this one. Adam makes up for the small gradients. Only the side task is
# shown.

# %%
def side_task():
    model = small_model()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for xb, yb in batches(60):
        loss = 1e-6 * loss_in(torch.float16, model, xb, yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return report(model)

lk.predict("5.3.3")

# %% [markdown]
# Run it:

# %%
lk.trap("5.3.3", side_task)

# %% [markdown]
# The backward of a float16 product is a float16 product. Its smallest number is 6e-08,
# and what is at most half of that becomes 0. The gradient that starts the backward is
# below that already:

# %%
for dtype in (torch.float16, torch.bfloat16, torch.float32):
    about = torch.finfo(dtype)
    least = about.tiny * about.eps
    print(f"{str(dtype)[6:]:8} from {least:.0e} to {about.max:.0e},",
          f"eps {about.eps:.0e}")
logits = small_model()(x[:128]).detach().requires_grad_()
(1e-6 * F.cross_entropy(logits, y[:128])).backward()
print(f"largest gradient at the output: {logits.grad.abs().max():.0e}")

# %% [markdown]
# So every gradient that reaches a weight is 0. This share is what counts; in float32 a
# few are 0 as well (pixels that are always blank):

# %%
def zeros(dtype, scale=1.0):
    model = small_model()
    loss = 1e-6 * loss_in(dtype, model, x[:128], y[:128])
    (scale * loss).backward()
    grads = torch.cat([p.grad.flatten() for p in model.parameters()])
    return round((grads == 0).float().mean().item(), 1)

print("float32:            ", zeros(torch.float32))
print("float16:            ", zeros(torch.float16))
print("float16, loss × 2¹⁶:", zeros(torch.float16, 65536.0))

# %% [markdown]
# **Fix.** `GradScaler` multiplies the loss by a scale before the backward, which moves
# all gradients into float16's range together, and divides the float32 gradients of the
# weights by it before the step.

# %%
def side_task_fixed():
    model = small_model()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    scaler = torch.amp.GradScaler("cpu")
    for xb, yb in batches(60):
        loss = 1e-6 * loss_in(torch.float16, model, xb, yb)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    return report(model)

lk.fix("5.3.3", side_task_fixed)

# %% [markdown]
# The scale starts at 65,536. When a gradient overflows, `step` is skipped and `update`
# halves the scale; after 2,000 good steps it doubles. So **the first steps of a run may
# do nothing**, here with a loss summed over the batch and pixels from 0 to 16:

# %%
model, scaler = small_model(), torch.amp.GradScaler("cpu")
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
scales = []
for xb, yb in batches(6):
    optimizer.zero_grad()
    scaler.scale(128 * loss_in(torch.float16, model, 16 * xb, yb)).backward()
    scaler.step(optimizer)
    scales.append(int(scaler.get_scale()))
    scaler.update()
print("scale of each step:", scales)

# %% [markdown]
# **Transfer.** bfloat16 reaches as far as float32 and has 8 bits of digits where float16
# has 11. Does the loop without a scaler learn in bfloat16?

# %%
model = small_model()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for xb, yb in batches(60):
    optimizer.zero_grad()
    (1e-6 * loss_in(torch.bfloat16, model, xb, yb)).backward()
    optimizer.step()
print(report(model))

# %% [markdown]
# It does: range is what was missing, not digits. bfloat16 needs no scaler.
#
# *In the field.* On CUDA autocast takes float16 unless it is told otherwise, and a loop
# with autocast and no scaler runs without a word
# ([report](https://github.com/engichang1467/Open-Rig3R/issues/35)). `gradient_report`
# (chapter 03) lists the gradients that are 0.

# %% [markdown]
# ### Play with range and scale
#
# These are all the gradients of one real backward of this model, by size. Find the
# smallest scale at which float16 turns none of them into 0. With the weight at 1 (the new
# model), find the first scale at which some become Inf. Then the trained model: how many
# scales are left between the last 0 and the first Inf?

# %%
lk.explore("5.3-formats")

# %% [markdown]
# ### ★ Clipping joins the loop
#
# The loss has its usual weight again, and somebody adds clipping to the float16 step:
# after `backward`, before `step`.

# %%
def clipped_step(model, optimizer, scaler, xb, yb):
    loss = loss_in(torch.float16, model, xb, yb)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
    scaler.step(optimizer)
    scaler.update()
    return norm.item()

# %% [markdown]
# Trained with SGD for 60 steps; what comes back is the loss on the test images.

# %%
def train(step, make=torch.optim.SGD, lr=0.5):
    model = small_model()
    optimizer = make(model.parameters(), lr=lr)
    scaler = torch.amp.GradScaler("cpu")
    for xb, yb in batches(60):
        step(model, optimizer, scaler, xb, yb)
    return round(F.cross_entropy(model(x[1500:]), y[1500:]).item(), 1)

def train_clipped():
    return train(clipped_step)

lk.predict("5.3.4")

# %% [markdown]
# Run it:

# %%
lk.trap("5.3.4", train_clipped)

# %% [markdown]
# Between `scale(loss).backward()` and `scaler.step` the gradients are 65,536 times too
# large. Clipping shortens *those* to 1, and then `step` divides by 65,536:

# %%
def first_step(step):
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    scaler = torch.amp.GradScaler("cpu")
    norm = step(model, optimizer, scaler, x[:128], y[:128])
    return norm, moved(model)

norm, length = first_step(clipped_step)
print(f"norm that clipping saw: {norm:.0e}, length of the step: {length:.0e}")

# %% [markdown]
# **Fix.** `scaler.unscale_(optimizer)` divides at once, so that the limit meets true
# gradients; `scaler.step` then knows and does not divide again.

# %%
def unscaled_step(model, optimizer, scaler, xb, yb):
    loss = loss_in(torch.float16, model, xb, yb)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
    scaler.step(optimizer)
    scaler.update()
    return norm.item()

lk.fix("5.3.4", lambda: train(unscaled_step))

# %% [markdown]
# **Transfer.** The same two steps, but with AdamW. Does the broken one stall again?

# %%
AdamW = torch.optim.AdamW
print("clipped before unscaling:", train(clipped_step, AdamW, lr=0.01))
print("clipped after unscaling: ", train(unscaled_step, AdamW, lr=0.01))

# %% [markdown]
# No. Adam divides each gradient by its own running size, and a common factor cancels, as
# long as the gradients stay far above its `eps` of 1e-8: **here Adam hides this fault**. In
# a large model they fall below it, and Adam slows down too. The limit now always acts, and
# the day somebody goes back to SGD, training stops.
#
# *In the field.* [A U-Net used in many projects](https://github.com/milesial/Pytorch-UNet/issues/468)
# had it, and so had [a large training framework](https://github.com/Lightning-AI/pytorch-lightning/issues/9599),
# where somebody noticed a very slow descent. `gradient_report` finds it. It takes one
# full step of your loop:

# %%
model = small_model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
scaler = torch.amp.GradScaler("cpu")
def one_step():
    clipped_step(model, optimizer, scaler, x[:128], y[:128])

lk.gradient_report(model, step=one_step)

# %% [markdown]
# ### Two bad numbers among nine thousand
#
# The images may be shifted by a learned offset, two numbers that begin at 0. A penalty
# keeps it short: its length, times 0.1. The gradient of that length at 0 is 0 ÷ 0. Only
# the penalty is shown.

# %%
def offset_step():
    model, offset = small_model(), nn.Parameter(torch.zeros(2))
    parameters = [*model.parameters(), offset]
    optimizer = torch.optim.SGD(parameters, lr=0.5)
    loss = F.cross_entropy(model(x), y) + 0.1 * offset.square().sum().sqrt()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(parameters, max_norm=1.0)
    optimizer.step()
    return sum(p.isnan().any().item() for p in parameters)

lk.predict("5.3.5")

# %% [markdown]
# The second version looks at the norm before it steps:

# %%
def offset_step_fixed():
    model, offset = small_model(), nn.Parameter(torch.zeros(2))
    parameters = [*model.parameters(), offset]
    optimizer = torch.optim.SGD(parameters, lr=0.5)
    loss = F.cross_entropy(model(x), y) + 0.1 * offset.square().sum().sqrt()
    optimizer.zero_grad()
    loss.backward()
    norm = nn.utils.clip_grad_norm_(parameters, max_norm=1.0)
    if norm.isfinite():
        optimizer.step()
    return sum(p.isnan().any().item() for p in parameters)

lk.trap("5.3.5", offset_step, offset_step_fixed)

# %% [markdown]
# `clip_grad_norm_(..., error_if_nonfinite=True)` raises instead; it was to be the default,
# and [that was taken back](https://github.com/pytorch/pytorch/pull/55169) since it stopped
# a lot of code. `scaler.step` looks too, and skips. Skipping keeps the weights and mends
# nothing: the offset is still 0 (chapter 03 finds where a NaN begins). An Inf spreads
# differently:

# %%
def spread(bad):
    parameters = [nn.Parameter(torch.ones(3)) for _ in range(7)]
    for p in parameters:
        p.grad = torch.ones(3)
    parameters[0].grad[0] = bad
    nn.utils.clip_grad_norm_(parameters, max_norm=1.0)
    grads = [p.grad for p in parameters]
    none = sum(g.count_nonzero().item() == 0 for g in grads)
    return {"NaN": sum(g.isnan().any().item() for g in grads), "all 0": none}

print("one NaN:", spread(float("nan")), " one Inf:", spread(float("inf")))

# %% [markdown]
# ### Half the memory for the weights
#
# bfloat16 was so well behaved above that the whole model is put into it, weights
# included. A LayerNorm's scale begins at 1.

# %%
def fine_tune():
    model = nn.Sequential(nn.LayerNorm(64), nn.Linear(64, 10)).bfloat16()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.001)
    for xb, yb in batches(100):
        loss = F.cross_entropy(model(xb.bfloat16()), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return round((model[0].weight - 1).abs().max().item(), 1)

lk.predict("5.3.6")

# %% [markdown]
# The second version keeps the weights in float32 and computes in bfloat16:

# %%
def fine_tune_fixed():
    model = nn.Sequential(nn.LayerNorm(64), nn.Linear(64, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.001)
    for xb, yb in batches(100):
        loss = loss_in(torch.bfloat16, model, xb, yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return round((model[0].weight - 1).abs().max().item(), 1)

lk.trap("5.3.6", fine_tune, fine_tune_fixed)

# %% [markdown]
# An update below about 0.2 % of its weight vanishes in bfloat16. That is why mixed
# precision keeps float32 weights; who cannot afford them rounds at random instead
# ([an option of torchao's optimizers](https://github.com/pytorch/ao/pull/1124)).

# %% [markdown]
# ### A loop from a tutorial of 2020
#
# The loop wraps its forward in autocast as the tutorials of that year did.

# %%
def old_style():
    with torch.cuda.amp.autocast():
        return small_model()(x).dtype

lk.predict("5.3.7")

# %% [markdown]
# The second version names the device and the dtype:

# %%
def new_style():
    with torch.amp.autocast(x.device.type, dtype=torch.bfloat16):
        return small_model()(x).dtype

lk.trap("5.3.7", old_style, new_style)

# %% [markdown]
# Here is what the old loop would have trained with on this machine, and all it said:

# %% tags=["nbval-ignore-output"]
import warnings

with warnings.catch_warnings(record=True) as old_warnings:
    warnings.simplefilter("always")
    old_scaler = torch.cuda.amp.GradScaler()
    old_dtype = str(old_style()).removeprefix("torch.")
print("scaler enabled:", old_scaler.is_enabled(), " computed in:", old_dtype)
for warning in old_warnings:
    print(f"{warning.category.__name__}: {str(warning.message):.75}")

# %% [markdown]
# ### Is it faster, and is it smaller?
#
# That depends on the machine, so measure it on yours. The article's figures, 1.5 to 2 times
# as fast with 30 % less memory, are for GPUs with Tensor Cores; with CUDA the sizes below
# are larger.

# %%
device = session.device
width, rows = (2048, 4096) if device.type == "cuda" else (128, 64)

def deep(width):
    layers = []
    for _ in range(6):
        layers += [nn.Linear(width, width), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(width, 10)).to(device)

def forward_backward(model, inputs, dtype):
    labels = torch.zeros(len(inputs), dtype=torch.long, device=device)
    loss_in(dtype, model, inputs, labels).backward()
    model.zero_grad()

# %% [markdown]
# Time first, of one forward and backward:

# %% tags=["volatile", "nbval-ignore-output"]
model, inputs = deep(width), torch.randn(rows, width, device=device)
timing = lk.compare(
    {
        "float32": lambda: forward_backward(model, inputs, torch.float32),
        "bfloat16": lambda: forward_backward(model, inputs, torch.bfloat16),
        "float16": lambda: forward_backward(model, inputs, torch.float16),
    }
)
timing

# %% [markdown]
# **Fewer bits are not always faster.** Many GPUs have units for 16-bit products (Tensor
# Cores), and so have some CPUs; without them, or with work too small to fill them, the
# conversions can cost more than is saved.
#
# Now memory, at the peak of forward and backward. Two shapes: many rows through narrow
# layers, and a few rows through wide ones.

# %% tags=["nbval-ignore-output"]
def peak(width, rows, dtype):
    model, inputs = deep(width), torch.randn(rows, width, device=device)
    with lk.track_memory(model) as memory:
        forward_backward(model, inputs, dtype)
    return memory.peak_bytes

changes = {}
for name, *shape in ("many rows", 128, 1024), ("wide layers", 256, 16):
    before, after = (peak(*shape, d) for d in (torch.float32, torch.bfloat16))
    changes[name] = after / before - 1
    print(f"{name}: {before / 1e6:.1f} MB in float32,",
          f"{changes[name]:+.0%} in bfloat16")

# %% [markdown]
# Activations take two bytes a number instead of four. Weights and their gradients stay
# float32, and autocast keeps a 16-bit copy of the weights besides: where weights dominate,
# mixed precision takes *more*.

# %% [markdown]
# ### Exercise · one step in float16 · 10 minutes, medium
#
# `batches` is a list of micro-batches `(x, y)`, not all of the same size; `scaler` is a
# `GradScaler`. **Make one optimizer step out of them and return the gradient's norm
# before clipping.**
#
# - The model computes in float16, whatever device the data are on.
# - The gradient is that of the mean cross-entropy over *all samples*.
# - Its norm is limited to `max_norm`, and left alone below it.
# - Where a gradient is Inf or NaN, the weights stay and the scale is halved.
# - Nothing of the step before is left in the gradient.

# %%
def amp_step(model, optimizer, scaler, batches, max_norm):
    return lk.TODO

amp_step = lk.check("5.3-amp-step", amp_step)

# %% [markdown]
# Stuck? `lk.hint("5.3-amp-step")` gives one hint at a time, `lk.solution("5.3-amp-step")`
# an answer and why it is one.
#
# ### What the article says, and what this page measured
#
# First three places for one line:

# %%
def clip_at(place):
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    loss = 100 * F.cross_entropy(model(x), y)
    calls = {"backward": loss.backward, "step": optimizer.step}
    for name in ("before", "backward", "between", "step", "after"):
        if name == place:
            nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
        calls.get(name, lambda: None)()
    return round(moved(model), 1)

places = {place: clip_at(place) for place in ("before", "between", "after")}
print(places)

# %% [markdown]
# Then how far 100 steps go when every one of them is clipped at 0.001, against the same
# steps unclipped:

# %%
def distance(make, lr, limit):
    model = small_model()
    optimizer = make(model.parameters(), lr=lr)
    for xb, yb in batches(100):
        optimizer.zero_grad()
        F.cross_entropy(model(xb), yb).backward()
        nn.utils.clip_grad_norm_(model.parameters(), max_norm=limit)
        optimizer.step()
    return moved(model)

# %% [markdown]
# As a share of the unclipped way:

# %%
far = {}
for name, make, lr in (("sgd", torch.optim.SGD, 0.5), ("adam", AdamW, 0.01)):
    far[name] = distance(make, lr, 0.001) / distance(make, lr, float("inf"))
    print(f"{name}: {far[name]:.2f}")

# %% [markdown]
# Last, what goes wrong around tensors that are not float32. A thousand times 0.001 is
# taken from 1:

# %%
w = torch.ones(1, dtype=torch.bfloat16)
for _ in range(1000):
    w -= 0.001
print(w)

# %% [markdown]
# A scaler unscales float32 gradients only, and NumPy has no bfloat16:

# %%
halves, half_scaler = small_model().half(), torch.amp.GradScaler("cpu")
half_optimizer = torch.optim.SGD(halves.parameters(), lr=0.1)
half_scaler.scale(F.cross_entropy(halves(x[:8].half()), y[:8])).backward()
errors = []
for call in (lambda: half_scaler.unscale_(half_optimizer), w.numpy):
    try:
        call()
    except (ValueError, TypeError) as error:
        errors.append(error)
print(*errors, sep="\n")

# %% [markdown]
# The values for the table, by row:

# %%
nan, inf = spread(float("nan")), spread(float("inf"))
clip = dict(free=read_rows(), held=read_rows_fixed(), nan=nan["NaN"])
clip |= dict(tensors=7, zero=inf["all 0"])
ratio = first_step(clipped_step)[0] / first_step(unscaled_step)[0]
both = dict(factor=round(ratio), broken_sgd=train(clipped_step))
both |= dict(right_sgd=train(unscaled_step))
both |= dict(broken_adam=train(clipped_step, AdamW, 0.01))
both |= dict(right_adam=train(unscaled_step, AdamW, 0.01))
own = {d: str(torch.get_autocast_dtype(d))[6:] for d in ("cpu", "cuda")}
skipped = sum(a != b for a, b in zip(scales, scales[1:]))
kept = str(next(deep(8).parameters()).dtype)[6:]

# %% [markdown]
# The article's statements of section 5.3, one a line:

# %% tags=["volatile", "nbval-ignore-output"]
lk.verdicts(
    C5_3a=places, C5_3b=both, C5_3c=clip, C5_3d=far,
    C5_3e=dict(warning=str(old_warnings[0].message), dtype=old_dtype,
               enabled=old_scaler.is_enabled()),
    C5_3f=dict(
        own, fp32=zeros(torch.float32), fp16=zeros(torch.float16),
        scaled=zeros(torch.float16, 65536.0), bf16=zeros(torch.bfloat16)),
    C5_3g=dict(device=device.type, **timing.ratios, rows=changes["many rows"],
               weights=changes["wide layers"], kept=kept),
    C5_3h=dict(skipped=skipped, steps=len(scales), taken=1000, left=w.item(),
               half=str(errors[0]), numpy=type(errors[1]).__name__),
)

# %% [markdown]
# Two of these overturn common advice: mixed precision is not always faster or smaller,
# and clipping does not protect against NaN, it spreads it.
#
# **What you can do now**
# - Clip between `backward` and `step`, and choose the limit from logged norms.
# - Read off a format's range which gradients it holds, and move them with a loss scale.
# - Write the float16 step in its order: scale, backward, unscale, clip, step, update.
# - Where 16 bits pay, take bfloat16 if the hardware has it, else float16 with a scaler; where
#   they do not, float32. Keep the weights in float32, and measure.
#
# **Keep this**
#
# | you want | write |
# |---|---|
# | a limit on the gradient | `norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)` after `backward`, before `step`; log `norm` |
# | no step from NaN | `error_if_nonfinite=True`, or step only if `norm.isfinite()` |
# | bfloat16 | `with torch.amp.autocast(device.type, dtype=torch.bfloat16):` around forward and loss; no scaler |
# | float16 | the same with `torch.float16`, and `scaler = torch.amp.GradScaler(device.type)` |
# | float16 and clipping | `scaler.scale(loss).backward()`, `scaler.unscale_(optimizer)`, clip, `scaler.step(optimizer)`, `scaler.update()` |
# | accumulation with it | per micro-batch: forward, its share of the mean loss, backward; the rest once a step (a second `unscale_` raises) |
#
# *You can stop here: this is the end of chapter 05. With one GPU go on with [chapter 07,
# saving and loading](07_checkpoints.ipynb): runs that stop in the middle, and go on as if
# they had not. [Chapter 06](06_multi_gpu.ipynb) trains one model on several GPUs.*
