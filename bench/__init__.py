"""Benchmarks: ratios against the official SDKs, measured in the same run. `python -m bench --help` says how."""
