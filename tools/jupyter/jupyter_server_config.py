"""Settings of the JupyterLab that `make lab` opens; the learner's own come on top."""

import warnings
from typing import Any

WIDGET = "application/vnd.jupyter.widget-view+json"


def drop_widget_views(model: dict[str, Any], **_: Any) -> None:
    """Take the controls out of a notebook that is being saved, in place.

    Opened again without its kernel, a saved control shows only an error, and GitHub
    refuses a notebook with an incomplete widget state.  Pictures stay.
    """
    content = model.get("content")
    if model["type"] != "notebook" or content is None:
        return
    content["metadata"].pop("widgets", None)
    for cell in content["cells"]:
        outputs = cell.get("outputs")
        if not outputs:
            continue
        for output in outputs:
            output.get("data", {}).pop(WIDGET, None)
        cell["outputs"] = [output for output in outputs if output.get("data", True)]


c = get_config()  # type: ignore[name-defined]  # noqa: F821

c.ContentsManager.pre_save_hook = drop_widget_views
# Jupyter reads this file again for each of its parts, and says so each time.
warnings.filterwarnings("ignore", message="Overriding existing pre_save_hook")

# This computer only, with Jupyter's own access token; the next port if 8888 is taken.
c.ServerApp.ip = "127.0.0.1"
c.ServerApp.port_retries = 50
# In a container everybody is root, and the two lines above hold there too.
c.ServerApp.allow_root = True
c.ServerApp.terminals_enabled = False
# Ctrl+C stops the server without asking; what it prints is the address, and problems.
c.ServerApp.answer_yes = True
c.Application.log_level = "WARN"

# Nothing is asked of the network; labconfig/ beside this file switches off the plug-ins
# that would ask, too.
c.LabApp.news_url = None
c.LabApp.check_for_updates_class = "jupyterlab.NeverCheckForUpdate"
