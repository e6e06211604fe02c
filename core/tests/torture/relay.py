"""One session in many processes: random stories of clients that come, prompt, answer, quit and are killed.

python -m core.tests.torture.relay --minutes 10

`core/tests/support/relay_stories.py` says what happens in them, and what must hold afterwards.
"""

from __future__ import annotations

import argparse
import sys
import time

from hypothesis import HealthCheck, Phase, given, seed, settings

from core.tests.support.relay_stories import Step, stories, tell_story
from core.tests.torture.progress import Progress

BATCH = 5


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m core.tests.torture.relay", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="how long (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=None, help="where to begin (default: another place each time)")
    options = parser.parse_args()
    begin: int = time.time_ns() % (1 << 32) if options.seed is None else options.seed
    until = time.monotonic() + options.minutes * 60
    progress = Progress(int(options.minutes * 60), "seconds")
    told = 0

    while time.monotonic() < until:

        @seed(begin)
        @settings(
            max_examples=BATCH,
            deadline=None,
            database=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
            phases=[Phase.generate],
        )
        @given(stories)
        def tell(story: list[Step]) -> None:
            nonlocal told
            tell_story(story)
            told += 1
            progress.tell(int(progress.seconds), f"{told} stories")

        try:
            tell()
        except BaseException as e:
            sys.stderr.write(f"\nfailed with seed {begin}: {e!r}\n")
            raise
        begin += 1
    progress.close(f"{told} stories, 0 failures")
    return 0


if __name__ == "__main__":
    sys.exit(main())
