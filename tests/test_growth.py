"""What tells linear from quadratic time tells them apart."""
from __future__ import annotations

import pytest
from growth import grows_linearly


def test_what_is_linear_passes_and_what_is_quadratic_does_not():
    grows_linearly(lambda n: sum(range(n)), 100_000)
    grows_linearly(lambda n: None, 1)
    with pytest.raises(AssertionError, match=r"s for 500, .* s for 2,000"):
        grows_linearly(lambda n: [sum(range(n)) for _ in range(n)], 500)
