; What stands for libdevice in the tests: functions with its prefix, in the modern dialect.
target triple = "nvptx64-nvidia-cuda"

@name = private addrspace(4) constant [12 x i8] c"__CUDA_ARCH\00"
@table = internal addrspace(4) constant [2 x float] [float 2.0, float 3.0]

define float @__nv_twice(float %x) {
  %f = call float @factor(i32 0)
  %y = fmul float %x, %f
  ret float %y
}

define float @__nv_thrice(float %x) {
  %f = call float @factor(i32 1)
  %y = fmul float %x, %f
  ret float %y
}

define internal float @factor(i32 %i) noinline {
  %p = getelementptr [2 x float], ptr addrspace(4) @table, i32 0, i32 %i
  %f = load float, ptr addrspace(4) %p
  ret float %f
}

define i32 @__nv_architecture() {
  %a = call i32 @__nvvm_reflect(ptr addrspacecast (ptr addrspace(4) @name to ptr))
  ret i32 %a
}

declare i32 @__nvvm_reflect(ptr)
