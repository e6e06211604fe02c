"""Runs a program given as its argument; beside the other programs, so that it can import them."""

import sys

exec(compile(sys.argv.pop(1), "program", "exec"))
