"""A JupyterLab opened the way a learner opens it, in temporary folders, ended for sure."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

LAB = Path(__file__).with_name("lab.py")
START_S = 60
# If whoever started the server is killed and cannot end it, it ends by itself.
FORGOTTEN_S = 900
# All cells are rendered at once, so that they can be found and photographed, and the
# page ends where its last cell ends.
NOTEBOOK_SETTINGS = {"windowingMode": "none", "scrollPastEnd": False}


@dataclass(frozen=True)
class Served:
    """A running JupyterLab: its address, its token, and the learner's folder."""

    url: str
    token: str
    work: Path

    def ask(self, method: str, path: str) -> None:
        """Call the server's own interface, as in ``ask("POST", "api/shutdown")``."""
        request = urllib.request.Request(self.url + path, method=method)
        request.add_header("Authorization", f"token {self.token}")
        with urllib.request.urlopen(request, timeout=10):
            pass


@contextmanager
def served(base: Path, lab: Path = LAB) -> Iterator[Served]:
    """Run `make lab` without its browser window; everything it writes is under `base`.

    base: an empty folder; the learner's pages come to ``base/work``, the progress to
    ``base/progress``, what the server prints to ``base/server.log``.  lab: the script
    that starts it.  Raises RuntimeError, with the end of the log, if it does not start.
    """
    base = base.absolute()
    settings = base / "settings" / "@jupyterlab" / "notebook-extension"
    runtime = base / "runtime"
    for folder in (settings, runtime):
        folder.mkdir(parents=True)
    tracker = settings / "tracker.jupyterlab-settings"
    tracker.write_text(json.dumps(NOTEBOOK_SETTINGS), encoding="utf-8")
    variables = {
        **os.environ,
        "JUPYTER_CONFIG_DIR": str(base / "config"),
        "JUPYTER_RUNTIME_DIR": str(runtime),
        "JUPYTERLAB_SETTINGS_DIR": str(base / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(base / "workspaces"),
        "IPYTHONDIR": str(base / "ipython"),
        "LABKIT_WORK": str(base / "work"),
        "LABKIT_HOME": str(base / "progress"),
    }
    # a learner's kernel is not strict, and has not been started by pytest
    for name in ("LABKIT_STRICT", "LABKIT_SOLVE", "PYTEST_CURRENT_TEST"):
        variables.pop(name, None)
    command = [
        *(sys.executable, str(lab), "lab", "--here", "--no-browser"),
        "--LabApp.expose_app_in_browser=True",
        f"--MappingKernelManager.cull_idle_timeout={FORGOTTEN_S}",
        "--MappingKernelManager.cull_connected=True",
        f"--ServerApp.shutdown_no_activity_timeout={FORGOTTEN_S}",
    ]
    log = base / "server.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    server = None
    try:
        server = Served(*wait_for_address(process, runtime, log), base / "work")
        yield server
    finally:
        end(process, server)


def wait_for_address(
    process: subprocess.Popen[bytes], runtime: Path, log: Path
) -> tuple[str, str]:
    """The address and the token, from the file that the server writes when it is up."""
    last = time.monotonic() + START_S
    while time.monotonic() < last and process.poll() is None:
        for path in runtime.glob("jpserver-*.json"):
            try:
                told = json.loads(path.read_text(encoding="utf-8"))
            except ValueError:
                continue  # read while it was being written
            return told["url"], told["token"]
        time.sleep(0.05)
    tail = log.read_text(encoding="utf-8", errors="replace")[-2000:]
    raise RuntimeError(f"JupyterLab did not start; it said:\n{tail}")


def end(process: subprocess.Popen[bytes], server: Served | None) -> None:
    """End a server and its kernels: by asking, then by signal, then by force."""
    if server is not None and process.poll() is None:
        try:
            server.ask("POST", "api/shutdown")
            process.wait(15)
        except (OSError, subprocess.TimeoutExpired):
            process.terminate()
    elif process.poll() is None:
        process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
