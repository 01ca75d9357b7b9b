// Copies and fills that kernels queue: nvcc -ptx -rdc=true -arch=sm_90 copies.cu
__global__ void writer(int*p){ p[threadIdx.x]=3; }
extern "C" __global__ void filled(int*a,int*b){ if(threadIdx.x==0){ cudaMemsetAsync(a,1,64,0); a[5]=9; } }
extern "C" __global__ void filled_before(int*a,int*b){ if(threadIdx.x==0){ a[5]=9; cudaMemsetAsync(a,1,64,0); } }
extern "C" __global__ void filled_after(int*a,int*b){ if(threadIdx.x==0){ cudaMemsetAsync(a,1,64,cudaStreamTailLaunch); a[5]=9; } }
extern "C" __global__ void copied(int*a,int*b){ a[threadIdx.x]=1; if(threadIdx.x==0) cudaMemcpyAsync(b,a,256,cudaMemcpyDeviceToDevice,0); }
extern "C" __global__ void copied_synced(int*a,int*b){ a[threadIdx.x]=1; __syncthreads(); if(threadIdx.x==0) cudaMemcpyAsync(b,a,256,cudaMemcpyDeviceToDevice,0); }
extern "C" __global__ void read_back(int*a,int*b){ if(threadIdx.x==0){ cudaMemcpyAsync(b,a,64,cudaMemcpyDeviceToDevice,0); a[32]=b[3]; } }
extern "C" __global__ void beside(int*a,int*b){ if(threadIdx.x==0){ cudaStream_t s; cudaStreamCreateWithFlags(&s,cudaStreamNonBlocking); writer<<<1,32,0,s>>>(a); cudaMemcpyAsync(b,a,64,cudaMemcpyDeviceToDevice,0); } }
extern "C" __global__ void behind(int*a,int*b){ if(threadIdx.x==0){ cudaStream_t s; cudaStreamCreateWithFlags(&s,cudaStreamNonBlocking); cudaMemcpyAsync(b,a,64,cudaMemcpyDeviceToDevice,0); writer<<<1,32,0,s>>>(a); } }
extern "C" __global__ void in_order(int*a,int*b){ if(threadIdx.x==0){ writer<<<1,32>>>(a); cudaMemcpyAsync(b,a,64,cudaMemcpyDeviceToDevice,0); cudaMemsetAsync(a,0,64,0); writer<<<1,32>>>(b); } }
