"""Asynchronous tensor cores: wgmma (9.7.15), tcgen05 and tensor memory (9.7.16).

The layers below the operations compute without side effects, and are tested separately: `numbers` (element formats),
`shared` (matrix descriptors and swizzles), `instruction` (the instruction descriptor of tcgen05), `memory` (tensor
memory and its allocation), `layout` (matrices in tensor memory), `sparse` (metadata). The operations are in `wgmma`,
`transfer` (ld, st, cp, shift) and `mma`.
"""
