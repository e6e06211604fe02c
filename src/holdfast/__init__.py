"""Holdfast gives every ACP agent sessions that hold.

The package is in its first days: what stands is the JSON-RPC ground (`holdfast.jsonrpc`, `holdfast.transport`,
`holdfast.peer`). The public names will live here.
"""
