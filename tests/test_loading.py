"""`watch_loader`: faults found, healthy loaders left in peace, nothing left behind."""

import _thread
import json
import multiprocessing
import random
import subprocess
import sys
import time
from pathlib import Path

import loading_module as lm
import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset, Sampler, TensorDataset

import labkit as lk
from labkit.launch.children import child_pids
from labkit.probe.loader_advice import Pace, suggest
from labkit.probe.loader_digest import digest
from labkit.probe.loader_stores import Big, judge_memory

fork = pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(), reason="needs fork"
)
METHODS = multiprocessing.get_all_start_methods()


def pages(report):
    return [finding.page for finding in report.findings]


def segments():
    folder = Path("/dev/shm")
    return set(folder.glob("torch_*")) if folder.is_dir() else set()


@pytest.fixture(autouse=True)
def forking():
    """Start workers by fork, which Python 3.14 no longer does by itself."""
    before = multiprocessing.get_start_method(allow_none=True)
    if "fork" in METHODS:
        multiprocessing.set_start_method("fork", force=True)
    yield
    multiprocessing.set_start_method(before, force=True)


@pytest.fixture(autouse=True)
def nothing_left():
    children, before = child_pids(), segments()
    yield
    assert child_pids() <= children
    # other programs have such segments too, but theirs come and go
    left = segments() - before
    for _ in range(50):
        left &= segments()
        if not left:
            return
        time.sleep(0.1)
    raise AssertionError(f"shared memory is left: {left}")


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize(
    ("broken", "fixed"),
    [
        (lm.Scaled(), lm.Rows()),
        (lm.ScaledArrays(copies=False), lm.ScaledArrays(copies=True)),
        (lm.CachedNoise(copies=False), lm.CachedNoise(copies=True)),
    ],
)
@fork
def test_stored_data_that_reading_edits(broken, fixed, workers):
    report = lk.watch_loader(DataLoader(broken, batch_size=3, num_workers=workers))
    assert pages(report) == ["4.1"]
    assert report.findings[0].sure == "certain"
    assert report.changed[:2] == ("0", "1")
    report = lk.watch_loader(DataLoader(fixed, batch_size=3, num_workers=workers))
    assert (report.findings, report.changed) == ((), ())


@pytest.mark.parametrize(
    "rng", [np.random.default_rng(0), random.Random(0), np.random.RandomState(0)]
)
@fork
def test_a_generator_that_every_worker_copies(rng):
    loader = DataLoader(lm.Augmented(rng), batch_size=2, num_workers=2)
    (finding,) = lk.watch_loader(loader).findings
    assert finding.where == "dataset.transforms[0].rng"
    assert "in workers 0, 1 and in every epoch" in finding.what


@fork
def test_what_is_right_about_generators():
    loader = DataLoader(
        lm.Augmented(np.random.default_rng(0)),
        batch_size=2,
        num_workers=2,
        worker_init_fn=lm.seed_jitter,
    )
    assert lk.watch_loader(loader).findings == ()
    for dataset in (lm.SeededForEach(), lm.MadeInTheWorker(), lm.OutsideNoise()):
        loader = DataLoader(dataset, batch_size=2, num_workers=2)
        assert lk.watch_loader(loader).findings == ()


@fork
def test_a_generator_that_is_no_object():
    loader = DataLoader(lm.OwnArithmetic(), batch_size=2, num_workers=2)
    (finding,) = lk.watch_loader(loader).findings
    assert "a state that each worker copies" in finding.what


@pytest.mark.parametrize("workers", [0, 1])
@fork
def test_a_collate_function_that_edits_what_is_stored(workers):
    loader = DataLoader(
        lm.Views(), batch_size=3, num_workers=workers, collate_fn=lm.halve
    )
    assert pages(lk.watch_loader(loader)) == ["4.1"]
    loader.collate_fn = lm.half
    assert lk.watch_loader(loader).findings == ()


@fork
def test_workers_that_are_seeded_alike():
    loader = DataLoader(
        lm.GlobalNoise(), batch_size=2, num_workers=2, worker_init_fn=lm.seed_alike
    )
    (finding,) = lk.watch_loader(loader).findings
    assert finding.where == "torch.default_generator"


@fork
def test_a_stream_that_every_worker_walks():
    for size in (None, 2):
        loader = DataLoader(lm.Lines(share=False), batch_size=size, num_workers=2)
        report = lk.watch_loader(loader)
        assert pages(report) == ["4.2"]
        assert report.seen_twice == 9
        loader = DataLoader(lm.Lines(share=True), batch_size=size, num_workers=2)
        report = lk.watch_loader(loader)
        assert (report.findings, report.seen_twice) == ((), 0)


@fork
def test_a_stream_whose_noise_hides_that_it_is_walked_twice():
    loader = DataLoader(lm.NoisyLines(share=False), batch_size=2, num_workers=2)
    (finding,) = lk.watch_loader(loader).findings
    assert (finding.sure, finding.page) == ("likely", "4.2")
    loader = DataLoader(lm.NoisyLines(share=True), batch_size=2, num_workers=2)
    assert lk.watch_loader(loader).findings == ()


@fork
def test_a_stream_that_shares_out_what_it_makes_at_random():
    loader = DataLoader(lm.Drawn(), batch_size=2, num_workers=2)
    assert lk.watch_loader(loader).findings == ()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells")
def test_objects_inside_of_others_and_memory_that_is_asked_for():
    words = [[f"word {i} of row {j}, long" for i in range(1000)] for j in range(200)]
    loader = DataLoader(lm.Nested(words), batch_size=8, num_workers=1)
    report = lk.watch_loader(loader, twice=False)
    assert [finding.where for finding in report.findings] == ["dataset.rows"]
    rows = [np.arange(1000) for _ in range(200)]
    loader = DataLoader(lm.Nested(rows), batch_size=8, num_workers=1)
    assert lk.watch_loader(loader, twice=False).findings == ()


def test_copied_memory_is_judged_by_the_part_that_was_watched():
    big, copied = {"dataset.rows": Big(40 << 20, [])}, {0: 2 << 20}
    assert list(judge_memory(big, copied, "fork", 1.0)) == []
    (finding,) = judge_memory(big, copied, "fork", 0.1)
    assert "2 MiB in 10% of the epoch" in finding.what


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_objects_that_are_sent_to_each_worker(method):
    (finding,) = judge_memory({"dataset.rows": Big(40 << 20, [])}, {}, method, 1.0)
    assert (finding.where, finding.sure) == ("dataset.rows", "worth a look")
    assert f"{method} sends all its Python objects" in finding.what
    assert "40 MiB" in finding.what
    assert list(judge_memory({"dataset.rows": Big(1 << 20, [])}, {}, method, 1)) == []


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells")
def test_memory_that_was_freed_and_is_used_again_is_not_copied_objects():
    # in a new process: what this one has allocated before would matter
    child = [sys.executable, Path(__file__).with_name("loading_memory.py")]
    told = subprocess.run(child, capture_output=True, text=True, check=True)
    assert json.loads(told.stdout) == {"few": [], "all": ["dataset.paths"]}


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells")
def test_objects_that_reading_copies():
    texts = [f"a text of some length, number {i}" for i in range(200_000)]
    loader = DataLoader(lm.Texts(texts), batch_size=1, num_workers=1)
    report = lk.watch_loader(loader, twice=False)
    assert [finding.where for finding in report.findings] == ["dataset.store"]
    assert report.growth_bytes > 8 << 20
    loader = DataLoader(lm.Texts(np.arange(200_000)), batch_size=1, num_workers=1)
    report = lk.watch_loader(loader, twice=False)
    assert report.findings == ()
    assert report.memory_bytes[0] > 0


@fork
def test_a_cache_that_ends_with_the_worker():
    loader = DataLoader(lm.Cache(), batch_size=2, num_workers=2)
    (finding,) = lk.watch_loader(loader).findings
    assert (finding.where, finding.page) == ("dataset.made", "4.1")
    assert lk.watch_loader(DataLoader(lm.Cache(), batch_size=2)).findings == ()


class Twofold(Sampler):
    """Gives one sample twice and another never."""

    def __len__(self):
        return 12

    def __iter__(self):
        return iter([0, 0, *range(2, 12)])


def test_a_sampler_that_repeats():
    report = lk.watch_loader(DataLoader(lm.Rows(), sampler=Twofold()))
    assert (report.seen_twice, report.never_seen) == (1, 1)
    assert [finding.sure for finding in report.findings] == ["worth a look"]


class Photos(Dataset):
    """The first photos, decoded."""

    def __init__(self, paths):
        self.paths = paths

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        with Image.open(self.paths[index]) as image:
            pixels = np.asarray(image.convert("RGB").resize((32, 32)))
        return torch.from_numpy(pixels.copy()), index


def healthy():
    paths = sorted(lk.data_path("photos").glob("*.jpg"))[:8]
    digits = np.load(lk.data_path("digits.npz"))
    images = torch.from_numpy(digits["images"][:100])
    labels = torch.from_numpy(digits["labels"][:100])
    yield DataLoader(Photos(paths), batch_size=2, shuffle=True, num_workers=2)
    yield DataLoader(TensorDataset(images, labels), batch_size=10, shuffle=True)
    yield DataLoader(["a", "bc", "def"], batch_size=2, collate_fn=list)
    yield DataLoader(lm.Lines(share=True), batch_size=None, num_workers=2)
    yield DataLoader(
        lm.Rows(),
        batch_size=5,
        drop_last=True,
        num_workers=1,
        persistent_workers=True,
    )
    half = torch.utils.data.Subset(lm.Rows(), range(6))
    weighted = torch.utils.data.WeightedRandomSampler([1.0] * 6, 9)
    yield DataLoader(half, batch_size=4, sampler=weighted)


@fork
def test_healthy_loaders_and_their_order():
    for loader in healthy():
        torch.manual_seed(5)
        before = [digest(batch) for batch in loader]
        torch.manual_seed(5)
        seen = []
        state = torch.get_rng_state(), random.getstate()
        report = lk.watch_loader(loader, lambda batch, seen=seen: seen.append(batch))
        assert torch.equal(torch.get_rng_state(), state[0])
        assert random.getstate() == state[1]
        assert report.findings == ()
        assert report.finished
        assert report.batches == len(before) == len(seen)
        assert [digest(batch) for batch in loader] == before
        assert report.waiting_share is not None
        if loader.persistent_workers:
            loader._iterator._shutdown_workers()


@fork
def test_generators_of_the_loader_and_its_dataset_go_on_where_they_were():
    generator = torch.Generator().manual_seed(2)
    dataset = lm.Augmented(np.random.default_rng(4))
    loader = DataLoader(dataset, shuffle=True, generator=generator)
    states = generator.get_state(), dataset.transforms[0].rng.bit_generator.state
    lk.watch_loader(loader)
    assert torch.equal(generator.get_state(), states[0])
    assert dataset.transforms[0].rng.bit_generator.state == states[1]


class Buckets(Sampler):
    """Batches in a new order each time, from state of five kinds."""

    def __init__(self):
        self.generator = torch.Generator().manual_seed(1)
        self.buckets = {"short": [0, 1, 2, 3], "long": [4, 5, 6, 7, 8, 9, 10, 11]}
        self.order = np.arange(3)
        self.rngs = [random.Random(3)]
        self.epoch = 0

    def __len__(self):
        return 3

    def __iter__(self):
        self.epoch += 1
        self.rngs[0].shuffle(self.buckets["long"])
        self.order += torch.randint(9, (), generator=self.generator).item()
        everything = self.buckets["short"] + self.buckets["long"]
        for start in self.order:
            yield [everything[(4 * int(start) + place) % 12] for place in range(4)]


@pytest.mark.parametrize("workers", [0, 2])
@fork
def test_a_sampler_with_a_state_goes_on_where_it_was(workers):
    def loaders():
        rows, seeded = lm.Rows(), torch.Generator().manual_seed(5)
        yield DataLoader(rows, batch_sampler=Buckets(), num_workers=workers)
        yield DataLoader(rows, shuffle=True, generator=seeded, num_workers=workers)
        own = torch.utils.data.RandomSampler(rows, generator=seeded)
        yield DataLoader(rows, 4, sampler=own, num_workers=workers)

    for loader, other in zip(loaders(), loaders(), strict=True):
        torch.manual_seed(7)
        expected = [digest(batch) for _ in range(2) for batch in other]
        torch.manual_seed(7)
        found = [digest(batch) for batch in loader]
        lk.watch_loader(loader)
        assert found + [digest(batch) for batch in loader] == expected


def test_a_sampler_that_takes_several_samples_at_once():
    several = torch.utils.data.BatchSampler(range(12), 4, drop_last=False)
    report = lk.watch_loader(DataLoader(lm.Rows(), batch_size=None, sampler=several))
    assert (report.seen_twice, report.never_seen, report.findings) == (0, 0, ())


@fork
def test_persistent_workers_stay_as_they_are():
    loader = DataLoader(lm.Rows(), num_workers=1, persistent_workers=True)
    list(loader)
    workers = [worker.pid for worker in loader._iterator._workers]
    lk.watch_loader(loader)
    assert [worker.pid for worker in loader._iterator._workers] == workers
    assert len(list(loader)) == 12
    loader._iterator._shutdown_workers()


OTHERS = [method for method in METHODS if method != "fork"]


@pytest.mark.slow
@pytest.mark.parametrize("method", OTHERS)
def test_other_start_methods(method):
    def watch(dataset, twice=False, **more):
        loader = DataLoader(dataset, 3, multiprocessing_context=method, **more)
        report = lk.watch_loader(loader, twice=twice)
        assert (report.start_method, report.finished) == (method, True)
        return [finding.where for finding in report.findings]

    assert watch(lm.Scaled(), True, num_workers=1) == ["dataset"]
    rng = np.random.default_rng(0)
    copied = "dataset.transforms[0].rng"
    assert watch(lm.Augmented(rng), num_workers=2) == [copied]
    assert watch(lm.Lines(share=False), num_workers=2) == ["dataset"]
    texts = [f"a text of some length, number {i}" for i in range(150_000)]
    assert watch(lm.Texts(texts), num_workers=1) == ["dataset.store"]
    assert watch(lm.Texts(np.arange(150_000)), num_workers=1) == []
    loader = DataLoader(lm.Rows(), num_workers=1, multiprocessing_context=method)
    loader.collate_fn = lambda items: items
    with pytest.raises(ValueError, match=rf"started by {method}, .*collate_fn"):
        lk.watch_loader(loader)


@pytest.mark.slow
@pytest.mark.parametrize("method", OTHERS)
def test_healthy_loaders_under_other_start_methods(method):
    counted = lm.Rows()
    counted.epoch = multiprocessing.get_context(method).Value("i", 0)
    pairs = TensorDataset(torch.arange(12.0), torch.arange(12))
    seeded = torch.Generator().manual_seed(3)
    jitter = {"num_workers": 2, "worker_init_fn": lm.seed_jitter}
    for dataset, more in (
        (counted, {"num_workers": 2, "persistent_workers": True}),
        (lm.Augmented(np.random.default_rng(0)), jitter),
        (lm.Lines(share=True), {"num_workers": 2}),
        (pairs, {"num_workers": 1, "shuffle": True, "generator": seeded}),
        (["a", "bc", "def"], {"num_workers": 1, "collate_fn": list}),
    ):
        loader = DataLoader(dataset, multiprocessing_context=method, **more)
        before = seeded.get_state()
        # the next start of the workers tells of generators only
        report = lk.watch_loader(loader, twice=more is jitter)
        assert (report.findings, report.finished) == ((), True)
        assert torch.equal(seeded.get_state(), before)


def test_what_cannot_be_pickled_is_named():
    dataset = lm.Augmented(np.random.default_rng(0))
    dataset.transforms.append({"scale": lambda row: row})
    report = lk.watch_loader(DataLoader(dataset))
    assert report.unpicklable[0].startswith("dataset.transforms[1]['scale']: ")
    assert report.findings == ()
    assert "Windows" in report.notes[0]


def test_a_shared_value_can_be_sent():
    dataset = lm.Rows()
    dataset.epoch = multiprocessing.get_context("spawn").Value("i", 0)
    assert lk.watch_loader(DataLoader(dataset)).unpicklable == ()


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize(
    ("how", "says"),
    [("error", "reading sample 7.* raised KeyError"), ("shape", "cannot be collated")],
)
@fork
def test_bad_samples(how, says, workers):
    loader = DataLoader(lm.Broken(how), batch_size=4, num_workers=workers)
    with pytest.raises(RuntimeError, match=rf"watch_loader\(loader\): .*{says}") as got:
        lk.watch_loader(loader)
    assert "\n" not in str(got.value)
    assert ("in worker 1" in str(got.value)) == bool(workers)
    if how == "shape":
        assert "samples 4, 5, 6, 7" in str(got.value)


@fork
def test_a_start_that_fails_and_a_batch_that_cannot_be_sent():
    loader = DataLoader(lm.Rows(), num_workers=2, worker_init_fn=lm.fail_in_worker_1)
    with pytest.raises(RuntimeError, match="starting worker 1 raised OSError: no disk"):
        lk.watch_loader(loader)
    loader = DataLoader(lm.Broken("local"), 2, num_workers=1, collate_fn=list)
    says = "batch of samples 0, 1 cannot be sent back in worker 0: "
    with pytest.raises(RuntimeError, match=says):
        lk.watch_loader(loader)


def test_a_stream_that_fails():
    with pytest.raises(RuntimeError, match="reading sample 2 raised ValueError: bad"):
        lk.watch_loader(DataLoader(lm.BadLine(share=True), batch_size=2))


@fork
def test_a_worker_that_is_killed():
    loader = DataLoader(lm.Broken("killed"), batch_size=4, num_workers=2)
    says = r"worker 1 was killed by SIGKILL while it had samples 4, 5, 6, 7 to read"
    with pytest.raises(RuntimeError, match=says):
        lk.watch_loader(loader)


def test_a_corrupt_photo(tmp_path):
    good = next(lk.data_path("photos").glob("*.jpg")).read_bytes()
    paths = [tmp_path / "0.jpg", tmp_path / "1.jpg"]
    paths[0].write_bytes(good)
    paths[1].write_bytes(good[: len(good) // 3])
    with pytest.raises(RuntimeError, match=r"reading sample 1 raised OSError.*trunc"):
        lk.watch_loader(DataLoader(Photos(paths)))


def test_wrong_arguments():
    with pytest.raises(TypeError, match="DataLoader, and got an object of type list"):
        lk.watch_loader([1, 2])
    with pytest.raises(TypeError, match="step is a function"):
        lk.watch_loader(DataLoader([1]), step=3)
    with pytest.raises(ValueError, match=r"from 1, or None .* got 0"):
        lk.watch_loader(DataLoader([1]), batches=0)
    with pytest.raises(ValueError, match="dataset is empty"):
        lk.watch_loader(DataLoader([]))
    with pytest.raises(ValueError, match="gave no batch"):
        lk.watch_loader(DataLoader([1], batch_size=2, drop_last=True))
    with pytest.raises(ValueError, match="gave no batch"):
        lk.watch_loader(DataLoader(lm.Lines(True, size=0)))


def test_a_loader_that_is_being_iterated():
    loader = DataLoader([1, 2, 3])
    iterator = iter(loader)
    next(iterator)
    with pytest.raises(ValueError, match=r"being iterated \(1 batches"):
        lk.watch_loader(loader)
    del iterator
    assert lk.watch_loader(loader).batches == 3


@fork
def test_an_interrupt_leaves_nothing():
    loader = DataLoader(lm.Broken("slow"), num_workers=2)
    with pytest.raises(KeyboardInterrupt):
        lk.watch_loader(loader, lambda batch: _thread.interrupt_main())


def test_an_error_in_the_step_is_the_learners():
    with pytest.raises(ZeroDivisionError):
        lk.watch_loader(DataLoader([1, 2], num_workers=1), lambda batch: 1 / 0)


@fork
def test_what_is_shown():
    loader = DataLoader(lm.Lines(share=True), batch_size=2, num_workers=2)
    report = lk.watch_loader(loader, lambda batch: None, batches=2)
    assert repr(report) == (
        "<LoaderReport: 2 batches (not the whole epoch), 2 workers (fork); no findings>"
    )
    shown = report._repr_markdown_()
    assert "the article's 20%" in shown
    assert "seen twice: 0; never seen: not known" in shown
    figure = report.plot()
    assert figure.get_label().startswith("Timeline of 2 batches over ")
    assert [row.worker for row in report.timeline] == [0, 1]
    for row in report.timeline:
        assert 0 < row.began < row.ended <= row.came <= row.done


def test_suggestions_follow_the_times():
    slow = Pace(0, 4.0, 0.0, 3.0, 1.0, 0.02, (), False, True)
    assert [s.page for s in suggest(slow)] == ["4.2"]
    assert "75% of the time" in str(next(suggest(slow)))
    trivial = Pace(2, 1.0, 0.6, 0.8, 0.1, 1e-6, (0.1, 0.1), False, True)
    assert "num_workers=0" in next(suggest(trivial)).change
    fine = Pace(2, 4.0, 0.1, 0.1, 3.8, 0.02, (0.5, 0.5), False, True)
    assert list(suggest(fine)) == []
