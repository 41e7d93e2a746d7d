# %% [markdown]
# # A verdict that its own page contradicts

# %%
import labkit as lk

lk.verdicts(C2_1g={"contiguous": True, "strides": (12, 4, 1)})
