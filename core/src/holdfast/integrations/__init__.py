"""Agents written with other libraries, served as agents of ours. Each module is for one library and loads only that."""
