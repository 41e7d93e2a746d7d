"""gradient_report: silent on healthy loops, each fault found, everything put back."""

import copy
import random
import warnings
from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

import labkit as lk
from labkit.probe.finding import Finding, listed
from labkit.probe.gradients import gradient_report
from labkit.probe.place import Place
from labkit.probe.tracks import measure


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


def sgd(model: nn.Module, lr: float = 0.1, **options) -> torch.optim.SGD:
    return torch.optim.SGD(model.parameters(), lr=lr, **options)


def batch(n: int = 8, width: int = 6) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(n, width), torch.randn(n, width)


def loop(model, optimizer, reset=True, x=None, y=None):
    """One step of plain regression on a batch that stays the same."""
    if x is None:
        x, y = batch()

    def step():
        if reset:
            optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()

    return step


def trained(model: nn.Module, **options):
    """The report on one plain step of a model."""
    return gradient_report(model, step=loop(model, sgd(model), **options))


def only(report):
    """The report's single finding."""
    assert len(report.findings) == 1, report.findings
    return report.findings[0]


def mlp(*widths: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for inside, outside in pairwise(widths):
        layers += [nn.Linear(inside, outside), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


class TinyTransformer(nn.Module):
    """A language model whose output layer shares the embedding's weights."""

    def __init__(self, words: int = 20, width: int = 16) -> None:
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.places = nn.Parameter(torch.randn(12, width) * 0.02)
        layer = nn.TransformerEncoderLayer(width, 2, 32, batch_first=True)
        self.body = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(width, words, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, tokens):
        n = tokens.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(n)
        x = self.embed(tokens) + self.places[:n]
        return self.head(self.body(x, mask=mask, is_causal=True))


def conv_net(classes: int = 10) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, bias=False),
        nn.BatchNorm2d(8),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(2),
        nn.Sequential(nn.ReLU(inplace=True), nn.Conv2d(8, 8, 3)),
        nn.Flatten(),
        nn.Dropout(),
        nn.Linear(8, classes),
    )


def gan(detach=True, reset=True, detach_for_g=False):
    g, d = mlp(4, 8, 6), mlp(6, 8, 1)
    opt_g = torch.optim.Adam(g.parameters(), 1e-3)
    opt_d = torch.optim.Adam(d.parameters(), 1e-3)
    bce = F.binary_cross_entropy_with_logits

    def step():
        real = torch.randn(8, 6)
        fake = g(torch.randn(8, 4))
        opt_d.zero_grad()
        seen = d(fake.detach() if detach else fake)
        loss = bce(d(real), torch.ones(8, 1)) + bce(seen, torch.zeros(8, 1))
        loss.backward(retain_graph=not detach)
        opt_d.step()
        if reset:
            opt_g.zero_grad()
        fake = g(torch.randn(8, 4))
        bce(d(fake.detach() if detach_for_g else fake), torch.ones(8, 1)).backward()
        opt_g.step()
        if not reset:
            opt_g.zero_grad()

    return g, d, opt_g, opt_d, step


def scaled(clip, init_scale=1024.0, kind=nn.Linear, optimizer=sgd):
    """A float16 step with a GradScaler; `clip(scaler, optimizer, model)` in between."""
    model = kind(6, 6)
    optimizer = optimizer(model)
    scaler = torch.amp.GradScaler("cpu", init_scale=init_scale)
    x, y = batch()

    def step():
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.float16):
            loss = F.mse_loss(model(x).float(), y)
        scaler.scale(loss).backward()
        clip(scaler, optimizer, model)
        scaler.step(optimizer)
        scaler.update()

    return model, optimizer, scaler, step


def unscale_and_clip(scaler, optimizer, model):
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)


class TestHealthy:
    """No findings where nothing is wrong."""

    def test_digits_mlp(self):
        digits = np.load(lk.data_path("digits.npz"))
        images = digits["images"][:64].reshape(-1, 64)
        x = torch.from_numpy(images.astype("float32")) / 16
        y = torch.from_numpy(digits["labels"][:64])
        model = mlp(64, 32, 10)
        optimizer = torch.optim.Adam(model.parameters())
        losses, hits = [], []

        def step():
            optimizer.zero_grad()
            logits = model(x)
            loss = F.cross_entropy(logits, y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            hits.append((logits.argmax(1) == y).float().mean().item())

        report = gradient_report(model, None, optimizer, step)
        assert report.findings == report.notes == ()
        assert report.runs == len(losses) == 2
        assert all(row.gradient == "finite" and row.moved for row in report.rows)
        assert all(row.in_optimizer and row.norm > 0 for row in report.rows)

    def test_conv_net_with_batch_norm(self):
        model = conv_net()
        optimizer = sgd(model, momentum=0.9, weight_decay=1e-4)
        scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, 100)
        x, y = torch.randn(16, 1, 8, 8), torch.randint(0, 10, (16,))

        def step():
            F.cross_entropy(model(x), y).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad(set_to_none=False)

        report = gradient_report(model, optimizer=optimizer, step=step)
        assert report.findings == report.notes == ()

    def test_transformer_with_tied_weights(self):
        model = TinyTransformer()
        optimizer = torch.optim.AdamW(model.parameters())
        tokens = torch.randint(0, 20, (4, 9))

        def step():
            optimizer.zero_grad()
            logits = model(tokens[:, :-1])
            F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten()).backward()
            optimizer.step()

        report = gradient_report(model, step=step)
        assert report.findings == ()
        assert report.rows[1].also == ("head.weight",)
        assert "embed.weight = head.weight" in report.notes[0]

    @pytest.mark.parametrize("way", ["requires_grad", "no_grad", "both", "all held"])
    def test_backbone_frozen_on_purpose(self, way):
        backbone, head = nn.Sequential(nn.Linear(6, 6), nn.BatchNorm1d(6)), mlp(6, 6)
        model = nn.Sequential(backbone, head)
        backbone.eval()
        if way != "no_grad":
            backbone.requires_grad_(False)
        optimizer = sgd(model if way == "all held" else head)
        x, y = batch()

        def step():
            optimizer.zero_grad()
            with torch.set_grad_enabled(way not in ("no_grad", "both")):
                features = backbone(x)
            F.mse_loss(head(features), y).backward()
            optimizer.step()

        report = gradient_report(model, optimizer=optimizer, step=step)
        assert report.findings == ()
        assert [row.gradient for row in report.rows] == ["none"] * 4 + ["finite"] * 2

    @pytest.mark.parametrize("given", ["generator", "discriminator", "both"])
    def test_gan(self, given):
        g, d, opt_g, opt_d, step = gan()
        model = {"generator": g, "discriminator": d}.get(given, nn.ModuleList([g, d]))
        report = gradient_report(model, optimizer=[opt_g, opt_d], step=step)
        assert report.findings == report.notes == ()

    @pytest.mark.parametrize("to_none", [True, False])
    def test_accumulation(self, to_none):
        model = mlp(6, 8, 6)
        optimizer = sgd(model)
        batches = [batch() for _ in range(3)]

        def step():
            for x, y in batches:
                (F.mse_loss(model(x), y) / 3).backward()
            optimizer.step()
            optimizer.zero_grad(to_none)

        assert gradient_report(model, step=step).findings == ()

    @pytest.mark.parametrize("init_scale", [8.0, 2.0**16, 2.0**40])
    def test_scaler_with_unscale_and_clip(self, init_scale):
        model, *_, step = scaled(unscale_and_clip, init_scale)
        report = gradient_report(model, step=step)
        assert report.findings == ()
        skipped = any("left out a step" in note for note in report.notes)
        assert skipped == (init_scale == 2.0**40)

    def test_dividing_scaled_gradients_is_not_clipping(self):
        def average(scaler, optimizer, model):
            for parameter in model.parameters():
                parameter.grad.div_(2)

        model, *_, step = scaled(average)
        assert gradient_report(model, step=step).findings == ()

    def test_weights_that_start_at_zero(self):
        model = mlp(6, 6, 6)
        nn.init.zeros_(model[2].weight)
        assert trained(model).findings == ()

    def test_checkpoints_and_closures(self):
        model = nn.ModuleList([mlp(6, 6), mlp(6, 6)])
        optimizer = torch.optim.LBFGS(model.parameters(), max_iter=3)
        x, y = batch()

        def closure():
            optimizer.zero_grad()
            hidden = checkpoint(model[0], x, use_reentrant=False)
            loss = F.mse_loss(model[1](hidden), y)
            loss.backward()
            return loss

        report = gradient_report(model, step=lambda: optimizer.step(closure))
        assert report.findings == ()
        assert all(row.moved for row in report.rows)

    def test_gradient_penalty_and_input_gradients(self):
        model = mlp(6, 8, 1)
        optimizer = sgd(model)
        x = torch.randn(8, 6)

        def step():
            mixed = (x + torch.randn(8, 6)).requires_grad_()
            (slope,) = torch.autograd.grad(model(mixed).sum(), mixed, create_graph=True)
            optimizer.zero_grad()
            (slope.square().sum() + model(mixed).mean()).backward()
            optimizer.step()

        # a bias of the last layer has no part in the slope, but has one in the mean
        assert gradient_report(model, step=step).findings == ()

    @pytest.mark.parametrize("residual", [False, True])
    def test_in_place_where_nobody_reads_the_input_again(self, residual):
        class Block(nn.Module):
            def __init__(self):
                super().__init__()
                self.body = nn.Sequential(nn.ReLU(inplace=True), nn.Linear(6, 6))

            def forward(self, x):
                if not residual:
                    return self.body(x)
                x = x + 0.0
                x += self.body(x.clone())
                return x

        model = nn.Sequential(nn.Linear(6, 6), Block(), Block())
        assert trained(model).findings == ()

    def test_in_place_residual_stream(self):
        class Block(nn.Module):
            def __init__(self):
                super().__init__()
                self.b, self.c = nn.Linear(6, 6), nn.Linear(6, 6)

            def forward(self, x):
                x += 1.0
                return self.b(x) * self.c(x) + x

        model = nn.Sequential(nn.Linear(6, 6), Block(), Block())
        x, y = batch()
        optimizer = sgd(model)

        def step():
            optimizer.zero_grad()
            F.mse_loss(model(x), y).backward()
            optimizer.step()

        assert gradient_report(model, step=step).findings == ()


class HiddenLayers(nn.Module):
    def __init__(self, keep) -> None:
        super().__init__()
        self.layers = keep(nn.Linear(6, 6) for _ in range(3))
        self.out = nn.Linear(6, 6)

    def forward(self, x):
        parts = self.layers.values() if isinstance(self.layers, dict) else self.layers
        for layer in parts:
            x = layer(x).relu()
        return self.out(x)


class TestHidden:
    """Tensors with gradient that parameters() doesn't list."""

    @pytest.mark.parametrize("keep", [list, tuple, lambda made: dict(enumerate(made))])
    def test_layers_in_a_plain_container(self, keep):
        finding = only(trained(HiddenLayers(keep)))
        assert "layers[0].weight" in finding.where
        assert (finding.sure, finding.page) == ("certain", "2.3")

    def test_fixed_by_a_module_list(self):
        assert trained(HiddenLayers(nn.ModuleList)).findings == ()

    def test_given_to_the_optimizer_by_hand(self):
        model = HiddenLayers(list)
        hidden = [p for layer in model.layers for p in layer.parameters()]
        optimizer = torch.optim.SGD([*model.parameters(), *hidden], lr=0.1)
        assert gradient_report(model, step=loop(model, optimizer)).findings == ()

    def test_plain_tensor_as_a_weight(self):
        class Scaled(nn.Module):
            def __init__(self):
                super().__init__()
                self.out = nn.Linear(6, 6)
                self.scale = torch.ones(6, requires_grad=True)

            def forward(self, x):
                return self.out(x) * self.scale

        model = Scaled()
        finding = only(trained(model))
        assert finding.where == "scale"
        assert model.scale.grad is None

    def test_gradients_that_are_there_already(self):
        model = HiddenLayers(list)
        model(torch.randn(2, 6)).sum().backward()
        assert "layers[2].bias" in only(gradient_report(model)).where or (
            "layers[0].weight" in only(gradient_report(model)).where
        )


class TestNeverStepped:
    """Gradients that no optimizer uses."""

    @pytest.mark.parametrize("late", [True, False])
    def test_layer_replaced_after_the_optimizer_was_built(self, late):
        model = mlp(6, 6, 6)
        new = nn.Linear(6, 6)
        if not late:
            model[2] = new
        optimizer = sgd(model)
        model[2] = new
        report = gradient_report(model, step=loop(model, optimizer))
        if not late:
            assert report.findings == ()
            return
        finding = only(report)
        assert finding.where == "2.weight, 2.bias"
        assert "before a layer was replaced" in finding.what
        assert (finding.sure, finding.page) == ("certain", "3.2")
        moved = {row.name: row.moved for row in report.rows}
        assert moved == {
            "0.weight": True,
            "0.bias": True,
            "2.weight": False,
            "2.bias": False,
        }

    def test_layer_left_out(self):
        model = mlp(6, 6, 6)
        finding = only(gradient_report(model, step=loop(model, sgd(model[2]))))
        assert (finding.where, finding.sure) == ("0.weight, 0.bias", "likely")

    def test_without_a_step(self):
        model = mlp(6, 6, 6)
        model(torch.randn(2, 6)).sum().backward()
        finding = only(gradient_report(model, optimizer=sgd(model[0])))
        assert finding.where == "2.weight, 2.bias"


class Chain(nn.Module):
    """Two layers with something between them."""

    def __init__(self, between) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(6, 6), nn.Linear(6, 6)
        self.spare = None
        self.between = between

    def forward(self, x):
        return self.last(self.between(self.first(x)))


class TestChains:
    """Where the way from the loss to a parameter is cut."""

    @pytest.mark.parametrize(
        ("between", "by"),
        [
            (lambda h: h.detach(), "detach"),
            (lambda h: h.data * 2, "data"),
            (lambda h: torch.tensor(h.tolist()), "tolist"),
            (lambda h: torch.from_numpy(h.detach().numpy()), "detach"),
            (lambda h: torch.tensor(h, requires_grad=True), "tensor"),
            (lambda h: F.one_hot(h.argmax(1), 6).float(), "argmax"),
            (lambda h: h.long().float(), "long"),
        ],
    )
    def test_the_call_that_cuts(self, between, by):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            finding = only(trained(Chain(between)))
        assert finding.where == "first.weight, first.bias"
        assert f"cut by {by} in Chain" in finding.what
        assert "test_gradients.py, line" in finding.what
        assert (finding.sure, finding.page) == ("certain", "3.3")

    def test_not_cut(self):
        assert trained(Chain(lambda h: h + h.detach())).findings == ()

    def test_no_grad(self):
        class Model(Chain):
            def forward(self, x):
                with torch.no_grad():
                    h = self.first(x)
                return self.last(h)

        finding = only(trained(Model(None)))
        assert "no_grad" in finding.what

    def test_unused(self):
        model = mlp(6, 6)
        model.spare = nn.Linear(6, 6)
        model.forward = lambda x: model[0](x)
        finding = only(trained(model))
        assert (finding.where, finding.sure) == (
            "spare.weight, spare.bias",
            "worth a look",
        )

    def test_detach_left_in_the_generators_step(self):
        g, d, *_, step = gan(detach_for_g=True)
        report = gradient_report(nn.ModuleDict({"g": g, "d": d}), step=step)
        finding = only(report)
        assert finding.where.startswith("g.0.weight")
        assert "detach" in finding.what

    def test_a_number_in_the_forward(self):
        finding = only(trained(Chain(lambda h: h * h.sum().item())))
        assert "item makes a Python number" in finding.what
        assert finding.sure == "worth a look"

    def test_loss_without_a_graph_names_the_cut(self):
        model = mlp(6, 6)
        optimizer = sgd(model)

        def step():
            torch.tensor(model(torch.ones(1, 6)).mean().item()).backward()
            optimizer.step()

        with pytest.raises(
            ValueError, match=r"the last cut of the chain: item"
        ) as raised:
            gradient_report(model, step=step)
        assert "everything was put back" in str(raised.value)


class RootOfPositives(nn.Module):
    def __init__(self, twice: bool) -> None:
        super().__init__()
        self.layer, self.twice = nn.Linear(6, 6), twice

    def forward(self, x):
        h = self.layer(x)
        positive = h > 0
        inside = torch.where(positive, h, 1.0) if self.twice else h
        return torch.where(positive, inside.sqrt(), h)


class TestNotFinite:
    """NaN and Inf, and the operator that makes them first."""

    def test_where_over_a_bad_branch(self):
        report = trained(RootOfPositives(twice=False))
        finding = only(report)
        assert finding.where == "layer.weight, layer.bias"
        assert "first NaN of the backward came out of sqrt" in finding.what
        assert "test_gradients.py" in finding.what
        assert (finding.sure, finding.page) == ("certain", "3.3")
        assert {row.gradient for row in report.rows} == {"NaN or Inf"}

    def test_fixed_by_a_second_where(self):
        assert trained(RootOfPositives(twice=True)).findings == ()

    def test_the_loss_itself(self):
        report = trained(Chain(lambda h: (h * 0 - 1).log()))
        finding = only(report)
        assert "the loss itself is NaN" in finding.what
        assert "came out of log" in finding.what

    def test_inf(self):
        class Root(nn.Module):
            def __init__(self):
                super().__init__()
                self.scale = nn.Parameter(torch.zeros(6))

            def forward(self, x):
                return x * self.scale.sqrt()

        report = trained(Root())
        assert "first Inf of the backward came out of sqrt" in only(report).what

    def test_under_a_scaler(self):
        def model(*_):
            return RootOfPositives(twice=False)

        model, *_, step = scaled(unscale_and_clip, kind=model)
        finding = only(gradient_report(model, step=step))
        assert "sqrt" in finding.what
        assert finding.sure == "likely"

    def test_already_there(self):
        model = mlp(6, 6)
        model[0].weight.grad = torch.full((6, 6), torch.inf)
        model[0].bias.grad = torch.ones(6)
        assert only(gradient_report(model)).where == "0.weight"


class TestResets:
    """Gradients that were not reset, or too early."""

    @pytest.mark.parametrize("reset", [True, False])
    def test_missing_reset(self, reset):
        model = mlp(6, 8, 6)
        report = trained(model, reset=reset)
        if reset:
            assert report.findings == ()
            return
        finding = only(report)
        assert "not reset after the step before" in finding.what
        assert finding.where == "0.weight, 0.bias, 2.weight and 1 more"
        assert (finding.sure, finding.page) == ("certain", "3.2")

    @pytest.mark.parametrize("to_none", [True, False])
    def test_reset_between_backward_and_step(self, to_none):
        model = mlp(6, 6)
        optimizer = sgd(model)
        x, y = batch()

        def step():
            F.mse_loss(model(x), y).backward()
            optimizer.zero_grad(to_none)
            optimizer.step()

        finding = only(gradient_report(model, step=step))
        assert "reset between backward and the optimizer's step" in finding.what

    def test_generator_steps_with_the_discriminators_loss(self):
        g, _, *_, step = gan(detach=False, reset=False)
        finding = only(gradient_report(g, step=step))
        assert "another optimizer's step" in finding.what
        assert finding.sure == "worth a look"

    def test_wasted_but_reset(self):
        g, _, *_, step = gan(detach=False)
        assert gradient_report(g, step=step).findings == ()


def clip_norm(scaler, optimizer, model):
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)


def clip_value(scaler, optimizer, model):
    nn.utils.clip_grad_value_(model.parameters(), 1.0)


def clamp_by_hand(scaler, optimizer, model):
    for parameter in model.parameters():
        parameter.grad.data.clamp_(-1, 1)


def clamp_anew(scaler, optimizer, model):
    for parameter in model.parameters():
        parameter.grad = parameter.grad.clamp(-1, 1)


def norm_by_hand(scaler, optimizer, model):
    grads = [parameter.grad for parameter in model.parameters()]
    total = torch.stack([grad.norm() for grad in grads]).norm()
    for grad in grads:
        grad.mul_(1.0 / max(1.0, float(total)))


class TestClipping:
    """Limits put on gradients that still carry the scale."""

    @pytest.mark.parametrize(
        ("clip", "sure"),
        [
            (clip_norm, "certain"),
            (clip_value, "certain"),
            (clamp_by_hand, "certain"),
            (clamp_anew, "certain"),
            (norm_by_hand, "likely"),
        ],
    )
    def test_before_and_after_unscaling(self, clip, sure):
        model, *_, step = scaled(clip)
        finding = only(gradient_report(model, step=step))
        assert "scaler.unscale_(optimizer)" in finding.what
        assert (finding.where, finding.sure, finding.page) == (
            "weight, bias",
            sure,
            "5.3",
        )

        def fixed(scaler, optimizer, model):
            scaler.unscale_(optimizer)
            clip(scaler, optimizer, model)

        model, *_, step = scaled(fixed)
        assert gradient_report(model, step=step).findings == ()

    def test_scaler_that_is_switched_off(self):
        model, optimizer, _, _ = scaled(clip_norm)
        scaler = torch.amp.GradScaler("cpu", enabled=False)
        x, y = batch()

        def step():
            optimizer.zero_grad()
            scaler.scale(F.mse_loss(model(x), y)).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)

        assert gradient_report(model, step=step).findings == ()


class Skip(nn.Module):
    """A residual block whose body begins with an in-place activation or not."""

    def __init__(self, inplace: bool) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.ReLU(inplace=inplace), nn.Linear(6, 6))

    def forward(self, x):
        return self.body(x) + x


class TestInPlace:
    """A module's own input, edited and read again."""

    @pytest.mark.parametrize("inplace", [True, False])
    def test_skip_connection(self, inplace):
        report = trained(nn.Sequential(nn.Linear(6, 6), Skip(inplace)))
        if not inplace:
            assert report.findings == ()
            return
        finding = only(report)
        assert finding.where == "1.body, in 1.body.0"
        assert "by relu" in finding.what
        assert "read again, by add" in finding.what
        assert (finding.sure, finding.page) == ("certain", "2.2")

    def test_added_in_place(self):
        class Negative(nn.Module):
            def forward(self, x):
                return -x.mul_(2.0)

        class InPlace(nn.Module):
            def __init__(self):
                super().__init__()
                self.body = nn.Sequential(Negative())

            def forward(self, x):
                x += self.body(x)
                return x

        finding = only(trained(nn.Sequential(nn.Linear(6, 6), InPlace())))
        assert "by mul_" in finding.what
        assert "read again, by add_" in finding.what

    def test_activation_of_the_block_itself(self):
        class Own(nn.Module):
            def __init__(self):
                super().__init__()
                self.act, self.layer = nn.ReLU(inplace=True), nn.Linear(6, 6)

            def forward(self, x):
                return self.layer(self.act(x)) + x

        finding = only(trained(nn.Sequential(nn.Linear(6, 6), Own())))
        assert (finding.where, finding.sure) == ("1, in 1.act", "worth a look")

    @pytest.mark.parametrize("fresh", [True, False])
    def test_batch_that_the_model_normalises_again_each_step(self, fresh):
        class Normalise(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(6, 6)

            def forward(self, x):
                x.sub_(0.5)
                return self.layer(x)

        model = Normalise()
        optimizer = sgd(model)
        x, y = batch()

        def step():
            optimizer.zero_grad()
            F.mse_loss(model(x.clone() if fresh else x), y).backward()
            optimizer.step()

        report = gradient_report(model, step=step)
        assert len(report.findings) == (not fresh)


class TestZeroAndUnmoved:
    """Gradients of zero, updates that are lost."""

    def test_flat_function(self):
        finding = only(trained(Chain(torch.round)))
        assert "exactly zero" in finding.what
        assert finding.where == "first.weight, first.bias"

    def test_dead_units(self):
        model = mlp(6, 6, 6)
        nn.init.constant_(model[0].bias, -100.0)
        rows = {row.name: row for row in trained(model).rows}
        assert rows["0.weight"].gradient == "zero"
        assert rows["0.weight"].norm == 0
        assert rows["2.bias"].gradient == "finite"

    def test_bfloat16_swallows_the_update(self):
        model = mlp(6, 6).to(torch.bfloat16)
        nn.init.ones_(model[0].weight)
        nn.init.ones_(model[0].bias)
        x, y = (t.to(torch.bfloat16) for t in batch())
        step = loop(model, sgd(model, lr=1e-7), x=x, y=y)
        finding = only(gradient_report(model, step=step))
        assert "number format" in finding.what
        assert finding.page == "5.3"

    def test_learning_rate_of_zero_is_a_note(self):
        model = mlp(6, 6)
        report = gradient_report(model, step=loop(model, sgd(model, lr=0.0)))
        assert report.findings == ()
        assert "learning rate of zero" in report.notes[0]
        assert not any(row.moved for row in report.rows)


class TestPutBack:
    """The report leaves no trace."""

    def make(self):
        torch.manual_seed(3)
        model = conv_net()
        model.counter = 0
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        scheduler = torch.optim.lr_scheduler.SequentialLR(
            optimizer,
            [
                torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, total_iters=3),
                torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 9),
            ],
            [3],
        )
        plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0)
        scaler = torch.amp.GradScaler("cpu", init_scale=16.0, growth_interval=1)
        average = torch.optim.swa_utils.AveragedModel(model)

        def step():
            model.train()
            model.counter += 1
            x = torch.randn(8, 1, 8, 8) + random.random() + np.random.rand()
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), torch.arange(8))
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            scheduler.step()
            plateau.step(1.0)
            average.update_parameters(model)
            model.eval()

        def state():
            return copy.deepcopy(
                [
                    model.state_dict(),
                    model.training,
                    model.counter,
                    [p.grad for p in model.parameters()],
                    optimizer.state_dict(),
                    scheduler.state_dict(),
                    [s.state_dict() for s in scheduler._schedulers],
                    plateau.state_dict(),
                    scaler.state_dict(),
                    average.state_dict(),
                    torch.get_rng_state(),
                    random.getstate(),
                    str(np.random.get_state()),
                ]
            )

        return model, step, state

    @pytest.mark.parametrize("before", [0, 2])
    @pytest.mark.parametrize("raising", [False, True])
    def test_everything(self, before, raising):
        model, step, state = self.make()
        for _ in range(before):
            step()
        identities = [(id(p), p.data_ptr(), id(p.grad)) for p in model.parameters()]
        expected = state()

        def broken():
            step()
            raise KeyError("nothing")

        if raising:
            with pytest.raises(ValueError, match="step raised KeyError"):
                gradient_report(model, step=broken)
        else:
            assert gradient_report(model, step=step).findings == ()
        assert _equal(expected, state())
        assert identities == [
            (id(p), p.data_ptr(), id(p.grad)) for p in model.parameters()
        ]

    def test_the_run_after_is_the_same_with_and_without(self):
        results = []
        for report in (False, True):
            random.seed(0)
            np.random.seed(0)
            model, step, state = self.make()
            step()
            if report:
                gradient_report(model, step=step)
            step()
            results.append(state())
        assert _equal(*results)

    def test_hooks_and_methods(self):
        model = mlp(6, 6)
        scaler = torch.amp.GradScaler
        methods = (torch.autograd.backward, scaler.step, scaler.scale)
        trained(model)
        assert methods == (torch.autograd.backward, scaler.step, scaler.scale)
        assert model[0].weight._backward_hooks in (None, {})
        assert not nn.modules.module._global_forward_hooks
        assert not nn.modules.module._global_forward_pre_hooks

    def test_trace_run_begins_where_the_first_began(self):
        model = RootOfPositives(twice=False)
        model.layer.weight.grad = torch.ones(6, 6)
        optimizer = sgd(model, momentum=0.9)
        step = loop(model, optimizer)
        before = copy.deepcopy(model.state_dict())
        grad = model.layer.weight.grad
        only(gradient_report(model, step=step))
        assert _equal(before, model.state_dict())
        assert model.layer.weight.grad is grad
        assert torch.equal(grad, torch.ones(6, 6))
        assert not optimizer.state

    def test_other_networks_of_the_step(self):
        g, d, *_, step = gan()
        before = copy.deepcopy(g.state_dict())
        gradient_report(d, step=step)
        assert _equal(before, g.state_dict())


def _equal(a, b) -> bool:
    if isinstance(a, torch.Tensor):
        return isinstance(b, torch.Tensor) and torch.equal(a, b)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(_equal(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(_equal, a, b))
    return a == b


class TestWithoutAStep:
    """Only the gradients at hand, or only a loss."""

    def test_nothing_yet(self):
        report = gradient_report(mlp(6, 6))
        assert report.findings == ()
        assert "call backward first" in report.notes[0]
        assert [row.moved for row in report.rows] == [None, None]
        assert report.runs == 0

    def test_some_have_none(self):
        model = mlp(6, 6, 6)
        model[2](torch.ones(1, 6)).sum().backward()
        assert only(gradient_report(model)).where == "0.weight, 0.bias"

    def test_loss_tensor(self):
        model = mlp(6, 6)
        loss = model(torch.ones(1, 6)).sum()
        report = gradient_report(model, loss)
        assert report.findings == ()
        assert report.rows[1].norm == pytest.approx(6**0.5)
        assert model[0].weight.grad is None
        loss.backward()  # its graph is still there

    def test_loss_function(self):
        model = Chain(lambda h: h.detach())
        report = gradient_report(model, lambda: model(torch.ones(1, 6)).sum())
        assert "cut by detach" in only(report).what

    def test_loss_with_nan(self):
        model = RootOfPositives(twice=False)
        loss = model(torch.randn(8, 6)).sum()
        assert "sqrt" in only(gradient_report(model, loss)).what


class TestBadInput:
    """One clear sentence for each mistake, and unusual gradients."""

    @pytest.mark.parametrize(
        ("call", "kind", "says"),
        [
            (lambda: gradient_report(nn.ReLU()), ValueError, "ReLU has no parameters"),
            (lambda: gradient_report(nn.LazyLinear(3)), ValueError, "lazy module"),
            (lambda: gradient_report("model"), TypeError, "model is a torch.nn.Module"),
            (
                lambda: gradient_report(mlp(6, 6), torch.ones(3)),
                ValueError,
                "loss is a scalar",
            ),
            (
                lambda: gradient_report(mlp(6, 6), torch.tensor(1.0)),
                ValueError,
                "without a graph",
            ),
            (
                lambda: gradient_report(mlp(6, 6), lambda: None),
                ValueError,
                "got NoneType",
            ),
            (lambda: gradient_report(mlp(6, 6), 3.0), TypeError, "got float"),
            (
                lambda: gradient_report(mlp(6, 6), step=3),
                TypeError,
                "step is a function",
            ),
            (
                lambda: gradient_report(mlp(6, 6), optimizer="sgd"),
                TypeError,
                "optimizer is a torch.optim.Optimizer",
            ),
            (
                lambda: gradient_report(mlp(6, 6), step=lambda: None),
                ValueError,
                "no optimizer stepped",
            ),
        ],
    )
    def test_refusals(self, call, kind, says):
        with pytest.raises(kind, match=says) as raised:
            call()
        message = str(raised.value)
        assert message.startswith("gradient_report: ")
        assert message.count(". ") == 0
        assert message.endswith(".")

    def test_scheduler_for_an_optimizer(self):
        model = mlp(6, 6)
        scheduler = torch.optim.lr_scheduler.StepLR(sgd(model), 1)
        with pytest.raises(TypeError, match="StepLR, a scheduler"):
            gradient_report(model, optimizer=scheduler)

    def test_loss_in_the_step_that_is_no_scalar(self):
        model = mlp(6, 6)

        def step():
            model(torch.ones(2, 6)).backward()

        with pytest.raises(ValueError, match=r"step raised RuntimeError .* scalar"):
            gradient_report(model, step=step)

    def test_sparse_gradients(self):
        model = nn.Embedding(10, 4, sparse=True)
        optimizer = torch.optim.SparseAdam(model.parameters())

        def step():
            optimizer.zero_grad()
            model(torch.tensor([1, 1, 3])).sum().backward()
            optimizer.step()

        report = gradient_report(model, step=step)
        assert report.findings == ()
        assert report.rows[0].norm == pytest.approx((4 * 4 + 4) ** 0.5)
        assert "Sparse gradients" in report.notes[0]

    def test_complex_gradients(self):
        model = nn.Linear(3, 3, dtype=torch.complex64)
        x = torch.randn(4, 3, dtype=torch.complex64)
        optimizer = sgd(model)

        def step():
            optimizer.zero_grad()
            model(x).abs().sum().backward()
            optimizer.step()

        report = gradient_report(model, step=step)
        assert report.findings == ()
        assert "Complex gradients" in report.notes[0]

    @pytest.mark.filterwarnings("ignore:Using backward")
    def test_gradients_with_a_graph(self):
        model = mlp(6, 6)
        optimizer = sgd(model)
        x, y = batch()

        def step():
            optimizer.zero_grad()
            F.mse_loss(model(x), y).backward(create_graph=True)
            optimizer.step()

        report = gradient_report(model, step=step)
        assert report.findings == ()
        assert "create_graph=True" in report.notes[0]


class TestForms:
    """How a report reads."""

    def test_one_line_and_markdown(self):
        report = trained(mlp(6, 8, 6), reset=False)
        line = repr(report)
        assert "\n" not in line
        assert line.startswith(
            "<GradientReport: 4 parameters (4 finite); 1 finding: 0."
        )
        markdown = report._repr_markdown_()
        assert "| `0.weight` to `2.bias` (4) | finite | yes | yes |" in markdown
        assert "(**certain**, see page 3.2)" in markdown

    def test_a_long_model_has_a_short_table(self):
        model = nn.Sequential(*(nn.Linear(6, 6) for _ in range(40)))
        for place, parameter in enumerate(model.parameters()):
            parameter.grad = torch.ones_like(parameter) if place % 2 else None
        markdown = gradient_report(model)._repr_markdown_()
        assert "68 more, in `.rows`" in markdown
        assert len(markdown.splitlines()) < 25

    def test_picture(self):
        figure = trained(mlp(6, 8, 6)).plot()
        assert figure.get_label().startswith("Gradient norms of 4 parameters")
        assert figure.get_facecolor() == (1, 1, 1, 1)
        nothing = gradient_report(mlp(6, 6)).plot()
        assert nothing.get_label().endswith(".")
        nothing.canvas.draw()

    def test_line_of_a_cell(self):
        assert str(Place("/tmp/ipykernel_7/12.py", 3)) == "a cell, line 3"

    @pytest.mark.parametrize(
        ("grad", "state", "norm"),
        [
            (torch.full((3,), 1e30), "finite", 3**0.5 * 1e30),
            (torch.full((3,), 1e-30), "finite", 3**0.5 * 1e-30),
            (torch.full((4,), 60000.0, dtype=torch.float16), "finite", 120000.0),
            (torch.empty(0), "zero", 0.0),
            (torch.tensor([1.0, torch.nan]), "NaN or Inf", None),
        ],
    )
    def test_measured(self, grad, state, norm):
        found, value = measure(grad)
        assert found == state
        if norm is not None:
            assert value == pytest.approx(norm, rel=1e-2)


def test_a_finding_reads_as_a_line_and_as_markdown():
    finding = Finding("cut by `a_b` at x_1 * 2", "layer.weight", "likely", "3.3")
    assert str(finding) == (
        "layer.weight: cut by `a_b` at x_1 * 2 (likely, see page 3.3)"
    )
    assert finding._repr_markdown_() == (
        "`layer.weight`: cut by `a_b` at x\\_1 \\* 2 (**likely**, see page 3.3)"
    )
    sure = Finding("x", "", "certain", "2.2")
    assert listed([finding, sure]).splitlines()[0] == "- x (**certain**, see page 2.2)"
    assert listed([]) == "No findings."
    with pytest.raises(ValueError, match="'worth a look', and got 'sure'"):
        Finding("x", "", "sure", "2.2")


def test_compiled_functions_run_uncompiled():
    model, compiled = mlp(6, 8, 6), []

    def backend(graph, inputs):
        compiled.append(graph)
        return graph

    fast = torch.compile(model, backend=backend)
    optimizer = sgd(model)
    step = loop(fast, optimizer)
    step()
    assert gradient_report(model, step=step).findings == ()
    step()
    assert len(compiled) == 1


def test_a_report_runs_the_step_twice():
    """What it costs is in benchmarks/probe_trials.py; here, the number of runs."""
    model, calls = mlp(6, 6), []
    step = loop(model, sgd(model))
    report = gradient_report(model, step=lambda: (calls.append(1), step()))
    assert report.runs == len(calls) == 2
