"""The classes of mosaicml-streaming."""
