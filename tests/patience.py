"""How long tests wait for another process or thread: so long that a busy machine with few cores meets it."""
import time

SECONDS = 240


def until(true, said=lambda: "", seconds=SECONDS):
    """Return what a function returns as soon as that counts as true; `said()` is the message if it does not in time."""
    end = time.monotonic() + seconds
    while not (found := true()):
        assert time.monotonic() < end, said()
        time.sleep(0.02)
    return found
