"""Random programs over all kinds of events: of each kind, most instructions are of one family.

    drawn("barriers", seed, threads=2, length=8)

Each family is a method of `_Thread` that gives an instruction as PTX writes it in a test.
"""

import random

SCOPES = ("cta", "cta", "gpu", "gpu", "sys")
CLUSTER_SCOPES = ("cta", "cluster", "cluster", "gpu", "sys")
_PLACES = (("cta 0,gpu 0", "cta 0,gpu 0", "cta 0,gpu 0", "cta 0,gpu 0"),
           ("cta 0,gpu 0", "cta 1,gpu 0", "cta 1,gpu 0", "cta 2,gpu 0"),
           ("cta 0,gpu 0", "cta 0,gpu 0", "cta 1,gpu 0", "cta 1,gpu 0"),
           ("cta 0,gpu 0", "cta 0,gpu 1", "cta 0,gpu 1", "cta 0,gpu 0"))  # fmt: skip
_CLUSTERS = tuple(
    tuple(f"cta {cta},cluster {cluster},gpu 0" for cta, cluster in places)
    for places in (((0, 0), (1, 0), (1, 0), (0, 1)), ((0, 0), (0, 0), (1, 1), (1, 0)))
)
#: What the programs of each kind are made of: families with their weights; "+name" turns a feature on.
KINDS = {
    "plain": "load 5 store 5 +weak",
    "relaxed": "load 5 store 5 +relaxed",
    "acquire": "load 5 store 5 atomic 1 +ordered",
    "fences": "load 3 store 3 fence 4",
    "atomics": "atomic 6 load 1 store 1",
    "one-atomics": "atomic 6 load 2 store 2 +one",
    "cas": "cas 6 load 1 store 2 atomic 1",
    "one-cas": "cas 6 load 2 store 2 +one",
    "sized-cas": "cas 5 load 2 store 2 +sizes",
    "vectors": "vload 3 vstore 3 load 1 store 1 fence 1",
    "sizes": "load 4 store 4 atomic 2 fence 1 +sizes",
    "barriers": "load 3 store 3 atomic 1 fence 1 +barriers",
    "counted": "load 3 store 3 counted 2 fence 1",
    "reductions": "load 3 store 3 reduction 1",
    "clusters": "load 3 store 3 fence 2 atomic 1 +cluster",
    "cluster-barriers": "load 3 store 3 +cluster +barriers",
    "mbarriers": "load 2 store 2 mbarrier 4",
    "proxies": "load 2 store 2 surface 3 proxy-fence 2 fence 1",
    "aliases": "load 2 store 2 alias 3 alias-fence 1 fence 1",
    "copies": "load 2 store 2 copy 3 copy-wait 2",
    "bulk": "load 2 store 2 bulk 2 bulk-wait 2 async-fence 1",
    "guards": "load 3 store 3 guarded 3 branch 1 computed 2",
    "computed": "load 3 copied 4 atomic 2 fence 1",
    "mixed": "load 3 store 3 atomic 2 cas 1 fence 2 copied 1 guarded 1 surface 1 proxy-fence 1",
}  # fmt: skip


class _Thread:
    def __init__(self, program, number):
        self.program, self.number, self.random = program, number, program.random
        self.registers, self.cells, self.labels = [], [], 0

    def one_of(self, *choices):
        return self.random.choice(choices)

    def has(self, feature):
        return feature in self.program.features

    def scope(self):
        return self.one_of(*(CLUSTER_SCOPES if self.has("cluster") else SCOPES))

    def register(self, name="r"):
        self.program.registers += 1
        found = f"{name}{self.program.registers}"
        if name == "r":
            self.registers.append(found)
        return found

    def location(self):
        return self.one_of(*self.program.locations)

    def order(self, strongest):
        if self.has("weak"):
            return "weak"
        choices = ("weak", "relaxed", strongest, "volatile")
        if self.has("relaxed"):
            choices = ("weak", "relaxed", "relaxed", "volatile")
        if self.has("ordered"):
            choices = ("weak", "relaxed", strongest, strongest)
        order = self.one_of(*choices)
        return order if order in ("weak", "volatile") else f"{order}.{self.scope()}"

    def typed(self):
        """The type of an access, and its place."""
        name = self.location()
        if not self.has("sizes"):
            return "", name
        bits = self.one_of(16, 32, 32, 64)
        offset = self.one_of(*range(0, 8, bits // 8))
        return f".b{bits}", f"[{name}+{offset}]" if offset else name

    # --- families ---

    def load(self):
        typed, place = self.typed()
        return f"ld.{self.order('acquire')}{typed} {self.register()}, {place}"

    def store(self, value=None):
        typed, place = self.typed()
        return f"st.{self.order('release')}{typed} {place}, {value or self.program.value()}"

    def copied(self):
        return self.store(self.one_of(*self.registers) if self.registers else None)

    def atomic(self):
        function, value = self.one_of("add", "exch", "max", "or", "inc"), self.program.value()
        bits = f".{'b' if function in ('exch', 'or') else 'u'}32" if self.has("sizes") or function == "inc" else ""
        if function == "inc" and not self.has("sizes"):
            function, bits = "add", ""
        order = self.one_of("relaxed", "acquire", "release", "acq_rel")
        name = self.location()
        if function != "exch" and self.random.random() < 0.3:
            order = {"acquire": "relaxed", "acq_rel": "release"}.get(order, order)
            return f"red.{order}.{self.scope()}.{function}{bits} {name}, {value}"
        return f"atom.{order}.{self.scope()}.{function}{bits} {self.register()}, {name}, {value}"

    def cas(self):
        bits = f".b{self.one_of(32, 64)}" if self.has("sizes") else ""
        expected = self.one_of(0, 0, self.random.randint(0, 16))
        order = self.one_of("relaxed", "acquire", "release", "acq_rel")
        value = self.program.value()
        return f"atom.{order}.{self.scope()}.cas{bits} {self.register()}, {self.location()}, {expected}, {value}"

    def fence(self):
        return f"fence.{self.one_of('sc', 'sc', 'acq_rel', 'acquire', 'release')}.{self.scope()}"

    def vload(self):
        order = self.one_of("weak", "weak", f"relaxed.{self.scope()}")
        return f"ld.{order}.v2.b32 {{{self.register()}, {self.register()}}}, [{self.location()}]"

    def vstore(self):
        order, value = self.one_of("weak", "weak", f"relaxed.{self.scope()}"), self.program.value
        return f"st.{order}.v2.b32 [{self.location()}], {{{value()}, {value()}}}"

    def counted(self):
        return f"bar.{self.one_of('sync', 'sync', 'arrive')} {self.one_of(0, 0, 1)}, {self.one_of(2, 2, 1)}"

    def reduction(self):
        return f"bar.red.popc.u32 {self.register()}, 0, {self.one_of(*self.registers, 1)}"

    def mbarrier(self):
        form = self.one_of("arrive", "arrive", "wait", "wait", "drop")
        if form == "wait":
            predicate, name = self.register("p"), self.one_of("m", "n")
            self.program.asked.append(f"P{self.number}:{predicate}")
            return f"mbarrier.test_wait.parity.shared.b64 {predicate}, [{name}], {self.one_of(0, 0, 1)}"
        return f"mbarrier.arrive{'_drop' if form == 'drop' else ''}.shared.b64 _, [{self.one_of('m', 'n')}]"

    def surface(self):
        if self.one_of(True, False):
            return f"suld.weak {self.register()}, s"
        return f"sust.weak s, {self.program.value()}"

    def alias(self):
        if self.one_of(True, False):
            return f"ld.{self.order('acquire')} {self.register()}, v"
        return f"st.{self.order('release')} v, {self.program.value()}"

    def copy(self):
        first, second = self.random.sample(("x", "y"), 2)
        return f"cp.async.ca.shared.global [{first}], [{second}], 8"

    def bulk(self):
        form = self.one_of(
            "shared::cluster.global.mbarrier::complete_tx::bytes [d], [a], 16, [m]",
            "global.shared::cta.bulk_group [a], [d], 16",
        )
        return f"cp.async.bulk.{form}"

    def guarded(self):
        made = self.one_of(self.store, self.load)()
        if not self.registers:
            return made
        predicate = self.register("p")
        self.cells.append(f"setp.eq.u64 {predicate}, {self.one_of(*self.registers)}, {self.one_of(0, 1, 2)}")
        return f"@{predicate} {made}"

    def branch(self):
        if not self.registers:
            return self.load()
        return f"{self.one_of('beq', 'bne')} {self.one_of(*self.registers)}, {self.one_of(0, 1, 3)}, E"

    def computed(self):
        if not self.registers:
            return self.load()
        source, result = self.one_of(*self.registers), self.register()
        return f"{self.one_of('add', 'xor', 'and')} {result}, {source}, {self.one_of(source, 1, 3)}"

    def next(self):
        family = self.random.choices(self.program.families, self.program.weights)[0]
        fixed = {
            "proxy-fence": "fence.proxy.surface", "alias-fence": "fence.proxy.alias",
            "async-fence": "fence.proxy.async", "copy-wait": self.one_of("cp.async.commit_group", "cp.async.wait_all"),
            "bulk-wait": self.one_of("cp.async.bulk.commit_group", "cp.async.bulk.wait_group 0",
                                     "mbarrier.arrive.expect_tx.shared.b64 _, [m], 16"),
        }  # fmt: skip
        self.cells.append(fixed[family] if family in fixed else getattr(self, family)())


class Drawn:
    """One program. text: with a condition on some of what it leaves, if `asks`."""

    def __init__(self, kind, seed, threads=2, length=8, asks=True):
        generator = self.random = random.Random(f"{kind} {seed}")
        words = KINDS[kind].split()
        self.features = {word[1:] for word in words if word.startswith("+")}
        named = [word for word in words if not word.startswith("+")]
        self.families, self.weights = named[::2], [int(weight) for weight in named[1::2]]
        self.registers, self.values, self.asked = 0, 0, []
        moved = kind in ("copies", "bulk")
        self.locations = {"bulk": "ad", "copies": "xy", "vectors": "xy"}.get(kind) or "xyzw"[: generator.randint(1, 4)]
        self.locations = "x" if "one" in self.features else self.locations
        places = generator.choice(_CLUSTERS if "cluster" in self.features else _PLACES)
        places = places if not moved else _PLACES[0]
        made = [_Thread(self, number) for number in range(threads)]
        for thread in made:
            barriers = {2, 5} if "barriers" in self.features else ()
            barrier = "barrier.cluster.{}" if "cluster" in self.features else "bar.sync 0"
            for at in range(length):
                if at in barriers:
                    thread.cells += [barrier.format("arrive"), barrier.format("wait")][: 1 + ("{" in barrier)]
                else:
                    thread.next()
            if kind == "guards":
                thread.cells.append("E:")
        self.head = " | ".join(f"P{n}@{place}" for n, place in enumerate(places[:threads]))
        longest = max(len(thread.cells) for thread in made)
        self.rows = "".join(
            " | ".join(thread.cells[at] if at < len(thread.cells) else "" for thread in made) + " ;\n"
            for at in range(longest)
        )
        self.text = f"PTX {kind}-{seed}\n{{ {self._initial(kind)} }}\n {self.head} ;\n{self.rows}"
        if asks:
            self.text += self._condition(made)

    def value(self):
        self.values += 1
        return self.values

    def _initial(self, kind):
        if kind == "bulk":
            return "a = 1; .shared d = 0; mbarrier m = 1;"
        if kind == "copies":
            return "x = 0; y = 0;"
        found = [f"{name} = 0;" for name in self.locations]
        if "mbarrier" in self.families:
            found.append("mbarrier m = 2; mbarrier n = 1;")
        if "surface" in self.families:
            found.append("s @ surface aliases x;")
        if "alias" in self.families:
            found.append("v aliases x;")
        return " ".join(found)

    def _condition(self, made):
        generator = self.random
        registers = [f"P{thread.number}:{name}" for thread in made for name in thread.registers]
        names = [*registers, *self.locations, *self.asked]
        asked = generator.sample(names, k=min(generator.randint(1, 3), len(names)))
        sign = generator.choice((" /\\ ", " /\\ ", " \\/ "))
        parts = sign.join(f"{name} == {generator.randint(0, 1 if ':p' in name else 16)}" for name in asked)
        return f"{generator.choice(('exists', '~exists', 'forall'))} ({parts})\n"
