"""The fixtures of the library's own tests of this kind."""

from core.tests.integrations.conftest import project

__all__ = ["project"]
