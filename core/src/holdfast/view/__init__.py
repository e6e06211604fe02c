"""A history as people read it: values that chat, command line and export draw, each in its own way.

`entries` turns an entry into parts, `live` the events of a running session into blocks, `transcript` writes Markdown.
`safe_text` makes the text of strangers harmless. Nothing here knows a terminal, a page or a store, and nothing that an
agent said or a store holds makes any of it raise.
"""
