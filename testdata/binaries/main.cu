extern "C" __global__ void touch(int *p) { *p = 42; }
int main() { touch<<<1, 1>>>(nullptr); return 0; }
