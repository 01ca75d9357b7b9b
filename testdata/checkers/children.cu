// Grids that kernels launch: nvcc -ptx -rdc=true -arch=sm_90 children.cu
__global__ void child(int*p,int*q){ q[threadIdx.x]=p[threadIdx.x]; }
__global__ void writer(int*p){ p[threadIdx.x]=3; }
extern "C" __global__ void after(int*a,int*b){ if(threadIdx.x==0){ child<<<1,32>>>(a,b); a[5]=9; } }
extern "C" __global__ void before(int*a,int*b){ if(threadIdx.x==0){ a[5]=9; child<<<1,32>>>(a,b); } }
extern "C" __global__ void others(int*a,int*b){ a[threadIdx.x]=1; if(threadIdx.x==0) child<<<1,32>>>(a,b); }
extern "C" __global__ void synced(int*a,int*b){ a[threadIdx.x]=1; __syncthreads(); if(threadIdx.x==0) child<<<1,32>>>(a,b); }
extern "C" __global__ void reads(int*a,int*b){ if(threadIdx.x==0) writer<<<1,32>>>(a); __syncthreads(); b[threadIdx.x]=a[threadIdx.x%32]; }
extern "C" __global__ void tail(int*a,int*b){ if(threadIdx.x==0){ child<<<1,32,0,cudaStreamTailLaunch>>>(a,b); a[5]=9; } }
extern "C" __global__ void apart(int*a,int*b){ if(threadIdx.x==0){ writer<<<1,32,0,cudaStreamFireAndForget>>>(a); child<<<1,32,0,cudaStreamFireAndForget>>>(a,b); } }
extern "C" __global__ void overwrites(int*a,int*b){ if(threadIdx.x==0){ cudaStream_t s; cudaStreamCreateWithFlags(&s,cudaStreamNonBlocking); child<<<1,32,0,s>>>(a,b); writer<<<1,32>>>(a); } }
extern "C" __global__ void inorder(int*a,int*b){ if(threadIdx.x==0){ writer<<<1,32>>>(a); child<<<1,32>>>(a,b); } }
extern "C" __global__ void onestream(int*a,int*b){ if(threadIdx.x==0){ cudaStream_t s; cudaStreamCreateWithFlags(&s,cudaStreamNonBlocking); writer<<<1,32,0,s>>>(a); child<<<1,32,0,s>>>(a,b); } }
extern "C" __global__ void last(int*a,int*b){ if(threadIdx.x==0){ writer<<<1,32,0,cudaStreamFireAndForget>>>(a); child<<<1,32,0,cudaStreamTailLaunch>>>(a,b); } }
extern "C" __global__ void disjoint(int*a,int*b){ if(threadIdx.x==0){ writer<<<1,32,0,cudaStreamFireAndForget>>>(b+32); child<<<1,32,0,cudaStreamFireAndForget>>>(a,b); } }
extern "C" __global__ void event(int*a,int*b){ if(threadIdx.x==0){ cudaStream_t s; cudaEvent_t e; cudaStreamCreateWithFlags(&s,cudaStreamNonBlocking); cudaEventCreateWithFlags(&e,cudaEventDisableTiming); writer<<<1,32>>>(a); cudaEventRecord(e,0); cudaStreamWaitEvent(s,e,0); child<<<1,32,0,s>>>(a,b); } }
