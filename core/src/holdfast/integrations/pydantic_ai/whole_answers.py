"""Models that do not stream, whose answers are shown when they are complete."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from pydantic_ai.models import CompletedStreamedResponse, Model
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.wrapper import WrapperModel

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from pydantic_ai import ModelMessage, ModelSettings, RunContext
    from pydantic_ai.models import ModelRequestParameters, StreamedResponse


def streamed(model: Model) -> Model:
    """Return a model that can be asked for a stream: the model itself, if it can."""
    return model if _streams(model) else _WholeAnswers(model)


def _streams(model: Model) -> bool:
    while isinstance(model, WrapperModel):
        model = model.wrapped
    if isinstance(model, FunctionModel):
        return model.stream_function is not None
    return type(model).request_stream is not Model.request_stream


class _WholeAnswers(WrapperModel):
    """A model that streams each answer in one piece."""

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,
    ) -> AsyncGenerator[StreamedResponse]:
        del run_context
        response = await self.wrapped.request(messages, model_settings, model_request_parameters)
        yield CompletedStreamedResponse(response, model_request_parameters=model_request_parameters, replay_events=True)
