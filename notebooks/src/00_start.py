# %% [markdown]
# # 0 · Start here
#
# **PyTorch Pitfall Lab** is a workbook that you run. Each pitfall is a few lines of code: you predict what they do, run them, see what was measured, and fix them.
#
# **After this page you can**
# - tell whether this computer has what the pages need,
# - work through a page: predict, run, explain, fix, practise,
# - choose a route that fits your time, and find the page that explains an error.
#
# *About 15 minutes. Any computer will do.*
#
# [Open this page in Colab](https://colab.research.google.com/github/pytorch-pitfall-lab/pytorch-pitfall-lab/blob/learn/notebooks/00_start.ipynb)

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
# Two cells begin every page. The first finds the workbook's own package, labkit; it is folded away. The second imports what the page uses, fixes the random seed, and says in one line what the page runs on:

# %% tags=["nbval-ignore-output", "volatile"]
import numpy as np
import torch

import labkit as lk

session = lk.setup(0, solve=solve, version=made_with)

# %% [markdown]
# ## Your computer
#
# `doctor` checks what the pages need, and says for each point what to do if it is missing. Nothing is changed.

# %% tags=["nbval-ignore-output", "volatile"]
report = lk.doctor()

# %% [markdown]
# ## How a page works
#
# Run the cells from top to bottom, one at a time, with Shift+Enter. Change them as you like: this is your own copy, and no later cell depends on your answers being right. By keyboard alone: Tab reaches buttons, sliders and lists, and Space opens a list before the arrow keys choose in it.
#
# ### A scanned digit, stretched over the full range
#
# A scanner stores the ink of each point as a number from 0 (paper) to 16 (full ink), in one byte each. A picture's bytes go up to 255, so a colleague stretches the values:

# %%
def stretch():
    ink = torch.tensor([4, 8, 16], dtype=torch.uint8)
    return ink * 16

lk.predict("0.1.1")

# %% [markdown]
# **Predict** first: click a number, or write `lk.predict("0.1.1", 2)` if there are no buttons. If you do not know, guess: the answer comes with the result. Then **run**:

# %%
lk.trap("0.1.1", stretch)

# %% [markdown]
# **Explain.** A `uint8` has eight bits, and eight bits count from 0 to 255. 16 × 16 is 256, the first number that does not fit: counting starts again, at 0. No error is raised. In one row of a real digit, the strongest stroke disappears:

# %%
with np.load(lk.data_path("digits.npz")) as data:
    ink = torch.from_numpy(data["images"])
row = ink[1, 4]
print("a row of a digit:", row.tolist())
print("the row times 16:", (row * 16).tolist())
lost = (ink > 0) & (ink * 16 == 0)
print("points lost in all digits:", lost.sum().item())

# %% [markdown]
# **Fix.** Convert first, then compute: in float32 there is room for 256, and for halves too.

# %%
def stretch_fixed():
    ink = torch.tensor([4, 8, 16], dtype=torch.uint8)
    return ink.to(torch.float32) * 16

lk.fix("0.1.1", stretch_fixed)

# %% [markdown]
# `fix` puts both results side by side, under the same test. **Transfer** comes last: a question that the trap did not ask. Answer it before you run the cell. If `ink` holds bytes, what is the dtype of `ink * 16.0`, and is full ink kept?

# %%
print(torch.tensor([4, 8, 16], dtype=torch.uint8) * 16.0)

# %% [markdown]
# A factor with a decimal point turns a tensor of bytes into the default float dtype, float32; a whole factor keeps the bytes. Before you compute with whole numbers, look at their dtype.
#
# ### Exercise · From ink to numbers between 0 and 1 · 3 minutes, easy
#
# Every part has an exercise near its end. Replace the line `return lk.TODO` and run the cell; `check` says what came out and what was expected. `image` is a `uint8` tensor of points from 0 to 16. Return it as float32, so that paper is 0 and full ink is 1.

# %%
def to_unit(image):
    return lk.TODO

to_unit = lk.check("0-scale", to_unit)

# %% [markdown]
# `check` marks an answer ○ not attempted, ✓ passed, ✗ not yet, or `!` where your code raised an error. In a cell of your own, `lk.hint("0-scale")` gives one hint at a time, and the first is a question; `lk.solution("0-scale")` shows an answer and says why it is one.
#
# ## The chapters, and where you are
#
# The chapters have the numbers of the article's sections, so that a reader of the article finds the place at once.
#
# | chapter | time | |
# |---|---|---|
# | 00 Start here | 15 min | this page |
# | 01 Why PyTorch | 25 min | in preparation |
# | 02 Tensors | 2 h | [open](02_tensors.ipynb) |
# | 03 Autograd | 2 h | [open](03_autograd.ipynb) |
# | 04 The data pipeline | 2½ h | [open](04_data.ipynb) |
# | 05 Training | 2½ h | [open](05_training.ipynb) |
# | 06 Several processes, several GPUs | 2½ h | [open](06_multi_gpu.ipynb) |
# | 07 Saving and loading | 2 h | [open](07_checkpoints.ipynb) |
# | 08 Performance | 2½ h | in preparation |
# | 09 War stories | 1 h | in preparation |
# | 10 Diagnosis | 2 h | in preparation |
#
# What you have done is kept on this computer, in one small file, and shown here. Come back and run this cell:

# %% tags=["nbval-ignore-output", "volatile"]
lk.progress()

# %% [markdown]
# ## Which way to go
#
# Traps are told in full (a ★ in their heading, about six minutes each) or in short (about two minutes). Every part is one sitting of about 40 minutes or less, and says where you can stop.
#
# | route | time | what |
# |---|---|---|
# | core | about 8 hours | the ★ traps of 02, 03, 04, 05, 07, 08, 09, in this order |
# | whole | about 20 hours | every page in order; 01 may come last |
# | workshop | 3 hours | this page, then the ★ traps of 02, 03 and 05 and one exercise of each |
#
# In preparation means not yet written: those routes grow as chapters appear.
#
# ## An error message brought you here
#
# Look it up by its text. Each is shown at the trap named beside it; in brackets stands the build or machine that words it so. `lk.errors("...")` with your message inside shows only the lines that fit it.

# %%
lk.errors()

# %% [markdown]
# ## Keep this
#
# - Predict before you run: what surprises you is what you did not know.
# - `lk.predict`, `lk.trap`, `lk.fix` ask, show and compare; `lk.check`, `lk.hint`, `lk.solution` go with exercises.
# - `lk.doctor()` when something does not work, `lk.progress()` to see where you are, `lk.errors("...")` to find a page.
# - Whole numbers have a largest value, and nothing warns you beyond it.
#
# *You can stop here. The next page is [02, tensors](02_tensors.ipynb).*
