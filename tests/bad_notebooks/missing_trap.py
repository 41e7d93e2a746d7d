# %% [markdown]
# # A page that lost everything its chapter says

# %%
import labkit as lk

_ = lk.setup(2)
