"""The exercise of part 6.3: a checkpoint that one rank writes and every rank reads."""

from labkit.chapters.ch06 import save_answers as answers
from labkit.chapters.ch06.save_checks import STAGED, real_ranks
from labkit.lesson.exercise import Exercise, Wrong

EXERCISES = [
    Exercise(
        id="6.3-save",
        title="Save once, load everywhere",
        minutes=12,
        difficulty="medium",
        deliver="a class `OneFile` with `save` and `load`, which every rank calls",
        reference=answers.OneFile,
        tests=(*STAGED, real_ranks),
        hints=(
            "Which lines of `save` must one rank run, and which all of them?",
            "Under `if dist.get_rank() == 0:` stands what touches the disk, and nothing "
            "that waits for others. After it, for all: `dist.barrier()`.",
            "The names are those of `ddp.module.state_dict()`. Save under another name "
            "in the same folder, then `os.replace(new, path)`.",
            "`torch.load(path, map_location=device, weights_only=True)`, then "
            "`model.load_state_dict(...)` and return the model.",
        ),
        why="The guard is around the disk and nothing else. The barrier stands after it, "
        "on all ranks, so that whoever comes back from `save` finds the new file; "
        "`os.replace` makes sure that there is a whole one at every moment. Every rank "
        "reads the file itself and says where the weights shall go. `barrier` of nccl "
        "needs `torch.cuda.set_device` before it. Where each machine has a disk of its "
        "own, the first rank of each machine writes: `LOCAL_RANK` in place of the rank.",
        wrong=(
            Wrong(answers.WrapperSaved, "whose `state_dict` is that?"),
            Wrong(answers.EveryoneSaves, "one rank is enough"),
            Wrong(answers.BarrierInside, "waits for ever"),
            Wrong(answers.NobodyWaits, "without having waited"),
            Wrong(answers.BarrierFirst, "meet before rank 0 has written"),
            Wrong(answers.WrittenInPlace, "overwritten in place"),
            Wrong(answers.BackToItsPlace, "its device is another"),
            Wrong(answers.Trusting, "ran its own program"),
            Wrong(answers.BytesInPlace, "can no longer be read"),
        ),
        variants=(answers.WordFromRankZero,),
        seconds=90.0,
    )
]
