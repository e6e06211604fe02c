"""A history as people read it: values that chat, command line and export draw, each in its own way.

`entries` says what an entry shows, `live` what a session shows while it goes on, `transcript` writes Markdown;
`safe_text` makes the text of strangers harmless. Nothing here knows a terminal, a page or a store.
"""
