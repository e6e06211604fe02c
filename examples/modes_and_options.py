"""Modes, models and options: `holdfast run examples/modes_and_options.py`, then switch them in the editor.

They are kept with the session, come back when it is loaded, and can be changed while a turn runs.
"""

import asyncio

from holdfast import Agent, Session, Turn

agent = Agent("translator", title="Translator", version="1.0")
agent.modes({"word": ("Word by word", "As a dictionary does"), "free": "Freely"}, default="word")
agent.models({"small": "Small and quick", "large": "Large and slow"}, default="small")
agent.option("formal", name="Formal", default=False, description="Address the reader formally")
agent.option(
    "language",
    name="Language",
    values={"Europe": {"de": "German", "fr": "French"}, "Asia": {"ja": "Japanese"}},
    default="de",
)

WORDS = {"de": ("Guten Tag", "Hallo"), "fr": ("Bonjour", "Salut"), "ja": ("こんにちは", "やあ")}


@agent.prompt
async def translate(turn: Turn) -> None:
    """Greet in the chosen language: that is all it can translate."""
    chosen = turn.session.options
    formal, casual = WORDS[str(chosen["language"])]
    await turn.think(f"{turn.session.model}, {turn.session.mode}: {dict(chosen.as_dict())}\n")
    for letter in formal if chosen["formal"] else casual:
        await turn.say(letter)
        await asyncio.sleep(0.02 if turn.session.model == "large" else 0)


@agent.command("formal", "Be formal from now on")
async def be_formal(turn: Turn) -> None:
    """Set an option for the user; the editor is told."""
    await turn.session.set("formal", True)
    await turn.say("Very well.")


@agent.on_option
async def adjust(session: Session, option: str, value: str | bool) -> None:
    """Who wants Japanese wants it formal."""
    if (option, value) == ("language", "ja"):
        await session.set("formal", True)
