"""Reports the progress of a training, and keeps its losses."""

from __future__ import annotations

import time
from statistics import fmean

_STEPS_BETWEEN_REPORTS = 25  # steps between two reports


class StepReport:
    def __init__(self, steps: int, started: float) -> None:
        """*started* is by time.perf_counter."""
        self.losses: list[float] = []
        self._steps, self._started = steps, started

    def __call__(self, step: int, loss: float) -> None:
        self.losses.append(round(loss, 4))
        if step % _STEPS_BETWEEN_REPORTS == 0 or step == self._steps:
            mean, seconds = fmean(self.losses[-_STEPS_BETWEEN_REPORTS:]), time.perf_counter() - self._started
            print(f"step {step} of {self._steps}: loss {mean:.3f}, {seconds:.0f} s", flush=True)
