"""A model or optimizer beside a state: what is found, what is refused, what it reads."""

import argparse
import copy
import dataclasses
import os
import pickle
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.optim import SGD, Adam, AdamW, Optimizer

import labkit as lk
from labkit.probe.state_result import StateDiff

diff_state = lk.diff_state


class Net(nn.Module):
    """A classifier with normalisation, a mask that is not saved, and a tied head."""

    def __init__(self, words: int = 11, width: int = 6) -> None:
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.norm = nn.BatchNorm1d(width)
        self.head = nn.Linear(width, words, bias=False)
        self.head.weight = self.embed.weight
        self.register_buffer("mask", torch.ones(3), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.norm(self.embed(x)))


def saved(model: nn.Module) -> dict[str, Any]:
    return copy.deepcopy(model.state_dict())


def mlp() -> nn.Sequential:
    return nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4))


def trained(make: Callable[[nn.Module], Optimizer], model: nn.Module) -> Optimizer:
    optimizer = make(model)
    model(torch.ones(2, 4)).sum().backward()
    optimizer.step()
    return optimizer


def whats(diff: StateDiff) -> str:
    return "\n".join(map(str, diff.findings))


def test_a_state_that_fits_has_no_findings():
    diff = diff_state(Net(), saved(Net()))
    assert not diff.findings
    assert len(diff.matched) == 7
    assert diff.tied == (("embed.weight", "head.weight"),)
    assert diff.not_saved == ("mask",)
    assert "mask" in diff.notes[0]
    assert repr(diff) == "<StateDiff: Net, 7 matched; no findings>"
    assert "No findings." in diff._repr_markdown_()


def test_the_result_is_frozen_and_shows_what_differs():
    diff = diff_state(nn.Linear(2, 2), {"weight": torch.zeros(3, 2), "other": 1})
    assert "\n" not in repr(diff)
    assert "2 findings" not in repr(diff)
    assert "3 findings" in repr(diff)
    headline, *found = str(diff).splitlines()  # what a script prints
    assert headline == repr(diff)
    assert sorted(found) == sorted(f"- {finding}" for finding in diff.findings)
    shown = diff._repr_markdown_()
    assert "| missing | bias |" in shown
    assert "| wrong shape | weight ((3, 2) in the state, (2, 2) here) |" in shown
    with pytest.raises(dataclasses.FrozenInstanceError):
        diff.matched = ()  # type: ignore[misc]


def test_missing_and_unexpected_are_those_of_torch():
    model, state = Net(), saved(Net())
    del state["norm.bias"]
    state["norm.scale"] = torch.ones(2)
    diff = diff_state(model, state)
    said = model.load_state_dict(state, strict=False)
    assert list(diff.missing) == said.missing_keys == ["norm.bias"]
    assert list(diff.unexpected) == said.unexpected_keys == ["norm.scale"]
    assert {f.where for f in diff.findings} == {"norm.bias", "norm.scale"}


def test_a_shape_that_differs():
    diff = diff_state(nn.Linear(3, 2), saved(nn.Linear(4, 2)))
    (wrong,) = diff.wrong_shape
    assert (wrong.name, wrong.here, wrong.there) == ("weight", (2, 3), (2, 4))
    assert diff.matched == ("bias",)
    assert "with strict=False too" in whats(diff)


def test_a_vector_of_one_for_a_number_is_taken_by_torch():
    model = nn.Module()
    model.scale = nn.Parameter(torch.tensor(0.0))
    diff = diff_state(model, {"scale": torch.tensor([5.0])})
    assert not diff.findings
    assert "takes the one number" in diff.notes[0]
    model.load_state_dict({"scale": torch.tensor([5.0])})
    assert model.scale.item() == 5.0
    assert diff_state(model, {"scale": torch.tensor([5.0, 7.0])}).wrong_shape


def test_something_else_than_a_tensor():
    state = {**saved(nn.Linear(2, 1)), "bias": 3}
    (wrong,) = diff_state(nn.Linear(2, 1), state).wrong_shape
    assert (wrong.name, wrong.there) == ("bias", "int")


@pytest.mark.parametrize(
    ("here", "there", "found"),
    [
        (torch.bfloat16, torch.float32, True),
        (torch.float16, torch.bfloat16, True),
        (torch.float32, torch.bfloat16, False),
        (torch.float64, torch.float32, False),
        (torch.float32, torch.float32, False),
    ],
)
def test_a_dtype_that_would_be_cast(here, there, found):
    diff = diff_state(nn.Linear(2, 2).to(here), saved(nn.Linear(2, 2).to(there)))
    assert len(diff.cast) == (0 if here == there else 2)
    assert bool(diff.findings) is found
    assert ("rounds" in whats(diff)) is found


PREFIXES = {
    "module.": (Net, lambda: nn.DataParallel(Net())),
    "_orig_mod.": (Net, lambda: torch.compile(Net())),
    "module._orig_mod.": (Net, lambda: nn.DataParallel(torch.compile(Net()))),
    "_orig_mod.module.": (Net, lambda: torch.compile(nn.DataParallel(Net()))),
    "model.": (Net, lambda: nn.ModuleDict({"model": Net()})),
}


@pytest.mark.parametrize(("prefix", "makers"), PREFIXES.items(), ids=PREFIXES)
@pytest.mark.parametrize("turned", [False, True], ids=["state", "model"])
def test_a_prefix_and_the_line_that_mends_it(prefix, makers, turned):
    here, there = reversed(makers) if turned else makers
    model, state = here(), saved(there())
    diff = diff_state(model, state)
    assert diff.prefix == prefix
    assert len(diff.matched) == 7
    assert not diff.missing
    assert [f.page for f in diff.findings] == ["7.3"]
    assert "0 of 7 names match" in whats(diff)
    assert diff.fix in diff._repr_markdown_()
    mended = {"state": state}
    exec(diff.fix, mended)
    assert not diff_state(model, mended["state"]).findings
    model.load_state_dict(mended["state"])


def test_a_wrapper_inside_the_model():
    inside = nn.Sequential(torch.compile(nn.Linear(2, 2)), nn.Linear(2, 1))
    diff = diff_state(nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1)), saved(inside))
    assert diff.prefix == "_orig_mod."
    assert len(diff.matched) == 4
    mended = {"state": saved(inside)}
    exec(diff.fix, mended)
    assert set(mended["state"]) == {"0.weight", "0.bias", "1.weight", "1.bias"}


def test_a_module_that_is_really_called_module_is_no_prefix():
    model = nn.Sequential()
    model.add_module("module", nn.Linear(2, 2))
    assert not diff_state(model, saved(model)).prefix


def test_a_state_without_the_second_name_of_a_tied_weight():
    state = saved(Net())
    del state["head.weight"]
    (finding,) = diff_state(Net(), state).findings
    assert finding.where == "head.weight"
    assert "one tensor with embed.weight" in finding.what


def test_tied_weights_of_different_values():
    state = saved(Net())
    state["head.weight"] = state["head.weight"].clone()
    assert not diff_state(Net(), state).findings  # apart, and equal
    state["head.weight"] += 1
    model = Net()
    assert "the last, head.weight, stays" in whats(diff_state(model, state))
    model.load_state_dict(state)
    assert torch.equal(model.embed.weight, state["head.weight"])


def test_a_buffer_that_is_no_longer_saved():
    (finding,) = diff_state(Net(), {**saved(Net()), "mask": torch.ones(3)}).findings
    assert finding.where == "mask"
    assert "persistent=False" in finding.what


def test_extra_state_is_no_tensor_and_fits():
    class Counting(nn.Linear):
        def get_extra_state(self) -> Any:
            return {"steps": 3}

        def set_extra_state(self, state: Any) -> None: ...

    model = Counting(2, 2)
    assert "_extra_state" in diff_state(model, saved(model)).matched


# --- a state that is the live model's own memory (B46)


@pytest.mark.parametrize("keep", [dict, copy.copy, lambda s: {**s}])
def test_a_best_state_that_follows_the_model(keep):
    model = mlp()
    diff = diff_state(model, keep(model.state_dict()))
    assert len(diff.aliased) == 4
    assert "copy.deepcopy" in whats(diff)


@pytest.mark.parametrize(
    "keep", [copy.deepcopy, lambda s: {name: v.clone() for name, v in s.items()}]
)
def test_a_best_state_of_its_own(keep):
    model = mlp()
    diff = diff_state(model, keep(model.state_dict()))
    assert not diff.aliased
    assert not diff.findings


def test_a_model_that_was_given_the_states_tensors():
    model, state = mlp(), saved(mlp())
    model.load_state_dict(state, assign=True)
    assert len(diff_state(model, state).aliased) == 4


def test_meta_and_fake_tensors_share_nothing():
    with torch.device("meta"):
        model = mlp()
    assert not diff_state(model, model.state_dict()).findings


# --- optimizers


def named(kind: Any) -> Callable[[nn.Module], Optimizer]:
    return lambda model: kind(model.named_parameters(), lr=0.1)


@pytest.mark.parametrize("kind", [Adam, AdamW])
def test_an_optimizer_state_in_another_order_is_found_by_name(kind):
    names = [f"{place}.weight" for place in (0, 2)]

    def make(order: list[str]) -> Callable[[nn.Module], Optimizer]:
        return lambda m: kind([(name, m.get_parameter(name)) for name in order])

    state = copy.deepcopy(trained(make(names), mlp()).state_dict())
    diff = diff_state(make(names[::-1])(mlp()), state)
    (finding,) = diff.findings
    assert "the order of the parameters differs" in finding.what
    assert "2.weight (here, 0.weight in the state)" in finding.where
    assert not diff_state(make(names)(mlp()), state).findings


def test_without_names_shapes_alone_can_tell():
    def make(order: int) -> Callable[[nn.Module], Optimizer]:
        return lambda model: Adam(list(model.parameters())[::order])

    state = copy.deepcopy(trained(make(1), mlp()).state_dict())
    diff = diff_state(make(-1)(mlp()), state)
    assert len(diff.wrong_shape) == 8  # two moments of four parameters
    assert any("of another parameter" in f.what for f in diff.findings)
    same = diff_state(make(1)(mlp()), state)
    assert not same.findings
    assert "could be swapped unseen" in same.notes[0]


def test_parameters_of_other_names():
    renamed = nn.Sequential(mlp())
    state = copy.deepcopy(trained(named(Adam), mlp()).state_dict())
    diff = diff_state(named(Adam)(renamed), state)
    assert diff.missing == ("0.0.weight", "0.0.bias", "0.2.weight", "0.2.bias")
    assert [f.sure for f in diff.findings] == ["likely"]


def test_another_number_of_parameters():
    state = copy.deepcopy(trained(named(SGD), mlp()).state_dict())
    optimizer = named(SGD)(mlp()[0])
    diff = diff_state(optimizer, state)
    assert "groups of 2 parameters and the state of 4" in whats(diff)
    with pytest.raises(ValueError, match="doesn't match the size"):
        optimizer.load_state_dict(state)


def test_another_kind_of_optimizer():
    state = copy.deepcopy(trained(named(SGD), mlp()).state_dict())
    assert "another kind" in whats(diff_state(named(Adam)(mlp()), state))


def test_moments_that_would_be_rounded():
    state = copy.deepcopy(trained(named(Adam), mlp()).state_dict())
    diff = diff_state(named(Adam)(mlp().to(torch.bfloat16)), state)
    assert len(diff.cast) == 8
    assert "rounds torch.float32 to torch.bfloat16" in whats(diff)


def test_an_optimizer_state_that_follows_the_optimizer():
    optimizer = trained(named(Adam), mlp())
    state = optimizer.state_dict()
    assert "0.weight: exp_avg" in diff_state(optimizer, state).aliased
    assert not diff_state(optimizer, copy.deepcopy(state)).findings


def test_settings_that_loading_changes_are_notes():
    state = SGD(mlp().named_parameters(), lr=0.5).state_dict()
    diff = diff_state(named(SGD)(mlp()), state)
    assert not diff.findings
    assert "The state holds no moments" in diff.notes[0]
    assert diff.notes[1] == "Loading sets group 0: lr 0.1 becomes 0.5."


def test_factored_moments_have_shapes_of_their_own():
    optimizer = trained(named(torch.optim.Adafactor), mlp())
    state = copy.deepcopy(optimizer.state_dict())
    assert not diff_state(optimizer, state).findings


# --- files


def write(path: Path, content: Any, **options: Any) -> Path:
    torch.save(content, path, **options)
    return path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state.pt"


@pytest.mark.parametrize("kind", [str, Path])
def test_a_file_that_fits(path, kind):
    diff = diff_state(Net(), kind(write(path, Net().state_dict())))
    assert not diff.findings
    assert len(diff.matched) == 7
    assert diff.devices == ("cpu",)


def test_a_file_of_before_1_6(path):
    write(path, Net().state_dict(), _use_new_zipfile_serialization=False)
    assert not diff_state(Net(), path).findings


def test_an_entry_of_a_checkpoint(path):
    model = mlp()
    optimizer = trained(named(Adam), model)
    content = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "epoch": 3,
    }
    write(path, content)
    assert not diff_state(model, path, key="model").findings
    assert not diff_state(optimizer, path, key="optimizer").findings
    expected = r"with key, 'model' \(of a model\) or 'optimizer' \(of an optimizer\)\."
    for state in (path, content):
        with pytest.raises(ValueError, match=expected):
            diff_state(model, state)
        with pytest.raises(ValueError, match=expected):
            diff_state(optimizer, state)
    with pytest.raises(ValueError, match="and got 'epoch'"):
        diff_state(model, path, key="epoch")


def tag(path: Path, device: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file as a machine with that device writes it."""
    with monkeypatch.context() as patch:
        patch.setattr("torch.serialization.location_tag", lambda storage: device)
        return write(path, saved(mlp()))


def test_a_file_from_a_device_that_is_not_here(path, monkeypatch):
    missing = f"cuda:{torch.cuda.device_count()}"
    diff = diff_state(mlp(), tag(path, missing, monkeypatch))
    (finding,) = diff.findings
    assert finding.page == "7.3"
    assert f"{missing}, which is not here" in finding.what
    assert diff.devices == (missing,)
    assert len(diff.matched) == 4
    with pytest.raises(RuntimeError, match="CUDA"):
        torch.load(path, weights_only=True)


def test_a_view_that_saves_its_whole_storage(path):
    rows = torch.zeros(1000, 500)
    write(path, {"weight": rows[:2, :3], "bias": torch.zeros(2)})
    (note,) = diff_state(nn.Linear(3, 2), path).notes
    assert "weight: a view" in note
    assert f"{1000 * 500 * 4 - 24:,} bytes" in note


def listed(message: str) -> str:
    found = re.search(r"`(torch\.serialization\.add_safe_globals\(\[.*\]\))`", message)
    assert found, message
    return found.group(1)


CONFIGS = {
    "a namespace": argparse.Namespace(lr=0.1),
    "a NumPy number": np.float64(0.5),
    "NumPy numbers": {"a": np.float64(0.5), "b": np.float32(1), "c": np.float32(2)},
    "an array": np.arange(3),
    "a path": Path("runs") / "1",
}


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_a_file_that_is_refused_and_the_line_that_allows_it(path, config):
    write(path, {"model": saved(mlp()), "config": config})
    with pytest.raises(ValueError, match="refuses") as refused:
        diff_state(mlp(), path, key="model")
    assert str(refused.value).count(". ") == 0
    line = listed(str(refused.value))
    names = re.search(r"\[(.*)\]", line).group(1).split(", ")
    modules = {name.rpartition(".")[0]: None for name in names}
    scope: dict[str, Any] = {"torch": torch}
    for module in modules:
        exec(f"import {module}", scope)
    with torch.serialization.safe_globals(eval(f"[{', '.join(names)}]", scope)):
        assert not diff_state(mlp(), path, key="model").findings
    plain = {"lr": 0.1, "best": 0.5, "steps": [0, 1, 2], "name": "runs/1"}
    write(path, {"model": saved(mlp()), "config": plain})
    assert not diff_state(mlp(), path, key="model").findings


class Harmful:
    def __init__(self, call: Any, *arguments: Any) -> None:
        self.reduced = (call, arguments)

    def __reduce__(self) -> Any:
        return self.reduced


@pytest.mark.parametrize("zipped", [True, False])
def test_a_pickle_that_would_run_code_is_not_run(tmp_path, path, zipped):
    proof = tmp_path / "ran"
    content = {"weight": Harmful(os.mkdir, str(proof))}
    write(path, content, _use_new_zipfile_serialization=zipped)
    with pytest.raises(ValueError, match="mkdir") as refused:
        diff_state(mlp(), path)
    assert "add_safe_globals" not in str(refused.value)
    path.write_bytes(pickle.dumps(content))
    with pytest.raises(ValueError, match=r"plain pickle.* not opened"):
        diff_state(mlp(), path)
    assert not proof.exists()
    assert sorted(tmp_path.iterdir()) == [path]


def test_a_whole_module(path):
    write(path, mlp())
    with pytest.raises(ValueError, match=r"save `model\.state_dict\(\)` instead"):
        diff_state(mlp(), path)


def test_a_file_cut_off_anywhere(path):
    whole = write(path, saved(mlp())).read_bytes()
    for length in (1, 20, len(whole) // 3, len(whole) - 40):
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError, match=r"state\.pt") as refused:
            diff_state(mlp(), path)
        assert "\n" not in str(refused.value)


def test_files_that_are_none(tmp_path, path):
    with pytest.raises(FileNotFoundError, match=r"no file .*state\.pt"):
        diff_state(mlp(), path)
    with pytest.raises(ValueError, match="is a folder"):
        diff_state(mlp(), tmp_path)
    path.touch()
    with pytest.raises(ValueError, match=r"state\.pt is empty"):
        diff_state(mlp(), path)
    path.write_text("epoch,loss\n1,0.5\n")
    with pytest.raises(ValueError, match=r"not written by torch\.save"):
        diff_state(mlp(), path)
    write(path, [1, 2])
    with pytest.raises(TypeError, match="got a list"):
        diff_state(mlp(), path)


def test_wrong_arguments():
    with pytest.raises(TypeError, match="Module or an optimizer, and got a dict"):
        diff_state({}, {})  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="got the class Net"):
        diff_state(Net, {})  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"got a Net: give its \.state_dict"):
        diff_state(Net(), Net())
    with pytest.raises(TypeError, match="got a NoneType"):
        diff_state(Net(), None)
    with pytest.raises(ValueError, match="give the optimizer first"):
        diff_state(mlp(), SGD(mlp().parameters()).state_dict())
    with pytest.raises(ValueError, match="'state' and 'param_groups'"):
        diff_state(SGD(mlp().parameters()), {"lr": 0.1})
    with pytest.raises(ValueError, match="this one has not"):
        diff_state(SGD(mlp().parameters()), {"state": {}, "param_groups": [3]})
    with pytest.raises(ValueError, match="run one batch"):
        diff_state(nn.LazyLinear(3), {})
    with pytest.raises(ValueError, match="are strings, and got 0"):
        diff_state(mlp(), {0: torch.ones(1)})


def test_nothing_is_changed(path):
    model = mlp()
    optimizer = trained(named(Adam), model)
    before = saved(model), copy.deepcopy(optimizer.state_dict())
    state = {f"module.{name}": value for name, value in saved(mlp()).items()}
    keys, written = list(state), write(path, state).read_bytes()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        diff_state(model, state)
        diff_state(model, path)
        diff_state(optimizer, optimizer.state_dict())
    torch.testing.assert_close(saved(model), before[0], rtol=0, atol=0)
    assert str(optimizer.state_dict()) == str(before[1])
    assert list(state) == keys
    assert path.read_bytes() == written
