; In the style of what Triton hands to LLVM: opaque pointers in spaces, predicated inline assembly, own debug locations.
source_filename = "LLVMDialectModule"
target datalayout = "e-p3:32:32-p4:32:32-p5:32:32-p6:32:32-p7:32:32-i64:64-i128:128-i256:256-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

@global_smem = external addrspace(3) global [0 x i8], align 16

define ptx_kernel void @add_kernel(ptr addrspace(1) %0, ptr addrspace(1) %1, ptr addrspace(1) %2, i32 %3, ptr addrspace(1) readnone captures(none) %4) local_unnamed_addr #0 !dbg !5 {
  %6 = tail call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x(), !dbg !8
  %7 = shl i32 %6, 7, !dbg !9
  %8 = tail call i32 @llvm.nvvm.read.ptx.sreg.tid.x(), !dbg !10
  %9 = and i32 %8, 127, !dbg !10
  %10 = or disjoint i32 %7, %9, !dbg !11
  %11 = icmp slt i32 %10, %3, !dbg !12
  %12 = sext i32 %10 to i64, !dbg !13
  %13 = getelementptr float, ptr addrspace(1) %0, i64 %12, !dbg !13
  %14 = tail call i32 asm sideeffect "mov.u32 $0, 0x0;\0A\09@$2 ld.global.b32 { $0 }, [ $1 + 0 ];", "=r,l,b"(ptr addrspace(1) %13, i1 %11), !dbg !14
  %15 = bitcast i32 %14 to float, !dbg !14
  %16 = getelementptr float, ptr addrspace(1) %1, i64 %12, !dbg !15
  %17 = tail call i32 asm sideeffect "mov.u32 $0, 0x0;\0A\09@$2 ld.global.b32 { $0 }, [ $1 + 0 ];", "=r,l,b"(ptr addrspace(1) %16, i1 %11), !dbg !16
  %18 = bitcast i32 %17 to float, !dbg !16
  %19 = fadd float %15, %18, !dbg !17
  %20 = getelementptr float, ptr addrspace(1) %2, i64 %12, !dbg !18
  %21 = bitcast float %19 to <1 x i32>, !dbg !19
  tail call void asm sideeffect "@$2 st.global.b32 [ $1 + 0 ], { $0 };", "r,l,b"(<1 x i32> %21, ptr addrspace(1) %20, i1 %11), !dbg !19
  ret void, !dbg !20
}

declare noundef range(i32 0, 2147483647) i32 @llvm.nvvm.read.ptx.sreg.ctaid.x() #1
declare noundef range(i32 0, 1024) i32 @llvm.nvvm.read.ptx.sreg.tid.x() #1

attributes #0 = { nounwind "nvvm.reqntid"="128" "target-cpu"="sm_90a" "target-features"="+ptx83" }
attributes #1 = { mustprogress nocallback nofree nosync nounwind speculatable willreturn memory(none) }

!llvm.dbg.cu = !{!0}
!llvm.module.flags = !{!2, !3}
!0 = distinct !DICompileUnit(language: DW_LANG_C, file: !1, producer: "triton", isOptimized: true, runtimeVersion: 0, emissionKind: LineTablesOnly)
!1 = !DIFile(filename: "add.py", directory: "/src")
!2 = !{i32 2, !"Debug Info Version", i32 3}
!3 = !{i32 4, !"nvvm-reflect-ftz", i32 1}
!5 = distinct !DISubprogram(name: "add_kernel", linkageName: "add_kernel", scope: !1, file: !1, line: 10, type: !6, scopeLine: 10, spFlags: DISPFlagDefinition | DISPFlagOptimized, unit: !0)
!6 = !DISubroutineType(cc: DW_CC_normal, types: !7)
!7 = !{}
!8 = !DILocation(line: 11, column: 24, scope: !5)
!9 = !DILocation(line: 12, column: 24, scope: !5)
!10 = !DILocation(line: 13, column: 41, scope: !5)
!11 = !DILocation(line: 13, column: 28, scope: !5)
!12 = !DILocation(line: 14, column: 21, scope: !5)
!13 = !DILocation(line: 15, column: 24, scope: !5)
!14 = !DILocation(line: 15, column: 16, scope: !5)
!15 = !DILocation(line: 16, column: 24, scope: !5)
!16 = !DILocation(line: 16, column: 16, scope: !5)
!17 = !DILocation(line: 17, column: 17, scope: !5)
!18 = !DILocation(line: 18, column: 26, scope: !5)
!19 = !DILocation(line: 18, column: 35, scope: !5)
!20 = !DILocation(line: 18, column: 4, scope: !5)
