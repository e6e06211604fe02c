"""What both contenders of `fold` are given."""

TEXT = "a few words of an answer, say 32"
CHUNK = (
    b'{"sessionId":"sess_0123456789abcdef","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text",'
    b'"text":"%b"}}}' % TEXT.encode()
)
