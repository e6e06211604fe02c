"""A session as a JSON document: `session_document` writes and reads one, `times` its times."""
