"""What counts as an answer to a permission question."""

from __future__ import annotations

import pytest

from holdfast.model import ALLOW_OR_REJECT, Permission, PermissionOption

QUESTION = Permission("Write?", {"toolCallId": "c"}, (PermissionOption("yes", "Yes", "allow_once"),))

pytestmark = pytest.mark.requirement("C8")


def test_the_id_of_an_offered_option_is_an_answer() -> None:
    assert QUESTION.chosen("yes") is QUESTION.options[0]


@pytest.mark.parametrize("answer", [None, "", "no", "YES", "allow_once", True, 0, ["yes"], {"id": "yes"}])
def test_anything_else_is_no_answer(answer: object) -> None:
    assert QUESTION.chosen(answer) is None


def test_by_default_the_user_may_allow_or_reject_once_or_for_ever() -> None:
    kinds = [option.kind for option in ALLOW_OR_REJECT]
    assert kinds == ["allow_once", "allow_always", "reject_once", "reject_always"]
    assert Permission("?", {}).options == ALLOW_OR_REJECT
