"""What only agents of the OpenAI Agents SDK do: hand over, trip over guardrails, answer with a type."""

from __future__ import annotations

from typing import Any

import pytest
from agents import Agent, GuardrailFunctionOutput, OpenAIResponsesModel, RunConfig, function_tool, input_guardrail
from pydantic import BaseModel

from core.tests.support.acp import Refused, serving
from core.tests.support.openai_agents_agent import model_on
from core.tests.support.scripted import calls
from holdfast.integrations.openai_agents import acp_agent
from holdfast.testing.model_server import ModelServer, Say
from holdfast.testing.model_server import calls as calling

QUIET = RunConfig(tracing_disabled=True)


async def test_who_was_handed_over_to_answers_the_next_turn_too() -> None:
    script = [calling(("transfer_to_french", {}), text="One moment. "), Say("Bonjour."), Say("Encore.")]
    async with ModelServer(script) as server:
        model, close = model_on(server)
        french = Agent("french", instructions="You speak French.", model=model)
        first = Agent("first", instructions="You listen.", handoffs=[french], model=model)
        async with serving(acp_agent(first, run_config=QUIET)) as host:
            client = await host.client(2)
            session = await client.new()
            assert await client.prompt(session, "En français") == "end_turn"
            assert client.said() == "One moment. Bonjour."
            assert [(it["name"], it["status"]) for it in calls(client)] == [("transfer_to_french", "completed")]
            await client.prompt(session, "Encore")
            assert [it["instructions"] for it in server.requests] == [
                "You listen.",
                "You speak French.",
                "You speak French.",
            ]
        await close()


async def test_a_guardrail_that_trips_refuses_the_prompt() -> None:
    @input_guardrail(run_in_parallel=False)
    async def never(*_: Any) -> GuardrailFunctionOutput:
        return GuardrailFunctionOutput(output_info=None, tripwire_triggered=True)

    async with ModelServer([]) as server:
        model, close = model_on(server)
        guardrails: list[Any] = [never]
        agent = Agent[None]("careful", input_guardrails=guardrails, model=model)
        async with serving(acp_agent(agent, run_config=QUIET)) as host:
            client = await host.client(1)
            assert await client.prompt(await client.new(), "Be careless") == "refusal"
        await close()


class Weather(BaseModel):
    celsius: int


async def test_an_output_that_is_no_text_is_shown() -> None:
    async with ModelServer([Say('{"celsius": 21}')]) as server:
        model, close = model_on(server)
        agent = Agent("weather", output_type=Weather, model=model)
        async with serving(acp_agent(agent, run_config=QUIET)) as host:
            client = await host.client(1)
            assert await client.prompt(await client.new(), "How warm?") == "end_turn"
            assert '"celsius": 21' in client.said()
        await close()


async def test_a_model_that_is_asked_too_often_ends_the_turn() -> None:
    @function_tool
    def again() -> str:
        """Go on."""
        return "Go on."

    async with ModelServer([calling(("again", {})), calling(("again", {}))]) as server:
        model, close = model_on(server)
        made = acp_agent(Agent("busy", tools=[again], model=model), run_config=QUIET, max_turns=2)
        async with serving(made) as host:
            client = await host.client(1)
            assert await client.prompt(await client.new(), "go") == "max_turn_requests"
        await close()


async def test_a_model_that_calls_what_it_does_not_have_fails_with_a_reason() -> None:
    async with ModelServer([calling(("nothing", {}))]) as server:
        model, close = model_on(server)
        async with serving(acp_agent(Agent("lost", model=model), run_config=QUIET)) as host:
            client = await host.client(1)
            with pytest.raises(Refused, match=r"The model cannot go on.*nothing"):
                await client.prompt(await client.new(), "go")
        await close()


async def test_the_user_chooses_the_model() -> None:
    async with ModelServer([Say("Small."), Say("Large.")]) as server:
        model, close = model_on(server)
        large = OpenAIResponsesModel("gpt-large", model._client)  # pyright: ignore[reportPrivateUsage]
        made = acp_agent(Agent("two"), run_config=QUIET, models={"Small": model, "Large": large})
        async with serving(made) as host:
            client = await host.client(1)
            session = await client.new()
            await client.prompt(session, "a")
            params = {"sessionId": session, "configId": "model", "value": "Large"}
            await client.ask("session/set_config_option", params)
            await client.prompt(session, "b")
            assert [it["model"] for it in server.requests] == ["gpt-5.2", "gpt-large"]
        await close()
