"""Nodes prove to each other that they know a secret, without saying it."""

from __future__ import annotations

import pytest

from holdfast.cluster import NodeSecret
from holdfast.cluster import node_secret as module

pytestmark = pytest.mark.requirement("P12")

SECRET = b"0123456789abcdef"


def test_both_sides_prove_that_they_know_it() -> None:
    asks, is_asked = NodeSecret(SECRET), NodeSecret(SECRET)
    proof = asks.answer(is_asked.challenge())
    assert is_asked.check(proof.authorization) == proof.expected


def test_one_with_another_secret_proves_nothing_to_either_side() -> None:
    right, wrong = NodeSecret(SECRET), NodeSecret(SECRET[::-1])
    assert right.check(wrong.answer(right.challenge()).authorization) is None
    proof = right.answer(wrong.challenge())
    assert wrong.check(proof.authorization) is None


def test_a_challenge_is_answered_once_and_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    secret = NodeSecret(SECRET)
    proof = secret.answer(secret.challenge())
    assert secret.check(proof.authorization) is not None
    assert secret.check(proof.authorization) is None
    late = secret.answer(secret.challenge())
    monkeypatch.setattr(module, "CHALLENGE_SECONDS", 0.0)
    assert secret.check(late.authorization) is None


def test_a_challenge_of_another_process_is_none() -> None:
    one, other = NodeSecret(SECRET), NodeSecret(SECRET)
    assert one.check(one.answer(other.challenge()).authorization) is None


def test_what_one_side_proves_does_not_serve_the_other() -> None:
    secret = NodeSecret(SECRET)
    proof = secret.answer(secret.challenge())
    turned = proof.authorization.rpartition("proof=")[0] + f"proof={proof.expected}"
    assert secret.check(turned) is None


@pytest.mark.parametrize("header", ["", "Bearer x", "Holdfast-Node", "Holdfast-Node challenge=é, nonce=1, proof=2"])
def test_anything_else_proves_nothing(header: str) -> None:
    assert NodeSecret(SECRET).check(header) is None
    with pytest.raises(ValueError, match="no links"):
        NodeSecret(SECRET).answer(header)


def test_a_secret_that_can_be_guessed_is_refused_and_none_is_shown() -> None:
    with pytest.raises(ValueError, match="16 bytes"):
        NodeSecret(b"short")
    assert "0123" not in repr(NodeSecret(SECRET))
