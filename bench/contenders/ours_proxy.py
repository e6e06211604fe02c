"""Holdfast as a proxy: `holdfast wrap`, which stores every update before it passes it on."""

import sys

from holdfast_app.cli.main import main

store, *agent = sys.argv[1:]
sys.exit(main(["wrap", "--store", store, "--", *agent]))
