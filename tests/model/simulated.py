"""Litmus tests as PTX kernels: what the simulator does with them."""

import numpy as np

import ptxtools
from ptxtools.model.paths import Paths
from ptxtools.model.programs import (
    UNTYPED,
    Address,
    Barrier,
    Branch,
    Fence,
    Label,
    Local,
    Memory,
    Register,
    Type,
)

#: Bytes between locations.
STRIDE = 64
_LOCAL = {"mov": "mov.b64", "add": "add.s64", "sub": "sub.s64", "mul": "mul.lo.s64",
          "xor": "xor.b64", "and": "and.b64", "or": "or.b64"}  # fmt: skip
#: The kind of type of an atomic operation; inc and dec have 32 bits.
_ATOMIC = {"add": "u", "exch": "b", "cas": "b", "or": "b", "and": "b", "xor": "b", "min": "", "max": "", "inc": "u",
           "dec": "u"}  # fmt: skip
_COMPARE = {"eq", "ne", "lt", "le", "gt", "ge"}


class TranslationError(Exception):
    """The test has an instruction that a kernel has no equal of here."""


class Kernel:
    """A litmus test as a kernel: one lane of one warp for each thread, one CTA for each of the test's, in clusters of
    the same size. A grid has any number of copies of the test, each with memory of its own.

    A launch has one GPU. Those of a test with several and no clusters are clusters here, and scope .gpu is .cluster:
    scopes include the same threads as in the test (8.5).

    meet: the threads of a cluster meet at a barrier that orders nothing before they store their registers, so that
    reads may be decided when all accesses of the test have been executed. Where the test has no clusters, all are in
    one."""

    def __init__(self, test, meet=False):
        self.test, self.scopes = test, {}
        if any(thread.grid for thread in test.threads):
            raise TranslationError("several grids")
        if len({thread.gpu for thread in test.threads}) > 1 and all(thread.cluster < 0 for thread in test.threads):
            self.scopes = {"gpu": "cluster"}
            if any(getattr(i, "scope", "") == "cluster" for thread in test.threads for i in thread.instructions):
                raise TranslationError("GPUs and clusters")
        ctas = self._clusters()
        if self.scopes and len({len(cluster) for cluster in ctas}) > 1:  # then scope .gpu is all threads'
            self.scopes = {}
            ctas = self._clusters()
        if len({len(cluster) for cluster in ctas}) > 1:
            raise TranslationError("clusters of different sizes")
        self.places, self.cluster = [cta for cluster in ctas for cta in cluster], len(ctas[0])
        self.meet = meet and all(self._meets(place) for place in self.places)
        if self.meet and not self.scopes and self._is_without_clusters() and len(self.places) <= 8:
            self.cluster = len(self.places)
        self.memory = [name for name, location in test.locations.items() if location.memory == name]
        if len(self.memory) != len(test.locations):
            raise TranslationError("aliases")
        if any(location.size > STRIDE for location in test.locations.values()):
            raise TranslationError("a long array")
        self.types = Paths(test).types
        self.registers = sorted({name for thread in test.threads for name in self._names(thread)})
        self.warps = {}
        for place in self.places:
            for warp, thread in enumerate(t for t in test.threads if (t.gpu, t.cta) == place):
                self.warps[thread.number] = warp
        #: Memory of one copy, in words of 8 bytes.
        self.cells = max(len(self.memory), 1) * STRIDE // 8
        self.words, self.widened = 0, []
        self.module = ptxtools.loads(self._kernel())

    def _meets(self, place):
        """Whether the threads of a CTA use its barriers alike: one that does not lets the others go on by its end."""
        used = []
        for thread in self.test.threads:
            if (thread.gpu, thread.cta) == place:
                barriers = [i for i in thread.instructions if isinstance(i, Barrier) and i.place != "cluster"]
                branches = barriers and any(isinstance(i, Branch) or i.guard for i in thread.instructions)
                used.append([str(i.numbers) for i in barriers] + ["branch"] * bool(branches))
        return all(numbers == used[0] and "branch" not in numbers for numbers in used)

    def _is_without_clusters(self):
        return all(thread.cluster < 0 for thread in self.test.threads) and not any(
            getattr(i, "scope", "") == "cluster" or getattr(i, "place", "") == "cluster"
            for thread in self.test.threads for i in thread.instructions
        )  # fmt: skip

    def _clusters(self):
        """The CTAs of each cluster, by GPU and number; without a cluster, a CTA is one of its own."""
        clusters = {}
        for thread in self.test.threads:
            alone = thread.cluster < 0 and not self.scopes
            name = (thread.gpu, thread.cluster, thread.cta if alone else -1)
            clusters.setdefault(name, []).append((thread.gpu, thread.cta))
        return [list(dict.fromkeys(cluster)) for cluster in clusters.values()]

    def _names(self, thread):
        for instruction in thread.instructions:
            if isinstance(instruction, Memory):
                yield from (f"P{thread.number}:{name}" for name in instruction.results)
                if isinstance(instruction.base, Register):
                    raise TranslationError("an address in a register")
            elif isinstance(instruction, Local) or (isinstance(instruction, Barrier) and instruction.result):
                yield f"P{thread.number}:{instruction.result}"
        yield from (name for name in self.test.registers if name.startswith(f"P{thread.number}:"))

    def _kernel(self):
        body, warps = [], 1 + max(self.warps.values())
        for thread in self.test.threads:
            number = self.places.index((thread.gpu, thread.cta)) * warps + self.warps[thread.number]
            body += [f"setp.ne.u32 %q, %warp, {number};", f"@%q bra E{thread.number};"]
            mine = [name for name in self.registers if name.startswith(f"P{thread.number}:")]
            for name in mine:
                initial = self.test.registers.get(name, 0)
                if isinstance(initial, Address):
                    raise TranslationError("an address in a register")
                body.append(f"mov.b64 {self._register(thread, name.split(':')[1])}, {initial};")
            late = []
            branches = any(isinstance(i, Branch) or i.guard is not None for i in thread.instructions)
            for instruction in thread.instructions:
                lines, widened = self._lines(thread, instruction), self.widened
                self.widened = []
                if late and (branches or any(result in line for _, result in late for line in lines)):
                    body += [line for line, _ in late]
                    late = []
                body += lines
                late += widened
            body += [line for line, _ in late] if branches else []
            body.append(f"X{thread.number}:")
            body += ["barrier.cluster.arrive.relaxed;", "barrier.cluster.wait;"] if self.meet else []
            body += [] if branches else [line for line, _ in late]
            for name in mine:
                at = 8 * self.registers.index(name)
                body.append(f"st.global.b64 [%out+{at}], {self._register(thread, name.split(':')[1])};")
            body += ["ret;", f"E{thread.number}:"]
        declared = "".join(f".reg .b64 %{name.replace(':', '_')};\n" for name in self.registers)
        return (".version 8.6\n.target sm_90\n.address_size 64\n"
                ".visible .entry t(.param .u64 mem, .param .u64 out)\n{\n"
                ".reg .pred %q;\n.reg .b32 %cta, %copy, %warp, %lane;\n.reg .b64 %at, %mem, %out;\n"
                f".reg .b32 %w<{self.words + 1}>;\n"
                + declared +
                "ld.param.u64 %mem, [mem];\nld.param.u64 %out, [out];\nmov.u32 %cta, %ctaid.x;\n"
                f"div.u32 %copy, %cta, {len(self.places)};\nrem.u32 %cta, %cta, {len(self.places)};\n"
                f"mul.wide.u32 %at, %copy, {8 * self.cells};\nadd.u64 %mem, %mem, %at;\n"
                f"mul.wide.u32 %at, %copy, {8 * len(self.registers)};\nadd.u64 %out, %out, %at;\n"
                f"mov.u32 %lane, %tid.x;\nshr.u32 %warp, %lane, 5;\nmad.lo.u32 %warp, %cta, {warps}, %warp;\n"
                "and.b32 %lane, %lane, 31;\nsetp.ne.u32 %q, %lane, 0;\n@%q ret;\n"
                + "\n".join(body) + "\nret;\n}\n")  # fmt: skip

    def _register(self, thread, name):
        return f"%P{thread.number}_{name}"

    def _value(self, thread, operand):
        if isinstance(operand, Address):
            raise TranslationError("an address as a value")
        if isinstance(operand, Register):
            name = f"P{thread.number}:{operand.name}"
            return self._register(thread, operand.name) if name in self.registers else "0"
        return str(operand)

    def _lines(self, thread, i):
        if i.guard is not None:
            value = self._value(thread, Register(i.guard.register))
            lines, over = self._unguarded(thread, i), f"S{thread.number}_{thread.instructions.index(i)}"
            leaves = "ne" if i.guard.negated else "eq"
            lines, self.widened = [*lines, *(line for line, _ in self.widened)], []
            return [f"setp.{leaves}.s64 %q, {value}, 0;", f"@%q bra {over};", *lines, f"{over}:"]
        return self._unguarded(thread, i)

    def _unguarded(self, thread, i):
        if isinstance(i, Label):
            return [f"L{thread.number}_{i.name}:"] if i.name else []
        if isinstance(i, Fence) and not (i.limited or i.space):
            return [f"fence.{i.order}.{self.scopes.get(i.scope, i.scope)};"]
        if isinstance(i, Barrier) and i.reduction and i.count is None:
            return self._reduction(thread, i)
        if isinstance(i, Barrier) and i.place == "cta" and i.count is None and i.mode == "sync" and len(i.numbers) == 1:
            return [f"barrier.sync {self._value(thread, i.numbers[0])};"]
        if isinstance(i, Barrier) and i.place == "cluster":
            return [f"barrier.cluster.{i.mode}{'' if i.ordering else '.relaxed'};"]
        if isinstance(i, Branch):
            label = f"L{thread.number}_{i.label}" if i.label else f"X{thread.number}"
            if not i.function:
                return [f"bra {label};"]
            a, b = (self._value(thread, value) for value in i.values)
            return [f"setp.{i.function}.s64 %q, {a}, {b};", f"@%q bra {label};"]
        if isinstance(i, Local) and i.function in _COMPARE:
            signed = "u" if i.type is not None and i.type.kind == "u" else "s"
            a, b = (self._value(thread, value) for value in i.values)
            return [f"setp.{i.function}.{signed}64 %q, {a}, {b};",
                    f"selp.b64 {self._register(thread, i.result)}, 1, 0, %q;"]  # fmt: skip
        if isinstance(i, Local) and i.function in _LOCAL and i.type in (None, UNTYPED, Type("b", 64), Type("u", 64)):
            values = ", ".join(self._value(thread, value) for value in i.values)
            return [f"{_LOCAL[i.function]} {self._register(thread, i.result)}, {values};"]
        if isinstance(i, Memory) and (i.proxy == "generic" or (i.proxy == "texture" and ".nc" in i.text)):
            return self._access(thread, i)
        raise TranslationError(i.text)

    def _reduction(self, thread, i):
        result, at = self._register(thread, i.result), self._value(thread, i.numbers[0])
        lines = [f"mov.b64 %at, {self._value(thread, i.predicate)};", "setp.ne.s64 %q, %at, 0;"]
        operands = f"{at}, {'!' if i.negated else ''}%q;"
        if i.reduction == "popc":
            return [*lines, f"barrier.red.popc.u32 %lane, {operands}", f"cvt.u64.u32 {result}, %lane;"]
        return [*lines, f"barrier.red.{i.reduction}.pred %q, {operands}", f"selp.b64 {result}, 1, 0, %q;"]

    def _access(self, thread, i):
        type_ = i.type or self.types[i.base]
        place = f"[%mem+{STRIDE * self.memory.index(i.base) + i.offset}]"
        order = i.order if i.order == "weak" else f"{i.order}.{self.scopes.get(i.scope, i.scope)}"
        order = "mmio.relaxed.sys" if i.mmio else order
        values = [self._value(thread, value) for value in i.values]
        results = [self._register(thread, name) for name in i.results]
        if i.kind in ("ld", "st"):
            several = results if i.kind == "ld" else values
            wide = f".v{len(several)}" if len(several) > 1 else ""
            cells = f"{{{', '.join(several)}}}" if wide else several[0]
            spelled = f"{i.kind}.{order}.global{wide}.{type_.kind}{type_.bits}" if i.proxy == "generic" else \
                f"ld.global.nc{wide}.{type_.kind}{type_.bits}"  # fmt: skip
            return [f"{spelled} {cells}, {place};" if i.kind == "ld" else f"{spelled} {place}, {cells};"]
        if (
            i.function not in _ATOMIC
            or type_.bits not in (32, 64)
            or (i.function in ("inc", "dec") and type_.bits != 32)
        ):
            raise TranslationError(f"{i.function} of {type_.bits} bits")
        kind = _ATOMIC[i.function] or ("s" if type_.kind == "s" else "u")
        if type_.kind == "f" and i.function not in ("exch", "cas"):
            if i.function != "add":
                raise TranslationError(f"{i.function} of floating-point numbers")
            kind = "f"
        spelled = f"{i.kind}.{order}.global.{i.function}.{kind}{type_.bits}"
        if type_.bits == 64:
            return [f"{spelled} " + ", ".join([*results, place, *values]) + ";"]
        # Registers of their own: the read may be undecided until its result is used.
        words = [f"%w{self.words + n}" for n in range(len(results) + len(values))]
        self.words += len(words)
        narrow = words[len(results) :]
        halves = [f"cvt.u32.u64 {word}, {value};" if value.startswith("%") else f"mov.b32 {word}, {value};"
                  for word, value in zip(narrow, values, strict=True)]  # fmt: skip
        line = f"{spelled} " + ", ".join([*words[: len(results)], place, *narrow])
        # Not before they are needed: a read may be undecided until then.
        signed = "s64.s32" if type_.kind == "s" else "u64.u32"
        self.widened += [(f"cvt.{signed} {result}, {words[0]};", result) for result in results]
        return [*halves, line + ";"]

    def _cells(self, name):
        """(first byte in a copy's memory, type) of a location or an element."""
        name, _, index = name.partition("[")
        type_ = self.types[name]
        return STRIDE * self.memory.index(name) + (int(index[:-1]) * type_.bits // 8 if index else 0), type_

    def _bytes(self, memory, name):
        """The final values of a location, of each copy."""
        first, type_ = self._cells(name)
        found = memory[:, first : first + type_.bits // 8]
        return [type_.wrap(int.from_bytes(row.tobytes(), "little")) for row in found]

    def outcome(self, seed, names, **options):
        """The final values of the names, after a run of this seed. options: of the device."""
        return self.outcomes(seed, names, 1, **options)[0]

    def outcomes(self, seed, names, copies, **options):
        """The same for each of so many copies, in one launch."""
        return self.run(seed, names, copies, **options)[0]

    def guided(self, names):
        """The outcomes of all runs that follow an execution of the model, one after the other; None if there are none,
        since the launch is not modelled or too large. Each must be followed to its end."""
        found, seed = [], 1
        kernel = Kernel(self.test) if self.meet else self  # nothing needs to wait until all have been executed
        while True:
            outcomes, _, guide = kernel._run(seed, names, 1, True, memory_model="weak")
            if guide is None:
                return None
            assert not guide.departure, guide.departure
            found += outcomes
            if len(found) == guide.outcomes:
                return found
            seed += 2

    def run(self, seed, names, copies, **options):
        """(outcomes, what the launch returns); with weak memory, of the machine by itself"""
        return self._run(seed, names, copies, False, **options)[:2]

    def _run(self, seed, names, copies, guided, **options):
        memory = np.zeros((copies, 8 * self.cells), np.uint8)
        for at, name in enumerate(self.memory):
            initial = self.test.locations[name].initial
            if isinstance(initial, Address):
                raise TranslationError("an address in memory")
            size = max(self.test.locations[name].size, 8)
            whole = initial & (1 << 8 * size) - 1
            memory[:, at * STRIDE : at * STRIDE + size] = np.frombuffer(whole.to_bytes(size, "little"), np.uint8)
        out = np.zeros((copies, max(len(self.registers), 1)), np.int64)
        device = ptxtools.Device("sm_90", seed=seed, **options)
        device.guided = guided
        block = 32 * (max(self.warps.values()) + 1)
        result = device.launch(self.module["t"], copies * len(self.places), block, [memory, out],
                      cluster=self.cluster)  # fmt: skip
        found = {name: [UNTYPED.wrap(value) for value in out[:, at].tolist()] for at, name in enumerate(self.registers)}
        found |= {name: self._bytes(memory, name) for name in names if ":" not in name}
        columns = [found.get(name, [0] * copies) for name in names]
        return [tuple(column[copy] for column in columns) for copy in range(copies)], result, device.guide
