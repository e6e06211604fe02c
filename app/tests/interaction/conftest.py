"""The fixtures of the library's own tests of this kind."""

from core.tests.interaction.conftest import link, place, pytest_generate_tests

__all__ = ["link", "place", "pytest_generate_tests"]
