"""Links with which whoever has one reads one session, and nothing else, until the link expires or is revoked.

`ShareLinks` keeps them beside the store, by the hashes of their secrets; `SharedPages` is the ASGI application that
shows a session to whoever brings one. A link that expired, was revoked or never was, and one to a session that is
deleted, look the same (P12). Secrets in the session are taken out unless its user said otherwise (P10).
"""

from holdfast_app.share_links.links import ShareLink, ShareLinks
from holdfast_app.share_links.pages import SharedPages

__all__ = ["ShareLink", "ShareLinks", "SharedPages"]
