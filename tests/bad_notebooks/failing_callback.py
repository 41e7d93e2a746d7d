# %% [markdown]
# # A control whose callback fails when it is moved

# %%
import ipywidgets

slider = ipywidgets.IntSlider(value=1, min=0, max=3)
slider.observe(lambda change: print(1 / change["new"]), names="value")
