"""How a history lies on disk: entries as lines with marks, lines in segments.

Every store writes histories this way. What is stored where, and how it is found again, is the business of each store.
"""

from holdfast.format.lines import Line, event_in, fold, lines_of, messages_in, searchable, stored, updates_in

__all__ = ["Line", "event_in", "fold", "lines_of", "messages_in", "searchable", "stored", "updates_in"]
