"""The app on a free port with tiny models, and a browser to look at it."""

import os
import shutil
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import pytest
from helpers import tiny_model

from model import LoadedModel, Step
from model.tokenizer import CharTokenizer

sys.path.insert(0, str(Path(__file__).parents[2]))  # app.py lies in the root, where pytest alone would not look

import app  # noqa: E402
from web.settings import Settings  # noqa: E402
from web.workspace import Parts  # noqa: E402

from .serve_once import free_port  # noqa: E402
