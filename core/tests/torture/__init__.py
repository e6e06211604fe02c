"""What takes too long for every day: `make torture` runs all of it, one after the other.

| | | |
|---|---|---|
| `python -m core.tests.torture` | 10,000,000 lines | bytes that are nearly right, against a real peer |
| `python -m core.tests.torture.mcp_cycles` | 1,000 toolboxes | MCP servers that do their worst come and go |
| `python -m core.tests.torture.kill9` | 10,000 kills | engines are killed at random moments |
| `python -m app.tests.torture.wrapped_kills` | 1,000 kills | a wrapped agent, its proxy, or both are killed |
| `python -m core.tests.torture.every_write` | every call | an engine is killed at each call that changes a disk |
| `python -m core.tests.torture.power_loss` | 20,000 losses | power is lost while a store is used |
| `python -m core.tests.torture.eight_processes` | 60 seconds | eight processes use one store, some are killed |
| `python -m core.tests.torture.three_nodes` | 600 seconds | three nodes on one PostgreSQL, killed, stopped, cut off |
| `python -m app.tests.torture.any_node` | 600 seconds | the same with real servers; clients come to any node |
| `python -m core.tests.torture.postgres_operations` | once | a standby is promoted in mid-turn, a backup is recovered |
| `python -m core.tests.torture.relay` | 10 minutes | one session in many processes that come, quit and are killed |
| `python -m core.tests.torture.rename_race` | 100,000 tries each | what is opened is swapped meanwhile |
| `python -m app.tests.torture.served_load` | 60 minutes | a server under mixed load: its memory stays as it is |

Each tells how far it has come on stderr, says in one last line how much it tried, what came of it and from which seed,
and exits with another status than 0 if anything was wrong. `--help` tells how to do more, less, or the same again.
`make torture-NAME` runs one of them (`torture-fuzz` the first), `make -k torture` the others too when one fails. What
each of them does in short is among the tests.

The first is the fuzzer. After each group of lines the oracle (`core.tests.support.oracle`) says what was owed; the
peer must have sent exactly that, and must still answer. A group is made from a number alone, so a failure can be
repeated by its number.
"""
