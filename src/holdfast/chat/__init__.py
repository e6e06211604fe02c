"""A terminal's view of one session: `holdfast chat`.

What happens goes one way, and only the last step touches a terminal:

    event ─ View ─► blocks ─ Painter ─► lines ─ Terminal | Lines ─► the screen

- `view` says what there is to show: finished blocks, which are printed once, and those that may still change;
- `pieces` cuts streamed Markdown where what came before can no longer change;
- `paint` makes lines of blocks, in a width, with or without colours;
- `clean` makes text of others harmless; everything that is painted has gone through it;
- `terminal` has the keys, the line that is edited and what is live; `lines` does without all of that;
- `talk` has the agent, the session and the turns.

It knows no protocol: agents are spoken to through `holdfast.client`.
"""
