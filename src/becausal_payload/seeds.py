"""Randomness of a trial, decided by its seed."""

from __future__ import annotations

import random
import sys
from typing import Any


def reseed(seed: int) -> None:
    """Seed the generators that tests share: random, numpy.random and hypothesis, where imported."""
    random.seed(seed)
    numpy_random = sys.modules.get("numpy.random")
    if numpy_random is not None:
        numpy_random.seed(seed % 2**32)
    core: Any = sys.modules.get("hypothesis.core")
    if core is not None and hasattr(core, "_hypothesis_global_random"):
        core._hypothesis_global_random = random.Random(seed)
