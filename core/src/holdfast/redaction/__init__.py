"""Removal of secrets: `redact` removes them, `secrets` has the rules, `hidden` finds the ones in disguise."""
