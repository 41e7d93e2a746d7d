"""The traps of part 4.1, what a dataset hands out."""

from labkit.chapters.ch04.claims_41 import CLAIMS
from labkit.lesson.costs import slower
from labkit.lesson.symptom import silent
from labkit.lesson.trap import Trap

__all__ = ["CLAIMS", "TRAPS"]

TRAPS = [
    Trap(
        number="4.1.1",
        slug="4.1-frozen-augmentation",
        symptom=silent(
            lambda seen: seen["different"] < seen["handed out"],
            "pictures handed out in three epochs, and how many of them differ",
        ),
        question=(
            "There are 36 photos, and three epochs hand out 108 pictures. How many "
            "different ones are among them?"
        ),
        choices={
            "36": (
                "Right: `augment` ran once for each photo, and what it drew then has been "
                "handed out ever since."
            ),
            "108": (
                "That would be so if `augment` ran at every access. It stands behind the "
                "`if`, and the `if` is true once for each photo."
            ),
            "72": (
                "That counts the first epoch apart from the later ones. The first is in "
                "the cache as well: it is what the later ones get."
            ),
            "108, since `shuffle=True` makes each epoch another": (
                "Shuffling changes the order in which the photos come, and nothing in the "
                "photos."
            ),
        },
        claims=("C4.1d",),
        core=True,
    ),
    Trap(
        number="4.1.2",
        slug="4.1-cache-dies-with-worker",
        symptom=slower(2.5, count="loads"),
        question=(
            "The cache keeps 36 photos, two workers share the work, and there are three "
            "epochs. How many times is a file decoded?"
        ),
        choices={
            "108 times": (
                "Right: each epoch starts two new workers with the empty cache of the main "
                "process, and what they keep ends with them."
            ),
            "36 times": (
                "That is what happens without workers, where there is one dataset and one "
                "cache."
            ),
            "72 times: each of the two workers fills a cache of its own": (
                "In one epoch a photo goes to one of the workers only, so together they "
                "decode 36. The question is what is left of that for the next epoch."
            ),
            "36 times, since the workers send what they keep to the main process": (
                "Workers send batches. What they change in their copy of the dataset stays "
                "with them."
            ),
        },
        claims=("C4.1e", "C4.1f"),
    ),
    Trap(
        number="4.1.3",
        slug="4.1-mutable-cache",
        symptom=silent(
            lambda seen: max(seen) - min(seen) > 1,
            "the mean of what the model would get, epoch by epoch",
        ),
        question=(
            "In the first epoch the mean is -0.6. What is it in the second and the third?"
        ),
        choices={
            "it leaves -0.6, further each time": (
                "Right: the loop writes into the tensor that it was given, and that tensor "
                "is the one in the cache."
            ),
            "-0.6 each time: the loader hands out copies": (
                "A batch is a copy, since `torch.stack` made it. With `batch_size=None` "
                "there is no stacking, and the item comes as it is."
            ),
            "-0.6 each time: the cache is the dataset's, and the loop cannot reach it": (
                "The dictionary cannot be reached. The tensor in it can: it was handed out."
            ),
            "the second epoch stops with an error about a changed tensor": (
                "Autograd watches tensors that it has saved. Nobody watches a cache."
            ),
        },
        claims=("C4.1g",),
    ),
    Trap(
        number="4.1.4",
        slug="4.1-transform-edits-dataset",
        symptom=silent(
            lambda seen: seen[0] > 2 * seen[-1],
            "the standard deviation of all that is handed out, epoch by epoch",
        ),
        question=(
            "In the first epoch the standard deviation is 1.0, as it should be. What does "
            "`spread()` return for three epochs?"
        ),
        choices={
            "1.0, then 0.17, then 0.03": (
                "Right: `sub_` and `div_` write into the array of the dataset, so that "
                "every epoch normalises what the last one has left."
            ),
            "1.0 three times": (
                "That needs the images to stay as they were. `as_tensor` copies no array, "
                "and methods that end in `_` write."
            ),
            "1.0, then 0.0: the second epoch finds a mean of 0 and subtracts it": (
                "The numbers are fixed, 4.9 and 6. They are subtracted and divided by "
                "again, whatever the images are by then."
            ),
            "1.0 three times: `__getitem__` changes a local variable": (
                "The name `x` is local. The numbers that it stands for lie in the array."
            ),
        },
        claims=("C4.1g",),
        core=True,
    ),
    Trap(
        number="4.1.5",
        slug="4.1-tensor-dataset-item-by-item",
        symptom=slower(20, count="calls"),
        question=(
            "1,797 images lie in one tensor, and a batch has 64. How many times does an "
            "epoch call the dataset's `__getitem__`?"
        ),
        choices={
            "1,797 times, once for each image": (
                "Right: the loader asks for one item after the other and stacks them, also "
                "where one indexing would give the whole batch."
            ),
            "29 times, once for each batch": (
                "A list of indices would do for a `TensorDataset`. The loader cannot know "
                "that, and asks for one item at a time."
            ),
            "once: the tensor is cut into batches": (
                "It is shuffled, and the loader knows nothing of the tensor behind the "
                "dataset."
            ),
            "not at all: a `TensorDataset` hands over its tensors": (
                "It could. To the loader it is a dataset like any other, with `__len__` "
                "and `__getitem__`."
            ),
        },
        claims=("E4.5",),
    ),
]
