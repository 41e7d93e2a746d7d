"""Counting tensor memory, wherever the answer can be written down by hand."""

import copy
import gc
import io
import threading
import weakref

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from labkit.measure import memory_ledger
from labkit.measure.memory import track_memory
from labkit.measure.memory_autograd import NODES_ARE_READ

KB = 4 * 250  # a thousand bytes are 250 floats

# before it torch can't tell whether reading a saved tensor runs a hook
reads_nodes = pytest.mark.skipif(not NODES_ARE_READ, reason="needs torch 2.7")


def ones(kilobytes: int = 1, **options) -> torch.Tensor:
    return torch.ones(250 * kilobytes, **options)


def kinds(trace) -> dict[str, int]:
    assert sum(trace.by_kind.values()) == trace.peak_bytes
    assert max(moment.bytes for moment in trace.timeline) == trace.peak_bytes
    assert trace.timeline[-1].bytes == trace.live_bytes
    return {kind: n for kind, n in trace.by_kind.items() if n}


def at_end(trace) -> dict[str, int]:
    return trace.timeline[-1].by_kind


class TestCounts:
    """What counts, and for how long: total bytes, known by hand."""

    def test_views_count_once(self):
        with track_memory() as trace:
            x = torch.ones(10, 25)
            views = [
                x.t(),
                x[2:],
                x.view(-1),
                x.detach(),
                *x.split(2),
                x.expand(9, -1, -1),
            ]
        assert trace.peak_bytes == trace.live_bytes == trace.allocated_bytes == KB
        assert trace.allocations == 1
        del views

    def test_a_view_keeps_its_storage_alive(self):
        with track_memory() as trace:
            x = ones()
            y = x[:1]
            del x
            z = ones(2)
        assert trace.live_bytes == 3 * KB
        del y, z

    def test_a_loop_holds_the_old_while_the_new_is_made(self):
        with track_memory() as trace:
            for _ in range(10):
                x = ones()
        assert trace.peak_bytes == 2 * KB
        assert trace.live_bytes == KB
        assert (trace.allocated_bytes, trace.allocations) == (10 * KB, 10)
        with track_memory() as trace:
            for _ in range(10):
                x = ones()
                del x
        assert (trace.peak_bytes, trace.live_bytes) == (KB, 0)

    def test_in_place_makes_nothing_and_out_of_place_does(self):
        x = ones()
        with track_memory() as trace:
            x.add_(1).mul_(2)
            x += 1
            torch.add(x, 1, out=x)
        assert (trace.peak_bytes, trace.allocations) == (0, 0)
        with track_memory() as trace:
            x = x + 1
        assert trace.peak_bytes == KB

    def test_expand_is_free_and_its_copy_is_not(self):
        x = torch.ones(1, 250)
        with track_memory() as trace:
            wide = x.expand(8, 250)
        assert trace.peak_bytes == 0
        with track_memory() as trace:
            copied = wide.contiguous()
        assert trace.peak_bytes == 8 * KB
        del copied

    def test_broadcasting_counts_its_result_only(self):
        x, y = torch.ones(50, 1), torch.ones(1, 50)
        with track_memory() as trace:
            (x * y).sum()
        assert trace.peak_bytes == 50 * 50 * 4 + 4

    def test_dtypes_and_slices_of_a_bigger_storage(self):
        with track_memory() as trace:
            x = torch.ones(10, dtype=torch.float64)
            y = torch.ones(10, dtype=torch.bool)
            z = x.to(torch.float16)
        assert trace.live_bytes == 80 + 10 + 20
        del y, z

    def test_several_results(self):
        x = torch.rand(100)
        with track_memory() as trace:
            values, places = x.sort()
        assert trace.live_bytes == 100 * 4 + 100 * 8
        del values, places

    def test_existing_storages_count_only_if_given(self):
        x, y = ones(), ones(2)
        with track_memory(inputs={"x": [x, x[1:]]}) as trace:
            z = x + 1
            y += 1
        assert kinds(trace) == {"input": KB, "other": KB}
        assert trace.allocated_bytes == KB
        del z

    def test_a_given_tensor_that_is_freed_is_gone(self):
        x = ones()
        with track_memory(inputs=x) as trace:
            del x
        assert (trace.peak_bytes, trace.live_bytes) == (KB, 0)

    def test_growing_needs_both_sizes_for_a_moment(self):
        with track_memory() as trace:
            x = ones()
            x.resize_(500)
        assert (trace.peak_bytes, trace.live_bytes) == (3 * KB, 2 * KB)

    def test_out_grows_an_empty_tensor(self):
        x = ones()
        with track_memory() as trace:
            out = torch.empty(0)
            torch.add(x, 1, out=out)
        assert trace.live_bytes == trace.peak_bytes == KB

    def test_set_lets_the_old_storage_go(self):
        with track_memory() as trace:
            x, y = ones(), ones(2)
            x.set_(y)
        assert (trace.peak_bytes, trace.live_bytes) == (3 * KB, 2 * KB)

    def test_data_assignment(self):
        with track_memory() as trace:
            x = ones()
            x.data = ones(2)
        assert (trace.peak_bytes, trace.live_bytes) == (3 * KB, 2 * KB)

    def test_cycles_count_until_they_are_collected(self):
        gc.disable()
        try:
            with track_memory() as trace:
                cycle = [ones()]
                cycle.append(cycle)
                del cycle
                x = ones()
                gc.collect()
        finally:
            gc.enable()
        assert (trace.peak_bytes, trace.live_bytes) == (2 * KB, KB)
        del x

    def test_inference_mode_is_counted_as_without(self):
        layer, x = nn.Linear(50, 50), torch.ones(3, 4, 50)
        peaks = []
        for mode in (torch.no_grad, torch.inference_mode):
            with mode(), track_memory() as trace:
                layer(x).transpose(0, 1).reshape(-1).softmax(0)
            peaks.append((trace.peak_bytes, trace.allocations))
        assert peaks[0] == peaks[1] == (2 * 12 * 50 * 4, 3)

    def test_long_blocks_are_folded_without_a_difference(self, monkeypatch):
        def run():
            with track_memory() as trace:
                model = nn.Sequential(nn.Linear(25, 10), nn.Tanh(), nn.Linear(10, 1))
                optimizer = torch.optim.Adam(model.parameters())
                for _ in range(3):
                    model(torch.ones(4, 25)).sum().backward()
                    optimizer.step()
            return trace

        monkeypatch.setattr(memory_ledger, "_FOLD_AT", 10**6)
        run()  # the first step of all may import something that makes tensors
        whole = run()
        monkeypatch.setattr(memory_ledger, "_FOLD_AT", 3)
        folded = run()
        assert folded.timeline == whole.timeline
        assert folded.by_kind == whole.by_kind
        assert folded.allocations == whole.allocations

    def test_the_timeline_of_a_long_block_is_thinned_and_keeps_the_peak(self):
        with track_memory() as trace:
            for index in range(5000):
                torch.empty(index % 17 if index != 3333 else 250)
        assert trace.allocations > 4000
        assert len(trace.timeline) <= 2002
        assert kinds(trace) == {"temporary": KB}


class TestSources:
    """Memory that comes from elsewhere."""

    def test_numpy_memory_is_not_torchs(self):
        array = np.ones(125)
        with track_memory() as trace:
            tensors = [
                torch.from_numpy(array),
                torch.as_tensor(array),
                torch.asarray(array),
                torch.frombuffer(array, dtype=torch.float64),
                torch.from_dlpack(array),
            ]
        assert (trace.peak_bytes, trace.allocations) == (0, 0)
        del tensors

    @pytest.mark.parametrize(
        ("make", "bytes"),
        [
            (lambda array: torch.tensor(array), 1000),
            (lambda array: torch.tensor(array, dtype=torch.float32), 500),
            (lambda array: torch.as_tensor(array, dtype=torch.float32), 500),
            (lambda array: torch.from_numpy(array).clone(), 1000),
            (lambda array: torch.from_numpy(array) + 1, 1000),
            (lambda array: torch.Tensor(array), 500),
            (lambda array: torch.tensor(array.tolist()), 500),
            (lambda array: torch.as_tensor(array.tolist()), 500),
            (lambda array: torch.FloatTensor(125), 500),
        ],
    )
    def test_copies_of_it_are(self, make, bytes):
        array = np.ones(125)
        with track_memory() as trace:
            x = make(array)
        assert trace.allocated_bytes == trace.live_bytes == bytes
        del x

    def test_one_copy_or_two(self):
        arrays = [np.ones(25, np.float32)] * 10
        with track_memory() as one:
            torch.from_numpy(np.stack(arrays))
        with track_memory() as two:
            torch.tensor(np.stack(arrays))
        assert (one.allocated_bytes, two.allocated_bytes) == (0, KB)

    def test_a_copied_model(self):
        model = nn.Sequential(nn.Linear(10, 10), nn.BatchNorm1d(10))
        with track_memory() as trace:
            twin = copy.deepcopy(model)
        assert trace.live_bytes == 440 + 80 + 80 + 8
        del twin

    def test_a_loaded_file(self):
        file = io.BytesIO()
        torch.save({"x": ones(), "y": ones(2)}, file)
        file.seek(0)
        with track_memory() as trace:
            state = torch.load(file, weights_only=True)
        assert trace.live_bytes == 3 * KB
        del state

    def test_meta_and_fake_tensors_have_no_memory(self):
        from torch._subclasses.fake_tensor import FakeTensorMode

        with track_memory() as trace:
            ones(device="meta") + 1
            with FakeTensorMode():
                nn.Linear(10, 10)(torch.ones(2, 10)).sum().backward()
        assert trace.peak_bytes == 0

    def test_sparse_tensors_are_their_indices_and_values(self):
        indices = torch.tensor([[0, 1, 1], [2, 0, 0]])
        with track_memory() as trace:
            x = torch.sparse_coo_tensor(
                indices, [1.0, 2.0, 3.0], (2, 3), check_invariants=False
            )
            values = x._values()
        assert trace.live_bytes == 3 * 4  # the indices exist already
        with track_memory() as trace:
            y = x.coalesce()
        # made for three entries, two of which turn out to be one
        assert trace.live_bytes == 2 * 3 * 8 + 3 * 4
        with track_memory() as trace:
            z = torch.eye(10).to_sparse_csr()
        parts = z.crow_indices(), z.col_indices(), z.values()
        assert trace.live_bytes == sum(
            part.untyped_storage().nbytes() for part in parts
        )
        del values, parts, y, z

    def test_changing_a_sparse_tensor_in_place(self):
        x = torch.eye(3).to_sparse()
        other = torch.ones(3, 3).to_sparse()
        with track_memory() as trace:
            x._values().mul_(2)
        assert trace.allocated_bytes == 0
        with track_memory() as trace:
            x.add_(other)
        assert trace.live_bytes == 12 * (2 * 8 + 4)

    def test_subclasses_and_wrappers(self):
        class Named(torch.Tensor):
            pass

        with track_memory() as trace:
            x = ones().as_subclass(Named)
            y = x + 1
        assert isinstance(y, Named)
        assert trace.live_bytes == 2 * KB
        parts = [torch.ones(2), torch.ones(3)]
        with track_memory() as trace:
            nested = torch.nested.nested_tensor(parts, layout=torch.jagged)
        offsets = 3 * 8
        assert trace.live_bytes == 5 * 4 + offsets
        del nested

    def test_layouts_that_show_no_storage_do_no_harm(self):
        with track_memory() as trace:
            x = ones()
            if torch.backends.mkldnn.is_available():
                x.to_mkldnn().to_dense()
        assert trace.live_bytes == KB

    def test_operators_of_others_may_return_what_they_were_given(self):
        with torch.library._scoped_library("labkit_test", "DEF") as library:
            library.define("same(Tensor x) -> Tensor")
            library.impl("same", lambda x: x, "CPU")
            x = ones()
            with track_memory() as trace:
                torch.ops.labkit_test.same(x)
        assert trace.allocated_bytes == 0


class TestKinds:
    """What the bytes are for."""

    def test_a_training_step_by_hand(self):
        model = nn.Sequential(nn.Linear(10, 20, bias=False), nn.ReLU())
        optimizer = torch.optim.SGD(model.parameters())
        x = torch.ones(5, 10)
        weight, hidden = 800, 400
        with track_memory(model, optimizer, x) as trace:
            model(x).sum().backward()
            optimizer.step()
        # at the peak the matrix product has made the weight's gradient; the hidden
        # layer's is there, the loss, and the number that sum's gradient expands
        assert kinds(trace) == {
            "parameter": weight,
            "gradient": weight,
            "input": 200,
            "activation": 4,
            "temporary": hidden + 4,
        }
        assert at_end(trace) == {"parameter": weight, "gradient": weight, "input": 200}

    @pytest.mark.parametrize("given", [True, False])
    @pytest.mark.parametrize("form", ["single", "foreach", "fused"])
    def test_adam(self, form, given):
        options = {"foreach": form == "foreach", "fused": form == "fused"}
        big, small = 4 * 100 * 50, 4 * 50
        state = 2 * (big + small) + 2 * 4  # and a step counter for each parameter
        scratch = {
            # the square root and the quotient, of one parameter at a time
            "single": 2 * big,
            "foreach": big + small,
            "fused": 0,
        }[form]
        x = torch.ones(1, 100)
        with track_memory() as trace:
            model = nn.Linear(100, 50)
            optimizer = torch.optim.Adam(model.parameters(), **options)
            model(x).sum().backward()
            optimizer.step()
        if given:
            with track_memory(model, optimizer) as trace:
                optimizer.step()
        assert kinds(trace) == {
            "parameter": big + small,
            "gradient": big + small,
            "optimizer state": state,
        } | ({"temporary": scratch} if scratch else {})
        assert trace.live_bytes == 2 * (big + small) + state

    def test_setting_gradients_to_none(self):
        model = nn.Linear(10, 10, bias=False)
        optimizer = torch.optim.SGD(model.parameters())
        model(torch.ones(1, 10)).sum().backward()
        with track_memory(model, optimizer) as trace:
            optimizer.zero_grad()
        assert kinds(trace) == {"parameter": 400, "gradient": 400}
        assert at_end(trace) == {"parameter": 400}

    def test_accumulating_makes_a_second_gradient_for_a_moment(self):
        model, x = nn.Linear(10, 10, bias=False), torch.ones(1, 10)
        model(x).sum().backward()
        with track_memory(model) as trace:
            model(x).sum().backward()
        assert trace.by_kind["gradient"] == 400
        assert trace.by_kind["temporary"] >= 400
        assert at_end(trace) == {"parameter": 400, "gradient": 400}

    def test_gradients_put_in_place_by_hand(self):
        weight = torch.ones(250, requires_grad=True)
        optimizer = torch.optim.SGD([weight])
        with track_memory() as trace:
            for _ in range(2):
                weight.grad = ones()
                optimizer.step()
                optimizer.zero_grad()
        assert kinds(trace) == {"gradient": KB}

    def test_gradients_of_activations_are_temporary(self):
        weight = torch.ones(250, requires_grad=True)
        with track_memory() as trace:
            hidden = weight.exp()
            out = hidden.exp()
            (gradient,) = torch.autograd.grad(out.sum(), hidden)
            del gradient
        assert at_end(trace) == {"activation": 2 * KB}
        assert kinds(trace)["temporary"] >= KB

    def test_a_convnet_with_batchnorm(self):
        model = nn.Sequential(
            nn.Conv2d(3, 4, 3, padding=1, bias=False),
            nn.BatchNorm2d(4),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(4 * 8 * 8, 10),
        )
        x, y = torch.ones(2, 3, 8, 8), torch.zeros(2, dtype=torch.long)
        parameters = 4 * (4 * 3 * 9 + 4 + 4 + 2560 + 10)
        buffers = 4 * (4 + 4) + 8
        image = 4 * 2 * 4 * 8 * 8
        with track_memory(model, inputs=(x, y)) as trace:
            loss = F.cross_entropy(model(x), y)
        # kept: what conv gave to the norm, the norm's mean and deviation, what relu
        # gave to linear, the softmax, and a sum of weights. What the norm gave to
        # relu and the logits are not.
        expected = {
            "parameter": parameters,
            "input": x.nbytes + y.nbytes,
            "activation": 2 * image + 2 * 16 + 2 * 40 + 4,
            "other": buffers + 4,
        }
        if not NODES_ARE_READ:
            expected["activation"] += 4
            expected["other"] -= 4
        assert at_end(trace) == expected
        with track_memory(model, inputs=(x, y)) as trace:
            F.cross_entropy(model(x), y).backward()
        assert at_end(trace) == {
            "parameter": parameters,
            "gradient": parameters,
            "input": x.nbytes + y.nbytes,
            "other": buffers,
        }
        del loss

    @reads_nodes
    def test_without_a_backward_only_what_is_saved_is_an_activation(self):
        layer, x = nn.Linear(250, 250, bias=False), torch.ones(1, 250)
        with track_memory(layer) as trace:
            for _ in range(3):
                y = layer(x).exp().sum()  # exp saves its result, linear its input
                del y
        assert kinds(trace) == {
            "parameter": 250 * KB,
            "activation": KB,
            "temporary": KB,
        }

    def test_without_a_graph_nothing_is_an_activation(self):
        layer, x = nn.Linear(250, 250, bias=False), torch.ones(1, 250)
        with torch.no_grad(), track_memory(layer) as trace:
            y = layer(x).exp()
        assert kinds(trace) == {
            "parameter": 250 * KB,
            "temporary": KB,
            "other": KB,
        }
        del y

    def test_what_is_alive_when_the_backward_begins(self):
        weight = torch.ones(250, requires_grad=True)
        with track_memory() as trace:
            aside = ones()  # no result of a recorded call
            kept = weight + 1  # saved by nobody, but held
            (kept * 2).sum().backward()
            assert kept.requires_grad
        assert at_end(trace) == {"activation": KB, "gradient": KB, "other": KB}
        del aside

    def test_a_custom_function(self):
        class Exp(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                y = x.exp()
                ctx.save_for_backward(y)
                return y * 2

            @staticmethod
            def backward(ctx, gradient):
                (y,) = ctx.saved_tensors
                return gradient * y * 2

        weight = torch.ones(250, requires_grad=True)
        with track_memory() as trace:
            out = Exp.apply(weight)
            out.sum().backward()
        assert at_end(trace) == {"activation": KB, "gradient": KB}
        assert kinds(trace)["activation"] >= 2 * KB
        del out

    @pytest.mark.parametrize("reentrant", [True, False])
    def test_what_checkpoint_computes_again(self, reentrant):
        x = torch.ones(250, requires_grad=True)

        def block(x):
            return x.exp().exp().exp().exp() * 2

        with track_memory() as plain:
            block(x).sum().backward()
        x.grad = None
        calls = []
        with track_memory() as saving:
            out = checkpoint(
                lambda x: (calls.append(1), block(x))[1], x, use_reentrant=reentrant
            )
            held = saving  # only the end of the block is kept until the backward
            out.sum().backward()
        assert len(calls) == 2  # looking at nodes computed nothing again
        assert plain.by_kind["activation"] >= 4 * KB
        assert saving.by_kind["activation"] >= 4 * KB
        assert at_end(held)["gradient"] == KB

    def test_double_backward(self):
        x = torch.ones(250, requires_grad=True)
        with track_memory() as trace:
            (gradient,) = torch.autograd.grad(x.exp().sum(), x, create_graph=True)
            gradient.sum().backward()
            del gradient
        assert at_end(trace) == {"gradient": KB}
        assert x.grad is not None

    def test_sparse_gradients(self):
        table = nn.Embedding(100, 10, sparse=True)
        with track_memory(table) as trace:
            table(torch.tensor([1, 2, 3])).sum().backward()
        assert at_end(trace) == {"parameter": 4000, "gradient": 3 * 8 + 3 * 10 * 4}

    def test_a_model_built_and_moved_in_the_block(self):
        with track_memory() as trace:
            model = nn.Linear(10, 10)
            model.double()
        assert at_end(trace) == {"parameter": 2 * 440}

    def test_a_lazy_model(self):
        model = nn.LazyLinear(10, bias=False)
        with track_memory(model) as trace:
            model(torch.ones(1, 10))
        assert at_end(trace) == {"parameter": 400}

    def test_tied_weights_count_once(self):
        model = nn.Sequential(nn.Linear(10, 10, False), nn.Linear(10, 10, False))
        model[1].weight = model[0].weight
        with track_memory(model) as trace:
            pass
        assert kinds(trace) == {"parameter": 400}

    def test_an_optimizer_with_its_state_in_lists(self):
        weight = torch.ones(250, requires_grad=True)
        optimizer = torch.optim.LBFGS([weight], max_iter=3)

        def closure():
            optimizer.zero_grad()
            loss = (weight**2).sum()
            loss.backward()
            return loss

        with track_memory() as trace:
            optimizer.step(closure)
        state = optimizer.state[weight]
        held = {
            tensor.untyped_storage()
            for value in state.values()
            for tensor in (value if isinstance(value, list) else [value])
            if isinstance(tensor, torch.Tensor)
        }
        assert at_end(trace)["optimizer state"] == sum(s.nbytes() for s in held)


class TestManners:
    """What the block leaves as it was, and how it ends."""

    def test_nothing_is_left_behind(self):
        from torch.nn.modules import module
        from torch.optim import optimizer as optim

        def traces_left():
            return (
                torch._C._len_torch_dispatch_stack(),
                len(module._global_parameter_registration_hooks),
                len(optim._global_optimizer_pre_hooks),
                len(optim._global_optimizer_post_hooks),
            )

        before = traces_left()
        model = nn.Linear(10, 10)
        x = ones()
        for _ in range(3):  # as in a cell that is run again
            with track_memory(model, inputs=x) as trace:
                y = model(torch.ones(2, 10)).sum()
        assert traces_left() == before
        for tensor in (x, y, model.weight):
            assert weakref.getweakrefcount(tensor.untyped_storage()) == 0
        storage = weakref.ref(y.untyped_storage())
        del y
        assert storage() is None
        assert trace.live_bytes >= KB

    def test_an_error_passes_and_the_trace_is_complete(self):
        def fail():
            x = ones()
            del x
            kept.append(ones(2))
            raise ZeroDivisionError

        kept = []
        with pytest.raises(ZeroDivisionError) as caught, track_memory() as trace:
            fail()
        assert (trace.peak_bytes, trace.live_bytes) == (2 * KB, 2 * KB)
        assert torch._C._len_torch_dispatch_stack() == 0
        assert caught.tb is not None
        assert weakref.getweakrefcount(kept[0].untyped_storage()) == 0

    def test_an_error_inside_an_operator(self):
        with track_memory() as trace:
            x = ones()
            with pytest.raises(RuntimeError):
                x @ torch.ones(3)
            y = ones()
        assert trace.live_bytes == 2 * KB
        del y

    def test_nested_blocks_count_each_for_itself(self):
        with track_memory() as outer:
            x = ones()
            with track_memory() as inner:
                y = ones(2)
                (x * 2).sum()
            del y
            z = ones()
        assert (inner.peak_bytes, inner.live_bytes) == (3 * KB + 4, 2 * KB)
        assert (outer.peak_bytes, outer.live_bytes) == (4 * KB + 4, 2 * KB)
        del z

    def test_the_version_check_of_autograd_stays_on(self):
        x = torch.ones(3, requires_grad=True)
        with track_memory():
            y = x.exp()
            with torch.no_grad():
                y.mul_(2)
            with pytest.raises(RuntimeError, match="inplace"):
                y.sum().backward()

    def test_hooks_on_saved_tensors_run_as_often_as_without(self):
        x = torch.ones(250, requires_grad=True)
        unpacked = []
        hooks = torch.autograd.graph.saved_tensors_hooks(
            lambda t: t.clone(), lambda t: unpacked.append(1) or t
        )
        with track_memory() as trace:
            with hooks:
                y = x.exp()
            z = y.sum()
            z + 1
            assert not unpacked
            z.backward()
        assert len(unpacked) == 1
        assert trace.by_kind["activation"] >= KB

    def test_other_threads_are_not_counted(self):
        with track_memory() as trace:
            thread = threading.Thread(target=lambda: ones() + 1)
            thread.start()
            thread.join()
        assert trace.allocations == 0

    def test_results_are_the_same_as_without(self):
        def losses(tracked: bool) -> list[float]:
            torch.manual_seed(0)
            model = nn.Sequential(nn.Linear(8, 8), nn.Dropout(), nn.Linear(8, 1))
            optimizer = torch.optim.Adam(model.parameters())
            said = []
            for _ in range(5):
                loss = model(torch.rand(4, 8)).square().mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                said.append(loss.item())
            return said

        with track_memory():
            tracked = losses(True)
        assert tracked == losses(False)

    def test_a_compiled_function_runs_too(self):
        double = torch.compile(lambda x: x * 2, backend="eager")
        with track_memory() as trace:
            y = double(ones())
        assert trace.live_bytes == KB
        assert y[0] == 2

    def test_the_allocators_peak_survives_an_inner_block(self, monkeypatch):
        peak = [0]
        monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
        monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda: peak[0])
        monkeypatch.setattr(
            torch.cuda, "reset_peak_memory_stats", lambda: peak.__setitem__(0, 0)
        )
        with track_memory() as outer:
            peak[0] = 700
            with track_memory() as inner:
                peak[0] = 500
        assert inner.allocator_peak_bytes == 500
        assert outer.allocator_peak_bytes == 700
        assert "700 bytes" in outer._repr_markdown_()


class TestWords:
    """How the result reads, and what wrong calls are told."""

    def test_reading_it_inside_the_block(self):
        with track_memory() as trace:
            assert "not ended" in repr(trace)
            for name in ("peak_bytes", "by_kind", "timeline"):
                with pytest.raises(AttributeError, match=f"^{name} was read inside"):
                    getattr(trace, name)
        assert trace.peak_bytes == 0
        with pytest.raises(AttributeError, match="no 'peak'"):
            _ = trace.peak

    def test_one_line_and_a_table(self):
        with track_memory() as trace:
            x = ones()
        said = "<MemoryTrace: peak 1.00 kB (other 1.00 kB); 1.00 kB live at the end>"
        assert repr(trace) == said
        table = trace._repr_markdown_()
        assert "| other | 1,000 | 1.00 kB |" in table
        assert "scratch" in table  # what isn't seen is said
        with pytest.raises(AttributeError):
            trace.peak_bytes = 0
        del x

    def test_an_empty_block(self):
        with track_memory() as trace:
            pass
        assert repr(trace) == "<MemoryTrace: peak 0 B; 0 B live at the end>"
        assert trace.plot().get_label().startswith("Tensor memory over 0 events")

    def test_the_picture(self):
        model, x = nn.Linear(250, 250), torch.ones(8, 250)
        with track_memory(model, inputs=x) as trace:
            model(x).exp().sum().backward()
        figure = trace.plot()
        assert figure.get_facecolor() == (1, 1, 1, 1)
        (axes,) = figure.axes
        labels = [text.get_text() for text in figure.legends[0].get_texts()]
        assert [label.split(":")[0] for label in labels] == [
            kind
            for kind in reversed(trace.by_kind)
            if any(kind in moment.by_kind for moment in trace.timeline)
        ]
        hatches = [layer.get_hatch() for layer in axes.collections]
        assert len(set(hatches)) == len(hatches)
        assert "it peaks at" in figure.get_label()
        figure.savefig(io.BytesIO(), format="png")

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            ({"model": torch.ones(1)}, "model is a torch.nn.Module or None, and got T"),
            ({"model": nn.Linear}, "model is a torch.nn.Module or None, and got type"),
            ({"optimizer": [1]}, "optimizer is a torch.optim.Optimizer or None, and"),
            ({"inputs": np.ones(1)}, "inputs is a tensor, or tensors in lists, tuples"),
            ({"inputs": [torch.ones(1), 3]}, "and got int"),
        ],
    )
    def test_wrong_arguments(self, arguments, said):
        with pytest.raises(TypeError) as error:
            track_memory(**arguments)
        assert said in str(error.value)
        assert str(error.value).startswith("track_memory: ")
        assert "\n" not in str(error.value)

    def test_a_block_that_is_entered_twice(self):
        block = track_memory()
        with block:
            pass
        with pytest.raises(RuntimeError, match="entered a second time"), block:
            pass
