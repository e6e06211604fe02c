"""A provider of models on loopback that answers by a script, for tests of agents without network, key and chance.

It owns the wire of four protocols, as the real providers stream them: OpenAI's chat completions and responses,
Anthropic's messages and Gemini's generateContent. It needs the standard library alone and knows nothing of ACP.

A script is a list of replies, one for each request in order; or a function of the conversation, such as
`obey`, which does what the user's prompt says (see `holdfast.testing.model_server.directives`)::

    async with ModelServer([Say("Hello")]) as server:  # an agent is told server.url
        ...

From a shell, for an agent in any language: ``python -m holdfast.testing.model_server --help``.
"""

from holdfast.testing.model_server.conversation import Conversation, Message, Tool
from holdfast.testing.model_server.directives import obey
from holdfast.testing.model_server.replies import Fail, Reply, Say, calls
from holdfast.testing.model_server.server import ModelServer, Script

__all__ = ["Conversation", "Fail", "Message", "ModelServer", "Reply", "Say", "Script", "Tool", "calls", "obey"]
