# %% [markdown]
# # A cell that does not end

# %%
import time

time.sleep(600)
