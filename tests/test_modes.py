"""Reports on train and eval mode: what is found, what is left alone, what is restored."""

import random

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from labkit.lesson.data import data_path
from labkit.probe.model_state import ModelState
from labkit.probe.modes import mode_report


@pytest.fixture(scope="module")
def digits() -> tuple[torch.Tensor, torch.Tensor]:
    with np.load(data_path("digits.npz")) as file:
        x = torch.from_numpy(file["images"][:64]).float().div(16)
        return x, torch.from_numpy(file["labels"][:64])


class Tied(nn.Module):
    """A language model's head that is its embedding."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(17, 16)
        layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.2, batch_first=True)
        self.body = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.head = nn.Linear(16, 17, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(self.embed((16 * x).long().flatten(1))))


class Gan(nn.Module):
    """A generator and a discriminator, each with an optimizer of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.generator = nn.Sequential(
            nn.Linear(8, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 64)
        )
        self.discriminator = nn.Sequential(
            nn.Linear(64, 16), nn.LeakyReLU(), nn.Dropout(0.3), nn.Linear(16, 1)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.discriminator(self.generator(x[:, 0]))


def mlp() -> nn.Sequential:
    return nn.Sequential(
        nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Dropout(0.5), nn.Linear(32, 10)
    )


def convnet() -> nn.Sequential:
    return nn.Sequential(
        nn.Unflatten(1, (1, 8)),
        nn.Conv2d(1, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
        nn.Linear(32, 10),
    )


def frozen_backbone() -> nn.Sequential:
    net = convnet()
    backbone = net[:-1].requires_grad_(False).eval()
    return nn.Sequential(backbone, nn.Linear(32, 10))


HEALTHY = {
    "mlp": mlp,
    "convnet": convnet,
    "tied transformer": Tied,
    "frozen backbone": frozen_backbone,
    "gan": Gan,
}


def evaluating(model: nn.Module, x: torch.Tensor, switch: bool = True):
    """An evaluation that switches modes and puts them back, or does not switch."""

    def evaluate() -> float:
        modes = [module.training for module in model.modules()]
        if switch:
            model.eval()
        with torch.no_grad():
            score = model(x).float().mean().item()
        for module, training in zip(model.modules(), modes, strict=True):
            module.training = training
        return score

    return evaluate


def step(model: nn.Module, x: torch.Tensor) -> None:
    """One step of each optimizer that the model's loop has."""
    parts = model.children() if isinstance(model, Gan) else [model]
    optimizers = [
        torch.optim.SGD([p for p in part.parameters() if p.requires_grad], lr=0.01)
        for part in parts
    ]
    model(x).square().mean().backward()
    for optimizer in optimizers:
        optimizer.step()


def said(report) -> str:
    return "\n".join(map(str, report.findings))


def only(report):
    assert len(report.findings) == 1, said(report)
    return report.findings[0]


@pytest.mark.parametrize("mode", ["train", "eval"])
@pytest.mark.parametrize("name", HEALTHY)
def test_silent_on_healthy_models(name, mode, digits):
    x, _ = digits
    model = HEALTHY[name]()
    step(model, x)
    if mode == "eval":
        model.eval()
    report = mode_report(model, x, evaluating(model, x))
    assert not report.findings, said(report)
    assert not report.unchecked, report.unchecked
    assert not mode_report(model).findings


class TestFrozen:
    """Frozen weights, and what their mode still changes."""

    @staticmethod
    def model(eval_mode: bool) -> nn.Module:
        net = convnet()
        net[:3].requires_grad_(False)
        if eval_mode:
            net[2].eval()
        return net

    def test_statistics_that_still_move(self, digits):
        x, _ = digits
        broken, fixed = self.model(False), self.model(True)
        finding = only(mode_report(broken))
        assert finding.where == "2"
        assert (finding.sure, finding.page) == ("certain", "5.1")
        before = broken[2].running_mean.clone()
        broken(x)
        assert not torch.equal(broken[2].running_mean, before)
        assert not mode_report(fixed).findings

    def test_the_next_train_call_is_a_note(self):
        model = self.model(eval_mode=True)
        report = mode_report(model)
        assert any("The next `model.train()`" in note for note in report.notes)
        model.train()
        assert "running statistics are not" in only(mode_report(model)).what

    def test_norms_without_parameters_in_a_frozen_block(self):
        block = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4, affine=False))
        block[0].requires_grad_(False)
        model = nn.Sequential(block, nn.Linear(4, 2))
        assert only(mode_report(model)).where == "0.1"
        block.requires_grad_(True)
        assert not mode_report(model).findings

    def test_statistics_that_cannot_move(self):
        still = nn.BatchNorm1d(4, momentum=0.0).requires_grad_(False)
        without = nn.BatchNorm1d(4, track_running_stats=False).requires_grad_(False)
        model = nn.Sequential(still, without, nn.Linear(4, 2))
        assert not mode_report(model).findings

    def test_a_norm_of_ones_own(self):
        class Centre(nn.Module):
            def __init__(self):
                super().__init__()
                self.scale = nn.Parameter(torch.ones(8), requires_grad=False)
                self.register_buffer("centre", torch.zeros(8))

            def forward(self, x):
                if self.training:
                    self.centre.lerp_(x.detach().mean(0), 0.1)
                return self.scale * (x - self.centre)

        model = nn.Sequential(Centre(), nn.Linear(8, 2))
        x = torch.randn(6, 8)
        assert any(
            "buffers of frozen modules" in u for u in mode_report(model).unchecked
        )
        assert only(mode_report(model, x)).where == "0.centre"
        model[0].eval()
        assert not mode_report(model, x).findings


class TestModes:
    """Modules in another mode than the model."""

    def test_frozen_ones_are_a_note(self):
        model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(), nn.Linear(4, 2))
        model[0].requires_grad_(False)
        model[:2].eval()
        report = mode_report(model)
        assert not report.findings
        assert report.differing == 2
        assert "without parameters that are trained: 0, 1" in report.notes[0]

    def test_a_block_added_after_eval(self):
        model = mlp().eval()
        model.append(nn.Sequential(nn.Linear(10, 10), nn.Dropout()))
        finding = only(mode_report(model))
        assert "in train mode with parameters that are trained" in finding.what
        assert (finding.where, finding.sure) == ("5", "likely")
        model.eval()
        assert not mode_report(model).findings

    def test_a_trained_block_left_in_eval_mode(self):
        model = nn.Sequential(mlp(), nn.Linear(10, 2))
        model[0].eval()
        finding = only(mode_report(model))
        assert "in eval mode with parameters that are trained" in finding.what
        assert finding.where == "0"

    def test_a_norm_held_in_eval_mode_may_be_meant(self):
        model = convnet()
        model[2].eval()
        assert only(mode_report(model)).sure == "worth a look"


class Noisy(nn.Module):
    """Applies a function to its input in place of a layer; `how` gets the module."""

    def __init__(self, how):
        super().__init__()
        self.how = how
        self.out = nn.Linear(8, 3)

    def forward(self, x):
        return self.out(self.how(x, self))


FUNCTIONAL = {
    "dropout": lambda x, m: F.dropout(x, 0.3),
    "alpha": lambda x, m: F.alpha_dropout(x, 0.3, training=True),
    "rrelu": lambda x, m: F.rrelu(x, training=True),
    "bernoulli": lambda x, m: x * torch.empty_like(x).bernoulli_(0.7),
    "attention": lambda x, m: F.scaled_dot_product_attention(x, x, x, dropout_p=0.3),
}

FIXED = {
    "flag": lambda x, m: F.dropout(x, 0.3, training=m.training),
    "attention": lambda x, m: F.scaled_dot_product_attention(
        x, x, x, dropout_p=0.3 if m.training else 0.0
    ),
    "none": lambda x, m: F.dropout(x, 0.0),
    "first draw": lambda x, m: x + 0 * torch.rand_like(x),
}


class TestRandom:
    """Forwards that are random in eval mode."""

    @pytest.mark.parametrize("name", FUNCTIONAL)
    @pytest.mark.parametrize("training", [True, False])
    def test_dropout_that_ignores_the_mode(self, name, training):
        model = nn.Sequential(nn.Linear(8, 8), Noisy(FUNCTIONAL[name]))
        model.train(training)
        finding = only(mode_report(model, torch.randn(4, 5, 8)))
        assert "dropout is active in eval mode" in finding.what
        assert finding.where.startswith("1 (test_modes.py, line ")
        assert finding.sure == "certain"

    @pytest.mark.parametrize("name", FIXED)
    def test_the_fixed_twin_is_silent(self, name):
        assert not mode_report(Noisy(FIXED[name]), torch.randn(4, 5, 8)).findings

    def test_uniform_numbers_may_be_dropout_by_hand(self):
        model = Noisy(lambda x, m: x * (torch.rand_like(x) > 0.3))
        finding = only(mode_report(model, torch.randn(4, 8)))
        assert finding.sure == "worth a look"

    def test_sampling_is_a_note(self):
        model = Noisy(lambda x, m: x + torch.randn_like(x))
        report = mode_report(model, torch.randn(4, 8))
        assert not report.findings
        assert "as in a model that samples" in report.notes[0]

    def test_numbers_of_numpy(self):
        model = Noisy(lambda x, m: x * float(np.random.rand()))
        assert "Python's or NumPy's" in only(mode_report(model, torch.randn(4, 8))).what

    def test_a_model_without_parameters(self):
        class Drop(nn.Module):
            def forward(self, x):
                return F.dropout(x, 0.5)

        assert "dropout is active" in only(mode_report(Drop(), torch.ones(64))).what

    def test_without_inputs_it_is_listed(self):
        report = mode_report(Noisy(FUNCTIONAL["dropout"]))
        assert not report.findings
        assert any("randomness in eval mode" in what for what in report.unchecked)

    def test_the_inputs_of_an_evaluation_serve(self):
        model, x = Noisy(FUNCTIONAL["dropout"]), torch.randn(4, 8)
        report = mode_report(model, evaluate=evaluating(model, x))
        assert "dropout is active in eval mode" in only(report).what


class TestBatch:
    """Outputs that depend on the other samples in eval mode."""

    def test_norms_that_track_nothing(self):
        model = convnet()
        model[2] = nn.BatchNorm2d(8, track_running_stats=False)
        x = torch.rand(8, 8, 8)
        finding = only(mode_report(model, x))
        assert "depends on the other samples" in finding.what
        assert finding.where.startswith("2 (")
        model[2] = nn.GroupNorm(2, 8)
        assert not mode_report(model, x).findings
        model[2] = nn.InstanceNorm2d(8)
        assert not mode_report(model, x).findings

    def test_functional_norm_that_ignores_the_mode(self):
        class Norm(nn.Module):
            def __init__(self, fixed):
                super().__init__()
                self.fixed = fixed
                self.register_buffer("running_mean", torch.zeros(8))
                self.register_buffer("running_var", torch.ones(8))

            def forward(self, x):
                training = self.training if self.fixed else True
                return F.batch_norm(
                    x, self.running_mean, self.running_var, training=training
                )

        x = torch.randn(6, 8)
        report = mode_report(Norm(fixed=False).eval(), x)
        assert "depends on the other samples" in said(report)
        assert "running_mean, running_var: a forward in eval mode" in said(report)
        assert not mode_report(Norm(fixed=True).eval(), x).findings

    def test_an_axis_that_is_not_the_batch(self):
        layer = nn.TransformerEncoderLayer(16, 2, 32)
        report = mode_report(layer, torch.randn(6, 3, 16))
        assert not report.findings
        assert "if that axis is the batch" in report.notes[0]

    def test_one_sample_is_too_few(self):
        report = mode_report(mlp(), torch.rand(1, 8, 8))
        assert any("two samples" in what for what in report.unchecked)

    def test_a_model_that_refuses_half(self):
        class Fixed(nn.Module):
            def forward(self, x):
                return x.view(4, 2)

        report = mode_report(Fixed(), torch.rand(4, 2))
        assert any("refuses half" in what for what in report.unchecked)


class TestEvaluation:
    def test_validation_in_train_mode(self, digits):
        x, _ = digits
        model = convnet()
        broken = mode_report(model, evaluate=evaluating(model, x, switch=False))
        assert "evaluate() changed running statistics" in said(broken)
        assert "2.running_mean" in said(broken)
        assert "ran 1 mode-dependent module in train mode" in said(broken)
        fixed = mode_report(model, evaluate=evaluating(model, x))
        assert not fixed.findings

    def test_dropout_leaves_no_buffers_behind(self, digits):
        x, _ = digits
        model = mlp()
        broken = mode_report(model, x, evaluating(model, x, switch=False))
        assert "which units were dropped" in only(broken).what

    def test_dropout_kept_on_to_sample(self, digits):
        x, _ = digits
        model = mlp().eval()
        model[3].train()
        report = mode_report(model, x, evaluating(model, x, switch=False))
        assert not report.findings, said(report)

    def test_a_part_called_by_itself(self, digits):
        x, _ = digits
        model = nn.Sequential(convnet(), nn.Linear(10, 2))

        def evaluate():
            model[0](x)

        assert "0.2.running_mean" in said(mode_report(model, evaluate=evaluate))

    def test_parameters_that_change(self):
        model = nn.Linear(3, 2)

        def evaluate():
            with torch.no_grad():
                model.weight.add_(1)

        assert only(mode_report(model, evaluate=evaluate)).where == "weight"

    def test_a_mode_that_stays_is_a_note(self, digits):
        x, _ = digits
        model = convnet()
        report = mode_report(model, evaluate=lambda: model.eval()(x))
        assert not report.findings
        assert "leaves the model in eval mode" in report.notes[0]

    def test_another_model(self):
        report = mode_report(mlp(), evaluate=lambda: None)
        assert "did not call the model" in report.notes[0]


class Stateful(nn.Module):
    """A model whose forward changes all that a module can hold."""

    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(8, 8)
        self.bn = nn.BatchNorm1d(8)
        self.rnn = nn.LSTM(8, 8, batch_first=True)
        self.register_buffer("calls", torch.zeros(()))
        self.register_buffer("odd", torch.tensor([float("nan"), 0.0, -0.0]))
        self.count = 0
        self.seen: list[torch.Tensor] = []
        self.cache: dict[str, torch.Tensor] = {"h": torch.zeros(2)}
        self.generator = torch.Generator().manual_seed(1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.count += 1
        self.calls += 1
        self.seen.append(x)
        self.cache["h"] += 1
        self.cache["new"] = x
        self.fresh = x
        torch.rand(1, generator=self.generator)
        with torch.no_grad():
            self.lin.weight.mul_(1.01)
        x.mul_(2)
        return self.rnn(self.bn(self.lin(x))[:, None])[0]


def state_of(model: nn.Module) -> dict:
    """All that must be the same afterwards: bits, identities and counts."""
    found: dict = {}
    tensors = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    for name, tensor in tensors.items():
        bits = tensor.detach().numpy().tobytes()
        found[name] = (id(tensor), tensor.data_ptr(), bits, tensor.requires_grad)
        grad = tensor.grad
        found[name + ".grad"] = None if grad is None else (id(grad), grad.sum().item())
    for name, module in model.named_modules():
        found[f"{name} attributes"] = {k: id(v) for k, v in vars(module).items()}
        found[f"{name} contents"] = {
            k: [(id(e), id(v[e]) if isinstance(v, dict) else 0) for e in v]
            for k, v in vars(module).items()
            if isinstance(v, dict | list | set)
        }
        found[f"{name} mode"] = module.training
    return found


def rng_state() -> tuple:
    return (
        random.getstate(),
        np.random.get_state()[1].tobytes(),
        torch.get_rng_state().numpy().tobytes(),
    )


class TestRestored:
    """The model and the random state are left as they were, bit by bit."""

    @staticmethod
    def model() -> Stateful:
        model = Stateful()
        model(torch.randn(4, 8)).sum().backward()
        model.bn.eval()
        return model

    def check(self, model, call) -> None:
        before, rng = state_of(model), rng_state()
        cache, generator = model.cache["h"].clone(), model.generator.get_state()
        call()
        assert state_of(model) == before
        assert rng_state() == rng
        assert torch.equal(model.cache["h"], cache)
        assert torch.equal(model.generator.get_state(), generator)
        assert not nn.modules.module._global_forward_pre_hooks
        assert not nn.modules.module._global_forward_hooks

    def test_after_forwards(self):
        model, x = self.model(), torch.randn(4, 8)
        given = x.clone()
        self.check(model, lambda: mode_report(model, x))
        assert torch.equal(x, given)

    def test_after_an_evaluation_that_trains(self):
        model, x = self.model(), torch.randn(4, 8)

        def evaluate():
            model.train()
            model(x.clone()).sum().backward()
            model.requires_grad_(False)
            model.register_forward_hook(lambda *args: None)
            model.lin.weight.data = torch.zeros(8, 8)
            model.extra = nn.Linear(2, 2)
            random.random()
            np.random.rand()

        self.check(model, lambda: mode_report(model, evaluate=evaluate))

    def test_after_an_evaluation_that_raises(self):
        model = self.model()

        def evaluate():
            model.eval()(torch.randn(4, 8))
            raise KeyError("lost")

        def call():
            with pytest.raises(RuntimeError, match="raised KeyError: 'lost'"):
                mode_report(model, evaluate=evaluate)

        self.check(model, call)

    def test_after_inputs_that_are_refused(self):
        model, wrong = self.model(), torch.randn(4, 3)

        def call():
            with pytest.raises(ValueError, match="it raised RuntimeError: "):
                mode_report(model, wrong)

        self.check(model, call)

    def test_a_graph_that_waits_for_its_backward(self):
        model, x = convnet(), torch.rand(8, 8, 8)
        loss = model(x).sum()
        mode_report(model, x)
        loss.backward()
        assert model[1].weight.grad is not None

    def test_flags_of_negative_zero_and_nan(self):
        model = Stateful()
        state = ModelState(model)
        bits = model.odd.numpy().tobytes()
        assert state.changed({"odd": model.odd}) == []
        model.odd.zero_()
        assert state.changed({"odd": model.odd}) == ["odd"]
        state.put_back()
        assert model.odd.numpy().tobytes() == bits


class TestInputs:
    """The ways to give inputs."""

    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.lin = nn.Linear(3, 2)

        def forward(self, x, scale=None):
            out = self.lin(x)
            return {"out": out if scale is None else out * scale}

    @pytest.mark.parametrize(
        "inputs",
        [
            torch.randn(4, 3),
            (torch.randn(4, 3), torch.randn(4, 1)),
            {"x": torch.randn(4, 3), "scale": torch.randn(4, 1)},
        ],
        ids=["one", "positions", "names"],
    )
    def test_forms(self, inputs):
        report = mode_report(self.Two(), inputs)
        assert not report.findings
        assert not [what for what in report.unchecked if "evaluate" not in what]

    def test_outputs_without_values(self):
        x = torch.randn(4, 3, device="meta")
        report = mode_report(nn.Linear(3, 2, device="meta"), x)
        assert any("no tensors that have values" in what for what in report.unchecked)

    def test_a_packed_sequence(self):
        packed = nn.utils.rnn.pack_sequence([torch.randn(3, 8), torch.randn(2, 8)])
        assert not mode_report(nn.GRU(8, 4), packed).findings

    def test_a_forward_that_takes_derivatives(self):
        class Force(nn.Module):
            def __init__(self):
                super().__init__()
                self.energy = nn.Linear(3, 1)

            def forward(self, x):
                x = x.detach().requires_grad_()
                return torch.autograd.grad(self.energy(x).sum(), x)[0]

        assert not mode_report(Force(), torch.randn(4, 3)).findings


REFUSED = {
    "no module": (lambda: mode_report(3), TypeError, "got int"),
    "a class": (lambda: mode_report(nn.Linear), TypeError, "got the class Linear"),
    "lazy": (
        lambda: mode_report(nn.Sequential(nn.LazyLinear(3))),
        ValueError,
        "0.weight, 0.bias have no shape yet",
    ),
    "no parameters": (
        lambda: mode_report(nn.ReLU()),
        ValueError,
        "ReLU has no parameters and no buffers",
    ),
    "inputs": (
        lambda: mode_report(nn.Linear(3, 2), torch.ones(4, 8)),
        ValueError,
        "it raised RuntimeError: mat1 and mat2",
    ),
    "no function": (
        lambda: mode_report(nn.Linear(3, 2), evaluate=3),
        TypeError,
        "evaluate is a function without arguments, and got int",
    ),
    "an evaluation that raises": (
        lambda: mode_report(nn.Linear(3, 2), evaluate=lambda: 1 / 0),
        RuntimeError,
        "it raised ZeroDivisionError: division by zero",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_input_gets_one_sentence(name):
    call, kind, match = REFUSED[name]
    with pytest.raises(kind, match=match) as caught:
        call()
    assert str(caught.value).startswith("mode_report")
    assert "\n" not in str(caught.value)


def test_what_it_shows():
    model = nn.Sequential(nn.BatchNorm1d(3), nn.Linear(3, 2))
    model[0].requires_grad_(False)
    report = mode_report(model)
    assert repr(report) == (
        "<ModeReport: train mode, 3 modules; 1 finding, 2 not checked>"
    )
    shown = report._repr_markdown_()
    assert shown.startswith("The model is in train mode, 3 modules.")
    assert "running statistics are not" in shown
    assert "Not checked:" in shown


@pytest.mark.parametrize("name", HEALTHY)
def test_the_cost_in_forwards(name, digits):
    x, _ = digits
    model, calls = HEALTHY[name](), []
    model.register_forward_pre_hook(lambda module, args: calls.append(len(args[0])))
    mode_report(model, x)
    # two of the whole batch and one of half: less than a training step of three
    assert calls == [64, 64, 32]
