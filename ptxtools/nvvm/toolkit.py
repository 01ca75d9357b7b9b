"""Where an installed CUDA toolkit has libdevice and libnvvm, neither of which comes with this package."""

from __future__ import annotations

import os
from collections.abc import Iterator
from glob import glob
from importlib.util import find_spec


def libdevice() -> str:
    """The path of libdevice's bitcode, "" if there is none."""
    return next(_files(("nvvm/libdevice/libdevice.10.bc",)), "")


def libnvvm() -> str:
    """The path of the library libnvvm, "" if there is none."""
    return next(_files(("nvvm/lib64/libnvvm.so", "lib64/libnvvm.so", "lib/libnvvm.so", "lib/libnvvm.so.4")), "")


def _files(inside: tuple[str, ...]) -> Iterator[str]:
    for root in _roots():
        yield from filter(os.path.isfile, (os.path.join(root, name) for name in inside))


def _roots() -> Iterator[str]:
    """Folders of toolkits: those that variables name, of NVIDIA's Python packages, of the system, newest first."""
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if os.environ.get(variable):
            yield os.environ[variable]
    packages = find_spec("nvidia")
    for folder in (packages.submodule_search_locations or ()) if packages else ():
        yield from sorted(glob(os.path.join(folder, "cu[0-9]*")), reverse=True)
        yield os.path.join(folder, "cuda_nvcc")
    yield "/usr/local/cuda"
    yield from sorted(glob("/usr/local/cuda-*"), reverse=True)
