"""Puts this folder on sys.path, so that tests in its subfolders find agent_support and study_support."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
