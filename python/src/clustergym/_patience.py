"""How to wait for a reply that is due any moment: asleep, or asking again and again.

Waking a sleeping thread takes a good part of a short round trip, most of all on virtual machines whose idle processors
are put to rest. Asking again and again takes a processor, which hurts where there is none to spare. Which is better
depends on the machine and on what else it does just now, so both are tried, again every now and then.
"""

from __future__ import annotations

import os

__all__ = ["Patience"]

TRIAL = 48  # waits of either kind before they are compared
HOLD = 1024  # waits until the next comparison
SHORT = 250e-6  # seconds; longer waits are not worth a processor
GAIN = 0.9  # asking must take less than this share of the time


class Patience:
    """Chooses how long to ask for a reply before going to sleep.

    Attributes:
        spin: seconds to ask for, 0 = go to sleep at once.
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
        """Learns how long a wait took, of the present kind."""
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
