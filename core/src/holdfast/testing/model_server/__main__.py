"""Run a scripted model server: print its address as the first line, and serve until a signal comes."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from pathlib import Path

from holdfast.testing.model_server import directives
from holdfast.testing.model_server.server import ModelServer

_EXAMPLES = """\
The first line it prints is its address. OpenAI's protocols are at ADDRESS/v1, Anthropic's and Gemini's at ADDRESS:

  OPENAI_BASE_URL=ADDRESS/v1   ANTHROPIC_BASE_URL=ADDRESS   GOOGLE_GEMINI_BASE_URL=ADDRESS

Any key and any name of a model will do. The prompt says what the model does:

"""


def main() -> None:
    """Serve until a signal comes."""
    table = (directives.__doc__ or "").partition("\n\n")[2]
    parser = argparse.ArgumentParser(
        "python -m holdfast.testing.model_server",
        description="A provider of models on loopback that does what prompts say, for tests of agents.",
        epilog=_EXAMPLES + table,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--port", type=int, default=0, help="the port to listen on (default: 0, any that is free)")
    parser.add_argument("--log", type=Path, metavar="FILE", help="write every request to this file, as JSON lines")
    chosen = parser.parse_args()
    asyncio.run(_serve(chosen.port, chosen.log))


async def _serve(port: int, log: Path | None) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    if sys.platform != "win32":
        for signal_ in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(signal_, stop.set)
    async with ModelServer(directives.obey, port=port, log=log) as server:
        print(server.root, flush=True)  # noqa: T201  (whoever started it reads it)
        await stop.wait()


if __name__ == "__main__":
    main()
