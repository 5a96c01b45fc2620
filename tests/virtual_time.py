"""Tests whose waits take no time: the event loop's clock goes on by what it would have waited, and only by that."""
import asyncio
import functools
import selectors


def in_virtual_time(test):
    """Runs an asynchronous test over such a clock, which begins at 0. For what waits for timers alone, no network."""
    @functools.wraps(test)
    def run(*args, **kwargs):
        with asyncio.Runner(loop_factory=_Loop) as runner:
            return runner.run(test(*args, **kwargs))

    return run


class _Selector(selectors.DefaultSelector):
    now = 0.0

    def select(self, timeout=None):
        self.now += timeout or 0.0
        return super().select(timeout and 0)


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self):
        self._clock = _Selector()
        super().__init__(self._clock)

    def time(self):
        return self._clock.now
