"""How the time of something grows with its size: what a loaded machine slows down at both sizes alike."""
import time

_TIMES = 8  # four times as much of something linear takes four times as long, of something quadratic sixteen times
_ROUNDS = 6
_SOON = 0.002  # seconds that are too few to be told apart


def grows_linearly(do, n):
    """Asserts that `do(4 * n)` takes about four times the processor time of `do(n)`, not sixteen.

    Of several rounds the best counts: other processes can only slow down. The first that is good enough is the last.
    """
    small = large = float("inf")
    for _ in range(_ROUNDS):
        small, large = min(small, _seconds(do, n)), min(large, _seconds(do, 4 * n))
        if large <= _TIMES * max(small, _SOON):
            return
    raise AssertionError(f"{small:.4f} s for {n:,}, {large:.4f} s for {4 * n:,}")


def _seconds(do, n):
    begun = time.process_time()
    do(n)
    return time.process_time() - begun
