"""The command line: ``python -m labkit start``, ``doctor`` or ``progress``."""

from __future__ import annotations

import argparse
import sys


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return the exit status: 0, or 1 where it could not be done.

    Example: ``main(["start", "--fresh", "02"])``.
    """
    parser = argparse.ArgumentParser(
        prog="python -m labkit", description="PyTorch Pitfall Lab on the command line."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    starting = commands.add_parser(
        "start", help="copy the pages to your work folder; nothing is overwritten"
    )
    starting.add_argument(
        "--fresh",
        nargs="+",
        default=[],
        metavar="PAGE",
        help="copy these pages anew, as 02 or 02_tensors; your copy gets another name",
    )
    commands.add_parser("doctor", help="check this computer and its packages")
    commands.add_parser("progress", help="show what you have done so far")
    chosen = parser.parse_args(arguments)
    # what one command needs is imported only for it: `start` is quick
    if chosen.command == "start":
        from labkit.lesson.workspace import WorkspaceError, start

        try:
            print(start(chosen.fresh))
        except WorkspaceError as error:
            print(error, file=sys.stderr)
            return 1
    elif chosen.command == "doctor":
        from labkit.lesson.doctor import doctor

        doctor()
    else:
        from labkit.lesson.progress import progress

        progress()
    return 0


if __name__ == "__main__":
    sys.exit(main())
