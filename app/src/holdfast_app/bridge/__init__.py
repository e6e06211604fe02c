"""A remote agent as a command on stdin and stdout, for editors that know nothing else (H9).

`Bridge` relays between an editor and a server, connects again when the connection is cut, and goes on at the event
where it was: the editor sees a pause. It understands no more of the protocol than that takes, and keeps no sessions.
"""

from holdfast_app.bridge.bridge import Bridge
from holdfast_app.bridge.path_map import PathMap

__all__ = ["Bridge", "PathMap"]
