"""Calls: what is called, as what, and with which arguments (LLVM's "'call' Instruction")."""

from __future__ import annotations

from .nodes import Callee, Instruction, Word
from .reader import Malformed
from .tokens import words
from .types import VOID
from .values import ValueReader

FAST = words("nnan ninf nsz arcp contract afn reassoc fast")
CONVENTIONS = words(
    "ccc fastcc coldcc ghccc webkit_jscc anyregcc preserve_mostcc preserve_allcc preserve_nonecc cxx_fast_tlscc "
    "swiftcc swifttailcc tailcc cfguard_checkcc x86_stdcallcc x86_fastcallcc x86_thiscallcc x86_regcallcc "
    "x86_vectorcallcc x86_intrcc x86_64_sysvcc win64cc arm_apcscc arm_aapcscc arm_aapcs_vfpcc aarch64_vector_pcs "
    "aarch64_sve_vector_pcs msp430_intrcc avr_intrcc avr_signalcc ptx_kernel ptx_device spir_kernel spir_func "
    "intel_ocl_bicc hhvmcc hhvm_ccc amdgpu_vs amdgpu_ls amdgpu_hs amdgpu_es amdgpu_gs amdgpu_ps amdgpu_cs "
    "amdgpu_kernel amdgpu_cs_chain amdgpu_cs_chain_preserve amdgpu_gfx"
)


class CallReader(ValueReader):
    def words(self, among: frozenset[str]) -> list[Word]:
        found: list[Word] = []
        while self.texts[self.i] in among:
            found.append((self.word(), self.starts[self.i - 1]))
        return found

    def tail_call(self, found: Instruction) -> None:
        found.extra["tail"] = found.op
        found.op = self.word()
        if found.op != "call":
            raise Malformed(f"expected 'call' behind '{found.extra['tail']}'", self.i - 1)
        self.call(found)

    def call(self, found: Instruction) -> None:
        self.words(FAST)
        conventions = self.conventions()
        attributes = self.attributes()
        if self.texts[self.i] == "addrspace":
            self.space()
        found.extra["type_at"] = self.at()
        written = self.type()
        callee = self.assembler(written) if self.texts[self.i] == "asm" else self.value(written)
        function = written if written.kind == "function" else None
        if function is None and written.pointee is not None and written.pointee.kind == "function":
            function = written.pointee  # a pointer to the function's type, as before LLVM 4
        result = function.elements[0] if function else written
        found.operands.append(callee)
        each = self._arguments(found)
        trailing = self.attributes()
        found.extra["callee"] = Callee(result, function, attributes, each, conventions, trailing)
        if self.texts[self.i] == "[":
            found.extra["bundles"] = self.at()
            self.skip_brackets()
        if result is VOID and found.name:
            raise Malformed("a call of a function without a result has none to name", self.i - 1)

    def conventions(self) -> list[Word]:
        found = self.words(CONVENTIONS)
        if self.texts[self.i] == "cc" and self.texts[self.i + 1].isdecimal():
            at = self.at()
            self.i += 2
            found.append((self.since(at), at))
        return found

    def _arguments(self, found: Instruction) -> list[list[Word]]:
        self.demand("(")
        each: list[list[Word]] = []
        while not self.take(")"):
            if each:
                self.demand(",")
            if self.take("..."):
                continue
            kind = self.type()
            each.append(self.attributes())
            found.operands.append(self.value(kind))
        return each

    def skip_brackets(self) -> None:
        depth = 0
        while True:
            token = self.word()
            depth += (token == "[") - (token == "]")
            if not depth:
                return
