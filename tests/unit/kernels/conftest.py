"""Compiled code is cached, so that only the first run takes long."""

from helpers.engine import KERNELS
from model.kernels import jit

jit.keep_compiled_code(KERNELS)
