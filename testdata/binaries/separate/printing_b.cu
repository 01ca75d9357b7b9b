#include <stdio.h>
__device__ int helper(int x) { if (x==3) printf("three\n"); return x*x; }
