# %% [markdown]
# # A figure that says nothing to those who cannot see it

# %%
import matplotlib.pyplot as plt

_ = plt.plot([1, 2, 3])
