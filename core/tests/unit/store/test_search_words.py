"""What is stored of a text so that a search finds it in PostgreSQL."""

from __future__ import annotations

import pytest

pytest.importorskip("asyncpg")

from holdfast.store.postgres.search_words import LONGEST_WORD, indexed_words


@pytest.mark.parametrize("text", ["Open File.py, OPEN snake_case 2x", "", "it's 'quoted' \\ and said"])
def test_a_short_text_has_the_same_words_as_in_a_long_one(text: str) -> None:
    of_long = indexed_words(f"{text} {'. ' * LONGEST_WORD}", "somebody")
    assert indexed_words(text, "somebody") == of_long


def test_words_are_stored_once_in_small_letters_and_with_whose_they_are() -> None:
    owner, *words = indexed_words("Open File.py, OPEN snake_case", "somebody").split()
    assert words == ["'case'", "'file'", "'open'", "'py'", "'snake'"]
    assert owner != indexed_words("open", "somebody else").split()[0]
