"""Device memory and arrays of other libraries, shared by the array interface and DLPack."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import ptxtools

KERNEL = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out)
{
    .reg .b64 %d<3>; .reg .b32 %r<2>;
    ld.param.u64 %d1, [out]; mov.u32 %r1, %tid.x;
    mul.wide.u32 %d2, %r1, 4; add.u64 %d1, %d1, %d2;
    st.global.u32 [%d1], %r1;
    ret;
}
"""


class Foreign:
    """An array of another library: an object with one of the protocols, over memory of its own."""

    def __init__(self, array: Any, *names: str) -> None:
        self.array, self.names = array, names

    def __getattr__(self, name: str) -> Any:
        if name in self.names:
            return getattr(self.array, name)
        raise AttributeError(name)


def launched(argument: Any) -> None:
    device = ptxtools.Device()
    device.launch(ptxtools.loads(KERNEL)["k"], 1, 4, [argument])


def test_arrays_over_device_memory() -> None:
    device = ptxtools.Device()
    buffer = device.upload(np.arange(6, dtype=np.float32).reshape(2, 3))
    for view in (np.asarray(buffer), np.from_dlpack(buffer)):
        assert view.dtype == np.float32 and view.tolist() == [[0, 1, 2], [3, 4, 5]]
    np.asarray(buffer)[1, 2] = 9
    assert buffer.download()[1, 2] == 9 and view[1, 2] == 9
    assert buffer.__dlpack_device__() == (1, 0)
    view = np.asarray(buffer)
    del device, buffer
    assert view.tolist() == [[0, 1, 2], [3, 4, 9]]  # it keeps the memory


def test_what_is_not_shared() -> None:
    device = ptxtools.Device()
    with pytest.raises(ptxtools.LaunchError, match=r"arrays of bfloat16 cannot be shared: use download\(\)"):
        np.asarray(device.upload(np.zeros(4, ml_dtypes.bfloat16)))
    buffer = device.upload(np.zeros(4, np.float32))
    buffer.free()
    with pytest.raises(ptxtools.LaunchError, match="the buffer was freed"):
        np.asarray(buffer)
    checked = ptxtools.Device(checks="initcheck")
    assert not np.asarray(checked.upload(np.zeros(4, np.float32))).flags.writeable


@pytest.mark.parametrize("protocol", [("__array_interface__",), ("__dlpack__", "__dlpack_device__")])
def test_arrays_of_other_libraries_are_arguments(protocol: tuple[str, ...]) -> None:
    found = np.zeros(4, np.uint32)
    kind = type("Other", (Foreign,), {name: property(lambda self, n=name: getattr(self.array, n)) for name in protocol})
    launched(kind(found))
    assert found.tolist() == [0, 1, 2, 3]


def test_memory_for_reading_only() -> None:
    found = np.zeros(4, np.uint32)
    found.flags.writeable = False
    kind = type("Other", (Foreign,), {n: property(lambda self, n=n: getattr(self.array, n))
                                      for n in ("__dlpack__", "__dlpack_device__")})  # fmt: skip
    with pytest.raises(ptxtools.LaunchError, match=r"cannot be shared|for reading only"):
        launched(kind(found))
