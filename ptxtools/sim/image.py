"""A module on a device: the addresses and initial content of its .global and .const variables (5.4.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxtools.diagnostics import LaunchError, PtxError

from .arena import Arena
from .loadable import Contents, Link, Storage
from .poison import ZONE

if TYPE_CHECKING:
    from ptxtools.machine.launch import AddressSpace


def _align_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


class Image:
    """The variables of a module in device memory. Constants share one allocation, so that they form one range.

    Raises `OutOfMemory`, and `PtxError` for variables that are declared but not defined.
    """

    def __init__(self, contents: Contents, arena: Arena) -> None:
        if contents.undefined:
            raise PtxError(list(contents.undefined.values()))
        self._contents, self._arena = contents, arena
        self.target = contents.target
        self.variables = {storage.name: storage for storage in contents.storages}
        self.addresses: dict[str, int] = {}
        self.const: tuple[int, int] = (0, 0)
        self.space: AddressSpace | None = None  # what launches of the module have seen of device memory last
        self._place_constants([s for s in contents.storages if s.space == "const"])
        for storage in contents.storages:
            if storage.space == "global":
                self.addresses[storage.name] = arena.allocate(storage.size, storage.alignment, zero=True).address
        for storage in contents.storages:
            if storage.data or storage.links:
                self.write_initial(storage)

    def _place_constants(self, constants: list[Storage]) -> None:
        offset, offsets, banks = 0, dict[str, int](), dict[int, int]()
        gaps: list[tuple[int, int]] = []
        for storage in constants:
            if storage.bank in banks:
                offsets[storage.name] = banks[storage.bank]
                continue
            offset = _align_up(offset, storage.alignment)
            if storage.bank:
                banks[storage.bank] = offset
            offsets[storage.name] = offset
            gaps.append((offset + storage.size, offset + storage.size + ZONE))
            offset += storage.size + ZONE
        if not constants:
            return
        alignment = max(storage.alignment for storage in constants)
        size = max(offset - ZONE, 1)  # poison behind the last comes with the next allocation
        base = self._arena.allocate(size, alignment, zero=True).address
        self.addresses.update({name: base + at for name, at in offsets.items()})
        self.const = (base, base + size)
        for start, end in gaps[:-1]:
            self._arena.poison(base + start, base + end)

    def address(self, name: str) -> int:
        """Device address of a module variable."""
        found = self.addresses.get(name)
        if found is not None:
            return found
        raise LaunchError(f"the module has no variable '{name}'")

    def write_initial(self, storage: Storage) -> None:
        """Reset a variable to its initialiser."""
        view = self._arena.view(self.addresses[storage.name], storage.size)
        view[:] = storage.data or bytes(storage.size)
        for link in storage.links:
            number = self._linked(storage, link) & ((1 << (8 * link.size)) - 1)
            view[link.offset : link.offset + link.size] = number.to_bytes(link.size, "little")

    def _linked(self, storage: Storage, link: Link) -> int:
        """The value of an address in an initialiser; generic and global addresses are the same here."""
        if link.symbol in self._contents.functions:
            number = self._contents.functions[link.symbol] + link.addend
        elif link.symbol in self.addresses:
            number = self.address(link.symbol) + link.addend
        else:
            raise LaunchError(f"'{link.symbol}' in the initialiser of '{storage.name}' has no address")
        if link.mask is not None:
            shift = (link.mask & -link.mask).bit_length() - 1
            number = (number & link.mask) >> max(shift, 0)
        return number
