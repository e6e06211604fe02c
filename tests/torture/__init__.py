"""The fuzzer: `python -m tests.torture --inputs N`. Bytes that are nearly right, by the million, against a real peer.

After each group of lines the oracle (`tests.support.oracle`) says what was owed; the peer must have sent exactly that,
and must still answer. A group is made from a number alone, so a failure can be repeated by its number.
"""
