"""The symptom of ranks that wait for each other until an alarm ends them."""

import re
from dataclasses import dataclass

from labkit.launch.rank_result import Ranks
from labkit.lesson.evidence import LabError, short
from labkit.lesson.symptom import Run, Seen, Symptom

ALARM = re.compile(r"^Timeout \((\d+):(\d+):(\d+)\)!", re.MULTILINE)


@dataclass(frozen=True)
class Stuck(Symptom):
    """The trap's code gives the `Ranks` of a launch that ended by an alarm.

    The alarm is `faulthandler.dump_traceback_later`, set once the ranks have met: a busy
    machine takes long to start ranks, and must not look stuck.  The launch's own timeout
    counts as well.
    """

    kind = "hangs"

    def observe(self, run: Run) -> Seen:
        ranks = run()
        if not isinstance(ranks, Ranks):
            raise LabError(
                f"the ranks of a launch are expected, and {short(ranks)} came"
            )
        for said in ranks.output:
            if alarm := ALARM.search(said):
                hours, minutes, seconds = map(int, alarm.groups())
                waited = 3600 * hours + 60 * minutes + seconds
                return Seen(True, f"not finished {waited} s after all ranks had met")
        if ranks.problem:
            late = ranks.problem.startswith("not finished")
            return Seen(late, ranks.problem, failed=not late)
        return Seen(False, f"all {len(ranks)} ranks came to their end")
