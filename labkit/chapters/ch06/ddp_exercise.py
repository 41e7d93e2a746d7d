"""Exercise 6.2-ddp: a training script for one process becomes one for several."""

from labkit.chapters.ch06 import ddp_answers as answers
from labkit.chapters.ch06 import ddp_edits as edits
from labkit.chapters.ch06.ddp_reference import train
from labkit.lesson.exercise import Exercise, Wrong

EXERCISE = Exercise(
    id="6.2-ddp",
    title="A training script for several processes",
    minutes=20,
    difficulty="medium",
    deliver="the function `train`, with seven edits, in its `%%module` cell",
    reference=train,
    tests=(
        edits.group,
        edits.device,
        edits.wrapper,
        edits.sampler,
        edits.order,
        edits.printed,
        edits.file,
    ),
    hints=(
        "Two processes run this text from its first line to its last. Which lines may "
        "both of them do alike, which need to know the rank, and which need the other?",
        "`dist.init_process_group`, then the device from `os.environ['LOCAL_RANK']`, then "
        "`DistributedDataParallel(model.to(device))`; the optimizer comes after it.",
        "`DistributedSampler(data)` goes into the loader as `sampler`, in place of "
        "`shuffle=True`; `sampler.set_epoch(epoch)` is the first line of each epoch.",
        "All ranks put their mean loss into a tensor and call `dist.all_reduce`; then it "
        "is divided by `dist.get_world_size()`. Only the `print` is inside the `if`.",
        "Rank 0 saves `model.module.state_dict()`; then all call `dist.barrier()`, and "
        "last `dist.destroy_process_group()`.",
    ),
    why="The text is the same on all ranks, and on any number of machines: the only "
    "differences are the device, by LOCAL_RANK, and what rank 0 prints and writes. "
    "Every collective (the construction of DDP, each backward, `all_reduce`, `barrier`) "
    "is outside of those `if`s. `batch_size` is that of one process: two ranks make "
    "steps of 40 samples. The imports at the top of the cell: `os`, `torch.distributed as "
    "dist`, `DistributedDataParallel as DDP` from `torch.nn.parallel`, `DataLoader` and "
    "`DistributedSampler` from `torch.utils.data`.",
    wrong=(
        Wrong(answers.NeverBegins, "was called 0 times"),
        Wrong(
            answers.AlwaysNccl, "without GPUs your script asks for the backend 'nccl'"
        ),
        Wrong(answers.AlwaysGloo, "with GPUs your script asks for the backend 'gloo'"),
        Wrong(answers.NeverEnds, "still there when `train` returns"),
        Wrong(answers.FirstDevice, "where no other rank is"),
        Wrong(answers.DeviceOfRank, "RANK counts over all machines"),
        Wrong(answers.NotWrapped, "was called with a plain Sequential"),
        Wrong(answers.Bypassed, "was called with the Sequential inside"),
        Wrong(answers.EachAll, "each rank went through all 80"),
        Wrong(answers.BothShuffle, "mutually exclusive"),
        Wrong(answers.NobodyShuffles, "come in the order of the data"),
        Wrong(answers.SeedOfRank, "shuffle with the same seed"),
        Wrong(answers.NoSetEpoch, "the same in all 3 epochs"),
        Wrong(answers.OwnLoss, "its own: the mean over the ranks"),
        Wrong(answers.AllPrint, "rank 1 printed too"),
        Wrong(answers.SumOfLosses, "their mean is"),
        Wrong(answers.AllSave, "rank 1 wrote the file as well"),
        Wrong(answers.WrapperSaved, "the wrapper's name for it"),
        Wrong(answers.NobodyWaits, "before the file was complete"),
        Wrong(answers.OnlyRankZeroReduces, "a collective that not every rank comes to"),
    ),
    variants=(answers.InPieces,),
    seconds=120.0,
)
