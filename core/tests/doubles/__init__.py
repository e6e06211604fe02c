"""Doubles of editors that cannot be run in tests: clients that do what those do, each habit with its source.

A double does not guess. Where a source says what the editor does, the method names file and lines, at the commit in the
module's docstring; what was seen in captures says so. A double keeps what the editor would show (`Thread`), and notes
what the editor would lose, so that a test can say that nothing was.
"""
