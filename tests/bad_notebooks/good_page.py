# %% [markdown]
# # A page with nothing wrong
#
# It shows that the gates let a good page through.

# %% tags=["parameters"]
solve = False

# %% [markdown]
# One cell that says something.

# %%
print("all is well")
