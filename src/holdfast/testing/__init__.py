"""What tests of agents and clients need and Holdfast's own tests use too. Nothing else in Holdfast imports it.

`holdfast.testing.model_server` is a provider of models on loopback that answers by a script.
"""
