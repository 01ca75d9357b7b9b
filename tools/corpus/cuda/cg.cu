#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
namespace cg=cooperative_groups;
__global__ void red(const float*x,float*o,int n) {
    auto b=cg::this_thread_block();
    auto w=cg::tiled_partition<32>(b);
    float s=0;
    for(int i=b.group_index().x*b.size()+b.thread_rank();i<n;i+=gridDim.x*b.size())s+=x[i];
    s=cg::reduce(w,s,cg::plus<float>());
    if(w.thread_rank()==0)atomicAdd(o,s);
}
__global__ void part(int*x) {
    auto b=cg::this_thread_block();
    auto t=cg::tiled_partition<8>(b);
    int v=cg::inclusive_scan(t,x[b.thread_rank()]);
    x[b.thread_rank()]=v;
    auto c=cg::coalesced_threads();
    if(c.thread_rank()==0)x[0]=c.size();
}
__global__ void grid(float*x,int n) {
    auto g=cg::this_grid();
    for(int k=0;k<n;k++) {
        x[g.thread_rank()]*=2;
        g.sync();
        x[g.thread_rank()]+=x[(g.thread_rank()+1)%n];
        g.sync();
    }
}
__global__ void branchy(int*x) {
    auto b=cg::this_thread_block();
    if(x[b.thread_rank()]>3) {
        auto c=cg::coalesced_threads();
        int s=cg::reduce(c,x[b.thread_rank()],cg::plus<int>());
        x[b.thread_rank()]=s;
    }
}
