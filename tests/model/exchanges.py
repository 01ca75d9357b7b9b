"""Random kernels in which one thread hands a number on to another: what writes it, what tells of it, what reads it and
which fences stand between are drawn. Copies, tensor maps, multi-addresses and proxies are among them."""

import random

from tests.model.features import OUT, Feature

_PARAMETERS = ".param .align 64 .b8 map[128], .param .u64 x, .param .u64 both, .param .u64 flag, " + OUT
_LAUNCH = """args = [{tensormap="t"}, {buffer="x"}, {multicast="both"}, {buffer="flag"}, {buffer="out"}]
buffers.x.zeros = "u32[4]"
buffers.z.zeros = "u32[4]"
buffers.flag.zeros = "u32[1]"
buffers.out.zeros = "u32[2]"
tensormaps.t = {buffer="x", type="u32", shape=[4], box=[4]}
multicast.both.buffers = ["x", "z"]
"""
_BEGINNING = """    .shared .align 128 .u32 tile[4];
    .shared .align 128 .u32 copy[4];
    .shared .align 8 .b64 bar;
    ld.param.u64 %rd1, [x];
    ld.param.u64 %rd2, [both];
    ld.param.u64 %rd3, [flag];
    ld.param.u64 %rd4, [out];
    mov.b64 %rd5, map;
    cvta.param.u64 %rd5, %rd5;
"""
_TO_GROUP = ("cp.async.bulk.global.shared::cta.bulk_group [%rd1], [tile], 16",
             "cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group [%rd5, {0}], [tile]",
             "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd1], [tile], 16",
             "cp.reduce.async.bulk.tensor.1d.global.shared::cta.add.tile.bulk_group [%rd5, {0}], [tile]")  # fmt: skip
_TO_MBARRIER = (
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [copy], [%rd1], 16, [bar]",
    "cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [copy], [%rd5, {0}], [bar]",
)


class Exchange:
    def __init__(self, seed):
        self.draw = random.Random(seed)
        self.together = self.draw.random() < 0.3
        lines = ["mov.u32 %r1, %tid.x", "mov.u32 %r2, %ctaid.x", "and.b32 %r3, %r1, 31", "setp.ne.u32 %p3, %r3, 0",
                 "@%p3 bra DONE"]  # fmt: skip
        lines.append("setp.ne.u32 %p1, %r1, 0" if self.together else "setp.ne.u32 %p1, %r2, 0")
        tell, hear = self.told()
        fences = self.fence(), self.fence(), self.proxy(), self.proxy()
        lines += ["@%p1 bra READ", *self.written(), *self.some(fences[2], fences[0]), *tell, "bra END", "READ:"]
        lines += [*hear, *self.some(fences[1], fences[3]), *self.read(), "st.global.u32 [%rd4+4], %r5", "END:"]
        lines.append("DONE:")
        body = "".join(f"{line}\n" if line.endswith(":") else f"    {line};\n" for line in lines)
        shape = "grid = [1, 1, 1]\nblock = [64, 1, 1]\n" if self.together else \
            "grid = [2, 1, 1]\nblock = [1, 1, 1]\ncluster = [2, 1, 1]\n"  # fmt: skip
        chosen = "threads = [[0, 0], [0, 32]]\n" if self.together else ""
        self.feature = Feature(_BEGINNING + body, shape + _LAUNCH, ("out[0]", "out[1]"), (1, 1),
                               parameters=_PARAMETERS, litmus=chosen)  # fmt: skip

    def one(self, *choices):
        return self.draw.choice(choices)

    def some(self, *lines):
        """Some of the lines, in some order."""
        found = [line for line in lines if line and self.draw.random() < 0.6]
        self.draw.shuffle(found)
        return found

    def scope(self):
        return self.one("cta", "cluster", "gpu", "gpu", "sys")

    def fence(self):
        return f"fence.{self.one('acq_rel', 'sc', 'acquire', 'release')}.{self.scope()}"

    def proxy(self):
        return self.one("fence.proxy.async", "fence.proxy.async.global", "fence.proxy.async.shared::cta",
                        "fence.proxy.alias", "fence.proxy.tensormap::generic.release.gpu")  # fmt: skip

    def written(self):
        kind = self.one("store", "atomic", "multimem", "group", "group", "group")
        if kind == "store":
            return [self.one("st.global.u32 [%rd1], 1", "st.relaxed.gpu.global.u32 [%rd1], 1")]
        if kind == "atomic":
            return [self.one("red.relaxed.gpu.global.add.u32 [%rd1], 1", "red.release.cta.global.add.u32 [%rd1], 1")]
        if kind == "multimem":
            return [self.one("multimem.st.weak.global.u32 [%rd2], 1", "multimem.st.release.sys.global.u32 [%rd2], 1",
                             "multimem.red.relaxed.gpu.global.add.u32 [%rd2], 1")]  # fmt: skip
        wait = self.one(
            "cp.async.bulk.wait_group 0", "cp.async.bulk.wait_group 0", "cp.async.bulk.wait_group.read 0", ""
        )
        fence = self.one("fence.proxy.async", "fence.proxy.async.shared::cta", "")
        return [line for line in ("st.shared.u32 [tile], 1", fence, self.one(*_TO_GROUP),
                                  "cp.async.bulk.commit_group", wait) if line]  # fmt: skip

    def told(self):
        """What the writer executes behind, and the reader in front."""
        kind = self.one("flag", "flag", "atomic", "barrier")
        said = "st.global.u32 [%rd4], %r4"
        if kind == "barrier" and self.together:
            return ["bar.sync 0"], ["bar.sync 0", "mov.u32 %r4, 1", said]
        if kind == "barrier":
            order = self.one("", ".relaxed", ".release")
            both = [f"barrier.cluster.arrive{order}", "barrier.cluster.wait"]
            return both, [*both, "mov.u32 %r4, 1", said]
        order, scope = self.one("relaxed", "release"), self.scope()
        tell = f"st.{order}.{scope}.global.u32 [%rd3], 1"
        hear = f"ld.{self.one('relaxed', 'acquire')}.{self.scope()}.global.u32 %r4, [%rd3]"
        if kind == "atomic":
            tell = f"red.{order}.{scope}.global.add.u32 [%rd3], 1"
            hear = f"atom.{self.one('relaxed', 'acquire', 'acq_rel')}.{self.scope()}.global.or.b32 %r4, [%rd3], 0"
        return [tell], [hear, said]

    def read(self):
        kind = self.one("load", "nc", "multimem", "copy", "small", "copy")
        if kind == "load":
            return [self.one("ld.global.u32 %r5, [%rd1]", "ld.relaxed.gpu.global.u32 %r5, [%rd1]")]
        if kind == "nc":
            return ["ld.global.nc.u32 %r5, [%rd1]"]
        if kind == "multimem":
            order = self.one("weak", "relaxed.gpu", "acquire.sys")
            return [f"multimem.ld_reduce.{order}.global.add.u32 %r5, [%rd2]"]
        if kind == "small":
            return ["cp.async.ca.shared.global [copy], [%rd1], 16", self.one("cp.async.wait_all", "nanosleep.u32 20"),
                    "ld.shared.u32 %r5, [copy]"]  # fmt: skip
        wait = ["L:", "mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0", "@!%p2 bra L"]
        return ["mbarrier.init.shared.b64 [bar], 1", "fence.proxy.async.shared::cta",
                "mbarrier.arrive.expect_tx.shared.b64 _, [bar], 16", self.one(*_TO_MBARRIER),
                *self.one(wait, wait, []), "ld.shared.u32 %r5, [copy]"]  # fmt: skip
