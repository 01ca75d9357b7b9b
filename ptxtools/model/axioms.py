"""The axioms of the memory consistency model, as the manual's chapter has them (8; section numbers of PTX ISA 8.x).

The three models differ in what is marked "6.0", "7.5" and "8.x" below, and nowhere else:

- 6.0 has no proxies and no aliases. Base causality needs a synchronisation; program order alone is no part of it, and
  a write that a thread has observed precedes what overlaps it later in that thread.
- 7.5 adds proxies and aliases: program order is part of base causality, and causality keeps, of base causality, only
  what the proxies preserve.
- 8.x adds the cluster scope, one-sided fences (`fence.acquire`, `fence.release`, and those of a proxy), `.mmio`, and
  barriers of a cluster. Its axioms are those of 7.5, which has no such fences: the sets are empty there.

An event is an operation of 8.4. An atomic operation is one event, which reads and writes. A barrier is two events: it
arrives, then it waits.
"""

from __future__ import annotations

from functools import cache

from ptxtools.records import dataclass

from . import DEFAULT_MODEL, MODELS
from .terms import CHOICE, ORDER, Axiom, Early, FromReads, Given, Named, Set, on

# 8.4: the types of operations. `R` are read operations (ld and atom, not red), `W` write operations, `M` both, `RMW`
# atom and red. `F` are memory fences, which are sc, release prior operations or acquire later ones.
M, R, W, RMW = Set("M"), Set("R"), Set("W"), Set("RMW")
F, F_SC, F_REL, F_ACQ = Set("F"), Set("F_SC"), Set("F_REL"), Set("F_ACQ")
RELEASE, ACQUIRE, STRONG = Set("REL"), Set("ACQ"), Set("STRONG")
# 8.6: the proxies. `PROXY_FENCE` are fences of a single proxy, `ALIAS_FENCE` those of virtual aliases.
GENERIC, PROXY_FENCE, ALIAS_FENCE = Set("GENERIC"), Set("PROXY_FENCE"), Set("ALIAS_FENCE")
# 9.7.13.4: one-sided fences, from the generic proxy to another one; memory fences that are for shared memory only.
TO_PROXY_REL, TO_PROXY_ACQ = Set("TO_PROXY_REL"), Set("TO_PROXY_ACQ")
SHARED_REL, SHARED_ACQ = Set("SHARED_REL"), Set("SHARED_ACQ")
# 9.7.16.6: fences before and after the synchronisation of threads, and accesses, of tcgen05.
T_BEFORE, T_AFTER, TCGEN05 = Set("T_BEFORE"), Set("T_AFTER"), Set("TCGEN05")

# What an execution comes with, fixed by the program …
PROGRAM_ORDER = Given("po")  # 8.9.1
# 8.9.1.1: asynchronous operations are in no program order. They are behind what the thread executed before (and the
# writes of a copy behind its reads); what waits for them or is told of their end is their completion.
ISSUED, COMPLETED = Given("issued"), Given("completed")
DEPENDENCY = Given("dep", meaning="addr | data | ctrl")  # 8.10.4: from what a write's value, place or existence needs
SCOPES_INCLUDE = Given("scopes")  # 8.5: each specifies a scope that includes the other's thread
SAME_CTA = Given("same-cta")
SAME_PROXY = Given("same-proxy")  # 8.6
OVERLAP = Given("overlap")  # 8.2.1 and 8.2.2: they share bytes of memory, by whatever address
OVERLAP_AT_ADDRESS = Given("overlap-at-address")  # 8.2.1: the same virtual address as well
OVERLAP_COMPLETELY = Given("overlap-completely")  # the same address, and the same size
BARRIER = Given("barrier")  # 8.9.4: from arriving at a barrier, or the fence before a relaxed arrival, to waiting at it
ARRIVAL = Given("relaxed-barrier")  # 9.7.13.3: from a relaxed arrival to waiting; by itself it orders nothing
PREREQUISITE = Given("prerequisite")  # 9.7.13.13: from all of a grid to griddepcontrol.wait in one that depends on it
# 9.7.16.6: from operations of a thread to a fence that hands them on; to what of the same thread they execute before;
# between operations that execute in the order of their issue.
LAUNCHED, PIPED, PAIRED = Given("launched"), Given("piped"), Given("paired")
COVERED = Given("covered")  # 9.7.13.4: from an operation to a fence that is not limited to other memory, and back
# … and what is decided at run time.
READS_FROM = Given("rf", ORDER)  # from a write to each read that returns one of its bytes
READ_FROM = Given("rf^-1", ORDER)
FENCE_SC = Given("sc", CHOICE)  # 8.9.3
INITIAL = Given("initial")  # 8.2.6: from the initial write of memory to all other writes that overlap it
ORDERED = Given("ordered", ORDER)  # how morally strong writes are ordered where causality leaves it open


@dataclass(frozen=True)
class Model:
    """The definitions and the axioms of one version. coherence: the coherence order; cause: causality order;
    without: the axiom that is left out, to see what it alone forbids."""

    version: str
    definitions: tuple[Named, ...]
    axioms: tuple[Axiom, ...]
    morally_strong: Named
    cause: Named
    coherence: Named
    from_reads: Named
    without: str = ""


@cache
def model(version: str = DEFAULT_MODEL, without: str = "") -> Model:
    """The model of a version: "6.0", "7.5" or "8.x". without: the name of an axiom to leave out."""
    if version not in MODELS:
        raise ValueError(f"unknown memory model '{version}'; known: {', '.join(MODELS)}")
    has_proxies = version != "6.0"
    before_base: tuple[Named, ...] = ()
    proxies: tuple[Named, ...] = ()

    # 8.7: operations of one thread, or strong ones with scopes that include each other; through the same proxy (7.5);
    # if both are memory operations, they overlap completely.
    together = PROGRAM_ORDER | ~PROGRAM_ORDER | (on(STRONG) >> SCOPES_INCLUDE >> on(STRONG))
    if has_proxies:
        together = together & SAME_PROXY
    morally_strong = Named("morally-strong", "8.7", together - ((M * M) - OVERLAP_COMPLETELY))

    # 8.8: a release operation, alone or before a strong write on its location; a fence before a strong write.
    strong_write, strong_read = W & STRONG, R & STRONG
    on_the_location = PROGRAM_ORDER & OVERLAP_COMPLETELY
    release = Named(
        "release-pattern",
        "8.8",
        (on(W & RELEASE) >> on_the_location.maybe() >> on(strong_write))
        | (on(F_REL) >> PROGRAM_ORDER >> on(strong_write)),
    )
    # An acquire operation, alone or after a strong read on its location; a strong read before a fence.
    acquire = Named(
        "acquire-pattern",
        "8.8",
        (on(strong_read) >> on_the_location.maybe() >> on(R & ACQUIRE))
        | (on(strong_read) >> PROGRAM_ORDER >> on(F_ACQ)),
    )

    # 8.9.2: R reads from W and they are morally strong, or this through atomic operations in between: only those both
    # read and write, so that every inner event of a chain is one.
    observation = Named("observation", "8.9.2", Early(CHOICE, morally_strong & READS_FROM).plus())

    # 8.9.4: fence.sc by the Fence-SC order; barriers; a release pattern whose write is observed by an acquire pattern,
    # if the first operation of the one and the last operation of the other are morally strong.
    patterns = morally_strong & (release >> observation >> acquire)
    synchronizes = Named("synchronizes", "8.9.4", FENCE_SC | BARRIER | PREREQUISITE | patterns)

    # 8.9.5: causality order.
    if has_proxies:
        # What precedes an asynchronous operation does not precede, by that, its completion (8.9.1.1).
        threads = Named("causality-of-threads", "8.9.5", (PROGRAM_ORDER | synchronizes).plus())
        before_base = (threads,)
        behind = threads.maybe() >> ISSUED
        base = Named(
            "base-causality", "8.9.5", threads | behind | (COMPLETED >> threads.maybe()) | (COMPLETED >> behind)
        )
        # A fence of the operation's own proxy, by a thread of its CTA, leads from that proxy to the generic one and
        # back; an alias fence on the path leads from one address to another.
        same = Named("causality-of-one-proxy", "8.9.5", base & SAME_PROXY & SAME_CTA)
        leave = Named("leave-proxy", "8.6", on(GENERIC) | (on(M) >> same >> on(PROXY_FENCE)))
        enter = Named("enter-proxy", "8.6", on(GENERIC) | (on(PROXY_FENCE) >> same >> on(M)))
        # 9.7.16.6.3: a fence before the synchronisation of threads hands on to one after it, by whatever orders
        # execution. What is complete in front of the first precedes what is behind the second, and so does what forms a
        # pipeline with it.
        flag = Named(
            "relaxed-flag",
            "9.7.16.6.3",
            PROGRAM_ORDER >> on(strong_write) >> observation >> on(strong_read) >> PROGRAM_ORDER,
        )
        relaxed = Named("relaxed-arrival", "9.7.13.3", PROGRAM_ORDER >> ARRIVAL >> PROGRAM_ORDER)
        handed = (
            (on(T_BEFORE) >> (threads | flag | relaxed) >> on(T_AFTER)) | (on(T_AFTER) >> PROGRAM_ORDER >> on(T_BEFORE))
        ).plus()
        across = Named("across-threads", "9.7.16.6.3", on(T_BEFORE) >> handed >> on(T_AFTER) >> ISSUED)
        tensor = Named(
            "tensor-order",
            "9.7.16.6",
            (on(TCGEN05) >> (PIPED | (COMPLETED >> across) | (PAIRED & (LAUNCHED >> across))) >> on(TCGEN05)).plus(),
        )
        preserved = Named(
            "proxy-preserved-base-causality",
            "8.9.5",
            (on(M) >> ((OVERLAP_AT_ADDRESS & (leave >> base >> enter)) | (OVERLAP_AT_ADDRESS & same)) >> on(M))
            | (on(M) >> (OVERLAP & (leave >> base >> on(ALIAS_FENCE) >> base >> enter)) >> on(M))
            | (on(M) >> (OVERLAP_AT_ADDRESS & tensor) >> on(M))
            | (on(M) >> (OVERLAP & (PREREQUISITE >> base)) >> on(M)),  # 8.9.4: as the end of a task, for all proxies
        )
        # 9.7.13.4: a release and an acquire of another proxy, one handed on to the other by base causality or a pattern
        # of their own, order what goes through the generic proxy in front with what goes through that one behind.
        hands_on = morally_strong & (base | flag | relaxed)
        handed_on = Named("handed-on", "9.7.13.4", on(TO_PROXY_REL) >> hands_on >> on(TO_PROXY_ACQ))
        crossing = Named(
            "crossing-proxies",
            "9.7.13.4",
            on(M & GENERIC) >> (base & COVERED) >> handed_on >> (same & COVERED) >> on(M),
        )
        # A memory fence for shared memory only is one end of a pattern of 8.8, or both, for operations on that memory.
        give = Named("to-shared-release", "9.7.13.4", on(M & GENERIC) >> (base & COVERED) >> on(SHARED_REL))
        take = Named("from-shared-acquire", "9.7.13.4", on(SHARED_ACQ) >> (base & COVERED) >> on(M & GENERIC))
        gives, takes = PROGRAM_ORDER >> on(strong_write), on(strong_read) >> PROGRAM_ORDER
        restricted = Named(
            "shared-memory-patterns",
            "9.7.13.4",
            (
                give
                >> ((morally_strong & (gives >> observation >> acquire)) | (PROGRAM_ORDER >> ARRIVAL))
                >> base.maybe()
            )
            | (base.maybe() >> (morally_strong & (release >> observation >> takes)) >> take)
            | (give >> (morally_strong & (gives >> observation >> takes)) >> take),
        )
        one_sided = Named(
            "one-sided",
            "9.7.13.4",
            OVERLAP_AT_ADDRESS & (crossing | (on(M & GENERIC) >> restricted >> on(M & GENERIC))),
        )
        preserved_all = preserved | one_sided
        cause = Named("causality", "8.9.5", preserved_all | (observation >> preserved_all))
        sc_cause = base
        po_overlap = PROGRAM_ORDER & OVERLAP_AT_ADDRESS & SAME_PROXY
        proxies = (same, leave, enter, flag, relaxed, across, tensor, preserved, handed_on, crossing, give, take,
                   restricted, one_sided)  # fmt: skip
    else:
        base = Named("base-causality", "8.9.5", (PROGRAM_ORDER.maybe() >> synchronizes >> PROGRAM_ORDER.maybe()).plus())
        cause = Named("causality", "8.9.5", base | (observation >> (base | (PROGRAM_ORDER & OVERLAP))))
        sc_cause = cause
        po_overlap = PROGRAM_ORDER & OVERLAP

    # 8.9.6: overlapping writes are related if they are morally strong or causality relates them; no others are, but by
    # transitivity. 8.10.1 says that causality decides the direction.
    caused = Named("caused", "8.10.1", OVERLAP & (on(W) >> cause >> on(W)))
    decided = INITIAL | ORDERED if without == "Coherence" else INITIAL | ORDERED | caused
    coherence = Named("co", "8.9.6", decided.plus())

    # 8.9.7
    from_reads = Named("fr", "8.9.7", FromReads(READS_FROM, READ_FROM, coherence), whole=True)
    communication = Named("communication", "8.9.7", READS_FROM | coherence | from_reads)

    # 8.10
    axioms: tuple[Axiom, ...] = (
        Axiom("Coherence", "8.10.1", "irreflexive", coherence),
        Axiom("Fence-SC", "8.10.2", "irreflexive", FENCE_SC >> (on(F_SC) >> sc_cause >> on(F_SC))),
        Axiom("Single-Copy-Atomicity", "8.10.3", "irreflexive", (morally_strong & from_reads) >> READS_FROM),
        Axiom("Atomicity", "8.10.3", "irreflexive", on(RMW) >> (morally_strong & from_reads) >> coherence),
        Axiom("No-Thin-Air", "8.10.4", "acyclic", READS_FROM >> DEPENDENCY),
        Axiom("SC-per-Location", "8.10.5", "acyclic", (morally_strong & communication) | po_overlap),
        Axiom("Causality", "8.10.6", "irreflexive", (READS_FROM | from_reads) >> cause),
    )
    definitions = (morally_strong, release, acquire, observation, synchronizes, *before_base, base, *proxies, cause,
                   caused, coherence, from_reads, communication)  # fmt: skip
    if without == "Coherence":  # then writes that causality relates are ordered either way
        axioms = (Axiom("Coherence-Order", "8.9.6", "irreflexive", coherence), *axioms[1:])
    axioms = tuple(axiom for axiom in axioms if axiom.name != without)
    return Model(version, definitions, axioms, morally_strong, cause, coherence, from_reads, without)
