"""Random tests made from cycles of communication, as diy makes them: an access of one thread meets one of the next at
the same location, and between its two accesses a thread may have a fence, a barrier, a dependency or more accesses."""

import random
import re

from tests.model.suite import read

SCOPES = ("cta", "cta", "cluster", "gpu", "gpu", "sys")
#: Places of threads, as many as there are at most: mostly several CTAs of several clusters.
_PLACES = (("cta 0,gpu 0", "cta 1,gpu 0", "cta 2,gpu 0"), ("cta 0,gpu 0", "cta 0,gpu 0", "cta 1,gpu 0"),
           ("cta 0,gpu 0", "cta 0,gpu 0", "cta 0,gpu 0"), ("cta 0,gpu 0", "cta 0,gpu 1", "cta 0,gpu 2"),
           ("cta 0,cluster 0,gpu 0", "cta 1,cluster 0,gpu 0", "cta 0,cluster 0,gpu 0"),
           ("cta 0,cluster 0,gpu 0", "cta 1,cluster 1,gpu 0", "cta 1,cluster 1,gpu 0"))  # fmt: skip
#: Which accesses of two threads meet: a write that is read, a read before a write, two writes.
_MEETINGS = ("WR", "WR", "RW", "WW")
#: What the tests are made of: features, and sizes of accesses.
KINDS = (
    (("atomic", "barrier", "more"), (64,)),
    (("atomic", "more"), (64,)),
    (("more",), (64,)),
    (("atomic", "nc", "more"), (64,)),
    (("atomic", "more"), (32,)),
    (("atomic", "barrier", "more"), (16, 32, 64)),
)
ATOMIC = ("add", "exch", "cas", "max", "or")


class Cycle:
    """One test. sizes: of accesses, in bits; features: what may stand in it besides loads, stores and fences, of
    "atomic", "barrier", "nc" and "more"."""

    def __init__(self, generator, threads, features=("atomic", "barrier", "more"), sizes=(64,)):
        self.generator, self.features, self.sizes = generator, features, sizes
        self.values = self.registers = 0
        self.places = generator.choice(_PLACES)[:threads]
        clusters = "cluster" in self.places[0]
        self.scopes = SCOPES if clusters else tuple(scope for scope in SCOPES if scope != "cluster")
        meetings = [generator.choice(_MEETINGS) for _ in range(threads)]
        names = "xy" if threads == 2 else generator.choice(("xyz", "xyx"))
        self.locations = sorted(set(names))
        self.columns = []
        #: A barrier that all threads of a CTA come to, or none does.
        self.barrier = "barrier" in features and generator.random() < 0.25
        for thread in range(threads):
            first = self.access(meetings[thread - 1][1], names[thread - 1])
            second = self.access(meetings[thread][0], names[thread])
            self.columns.append([*first, *self.between(first), *second, *self.behind(names)])
        self.text = self._table()
        self.test = read(self.text)

    def _one_of(self, *choices):
        return self.generator.choice(choices)

    def register(self):
        self.registers += 1
        return f"r{self.registers}"

    def value(self):
        self.values += 1
        return self.values * self._one_of(1, 1, 257)

    def ordered(self, *orders):
        order = self._one_of("weak", "relaxed", *orders)
        return order if order == "weak" else f"{order}.{self._one_of(*self.scopes)}"

    def access(self, kind, name, value=None):
        bits = self._one_of(*self.sizes)
        typed = "" if self.sizes == (64,) else f".b{bits}"
        if "atomic" in self.features and bits >= 32 and self.generator.random() < 0.25:
            order = f"{self._one_of('relaxed', 'acquire', 'release', 'acq_rel')}.{self._one_of(*self.scopes)}"
            function = self._one_of(*ATOMIC)
            typed = "" if not typed else f".{'u' if function in ('add', 'max') else 'b'}{bits}"
            operands = f"{self._one_of(0, 0, 1)}, {self.value()}" if function == "cas" else f"{value or self.value()}"
            if kind == "W" and function in ("add", "max", "or") and self.generator.random() < 0.4:
                order = order.replace("acq_rel", "release").replace("acquire", "relaxed")
                return [f"red.{order}.{function}{typed} {name}, {operands}"]
            return [f"atom.{order}.{function}{typed} {self.register()}, {name}, {operands}"]
        offset = self._one_of(*range(0, max(self.sizes) // 8, bits // 8))
        place = f"[{name}+{offset}]" if offset else name
        if kind == "W":
            return [f"st.{self.ordered('release')}{typed} {place}, {value or self.value()}"]
        if "nc" in self.features and self.generator.random() < 0.2:
            return [f"ld.global.nc{typed or '.b64'} {self.register()}, [{name}+{offset}]"]
        return [f"ld.{self.ordered('acquire')}{typed} {self.register()}, {place}"]

    def between(self, first):
        """What stands between the two accesses of the cycle."""
        found = ["bar.sync 0"] if self.barrier else []
        choice = self.generator.random()
        if choice < 0.4:
            order = self._one_of("sc", "sc", "acq_rel", "acq_rel", "acquire", "release")
            found.append(f"fence.{order}.{self._one_of(*self.scopes)}")
        elif choice < 0.55 and first[0].startswith(("ld", "atom")):
            source = re.search(r"\br\d+", first[0])[0]
            result = self.register()
            found += self._one_of([f"xor {result}, {source}, {source}"], [f"bne {source}, 1, E"])
            if found[-1].startswith("xor"):
                found += [f"add {result}, {result}, 5",
                          f"st.{self.ordered('release')} {self._one_of(*self.locations)}, {result}"]  # fmt: skip
        elif "more" in self.features and choice < 0.75:
            found += self.access(self._one_of("R", "W"), self._one_of(*self.locations))
        return found

    def behind(self, names):
        found = []
        if "more" in self.features and self.generator.random() < 0.3:
            found += self.access(self._one_of("R", "W"), self._one_of(*names))
        return found

    def _table(self):
        head = " | ".join(f"P{n}@{place}" for n, place in enumerate(self.places))
        columns = [[*column, "E:"] for column in self.columns]
        longest = max(map(len, columns))
        rows = "".join(" | ".join(c[at] if at < len(c) else "" for c in columns) + " ;\n" for at in range(longest))
        initial = " ".join(f"{name} = 0;" for name in self.locations)
        return f"PTX cycle\n{{ {initial} }}\n {head} ;\n{rows}"


def cycle_of(seed):
    """Two or three threads; what they are made of changes from seed to seed."""
    generator = random.Random(seed)
    features, sizes = KINDS[seed % len(KINDS)]
    return Cycle(generator, 2 + seed // len(KINDS) % 2, features, sizes)
