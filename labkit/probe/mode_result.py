"""What `mode_report` returns: what is wrong with a model's modes, what was not seen."""

from dataclasses import dataclass

from labkit.probe.finding import Finding, listed, plain, told


@dataclass(frozen=True, repr=False, eq=False)
class ModeReport:
    """What the modes of a model's modules do, and what is wrong with that.

    Attributes:
        training: whether the model itself is in training mode.
        modules: how many modules it has, itself included.
        differing: how many of them are in the other mode.
        findings: what is wrong.
        notes: what is worth knowing.
        unchecked: what could not be checked, and what that needs.
    """

    training: bool
    modules: int
    differing: int
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]
    unchecked: tuple[str, ...]

    def __repr__(self) -> str:
        found = len(self.findings)
        said = f"{found} finding{'s' * (found != 1)}" if found else "no findings"
        left = f", {len(self.unchecked)} not checked" if self.unchecked else ""
        return f"<ModeReport: {self._modes()}; {said}{left}>"

    def __str__(self) -> str:
        return told(repr(self), self.findings)

    def _repr_markdown_(self) -> str:
        rows = [f"The model is in {self._modes()}.", "", listed(self.findings)]
        if self.notes:
            rows += ["", *(f"- {plain(note)}" for note in self.notes)]
        if self.unchecked:
            rows += ["", "Not checked:", ""]
            rows += [f"- {plain(what)}" for what in self.unchecked]
        return "\n".join(rows)

    def _modes(self) -> str:
        mode, other = ("train", "eval") if self.training else ("eval", "train")
        count = f"{self.modules:,} module{'s' * (self.modules != 1)}"
        differing = f", {self.differing:,} of them in {other} mode"
        return f"{mode} mode, {count}{differing if self.differing else ''}"
