"""Set up and open the workbook, and run the project's own tools.

    python tools/lab.py [lab]       open JupyterLab on the start page
    python tools/lab.py test        run the tests;  --slow: only the slow ones
    python tools/lab.py build       run the pages and write notebooks/
    python tools/lab.py check       are the stored pages up to date?

Each command first makes .venv and installs what it needs, if that is not there yet.
`lab --here` uses the Python that runs it as it is: for conda, uv or a hub.
What follows a command is handed on, to JupyterLab, pytest or the build.

Standard library only, and readable to old Pythons, which get a clear sentence.
"""

import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv"
START_PAGE = "00_start.ipynb"
OLDEST = (3, 11)
CPU_INDEX = "https://download.pytorch.org/whl/cpu"
REQUIREMENTS = {
    "learn": ["requirements.txt"],
    "develop": ["requirements.txt", "requirements-dev.txt"],
}


class SetupError(Exception):
    """What is missing, and how to mend it, in one sentence."""


def main(arguments):
    """Run one command; return the exit status."""
    command, rest = (arguments[0], arguments[1:]) if arguments else ("lab", [])
    commands = {"lab": lab, "test": test, "build": build, "check": check}
    if command in ("help", "-h", "--help"):
        print(__doc__.strip())
        return 0
    try:
        if command not in commands:
            raise SetupError(f"{command}: the commands are {', '.join(commands)}")
        require_python(sys.version_info)
        return commands[command](rest)
    except SetupError as error:
        print(error, file=sys.stderr)
        return 1
    except OSError as error:
        print(f"{command} stopped at a file or a program: {error}", file=sys.stderr)
        return 1


def lab(arguments):
    """Make the learner's copies and open JupyterLab on the start page."""
    here = "--here" in arguments
    python = Path(sys.executable) if here else environment("learn")
    arguments = [argument for argument in arguments if argument != "--here"]
    workspace = load_workspace()
    try:
        started = workspace.start()
    except workspace.WorkspaceError as error:
        raise SetupError(str(error)) from None
    print(started)
    shown = "at the address below" if "--no-browser" in arguments else "in your browser"
    print(f"JupyterLab opens {shown}; Ctrl+C here stops it.", flush=True)
    page = started.folder / START_PAGE
    opened = [START_PAGE] if page.exists() else []
    return replace_process(
        [
            str(python),
            "-m",
            "jupyterlab",
            f"--ServerApp.root_dir={started.folder}",
            *opened,
            *arguments,
        ],
        cwd=started.folder,
    )


def test(arguments):
    """Run the tests that every change must pass, or with --slow the other ones."""
    python = environment("develop")
    slow = "--slow" in arguments
    rest = [argument for argument in arguments if argument != "--slow"]
    marker = "slow" if slow else "not slow"
    return subprocess.call(
        [str(python), "-m", "pytest", "-n", "2", "-m", marker, *rest], cwd=ROOT
    )


def build(arguments):
    """Run pages and store them."""
    return tool("build", arguments)


def check(arguments):
    """Say whether the stored pages are up to date."""
    return tool("check", arguments)


def tool(command, arguments):
    python = environment("develop")
    return subprocess.call(
        [str(python), str(ROOT / "tools" / "build.py"), command, *arguments], cwd=ROOT
    )


def require_python(version):
    """Raise SetupError where a Python is too old for the workbook."""
    if tuple(version[:2]) >= OLDEST:
        return
    newer = [
        name
        for name in ("python3.14", "python3.13", "python3.12", "python3.11")
        if runs(name)
    ]
    how = (
        f"call `make lab PYTHON={newer[0]}`"
        if newer
        else "install a newer one from https://www.python.org/downloads/"
    )
    raise SetupError(
        "The workbook needs Python {}.{} or newer, and this is {}.{}: {}.".format(
            *OLDEST, *version[:2], how
        )
    )


def runs(name):
    """Whether there is a command of that name that starts: a version manager's may not."""
    if not shutil.which(name):
        return False
    try:
        return subprocess.call([name, "-c", ""], stderr=subprocess.DEVNULL) == 0
    except OSError:
        return False


def environment(purpose):
    """The Python of .venv, with everything for a purpose installed.

    purpose: "learn" or "develop".  Raises SetupError where that cannot be done.
    """
    python = VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    stamp = VENV / "labkit-installed.json"
    if not works(python):
        make_venv(python)
    wanted = {name: fingerprint(name) for name in REQUIREMENTS}
    installed = read_stamp(stamp)
    if installed.get(purpose) != wanted[purpose]:
        install(python, REQUIREMENTS[purpose][-1])
        # whoever develops has all that a learner needs
        both = wanted if purpose == "develop" else {purpose: wanted[purpose]}
        stamp.write_text(json.dumps(both, indent=1))
    return python


def read_stamp(path):
    """What was installed for which purpose; a damaged note counts as nothing."""
    try:
        noted = json.loads(path.read_text())
    except (FileNotFoundError, ValueError):
        return {}
    return noted if isinstance(noted, dict) else {}


def works(python):
    """Whether a Python starts and is new enough; one of a removed Python does not."""
    test = f"import sys; sys.exit(sys.version_info < {OLDEST})"
    try:
        return subprocess.call([str(python), "-c", test]) == 0
    except OSError:
        return False


def make_venv(python):
    if VENV.exists():
        raise SetupError(
            f"{VENV} holds no working Python {OLDEST[0]}.{OLDEST[1]} or newer (the "
            "Python it was made from may be gone): remove that folder and try again."
        )
    missing = [
        name for name in ("venv", "ensurepip") if not importlib.util.find_spec(name)
    ]
    if missing:
        raise SetupError(
            f"This Python has no module {missing[0]}, which makes .venv: on Debian and "
            "Ubuntu install it with `sudo apt install python3-venv` and try again."
        )
    print(f"Making {VENV} ...", flush=True)
    if subprocess.call([sys.executable, "-m", "venv", str(VENV)]) or not works(python):
        shutil.rmtree(VENV, ignore_errors=True)
        raise SetupError("The environment .venv could not be made; see above.")


def fingerprint(purpose):
    """A hash of all that decides what is installed for a purpose.

    That includes the folder: labkit is used from where it lies, and may have moved.
    """
    digest = hashlib.sha256(str(ROOT).encode() + b"\0")
    for name in [*REQUIREMENTS[purpose], "constraints.txt"]:
        digest.update((ROOT / name).read_bytes().replace(b"\r\n", b"\n") + b"\0")
    return digest.hexdigest()


def install(python, requirements):
    """Install one of the requirement files, at the pinned versions, into .venv."""
    print(
        f"Installing {requirements} into .venv: once, and a few minutes at most on a "
        "fast line (PyTorch is large) ...",
        flush=True,
    )
    pip = [str(python), "-m", "pip"]
    probe = subprocess.run([*pip, "--version"], capture_output=True, check=False)
    if probe.returncode != 0:  # uv makes environments without pip
        subprocess.call([str(python), "-m", "ensurepip"])
    command = [*pip, "install", "-r", requirements, "-c", "constraints.txt"]
    kind = os.environ.get("TORCH", "").lower()
    if kind not in ("", "cpu"):
        raise SetupError(f"TORCH can be cpu, or be left out; {kind!r} came.")
    if kind == "cpu":
        command += ["--extra-index-url", CPU_INDEX]
    if subprocess.call(command, cwd=ROOT) != 0:
        raise SetupError(
            f"{requirements} could not be installed; pip says why above.  Run the same "
            "command again to try once more: what is done is not done twice."
        )


def load_workspace():
    """labkit's module that copies the pages, loaded without labkit and so without torch."""
    path = ROOT / "labkit" / "lesson" / "workspace.py"
    spec = importlib.util.spec_from_file_location("workspace", path)
    assert spec is not None  # it is found for any .py file
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["workspace"] = module  # dataclasses look their module up there
    spec.loader.exec_module(module)
    return module


def replace_process(command, cwd):
    """Run a command in place of this process, with the project's Jupyter settings."""
    folders = [str(ROOT / "tools" / "jupyter"), os.environ.get("JUPYTER_CONFIG_PATH")]
    variables = dict(os.environ)
    variables["JUPYTER_CONFIG_PATH"] = os.pathsep.join(filter(None, folders))
    variables["LABKIT_WORK"] = str(cwd)
    if os.name == "posix":
        # no process in between: signals go straight to JupyterLab
        os.chdir(cwd)
        os.execve(command[0], command, variables)
    process = subprocess.Popen(command, cwd=cwd, env=variables)
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            pass  # JupyterLab gets Ctrl+C as well, and ends by itself


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
