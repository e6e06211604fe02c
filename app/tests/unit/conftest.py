"""The fixtures of the library's own tests of this kind."""

from core.tests.unit.conftest import impatient

__all__ = ["impatient"]
