"""The picture that heads the README: what it shows comes in the order in which it happened."""

from __future__ import annotations

import re

from core.tests.support.schemas import ROOT

FRAME = re.compile(r"@keyframes l(\d+) \{ 0%, ([\d.]+)% \{ opacity: 0 \}")


def test_the_lines_of_the_animated_picture_appear_from_top_to_bottom() -> None:
    picture = (ROOT / "docs" / "pictures" / "demo.svg").read_text()
    frames = [(int(number), float(share)) for number, share in FRAME.findall(picture)]
    assert [number for number, _ in frames] == list(range(len(frames)))
    shares = [share for _, share in frames]
    assert shares == sorted(shares)
    assert shares[-1] < 70  # and the whole stays to be read
    assert "Nothing was lost." in picture
