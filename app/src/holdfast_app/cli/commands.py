"""The commands for people. To add one, write it in a module of its own and name it here, in one line."""

from __future__ import annotations

import io
import os
import sys

import click

from holdfast_app.cli.lazy_group import LazyGroup

COMMANDS = {
    "run": ("holdfast_app.cli.completion:run", "Speak ACP on stdin and stdout: for an editor's settings"),
    "wrap": ("holdfast_app.cli.completion:wrap", "The same sessions for any other agent: for an editor's settings"),
    "chat": ("holdfast_app.cli.chat:chat", "Talk to an agent in the terminal"),
    "serve": ("holdfast_app.cli.serve:serve", "Serve an agent over WebSocket and HTTP"),
    "web": ("holdfast_app.cli.web:web", "Your sessions in the browser"),
    "link": ("holdfast_app.cli.link:link", "A new link that signs in a browser, at a server that runs"),
    "connect": ("holdfast_app.cli.connect:connect", "Use a remote agent in an editor, on stdin and stdout"),
    "token": ("holdfast_app.cli.token:token", "Who may use `holdfast serve`"),
    "sessions": ("holdfast_app.cli.sessions:sessions", "List, show, search, export, fork, delete stored sessions"),
    "logs": ("holdfast_app.cli.logs:logs", "Show what went wrong in an agent, with the traceback"),
    "check": ("holdfast_app.cli.check:check", "Check whether an agent keeps the promises of the protocol"),
    "demo": ("holdfast_app.cli.demo:demo", "See an agent killed in mid-answer, and nothing lost"),
    "setup": ("holdfast_app.cli.setup:setup", "Put an agent into an editor's settings"),
    "completion": ("holdfast_app.cli.completion:completion", "Print what makes your shell complete commands"),
}

HELP = """Sessions that hold, for every agent that speaks the Agent Client Protocol.

\b
  holdfast run weather.py            your agent, for an editor's settings
  holdfast run code                  a coding agent, on the model of your choice
  holdfast run demo                  an agent that comes along, to try things with
  holdfast wrap -- gemini --acp      sessions that hold, for any other agent
  holdfast chat weather.py           talk to it, here in the terminal
  holdfast chat gemini               talk to an agent that you have; any other: `chat -- COMMAND`
  holdfast setup zed weather.py      put it into an editor's settings
  holdfast serve weather.py          serve it to browsers, phones and other machines
  holdfast connect URL               a remote agent, for an editor's settings
  holdfast web                       all your sessions, in the browser
  holdfast sessions                  the sessions of this directory
  holdfast sessions search WORDS     find where it was talked about
  holdfast sessions export ID        a session as one file, to keep or to share
  holdfast logs REF                  why an agent failed, with the traceback
  holdfast check -- gemini --acp     does an agent keep the promises of the protocol?

Each command has --help of its own.
"""


@click.group(
    "holdfast", cls=LazyGroup, lazy=COMMANDS, help=HELP, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(package_name="holdfast", message="%(prog)s %(version)s")
def holdfast() -> None:
    """See HELP."""


def main_for_people(arguments: list[str]) -> int:
    """Run a command; return the status to exit with: 0, 1 for an error, 2 for a command line that makes no sense."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # what a terminal has no letters for is no reason to fail
    try:
        status = holdfast.main(arguments, prog_name="holdfast", standalone_mode=False)
        sys.stdout.flush()
    except click.ClickException as e:
        e.show()
        return e.exit_code
    except (click.Abort, KeyboardInterrupt):
        sys.stderr.write("\nStopped.\n")
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or the interpreter complains at its end
        return 1
    except Exception as e:  # noqa: BLE001  (what nobody expects is raised again)
        return _failed(e)
    return status if isinstance(status, int) else 0


def _failed(e: Exception) -> int:
    from holdfast.errors import HoldfastError, RemoteError  # noqa: PLC0415  (few commands fail)
    from holdfast.view.safe_text import safe_text  # noqa: PLC0415

    if isinstance(e, RemoteError):
        sys.stderr.write(f"holdfast: {safe_text(f'{e.message}: {e.reason}' if e.reason else e.message)}\n")
    elif isinstance(e, HoldfastError):
        sys.stderr.write(f"holdfast: {safe_text(str(e))}\n")
    elif isinstance(e, OSError):
        what = f" {e.filename}" if isinstance(e.filename, str) else ""
        sys.stderr.write(f"holdfast: the system refuses{safe_text(what)}: {e.strerror or e}\n")
    else:
        raise e
    return 1
