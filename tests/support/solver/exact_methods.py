"""Both exact methods for tests of tiny clusters, on which one could hide the other."""

from collections.abc import Iterator

import pytest

from solver.bounds import row_branching
from solver.cpsat import model


@pytest.fixture(scope="module", params=["branching over rows", "exact model"])
def exact_method(request: pytest.FixtureRequest) -> Iterator[str]:
    """What alone solves tiny clusters while a test runs."""
    with pytest.MonkeyPatch.context() as patched:
        if request.param == "exact model":
            patched.setattr(row_branching, "MOST_PLACEMENTS", 0)
        else:
            patched.setattr(model, "SOON_SHARE", 0.0)
        yield request.param
