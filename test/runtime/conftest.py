"""What the tests of the runtime share."""

from collections.abc import Callable

import pytest
from tiny_plan import Parts, tiny_parts


@pytest.fixture
def tiny() -> Callable[[], Parts]:
    """Makes the parts of a tiny plan, a fresh copy at each call."""
    return tiny_parts
