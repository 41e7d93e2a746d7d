"""The same script on one machine and on two: torchrun with a rendezvous, on loopback."""

import inspect
import json
import os
import re
import shlex
import socket
import subprocess
import sys
import tempfile
import time
import uuid

import pytest
import torch
from tree import REPOSITORY

from labkit.chapters.ch06 import ddp_reference
from labkit.launch.rank_processes import marked, stop
from labkit.launch.rank_run import environment, launch
from labkit.launch.report import reports

PAGE = REPOSITORY / "notebooks" / "06_multi_gpu.ipynb"
PATIENCE = 180.0  # seconds
TRAINING = """

def step(model, optimizer, batch):
    x, y = batch
    loss = torch.nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


from labkit.launch.report import report

torch.manual_seed(0)
x = torch.randn(90, 5)
data = torch.utils.data.TensorDataset(x, x[:, :3].argmax(dim=1))
model = torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.Linear(8, 3))
train(model, data, step, f"{os.environ['TMPDIR']}/model.pt")
names = "RANK", "LOCAL_RANK", "GROUP_RANK", "WORLD_SIZE"
report(weights=[p for p in model.parameters()], **{n: os.environ[n] for n in names})
"""


def script() -> str:
    """The reference of exercise 6.2-ddp as a script, which reports its weights."""
    return inspect.getsource(ddp_reference) + TRAINING


def node(endpoint: str) -> list[str]:
    """The line that the page prints for two machines, with one rank on each."""
    cells = json.loads(PAGE.read_text("utf-8"))["cells"]
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    printed = "\n".join("".join(output.get("text", "")) for output in outputs)
    line = re.search(r"torchrun --nnodes.*?train\.py", printed, re.DOTALL)
    assert line, f"{PAGE.name} prints no torchrun line for several machines"
    joined = line[0].replace("\\\n", " ")
    words = shlex.split(joined.replace("node0.example:29400", endpoint))
    assert endpoint in words
    given = words[1:-1]
    options = dict(zip(given[::2], given[1::2], strict=True))
    options |= {"--nproc-per-node": "1", "--local-addr": "127.0.0.1"}
    flat = [word for pair in options.items() for word in pair]
    return [sys.executable, "-m", "torch.distributed.run", *flat]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_two_nodes_train_as_one_does(tmp_path, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    temporary = tmp_path / "t"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    (tmp_path / "reports").mkdir()
    path = tmp_path / "train.py"
    path.write_text(script(), encoding="utf-8")
    port, mark = free_port(), uuid.uuid4().hex
    command = [*node(f"127.0.0.1:{port}"), str(path)]
    nodes = []
    try:
        for name in ("a", "b"):
            with (tmp_path / f"{name}.log").open("wb") as log:
                nodes.append(
                    subprocess.Popen(
                        command,
                        stdin=subprocess.DEVNULL,
                        stdout=log,
                        stderr=subprocess.STDOUT,
                        env=environment(tmp_path, mark),
                        start_new_session=True,
                    )
                )
        end = time.monotonic() + PATIENCE
        codes = [one.wait(max(end - time.monotonic(), 1)) for one in nodes]
    finally:
        for one in nodes:
            stop(one, mark)
    logs = [(tmp_path / f"{name}.log").read_text("utf-8") for name in ("a", "b")]
    assert codes == [0, 0], logs
    two = reports(tmp_path / "reports", 2)
    assert [values["RANK"] for values in two] == ["0", "1"]
    assert [values["LOCAL_RANK"] for values in two] == ["0", "0"]
    assert sorted(values["GROUP_RANK"] for values in two) == ["0", "1"]
    assert sum(text.count("epoch ") for text in logs) == 3  # rank 0's lines, no others
    saved = torch.load(tmp_path / "model.pt", weights_only=True)
    assert list(saved) == ["0.weight", "0.bias", "1.weight", "1.bias"]

    one = launch(path, nproc=2, timeout=PATIENCE)
    assert one.problem == ""
    assert [values["GROUP_RANK"] for values in one] == ["0", "0"]
    assert [values["LOCAL_RANK"] for values in one] == ["0", "1"]
    for rank in (0, 1):
        pairs = zip(one[rank]["weights"], two[rank]["weights"], strict=True)
        assert all(torch.equal(here, there) for here, there in pairs)
    for mine, theirs in zip(saved.values(), two[1]["weights"], strict=True):
        assert torch.equal(mine, theirs)

    if sys.platform == "linux":
        assert marked(mark) == {}
    with socket.socket() as again:  # the rendezvous has given its port back
        again.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        again.bind(("127.0.0.1", port))
    left = [
        p.name for p in temporary.iterdir() if not p.name.startswith("torchelastic")
    ]
    assert left == []


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGKILL")
def test_a_rank_that_is_killed_is_named():
    source = """
import os, signal, time
if os.environ["RANK"] == "1":
    os.kill(os.getpid(), signal.SIGKILL)
time.sleep(60)
"""
    ranks = launch(source, nproc=2, timeout=PATIENCE)
    assert ranks.problem == "rank 1 was ended by SIGKILL"
    assert ranks.reported == ({}, {})
