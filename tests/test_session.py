"""setup starts a page, and its words are one sentence where it cannot."""

import random

import numpy as np
import pytest
import torch

import labkit as lk
from labkit.lesson import evidence, registry, session
from labkit.lesson.evidence import LabError, code, one_line, plain_text, short


@pytest.fixture(autouse=True)
def kind_and_clean(monkeypatch):
    monkeypatch.delenv("LABKIT_STRICT", raising=False)
    monkeypatch.setattr(session, "_session", session.Session())


def draws():
    return random.random(), np.random.rand(), torch.rand(1).item()


def test_setup_seeds_everything_and_says_where_it_runs(capsys):
    started = lk.setup(2, seed=7, device="cpu", solve=True)
    first = draws()
    lk.setup(2, seed=7, device="cpu")
    assert draws() == first
    assert (started.chapter, started.seed, started.solve) == (2, 7, True)
    assert started.device == torch.device("cpu")
    assert torch.get_num_threads() == 1
    out = capsys.readouterr().out
    assert f"torch {torch.__version__}" in out
    assert "seed 7" in out
    assert session.current().seed == 7


def test_device_auto_is_one_that_works():
    device = session.pick_device("auto")
    assert torch.ones(2, device=device).sum() == 2


def test_a_page_made_with_another_labkit_says_so(capsys):
    lk.setup(2, version="0.0.1")
    assert "made with labkit 0.0.1" in capsys.readouterr().out
    lk.setup(2, version=lk.__version__)
    assert "made with" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"chapter": "2"}, "chapter is the page's number"),
        ({"chapter": 2, "seed": -1}, "seed is a whole number"),
        ({"chapter": 2, "budget": "big"}, "budget is 'quick' or 'full'"),
        ({"chapter": 2, "device": "gpu7"}, "'gpu7' came"),
    ],
)
def test_bad_input(wrong, says, capsys, monkeypatch):
    lk.setup(**wrong)
    assert says in capsys.readouterr().out
    monkeypatch.setenv("LABKIT_STRICT", "1")
    with pytest.raises(LabError, match=says):
        lk.setup(**wrong)


def test_strict_is_off_by_default_and_for_zero(monkeypatch):
    assert not evidence.strict()
    monkeypatch.setenv("LABKIT_STRICT", "0")
    assert not evidence.strict()


def test_find_knows_traps_by_number_and_slug():
    trap = registry.find("trap", "2.1.1")
    assert registry.find("trap", trap.slug) is trap
    assert 2 in registry.chapters()


@pytest.mark.parametrize("id", ["2.1.77", "99.1.1", "shared-memory", ""])
def test_unknown_ids_name_the_nearest(id):
    with pytest.raises(LabError, match=r"there is no trap .* the nearest: \S+"):
        registry.find("trap", id)


def test_code_spans_cannot_be_broken():
    assert code("a`b") == "`` a`b ``"
    assert code("a|b") == "`a\\|b`"
    assert code("two\n  lines") == "`two lines`"


def test_short():
    class Rude:
        def __repr__(self):
            raise RuntimeError

    assert short([1, 2]) == "[1, 2]"
    assert len(short("x" * 500)) == 72
    assert short(object()) == "<object object>"
    assert "Rude whose repr raised RuntimeError" in short(Rude())


def test_one_line_of_a_long_message_is_the_sentence_that_was_looked_for():
    long = "Not allowed: numpy.scalar. " + "Please use something else. " * 9
    assert one_line(ValueError(long)) == "ValueError: Not allowed: numpy.scalar."
    found = one_line(ValueError(long + "\nbut\n" + long + "It BROKE here."), "broke")
    assert found == "ValueError: It BROKE here."
    assert one_line(ValueError("x" * 201)) == "ValueError: " + "x" * 199 + "…"
    assert one_line(ValueError("x" * 200)) == "ValueError: " + "x" * 200
    assert one_line(ValueError()) == "ValueError"


def test_plain_text_reads_well():
    table = "| a | b |\n|---|--:|\n| `x \\| y` | **2** |\n\n> > said"
    assert plain_text(table) == "a · b\nx | y · 2\n\nsaid"


def test_data_path(tmp_path):
    assert lk.data_path("claims.csv").is_file()
    with pytest.raises(LabError, match=r"no file 'none.npz' .*claims.csv"):
        lk.data_path("none.npz")
