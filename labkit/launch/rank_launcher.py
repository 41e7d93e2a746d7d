"""torchrun, with an eye on the page that has launched it: a program for `rank_run`.

A page's process may be killed, and then nobody is left to stop the ranks: this does.
Arguments: the launch's temporary folder, then torchrun's.
"""

import os
import runpy
import shutil
import sys
import threading

from labkit.launch.rank_processes import MARK, end_others


def main() -> None:
    folder = sys.argv.pop(1)
    # The page holds the other end of this pipe and writes nothing.
    page = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)  # for the ranks
    os.close(nothing)
    gone = threading.Event()

    def follow() -> None:
        while os.read(page, 1):
            continue
        gone.set()
        end_others(os.environ[MARK])
        shutil.rmtree(folder, ignore_errors=True)
        os._exit(1)

    follower = threading.Thread(target=follow, daemon=True)
    follower.start()
    try:
        runpy.run_module("torch.distributed.run", run_name="__main__", alter_sys=True)
    finally:
        if gone.is_set():  # torchrun has seen its ranks end: the folder is still there
            follower.join()


if __name__ == "__main__":
    main()
