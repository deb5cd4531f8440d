"""The folder for compiled code, and systems where nothing can be stored."""

import errno
import os
from pathlib import Path

import numba
import numpy as np
import pytest
from numba.core.caching import IndexDataCacheFile
from numpy.typing import NDArray

from model.kernels import jit

Array = NDArray[np.float64]


@pytest.fixture
def cache_dir(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")


@pytest.mark.usefixtures("cache_dir")
def test_cache_folder_depends_on_files_and_numba_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jit.keep_compiled_code(tmp_path)
    (first,) = (tmp_path / "kernels").iterdir()
    assert numba.config.CACHE_DIR == str(first)
    monkeypatch.setattr(numba, "__version__", "another")
    jit.keep_compiled_code(tmp_path)
    assert numba.config.CACHE_DIR != str(first) and len(list((tmp_path / "kernels").iterdir())) == 2


@pytest.mark.usefixtures("cache_dir")
def test_unwritable_cache_folder_is_ignored(tmp_path: Path) -> None:
    file = tmp_path / "a file"
    file.touch()
    for cache in (None, file, file / "below"):
        jit.keep_compiled_code(cache)
        assert numba.config.CACHE_DIR == ""


@pytest.mark.usefixtures("cache_dir")
def test_loops_run_although_the_disk_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def save(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(IndexDataCacheFile, "save", save)
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    doubled = jit.compiled(jit.EXACT)(lambda number: number + number)
    assert doubled(3) == 6
    assert "cannot be kept for the next start: No space left on device" in caplog.text


def test_compiled_loops_count_no_references() -> None:
    """Threads that share arrays would wait for each other's counts."""

    @jit.compiled(jit.EXACT)
    def fill(numbers: Array) -> None:
        for i in range(len(numbers)):
            part = numbers[i:][:1]
            part[0] = i

    numbers = np.zeros(4)
    fill(numbers)
    assert numbers.tolist() == [0, 1, 2, 3]
    assert not any("NRT" in code for code in fill.inspect_llvm().values())


def test_supported_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jit.platform, "machine", lambda: "x86_64")
    for features, expected in (
        ({"avx2": True, "fma": True, "f16c": True, "avx512f": False}, True),
        ({"avx2": True, "fma": False, "f16c": True}, False),
        ({}, False),
    ):
        monkeypatch.setattr(jit.binding, "get_host_cpu_features", lambda found=features: found)
        assert jit.is_supported() is expected
    for machine, expected in (("aarch64", True), ("riscv64", False)):
        monkeypatch.setattr(jit.platform, "machine", lambda name=machine: name)
        assert jit.is_supported() is expected
