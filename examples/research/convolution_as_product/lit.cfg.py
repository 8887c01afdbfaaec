"""How lit runs the tests of this folder."""

from mlirt.tools.lit_config import configure

configure()
