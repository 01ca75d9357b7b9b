#include <cub/cub.cuh>
struct Pos {
    __device__ bool operator()(int x)const {
        return x>0;
    }
};
struct Less {
    __device__ bool operator()(int a,int b)const {
        return a<b;
    }
};
void f(void*a,void*o,int n) {
    void*t=0;
    size_t b=0;
    cub::DeviceScan::InclusiveSum(t,b,(int*)a,(int*)o,n);
}
