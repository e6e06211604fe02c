"""The agent of the README: `holdfast run examples/weather.py`."""

from holdfast import Agent, Turn

agent = Agent("weather", version="1.0")
agent.modes({"ask": "Only answers", "act": "May write files"}, default="ask")


@agent.prompt
async def forecast(turn: Turn) -> None:
    """Tell how warm it is."""
    await turn.say("Reading the thermometer… ")
    async with turn.tool("Read thermometer", kind="read") as call:
        await call.text("21")
    if turn.session.mode == "act" and await turn.allow("Write report.txt?", call):
        await turn.files.write_text("report.txt", "21 °C")  # cannot leave the session's directories
    await turn.say("It is 21 °C.")
