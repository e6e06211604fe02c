"""What only version 1 clients send; `holdfast.surface.shapes` has the rest."""

from __future__ import annotations

from holdfast.surface.shapes import Params


class SetMode(Params, kw_only=True):
    """`session/set_mode`."""

    session_id: str
    mode_id: str


class SetModel(Params, kw_only=True):
    """`session/set_model`."""

    session_id: str
    model_id: str
