#include <cuda/pipeline>
#include <cuda/barrier>
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
namespace cg=cooperative_groups;
__global__ void two(const float4*x,float4*o,int n) {
    extern __shared__ float4 s[];
    auto b=cg::this_thread_block();
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block,2> st;
    auto p=cuda::make_pipeline(b,&st);
    p.producer_acquire();
    cuda::memcpy_async(b,s,x,sizeof(float4)*b.size(),p);
    p.producer_commit();
    for(int k=1;k<=n;k++) {
        if(k<n) {
            p.producer_acquire();
            cuda::memcpy_async(b,s+(k&1)*b.size(),x+k*b.size(),sizeof(float4)*b.size(),p);
            p.producer_commit();
        }
        p.consumer_wait();
        float4 v=s[((k-1)&1)*b.size()+b.thread_rank()];
        v.x+=v.y;
        o[(k-1)*b.size()+b.thread_rank()]=v;
        p.consumer_release();
    }
}
__global__ void bar(const float*x,float*o) {
    __shared__ float s[256];
    __shared__ cuda::barrier<cuda::thread_scope_block> b;
    if(threadIdx.x==0)init(&b,blockDim.x);
    __syncthreads();
    for(int k=0;k<8;k++) {
        s[threadIdx.x]=x[k*256+threadIdx.x];
        auto t=b.arrive();
        b.wait(std::move(t));
        o[k*256+threadIdx.x]=s[255-threadIdx.x];
        b.arrive_and_wait();
    }
}
__global__ void mc(const int*x,int*o) {
    __shared__ int s[1024];
    auto b=cg::this_thread_block();
    cg::memcpy_async(b,s,x,sizeof(int)*1024);
    cg::wait(b);
    o[threadIdx.x]=s[1023-threadIdx.x];
}
