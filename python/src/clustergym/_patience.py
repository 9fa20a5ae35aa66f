"""How to wait for a reply that is due soon: sleeping or polling.

Waking a sleeping thread takes a good part of a short round trip, most of all on virtual machines that halt idle
processors. Polling occupies a processor, which hurts if none is free. Which is better depends on the machine and its
current load, so both are measured from time to time.
"""

from __future__ import annotations

import os

__all__ = ["Patience"]

TRIAL = 48  # waits of each kind before they are compared
HOLD = 1024  # waits until the next comparison
SHORT = 250e-6  # seconds; longer waits are not worth a processor
GAIN = 0.9  # polling must take less than this share of the time of sleeping


class Patience:
    """Chooses how long to poll for a reply before going to sleep.

    Attributes:
        spin: seconds to poll, 0 = go to sleep at once.
    """

    __slots__ = ("_asleep", "_held", "_left", "_took", "possible", "spin")

    def __init__(self, possible: bool = True) -> None:
        self.possible = possible and (os.cpu_count() or 1) > 1
        self.spin = 0.0
        self._took: list[float] = []
        self._asleep = 0.0  # median of the last trial asleep
        self._left = TRIAL
        self._held = False

    def note(self, seconds: float) -> None:
        """Records how long a wait of the current kind took."""
        self._left -= 1
        if not self._held:
            self._took.append(seconds)
        if self._left > 0:
            return
        if self._held:  # time to compare again
            self.spin, self._held, self._left = 0.0, False, TRIAL
            return
        self._took.sort()
        median = self._took[len(self._took) // 2]
        self._took.clear()
        if self.spin == 0.0 and median < SHORT and self.possible:
            self._asleep = median
            self.spin, self._left = SHORT, TRIAL
            return
        if self.spin and median >= GAIN * self._asleep:
            self.spin = 0.0
        self._left, self._held = HOLD, True
