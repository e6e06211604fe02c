"""Protocol version 2."""
