"""Asynchronous tensor cores: wgmma (9.7.15), tcgen05 and tensor memory (9.7.16).

Pure layers first, each of them tested by itself: `numbers` (element formats), `product` (the sum as the chips make it),
`shared` (matrix descriptors and swizzles), `instruction` (the instruction descriptor of tcgen05), `memory` (tensor
memory and its allocation), `layout` (the layout of matrices in tensor memory), `sparse` (metadata). On them build the
operations: `wgmma`, `transfer` (ld, st, cp, shift) and `mma`.
"""
