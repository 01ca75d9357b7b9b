"""Random kernels in which two or three threads copy, wait at mbarriers, and load and store what is copied."""

import random

_HEAD = """.version 8.6
.target sm_90
.address_size 64
.visible .entry t(.param .u64 a, .param .u64 out)
{
    .reg .pred %p<3>; .reg .b32 %r<40>; .reg .b64 %rd<9>;
    .shared .align 16 .b32 d[4];
    .shared .align 8 .b64 m;
    ld.param.u64 %rd1, [a];
    ld.param.u64 %rd2, [out];
    mov.u32 %r0, %tid.x;
    setp.ne.u32 %p0, %r0, 0;
    @%p0 bra READY;
    mbarrier.init.shared.b64 [m], 2;
READY:
    bar.sync 0;
"""


class Handed:
    """One kernel. text; threads: of its CTA; results: words of `out` that they store."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.threads = self.random.choice((2, 2, 3))
        self.results, self.values = 0, 10
        parts = []
        for thread in range(self.threads):
            own, last = [], []
            for _ in range(self.random.randint(2, 4 if self.threads == 2 else 3)):
                own += self._instructions(last)
            parts.append(f"T{thread}:\n" + "".join(f"    {line};\n" for line in (*own, *last, "ret")))
        chosen = "".join(f"    setp.eq.u32 %p0, %r0, {n};\n    @%p0 bra T{n};\n" for n in range(self.threads))
        self.text = _HEAD + chosen + "    ret;\n" + "".join(parts) + "}\n"

    def _instructions(self, last):
        draw = self.random.choice
        place = draw(("shared.b32 {}, [d{}]", "shared.b32 {}, [d{}]", "global.b32 {}, [%rd1{}]"))
        offset = draw(("", "+8"))
        family = draw(("load", "load", "store", "copy", "copy", "bulk", "wait", "arrive", "test", "fence", "vector"))
        order = draw(("weak.", "relaxed.cta.", "relaxed.gpu."))
        if family == "load":
            return [f"ld.{order}" + place.format(self._kept(last), offset)]
        if family == "store":
            self.values += 1
            where, value = place.format("", offset).split(" , ")
            return [f"st.{order}{where} {value}, {self.values}"]
        if family == "vector":
            self.results += self.results % 2
            pair = f"{{{self._register(0)}, {self._register(1)}}}"
            last.append(f"st.global.v2.b32 [%rd2+{4 * self.results}], {pair}")
            self.results += 2
            return [f"ld.shared.v2.b32 {pair}, [d]"]
        return {
            "copy": ["cp.async.ca.shared.global [d], [%rd1], 8"],
            "wait": [draw(("cp.async.wait_all", "cp.async.commit_group", "cp.async.bulk.commit_group",
                           "cp.async.bulk.wait_group 0"))],
            "bulk": [draw(("cp.async.bulk.global.shared::cta.bulk_group [%rd1], [d], 16",
                           "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [d], [%rd1], 16, [m]"))],
            "arrive": [draw(("mbarrier.arrive.shared.b64 %rd3, [m]", "mbarrier.arrive.relaxed.cta.shared.b64 %rd3, [m]",
                             "mbarrier.arrive.expect_tx.shared.b64 %rd3, [m], 16",
                             "cp.async.mbarrier.arrive.noinc.shared.b64 [m]"))],
            "fence": [draw(("fence.proxy.async", "fence.acq_rel.cta", "fence.sc.gpu"))],
        }.get(family) or self._tested(last)  # fmt: skip

    def _tested(self, last):
        order = self.random.choice(("", ".relaxed.cta"))
        test = f"mbarrier.test_wait.parity{order}.shared.b64 %p1, [m], 0"
        return [test, f"selp.u32 {self._kept(last)}, 1, 0, %p1"]

    def _register(self, more=0):
        return f"%r{1 + self.results + more}"

    def _kept(self, last):
        """A register that the thread stores in the end."""
        found = self._register()
        last.append(f"st.global.b32 [%rd2+{4 * self.results}], {found}")
        self.results += 1
        return found
