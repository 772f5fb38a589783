"""Data that a program holds in memory, as data sets of files."""
