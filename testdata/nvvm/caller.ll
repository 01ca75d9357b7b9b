; Calls functions of a library; typed pointers.
target datalayout = "e-p:64:64:64-i1:8:8-i8:8:8-i16:16:16-i32:32:32-i64:64:64-i128:128:128-f32:32:32-f64:64:64-v16:16:16-v32:32:32-v64:64:64-v128:128:128-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

define void @call(float* %x, i32* %arch) {
  %v = load float, float* %x, align 4
  %t = call float @__nv_twice(float %v)
  store float %t, float* %x, align 4
  %a = call i32 @__nv_architecture()
  store i32 %a, i32* %arch, align 4
  ret void
}

declare float @__nv_twice(float)
declare i32 @__nv_architecture()

!nvvm.annotations = !{!0}
!0 = !{void (float*, i32*)* @call, !"kernel", i32 1}
