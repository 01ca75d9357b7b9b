#include <cooperative_groups.h>
#include <cuda/barrier>
namespace cg=cooperative_groups;
__global__ void __launch_bounds__(128) halo(const float*x,float*y,int n) {
    __shared__ float s[130];
    int g=blockIdx.x*128+threadIdx.x,t=threadIdx.x+1;
    s[t]=g<n?x[g]:0;
    if(t==1)s[0]=g?x[g-1]:0;
    if(t==128)s[129]=g+1<n?x[g+1]:0;
    __syncthreads();
    if(g<n)y[g]=s[t-1]+s[t]+s[t+1];
}
__global__ void __launch_bounds__(256) seg(int*x,const int*f,int n) {
    __shared__ int v[256],b[256];
    int t=threadIdx.x;
    v[t]=x[t];
    b[t]=f[t];
    __syncthreads();
    for(int o=1;o<256;o<<=1) {
        int a=0,c=0;
        if(t>=o) {
            a=b[t]?0:v[t-o];
            c=b[t-o];
        }
        __syncthreads();
        v[t]+=a;
        b[t]|=c;
        __syncthreads();
    }
    x[t]=v[t];
}
__global__ void __launch_bounds__(128) spec(const float*x,float*y,int n) {
    __shared__ float s[2][64];
    int w=threadIdx.x/64,l=threadIdx.x%64;
    for(int k=0;k<n;k++) {
        if(w==0) {
            asm volatile("bar.sync 3,128;":::"memory");
            s[k&1][l]=x[k*64+l];
            asm volatile("bar.sync 4,128;":::"memory");
        }
        else {
            asm volatile("bar.sync 3,128;":::"memory");
            asm volatile("bar.sync 4,128;":::"memory");
            y[k*64+l]=s[k&1][63-l]*2;
        }
    }
}
__global__ void __launch_bounds__(128) pc(const float*x,float*y,int n) {
    __shared__ float s[64];
    int w=threadIdx.x/64,l=threadIdx.x%64;
    for(int k=0;k<n;k++) {
        if(w==0) {
            s[l]=x[k*64+l];
            asm volatile("bar.arrive 1,128;":::"memory");
            asm volatile("bar.sync 2,128;":::"memory");
        }
        else {
            asm volatile("bar.sync 1,128;":::"memory");
            y[k*64+l]=s[63-l];
            asm volatile("bar.arrive 2,128;":::"memory");
        }
    }
}
__global__ void __launch_bounds__(256) fft(float2*x) {
    __shared__ float2 s[512];
    int t=threadIdx.x;
    s[t]=x[t];
    s[t+256]=x[t+256];
    __syncthreads();
    for(int h=1;h<512;h<<=1) {
        int j=t&(h-1),i=((t-j)<<1)+j;
        float2 a=s[i],b=s[i+h];
        __syncthreads();
        s[i]=make_float2(a.x+b.x,a.y+b.y);
        s[i+h]=make_float2(a.x-b.x,a.y-b.y);
        __syncthreads();
    }
    x[t]=s[t];
    x[t+256]=s[t+256];
}
__global__ void __launch_bounds__(64) warpred(const float*x,float*y) {
    __shared__ float s[2];
    float v=x[threadIdx.x];
    for(int o=16;o;o>>=1)v+=__shfl_xor_sync(~0u,v,o);
    if(threadIdx.x%32==0)s[threadIdx.x/32]=v;
    __syncthreads();
    if(threadIdx.x==0)y[blockIdx.x]=s[0]+s[1];
}
__global__ void __launch_bounds__(32) wsync(const float*x,float*y) {
    __shared__ float s[32];
    s[threadIdx.x]=x[threadIdx.x];
    __syncwarp();
    float v=s[31-threadIdx.x];
    __syncwarp();
    s[threadIdx.x]=v*2;
    __syncwarp();
    y[threadIdx.x]=s[(threadIdx.x+1)%32];
}
__global__ void __launch_bounds__(256) queue(const int*x,int*q,int*n) {
    __shared__ int c,b;
    if(threadIdx.x==0)c=0;
    __syncthreads();
    int p=-1;
    if(x[threadIdx.x]>0)p=atomicAdd(&c,1);
    __syncthreads();
    if(threadIdx.x==0)b=atomicAdd(n,c);
    __syncthreads();
    if(p>=0)q[b+p]=x[threadIdx.x];
}
__global__ void __launch_bounds__(256) lookback(const int*x,int*o,volatile int*fl,volatile int*ag) {
    __shared__ int base;
    int t=threadIdx.x;
    if(t==0) {
        ag[blockIdx.x]=x[blockIdx.x];
        __threadfence();
        fl[blockIdx.x]=1;
        int s=0;
        for(int j=(int)blockIdx.x-1;j>=0;j--) {
            while(!fl[j]);
            __threadfence();
            s+=ag[j];
        }
        base=s;
    }
    __syncthreads();
    o[blockIdx.x*256+t]=base+t;
}
__global__ void __launch_bounds__(512) gemv(const float*A,const float*x,float*y,int n) {
    __shared__ float s[512];
    float v=0;
    for(int k=threadIdx.x;k<n;k+=512)v+=A[blockIdx.x*n+k]*x[k];
    s[threadIdx.x]=v;
    __syncthreads();
    for(int o=256;o>32;o>>=1) {
        if(threadIdx.x<o)s[threadIdx.x]+=s[threadIdx.x+o];
        __syncthreads();
    }
    if(threadIdx.x<32) {
        float a=s[threadIdx.x]+s[threadIdx.x+32];
        for(int o=16;o;o>>=1)a+=__shfl_down_sync(~0u,a,o);
        if(!threadIdx.x)y[blockIdx.x]=a;
    }
}
__global__ void __launch_bounds__(256) gol(const unsigned char*a,unsigned char*b,int w,int h) {
    int x=blockIdx.x*16+threadIdx.x%16,y=blockIdx.y*16+threadIdx.x/16;
    int n=0;
    for(int i=-1;i<2;i++)for(int j=-1;j<2;j++)n+=a[((y+i+h)%h)*w+(x+j+w)%w];
    b[y*w+x]=n==3||(n==4&&a[y*w+x]);
}
__global__ void __launch_bounds__(256) sortb(unsigned*x) {
    __shared__ unsigned s[256];
    int t=threadIdx.x;
    s[t]=x[t];
    for(int k=2;k<=256;k*=2)for(int j=k/2;j;j/=2) {
        __syncthreads();
        int p=t^j;
        if(p>t) {
            unsigned a=s[t],b=s[p];
            if(((t&k)==0)==(a>b)) {
                s[t]=b;
                s[p]=a;
            }
        }
    }
    __syncthreads();
    x[t]=s[t];
}
__global__ void __launch_bounds__(128) ring(const int*x,int*y) {
    __shared__ int s[128];
    __shared__ cuda::barrier<cuda::thread_scope_block> b[2];
    if(!threadIdx.x) {
        init(&b[0],128);
        init(&b[1],128);
    }
    __syncthreads();
    for(int k=0;k<6;k++) {
        s[threadIdx.x]=x[k*128+threadIdx.x];
        b[0].arrive_and_wait();
        y[k*128+threadIdx.x]=s[127-threadIdx.x];
        b[1].arrive_and_wait();
    }
}
