"""How a history lies on disk: entries as lines with marks, lines in segments, running turns as records in a log.

Every store writes histories this way. What is stored where, and how it is found again, is the business of each store.
"""

from holdfast.format.lines import (
    Line,
    event_in,
    fold,
    fork_note,
    lines_of,
    messages_in,
    searchable,
    stored,
    updates_in,
    with_texts,
)

FORMAT = 5
"""The number of the format this version writes; an older Holdfast refuses a store with a higher one.

1 had no checksums, and wrote the log of a turn as bare lines, in a file for each turn. Segments and logs from then
are still read. Since 3 a turn may begin in its log alone. Since 5 thoughts and
what tools gave are in the index of words.
"""

__all__ = [
    "FORMAT",
    "Line",
    "event_in",
    "fold",
    "fork_note",
    "lines_of",
    "messages_in",
    "searchable",
    "stored",
    "updates_in",
    "with_texts",
]
