"""The fixtures of the library's own tests of this kind."""

from core.tests.contract.conftest import in_file, in_postgres, lasting, place

__all__ = ["in_file", "in_postgres", "lasting", "place"]
