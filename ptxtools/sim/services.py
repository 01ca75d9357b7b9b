"""The files that serve each kind of event (`ptxtools.machine.events`), loaded on first use."""

from __future__ import annotations

from importlib import import_module

#: Modules of this package by the kind of operation that they serve.
HOMES: dict[str, str] = {
    "multimem": "multimem",
    "async.store": "asynchronous.bulk",
    "async.copy": "asynchronous.copies",
    "async.copy.arrive": "asynchronous.copies",
    "async.copy.group": "asynchronous.copies",
    "bulk.clear": "asynchronous.bulk",
    "bulk.copy": "asynchronous.bulk",
    "bulk.group": "asynchronous.bulk",
    "bulk.tensor": "asynchronous.tensors",
    "clusterlaunchcontrol.try_cancel": "asynchronous.launchcontrol",
    "discard": "discard",
    "istypep": "textures.queries",
    "mbarrier.slow": "asynchronous.barriers",
    "setmaxnreg": "registers",
    "spcompress": "sparse",
    "spdecompress": "sparse",
    "suld": "textures.surfaces",
    "suq": "textures.queries",
    "sured": "textures.surfaces",
    "sust": "textures.surfaces",
    "syscall": "syscalls",
    "tcgen05.alloc": "tensor.allocation",
    "tcgen05.commit": "tensor.commit",
    "tcgen05.cp": "tensor.transfer",
    "tcgen05.dealloc": "tensor.allocation",
    "tcgen05.ld": "tensor.transfer",
    "tcgen05.mma": "tensor.mma",
    "tcgen05.relinquish_alloc_permit": "tensor.allocation",
    "tcgen05.shift": "tensor.transfer",
    "tcgen05.st": "tensor.transfer",
    "tensormap.copy": "asynchronous.tensors",
    "tensormap.replace": "asynchronous.tensors",
    "tcgen05.wait": "tensor.queue",
    "tex": "textures.fetches",
    "tld4": "textures.fetches",
    "txq": "textures.queries",
    "wgmma.commit_group": "tensor.wgmma_groups",
    "wgmma.mma_async": "tensor.wgmma",
    "wgmma.wait_group": "tensor.wgmma_groups",
}


def load(kind: str) -> None:
    """Import the file that serves a kind of event; nothing if there is none."""
    home = HOMES.get(kind)
    if home is not None:
        import_module(f"ptxtools.sim.{home}")
