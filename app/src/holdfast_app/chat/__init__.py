"""The terminal chat: `holdfast chat`.

What happens goes one way, and only the last step touches a terminal:

    update ─ LiveView ─► blocks ─ Painter ─► lines ─ TerminalScreen | LineScreen ─► the screen

- `holdfast.view.live` decides what there is to show: what is finished, and is printed once, and what may still change;
- `paint` turns blocks into lines of a width, with or without colours, `markdown` those of Markdown; all that leaves
  there was made harmless by `holdfast.view.safe_text`;
- `screen` is the port of what a conversation is shown on: `terminal_screen` (with `keyboard` and `terminal_output`),
  which keeps its lower part alive, or `line_screen`, which can do nothing but print;
- `conversation` has the agent, the session and the turns; `session_opening` finds the session, `questions` and `forms`
  put the agent's questions to the user, `commands` names our own slash commands and `command_actions` does what they
  say, `status` writes one line;
- `composing` has what goes with a prompt (`attachments`, `clipboard`, `shell_command`), `revising` what is said anew,
  `login` ways to log in;
- `theme` and `terminal_keys` are what terminals have each their own ideas of;
- `settings` are what the command line asks for, `run_chat` runs a chat with them, `print_answer` is for pipes.

It knows no protocol: agents are spoken to through `holdfast.client`.
"""
