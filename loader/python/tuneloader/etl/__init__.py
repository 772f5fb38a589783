"""Writing data sets of Petastorm."""
