"""The command line: `holdfast …`. Each command loads only what it needs."""
