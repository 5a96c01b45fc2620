"""How long tests wait for another process or thread: so long that a busy machine with few cores meets it."""
import time

SECONDS = 240


def until(true, said=lambda: ""):
    """Return what a function returns as soon as that counts as true; `said()` is the message if it never does."""
    end = time.monotonic() + SECONDS
    while not (found := true()):
        assert time.monotonic() < end, said()
        time.sleep(0.02)
    return found
