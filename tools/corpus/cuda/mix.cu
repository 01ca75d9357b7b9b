#include <cuda_fp16.h>
#include <mma.h>
#include <cuda/atomic>
#include <cuda_pipeline.h>
using namespace nvcuda;
__global__ void wm(half*a,half*b,float*c,int n) {
    wmma::fragment<wmma::matrix_a,16,16,16,half,wmma::row_major>fa;
    wmma::fragment<wmma::matrix_b,16,16,16,half,wmma::col_major>fb;
    wmma::fragment<wmma::accumulator,16,16,16,float>fc;
    wmma::fill_fragment(fc,0.f);
    for(int k=0;k<n;k+=16) {
        wmma::load_matrix_sync(fa,a+k,n);
        wmma::load_matrix_sync(fb,b+k,n);
        wmma::mma_sync(fc,fa,fb,fc);
    }
    wmma::store_matrix_sync(c,fc,16,wmma::mem_row_major);
}
__global__ void red1(const float*x,float*o) {
    __shared__ float s[256];
    int t=threadIdx.x;
    s[t]=x[blockIdx.x*256+t];
    __syncthreads();
    for(int k=128;k>0;k>>=1) {
        if(t<k)s[t]+=s[t+k];
        __syncthreads();
    }
    if(!t)o[blockIdx.x]=s[0];
}
__global__ void red2(const float*x,float*o) {
    __shared__ volatile float s[256];
    int t=threadIdx.x;
    s[t]=x[t]+x[t+256];
    __syncthreads();
    if(t<128)s[t]+=s[t+128];
    __syncthreads();
    if(t<64)s[t]+=s[t+64];
    __syncthreads();
    if(t<32) {
        float v=s[t]+s[t+32];
        for(int k=16;k;k/=2)v+=__shfl_down_sync(~0u,v,k);
        if(!t)*o=v;
    }
}
__global__ void tile(const float*a,const float*b,float*c,int n) {
    __shared__ float A[16][16],B[16][17];
    int x=threadIdx.x,y=threadIdx.y,r=blockIdx.y*16+y,q=blockIdx.x*16+x;
    float s=0;
    for(int m=0;m<n/16;m++) {
        A[y][x]=a[r*n+m*16+x];
        B[y][x]=b[(m*16+y)*n+q];
        __syncthreads();
        for(int k=0;k<16;k++)s+=A[y][k]*B[k][x];
        __syncthreads();
    }
    c[r*n+q]=s;
}
__global__ void scan1(int*x,int n) {
    __shared__ int s[2][512];
    int t=threadIdx.x,p=0;
    s[0][t]=x[t];
    __syncthreads();
    for(int o=1;o<n;o*=2) {
        p^=1;
        s[p][t]=s[p^1][t]+(t>=o?s[p^1][t-o]:0);
        __syncthreads();
    }
    x[t]=s[p][t];
}
__global__ void flag(int*d,cuda::atomic<int,cuda::thread_scope_device>*f) {
    if(blockIdx.x==0) {
        d[threadIdx.x]=7;
        __syncthreads();
        if(!threadIdx.x)f->store(1,cuda::memory_order_release);
    }
    else {
        if(!threadIdx.x)while(!f->load(cuda::memory_order_acquire));
        __syncthreads();
        d[1024+threadIdx.x]=d[threadIdx.x];
    }
}
__global__ void last(const float*x,float*p,unsigned*cnt,float*o) {
    __shared__ bool l;
    if(!threadIdx.x) {
        p[blockIdx.x]=x[blockIdx.x];
        __threadfence();
        l=atomicInc(cnt,gridDim.x)==gridDim.x-1;
    }
    __syncthreads();
    if(l) {
        float s=0;
        for(int i=threadIdx.x;i<gridDim.x;i+=blockDim.x)s+=((volatile float*)p)[i];
        atomicAdd(o,s);
    }
}
__global__ void hs(half2*x,half2*y,int n) {
    int i=blockIdx.x*blockDim.x+threadIdx.x;
    if(i<n)y[i]=__hfma2(x[i],y[i],x[i]);
}
__global__ void hist(const unsigned char*x,int*h,int n) {
    __shared__ int s[256];
    for(int i=threadIdx.x;i<256;i+=blockDim.x)s[i]=0;
    __syncthreads();
    for(int i=blockIdx.x*blockDim.x+threadIdx.x;i<n;i+=gridDim.x*blockDim.x)atomicAdd(&s[x[i]],1);
    __syncthreads();
    for(int i=threadIdx.x;i<256;i+=blockDim.x)atomicAdd(&h[i],s[i]);
}
__global__ void pipe(const int*x,int*o) {
    __shared__ int s[2][128];
    int t=threadIdx.x;
    __pipeline_memcpy_async(&s[0][t],&x[t],4);
    __pipeline_commit();
    for(int k=1;k<8;k++) {
        __pipeline_memcpy_async(&s[k&1][t],&x[k*128+t],4);
        __pipeline_commit();
        __pipeline_wait_prior(1);
        __syncthreads();
        o[k*128+t]=s[(k-1)&1][127-t];
        __syncthreads();
    }
}
__global__ void half_cta(int*x) {
    __shared__ int s[128];
    int t=threadIdx.x;
    if(t<64) {
        s[t]=x[t];
        asm volatile("bar.sync 1,64;":::"memory");
        x[t]=s[63-t];
    }
    else {
        s[t]=x[t]*2;
        asm volatile("bar.sync 2,64;":::"memory");
        x[t]=s[191-t];
    }
}
__device__ __noinline__ int fact(int n) {
    return n<2?1:n*fact(n-1);
}
__global__ void rec(int*x) {
    x[threadIdx.x]=fact(x[threadIdx.x]);
}
__global__ void dbl(double*x,int n) {
    int i=blockIdx.x*blockDim.x+threadIdx.x;
    for(int k=0;k<n;k++)x[i]=x[i]*1.5+k%n;
}
__global__ void dp(const char4*a,const char4*b,int*o) {
    int s=0;
    for(int k=0;k<64;k++)s=__dp4a(a[k*32+threadIdx.x],b[k*32+threadIdx.x],s);
    o[threadIdx.x]=s;
}
__global__ void trans(const float*x,float*y,int n) {
    __shared__ float s[32][33];
    int a=blockIdx.x*32+threadIdx.x,b=blockIdx.y*32+threadIdx.y;
    for(int j=0;j<32;j+=8)s[threadIdx.y+j][threadIdx.x]=x[(b+j)*n+a];
    __syncthreads();
    a=blockIdx.y*32+threadIdx.x;
    b=blockIdx.x*32+threadIdx.y;
    for(int j=0;j<32;j+=8)y[(b+j)*n+a]=s[threadIdx.x][threadIdx.y+j];
}
