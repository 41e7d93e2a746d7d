# %% [markdown]
# # A trap that PyTorch has cured

# %%
import torch

import labkit as lk


def flatten():
    return torch.arange(12).view(3, 4).view(-1)


lk.trap("2.1.4", flatten)
