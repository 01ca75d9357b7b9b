#include <cooperative_groups.h>
#include <cuda/barrier>
#include <cuda/ptx>
namespace cg=cooperative_groups;
namespace ptx=cuda::ptx;
__global__ void __cluster_dims__(2,1,1) dsm(int*o) {
    extern __shared__ int s[];
    auto c=cg::this_cluster();
    s[threadIdx.x]=c.block_rank()*100+threadIdx.x;
    c.sync();
    int*p=c.map_shared_rank(s,c.block_rank()^1);
    o[blockIdx.x*blockDim.x+threadIdx.x]=p[threadIdx.x];
    c.sync();
}
__global__ void bulk(const int*x,int*o) {
    __shared__ alignas(128) int s[1024];
    __shared__ cuda::barrier<cuda::thread_scope_block> b;
    if(!threadIdx.x) {
        init(&b,blockDim.x);
        cuda::device::experimental::fence_proxy_async_shared_cta();
    }
    __syncthreads();
    cuda::barrier<cuda::thread_scope_block>::arrival_token t;
    if(!threadIdx.x) {
        cuda::device::memcpy_async_tx(s,x,cuda::aligned_size_t<16>(4096),b);
        t=cuda::device::barrier_arrive_tx(b,1,4096);
    }
    else t=b.arrive();
    b.wait(std::move(t));
    for(int i=threadIdx.x;i<1024;i+=blockDim.x)s[i]+=1;
    cuda::device::experimental::fence_proxy_async_shared_cta();
    __syncthreads();
    if(!threadIdx.x) {
        ptx::cp_async_bulk(ptx::space_global,ptx::space_shared,o,s,4096);
        ptx::cp_async_bulk_commit_group();
        ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
    }
}
