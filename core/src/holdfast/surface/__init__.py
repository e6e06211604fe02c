"""The protocol's dialects, one package a version: wire to event and back. They never import each other."""
