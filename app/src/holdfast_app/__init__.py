"""The products of Holdfast: what people run. The library is `holdfast`."""
