"""A terminal's view of one session: `holdfast chat`.

What happens goes one way, and only the last step touches a terminal:

    event ─ View ─► blocks ─ Painter ─► lines ─ Terminal | Lines ─► the screen

- `view` says what there is to show (`blocks`): what is finished, which is printed once, and what may still change;
  `streamed` cuts Markdown as it comes where later text can change nothing any more, `calls` looks into tool calls;
- `paint` makes lines of blocks, in a width, with or without colours, `markdown` those of Markdown; all that leaves
  there was made harmless by `holdfast.view.safe_text`;
- `screen` says what a conversation needs of whatever it is shown on: `terminal` (with `keyboard` and `output`), which
  keeps its lower part alive, or `lines`, which can do nothing but print;
- `talk` has the agent, the session and the turns; `opening` finds the session, `asking` and `forms` put the agent's
  questions, `commands` and `acting` are our own slash commands, `status` is one line;
- `running` and `starting` stand between all this and the command line; `printing` is for pipes.

It knows no protocol: agents are spoken to through `holdfast.client`.
"""
