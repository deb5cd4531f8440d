"""The folder for compiled code, systems where nothing can be stored, and Numba's own settings."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import numba
import numpy as np
import pytest
from numba.core.caching import IndexDataCacheFile
from numba.core.registry import cpu_target
from numpy.typing import NDArray

from model.kernels import jit
from model.seams import numba as seam

Array = NDArray[np.float64]


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seam.Loop, "folder", None)


def kept(path: Path) -> list[str]:
    return sorted(file.suffix for file in path.rglob("*") if file.is_file())


@pytest.mark.usefixtures("folder")
def test_cache_folder_depends_on_files_and_numba_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jit.keep_compiled_code(tmp_path)
    (first,) = (tmp_path / "kernels").iterdir()
    assert seam.Loop.folder == first
    monkeypatch.setattr(numba, "__version__", "another")
    jit.keep_compiled_code(tmp_path)
    assert seam.Loop.folder != first and len(list((tmp_path / "kernels").iterdir())) == 2


@pytest.mark.usefixtures("folder")
def test_unwritable_cache_folder_is_ignored(tmp_path: Path) -> None:
    file = tmp_path / "a file"
    file.touch()
    for cache in (None, file, file / "below"):
        jit.keep_compiled_code(cache)
        assert seam.Loop.folder is None


@pytest.mark.usefixtures("folder")
def test_loops_are_kept_although_they_were_imported_before_the_folder_was_chosen(tmp_path: Path) -> None:
    doubled = jit.compiled(jit.EXACT)(lambda number: number + number)
    jit.keep_compiled_code(tmp_path)
    assert doubled(3) == 6 and kept(tmp_path) == [".nbc", ".nbi"]

    again = jit.compiled(jit.EXACT)(doubled.py_func)  # type: ignore[attr-defined]
    assert again(3) == 6 and sum(again.stats.cache_hits.values()) == 1  # type: ignore[attr-defined]


@pytest.mark.usefixtures("folder")
def test_loops_run_although_the_disk_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def save(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(IndexDataCacheFile, "save", save)
    monkeypatch.setattr(seam.Loop, "folder", tmp_path)
    doubled = jit.compiled(jit.EXACT)(lambda number: number + number)
    assert doubled(3) == 6
    assert "cannot be kept for the next start: No space left on device" in caplog.text


@pytest.fixture
def with_whole_vectors(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A processor whose 512-bit vectors are fast; the tests' own need not have any."""
    monkeypatch.setattr(seam, "has_fast_whole_vectors", lambda: True)
    return


@pytest.mark.usefixtures("folder", "with_whole_vectors")
def test_settings_of_numba_belong_to_others(tmp_path: Path) -> None:
    settings = {name: getattr(numba.config, name) for name in ("CPU_FEATURES", "CACHE_DIR")}
    jit.keep_compiled_code(tmp_path)

    @numba.njit  # another library's
    def theirs(number: float) -> float:
        return number + 1

    ours = jit.compiled(jit.EXACT)(lambda number: number + theirs(number))
    assert ours(3) == 7 and kept(tmp_path) == [".nbc", ".nbi"]
    assert {name: getattr(numba.config, name) for name in settings} == settings

    features = ours.overloads[ours.signatures[0]].library.codegen.magic_tuple()[-1]  # type: ignore[attr-defined]
    assert features.endswith("-prefer-256-bit")
    assert "prefer-256-bit" not in cpu_target.target_context.codegen().magic_tuple()[-1]
    assert numba.njit(lambda number: ours(number))(3) == 7  # theirs may call ours


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
