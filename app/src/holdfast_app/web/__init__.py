"""The page for people: all sessions of a principal in a browser, to find, read, and go on with.

`WebPages` is an ASGI application that `RemoteServer` is given as its ``pages``: who asks was found out before, names
and origins were checked before, and ``scope["holdfast.principal"]`` says on whose behalf a request speaks. Every query
names that principal (P12).

There is one road from a session to the screen: **HTML is made here**, of values of `holdfast.view` by
`holdfast_app.html`, and the page's scripts put it in place. No script makes markup of what an agent said; the policy
of the page (`security.py`) and its Trusted Types hold that. There is one road back: a POST for each thing a user does.

What is asked for, answered as HTML unless said otherwise:

============================== ====================================================================================
GET /                          the library: sessions, newest first. ``?agent=`` ``?cwd=`` ``?archived=only``
GET /rows                      more rows of it, behind ``?cursor=``, with the same filters
GET /search                    what ``?q=`` finds, with the words marked; the same filters
GET /sessions/ID               a session: its last entries, or those around the line ``?at=``
GET /sessions/ID/entries       more of them: ``?before=LINE``, ``?after=LINE`` or ``?around=LINE``
GET /sessions/ID/prompts       the index of all prompts
GET /sessions/ID/find          the entries that have ``?q=`` in them
GET /sessions/ID/files         files of its roots whose path has ``?q=`` in it (JSON)
GET /sessions/ID/export        one file: ``?format=html|markdown|json``, without secrets unless ``?secrets=keep``
POST /sessions                 a new session (JSON: agent, cwd) → its address
POST /login                    log in to an agent (JSON: agent, method)
POST /sessions/ID/ACTION       what a user does; `actions.py` lists them (JSON in, JSON out)
WebSocket /live                which sessions run, wait or have changed, as it happens
WebSocket /sessions/ID/live    a session as it happens
GET /assets/TREE/NAME          scripts and style; TREE is the hash of all of them, so that they can be kept for ever
============================== ====================================================================================

**Lines.** An entry is named by the line of the history at which it begins: a history only grows, so that a line is a
name for ever, in links (``#l123``), in pages of entries and in the feed. Every entry is in a frame,
``<section class="placed" data-line="123" data-key="tool_call_update/t1">``, and its article has the id ``l123``. An
entry of a turn that still runs has no line yet; it is known by its key. One that has no id of its own either (a note
about the turn) is ``data-provisional``.

**The feed** of a session (text frames, JSON). A browser says how many lines it has, ``?lines=N``, and is told all that
is behind them; so a feed that was cut goes on with nothing missing, and what comes twice replaces itself:

- ``{"type": "entries", "html", "lines"}``: entries that are stored for good, in order, up to a line. Each takes the
  place of the one with its key; what is provisional goes.
- ``{"type": "live", "entries": [[key, html], …], "removed": [key, …]}``: entries as they are now, whole; a new one
  comes last.
- ``{"type": "state", "state", "title", "program", "waiting", "html": {id: html}}``: what the session does and where,
  the prompts in line (the ids of their messages, and their texts), and the parts of the page around the conversation
  that have changed, by their ids. The state is ``idle``, ``running`` or ``requires_action``, and where no program has
  it open ``closed``, or ``interrupted``: its last turn was broken off.
- ``{"type": "commands", "commands": [{"name", "description"}, …]}``
- ``{"type": "question", "id", "html"}`` and ``{"type": "answered", "id"}``: a question that waits; and no more.
- ``{"type": "notice", "text", "severity"}``: to be shown for a moment; ``login`` where the user has to log in first.
- ``{"type": "reset"}``: too much has happened; load the end of the session anew.
- ``{"type": "gone", "text"}``: the session was deleted, or cannot be shown.
- ``{}``: a sign of life.

Nothing waits for a browser that does not read: of what has changed only the newest state is sent (P7).
"""

from holdfast_app.web.agents import OneAgent, PageAgent, PageAgents
from holdfast_app.web.application import WebPages

__all__ = ["OneAgent", "PageAgent", "PageAgents", "WebPages"]
