; The kernels of kernels7.ll in the modern dialect: opaque pointers.
source_filename = "kernels18"
target datalayout = "e-p:64:64:64-i1:8:8-i8:8:8-i16:16:16-i32:32:32-i64:64:64-i128:128:128-f32:32:32-f64:64:64-v16:16:16-v32:32:32-v64:64:64-v128:128:128-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

@partial = internal addrspace(3) global [128 x float] undef, align 4
@scale = internal addrspace(4) constant [4 x float] [float 1.0, float 2.0, float 4.0, float 8.0], align 4
@counter = internal addrspace(1) global i32 0, align 4

define internal i32 @index() alwaysinline {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %n = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %c = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %m = mul i32 %c, %n
  %i = add i32 %m, %t
  ret i32 %i
}

define void @vecadd(ptr %a, ptr %b, ptr %out, i32 %n) {
  %i = call i32 @index()
  %inside = icmp slt i32 %i, %n
  br i1 %inside, label %go, label %end
go:
  %pa = getelementptr float, ptr %a, i32 %i
  %pb = getelementptr float, ptr %b, i32 %i
  %pc = getelementptr float, ptr %out, i32 %i
  %x = load float, ptr %pa, align 4
  %y = load float, ptr %pb, align 4
  %z = fadd float %x, %y
  store float %z, ptr %pc, align 4
  br label %end
end:
  ret void
}

; The sum of 128 values of each CTA, in shared memory, times a constant.
define void @reduce(ptr addrspace(1) %in, ptr addrspace(1) %out) {
entry:
  %i = call i32 @index()
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %cta = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %p = getelementptr float, ptr addrspace(1) %in, i32 %i
  %v = load float, ptr addrspace(1) %p, align 4
  %mine = getelementptr [128 x float], ptr addrspace(3) @partial, i32 0, i32 %t
  store float %v, ptr addrspace(3) %mine, align 4
  call void @llvm.nvvm.barrier0()
  br label %loop
loop:
  %half = phi i32 [ 64, %entry ], [ %next, %joined ]
  %works = icmp ult i32 %t, %half
  br i1 %works, label %add, label %joined
add:
  %o = add i32 %t, %half
  %other = getelementptr [128 x float], ptr addrspace(3) @partial, i32 0, i32 %o
  %x = load float, ptr addrspace(3) %mine, align 4
  %y = load float, ptr addrspace(3) %other, align 4
  %s = fadd float %x, %y
  store float %s, ptr addrspace(3) %mine, align 4
  br label %joined
joined:
  call void @llvm.nvvm.barrier0()
  %next = lshr i32 %half, 1
  %more = icmp ne i32 %next, 0
  br i1 %more, label %loop, label %done
done:
  %first = icmp eq i32 %t, 0
  br i1 %first, label %write, label %end
write:
  %sum = load float, ptr addrspace(3) getelementptr inbounds ([128 x float], ptr addrspace(3) @partial, i32 0, i32 0), align 4
  %which = and i32 %cta, 3
  %ps = getelementptr [4 x float], ptr addrspace(4) @scale, i32 0, i32 %which
  %f = load float, ptr addrspace(4) %ps, align 4
  %scaled = fmul float %sum, %f
  %q = getelementptr float, ptr addrspace(1) %out, i32 %cta
  store float %scaled, ptr addrspace(1) %q, align 4
  br label %end
end:
  ret void
}

; out[0]: a sum, [1]: a maximum, [2]: increments that wrap, [3]: how often a compare-and-swap took place.
define void @atomics(ptr addrspace(1) %out, ptr addrspace(1) %sum) {
  %i = call i32 @index()
  %old = atomicrmw add ptr addrspace(1) %out, i32 %i monotonic
  %p1 = getelementptr i32, ptr addrspace(1) %out, i32 1
  %old1 = atomicrmw umax ptr addrspace(1) %p1, i32 %i seq_cst
  %p2 = getelementptr i32, ptr addrspace(1) %out, i32 2
  %old2 = call i32 @llvm.nvvm.atomic.load.inc.32.p1(ptr addrspace(1) %p2, i32 99)
  %p3 = getelementptr i32, ptr addrspace(1) %out, i32 3
  %both = cmpxchg ptr addrspace(1) @counter, i32 0, i32 1 seq_cst seq_cst
  %won = extractvalue { i32, i1 } %both, 1
  %one = zext i1 %won to i32
  %old3 = atomicrmw add ptr addrspace(1) %p3, i32 %one monotonic
  %f = call float @llvm.nvvm.atomic.load.add.f32.p1(ptr addrspace(1) %sum, float 5.000000e-01)
  ret void
}

; out = x * y + x, in half precision.
define void @halves(ptr addrspace(1) %x, ptr addrspace(1) %y, ptr addrspace(1) %out) {
  %i = call i32 @index()
  %px = getelementptr half, ptr addrspace(1) %x, i32 %i
  %py = getelementptr half, ptr addrspace(1) %y, i32 %i
  %po = getelementptr half, ptr addrspace(1) %out, i32 %i
  %a = load half, ptr addrspace(1) %px, align 2
  %b = load half, ptr addrspace(1) %py, align 2
  %m = fmul half %a, %b
  %s = fadd half %m, %a
  store half %s, ptr addrspace(1) %po, align 2
  ret void
}

declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare void @llvm.nvvm.barrier0()
declare i32 @llvm.nvvm.atomic.load.inc.32.p1(ptr addrspace(1), i32)
declare float @llvm.nvvm.atomic.load.add.f32.p1(ptr addrspace(1), float)

!nvvm.annotations = !{!0, !1, !2, !3}
!nvvmir.version = !{!4}
!0 = !{ptr @vecadd, !"kernel", i32 1, !"maxntidx", i32 256}
!1 = !{ptr @reduce, !"kernel", i32 1, !"reqntidx", i32 128, !"reqntidy", i32 1, !"reqntidz", i32 1}
!2 = !{ptr @atomics, !"kernel", i32 1}
!3 = !{ptr @halves, !"kernel", i32 1}
!4 = !{i32 2, i32 0}
