#include <stdio.h>
extern __device__ int helper(int x);
extern "C" __global__ void k(int *out) { int i=threadIdx.x; out[i]=helper(i); if(i<2) printf("k %d %d\n",i,out[i]); }
