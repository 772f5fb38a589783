"""Spark DataFrames as data for torch, TensorFlow and `tuneloader.Dataset`, with the names of petastorm.spark."""

from .converter import SparkDatasetConverter, from_spark, make_spark_converter, register_delete_dir_handler

__all__ = ["SparkDatasetConverter", "from_spark", "make_spark_converter", "register_delete_dir_handler"]
