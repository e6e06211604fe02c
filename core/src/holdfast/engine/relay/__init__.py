"""The relay: a client is served from the process that owns its session, wherever the client is connected.

A session is worked on in one process, its owner (P4). A process that has a client for it and finds it owned by another
opens a link to that one and *follows*: `follower` has the session as its own clients see it, `owner` serves the links,
and `messages` is what goes over them. `finding` decides which of the two a process is, and makes one of the followers
the owner when the last has gone. How a link reaches another process is not known here: see `Neighbours` in
`holdfast.engine.ports`.
"""
