// Grids that kernels launch: nvcc -ptx -rdc=true -arch=sm_90 children.cu
__global__ void child(int*p,int*q){ q[threadIdx.x]=p[threadIdx.x]; }
__global__ void writer(int*p){ p[threadIdx.x]=3; }
extern "C" __global__ void after(int*a,int*b){ if(threadIdx.x==0){ child<<<1,32>>>(a,b); a[5]=9; } }
extern "C" __global__ void before(int*a,int*b){ if(threadIdx.x==0){ a[5]=9; child<<<1,32>>>(a,b); } }
extern "C" __global__ void others(int*a,int*b){ a[threadIdx.x]=1; if(threadIdx.x==0) child<<<1,32>>>(a,b); }
extern "C" __global__ void synced(int*a,int*b){ a[threadIdx.x]=1; __syncthreads(); if(threadIdx.x==0) child<<<1,32>>>(a,b); }
extern "C" __global__ void reads(int*a,int*b){ if(threadIdx.x==0) writer<<<1,32>>>(a); __syncthreads(); b[threadIdx.x]=a[threadIdx.x%32]; }
extern "C" __global__ void tail(int*a,int*b){ if(threadIdx.x==0){ child<<<1,32,0,cudaStreamTailLaunch>>>(a,b); a[5]=9; } }
