"""`NodeSecret`: what all nodes on a store know, and prove to each other in the head of a request without saying it.

A node that wants a link asks for a challenge, which is refused with one (401), and asks again with a proof made of the
secret, the challenge and a nonce of its own. The other side checks that before a WebSocket is opened, and answers with
a proof of its own. A challenge holds for a few seconds and for one link; who cannot prove anything leaves no trace.

That says who is at the other end when a link begins. Whoever can change what goes over the wire needs TLS to be kept
out: a node's address is ``https://`` where others could.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import time
from typing import NamedTuple

from holdfast.secret_files import LEAST, is_guessable

SCHEME = "Holdfast-Node"
"""The scheme of `WWW-Authenticate` and `Authorization`."""

PROOF = "holdfast-node-proof"
"""The header in which the one who is asked proves itself."""

CHALLENGE_SECONDS = 30.0
"""So long a challenge can be answered."""


class Proof(NamedTuple):
    """An answer to a challenge."""

    authorization: str
    """The header of the request."""
    expected: str
    """What the other side must prove in its answer."""


class NodeSecret:
    """The secret of the nodes on a store."""

    def __init__(self, secret: bytes) -> None:
        """Raise `ValueError` where it could be guessed."""
        if is_guessable(secret):
            raise ValueError(f"the secret of the nodes must have at least {LEAST} bytes")
        self._secret = secret
        self._own = os.urandom(32)
        self._used: dict[str, float] = {}

    def __repr__(self) -> str:
        return "<the secret of the nodes>"  # and nothing of it (P10)

    # Who asks

    def answer(self, challenge_header: str) -> Proof:
        """Answer a challenge, given as the header `WWW-Authenticate`; raise `ValueError` where there is none."""
        found = re.fullmatch(rf"{SCHEME} challenge=([0-9a-f.]{{1,200}})", challenge_header)
        if found is None:
            raise ValueError("it takes no links of other nodes")
        challenge, nonce = found[1], os.urandom(16).hex()
        proof = self._prove("asks", challenge, nonce)
        authorization = f"{SCHEME} challenge={challenge}, nonce={nonce}, proof={proof}"
        return Proof(authorization, self._prove("is asked", challenge, nonce))

    # Who is asked

    def challenge(self) -> str:
        """Return a header `WWW-Authenticate` with a new challenge. Nothing is remembered of it."""
        drawn = f"{int(time.monotonic() * 1_000):x}.{os.urandom(16).hex()}"
        return f"{SCHEME} challenge={drawn}.{self._sign(drawn)}"

    def check(self, authorization: str) -> str | None:
        """Return our own proof for a request with this header `Authorization`; None where it proves nothing."""
        pattern = rf"{SCHEME} challenge=([0-9a-f.]{{1,200}}), nonce=([0-9a-f]{{32}}), proof=([0-9a-f]{{64}})"
        found = re.fullmatch(pattern, authorization)
        if found is None:
            return None
        challenge, nonce, proof = found.groups()
        if not hmac.compare_digest(proof, self._prove("asks", challenge, nonce)) or not self._is_fresh(challenge):
            return None
        return self._prove("is asked", challenge, nonce)

    def _is_fresh(self, challenge: str) -> bool:
        """Return whether a challenge is ours, not too old, and answered for the first time."""
        drawn, _, signature = challenge.rpartition(".")
        if not hmac.compare_digest(signature, self._sign(drawn)):
            return False
        now = time.monotonic()
        self._used = {used: at for used, at in self._used.items() if now - at < CHALLENGE_SECONDS}
        is_fresh = challenge not in self._used and now - int(drawn.partition(".")[0], 16) / 1_000 < CHALLENGE_SECONDS
        self._used[challenge] = now
        return is_fresh

    def _sign(self, drawn: str) -> str:
        return hmac.new(self._own, drawn.encode(), hashlib.sha256).hexdigest()

    def _prove(self, who: str, challenge: str, nonce: str) -> str:
        return hmac.new(self._secret, f"{who}:{challenge}:{nonce}".encode(), hashlib.sha256).hexdigest()
