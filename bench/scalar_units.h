/* The approximate units in C, from the description that the semantics follow (ptxtools/semantics/interpolator.py);
   the tables come before this, from approximate_tables.json. */static inline uint32_t SQUARE(uint32_t x)
{ uint32_t u = x >> 9, t = u * u >> 1;
  for (int i = 2; i < 9; i++) t += -(x >> i & 1) & x >> (18 - i);
  return t; }
#define EVALUATE(f, part, extra, cut, low) ({ \
  uint32_t i_ = ((part) >> f##_bits) + (extra), o_ = (part) & ((1u << f##_bits) - 1); \
  uint32_t q_ = SQUARE(o_ << (17 - f##_bits)), s_ = f##_slopes[i_]; \
  uint32_t l_ = (s_ & 0xfffff) * f##_linear; \
  low = l_ * (o_ & ((1u << cut) - 1)) + (s_ >> 20) * f##_quadratic * q_ + f##_bias; \
  uint32_t v_ = (f##_values[i_] << (f##_shift - cut)) + l_ * (o_ >> cut) + ((int32_t)low >> cut); \
  low &= (1u << cut) - 1; v_; })
static inline float TABLE_RCP(float a)
{ uint32_t x = bits(a), sign = x & 1u << 31, e = x >> 23 & 255, low, v = EVALUATE(rcp, x & 0x7fffff, 0, 12, low);
  uint32_t one = v >> 27; int32_t field = 253 + one - e;
  uint32_t r = field > 0 ? (uint32_t)field << 23 | (v >> (one + 3) & 0x7fffff) : 0;
  r = e == 0 ? 0x7f800000 : e == 255 ? 0 : r;
  return real((x & 0x7fffffff) > 0x7f800000 ? 0x7fffffff : r | sign); }
static inline float TABLE_RSQRT(float a)
{ uint32_t x = bits(a), e = x >> 23 & 255, f = x & 0x7fffff, low; int32_t un = (int32_t)e - 127, half = un >> 1;
  uint32_t odd = un & 1, v = EVALUATE(rsqrt, f, odd << 6, 12, low), power = !(f | odd);
  uint32_t r = (uint32_t)(126 - half + power) << 23 | (power ? 0 : v >> 4 & 0x7fffff);
  r = e == 255 ? 0 : r; r = x >> 31 ? 0x7fffffff : r; r = e == 0 ? (x & 1u << 31) | 0x7f800000 : r;
  return real((x & 0x7fffffff) > 0x7f800000 ? 0x7fffffff : r); }
static inline float TABLE_SQRT(float a)
{ uint32_t x = bits(a), e = x >> 23 & 255, low; int32_t un = (int32_t)e - 127;
  uint32_t v = EVALUATE(sqrt, x & 0x7fffff, (un & 1) << 6, 12, low);
  uint32_t r = (uint32_t)(127 + (un >> 1)) << 23 | (v >> 5 & 0x7fffff);
  r = e == 255 ? 0x7f800000 : r; r = x >> 31 ? 0x7fffffff : r; r = e == 0 ? x & 1u << 31 : r;
  return real((x & 0x7fffffff) > 0x7f800000 ? 0x7fffffff : r); }
static inline double TABLE_RCP64(double a)
{ uint32_t x = bits64(a) >> 32, sign = x & 1u << 31, e = x >> 20 & 2047, low;
  uint32_t v = EVALUATE(rcp, (x & 0xfffff) << 3, 0, 12, low), one = v >> 27; int32_t field = 2045 + one - e;
  uint32_t r = field > 0 ? (uint32_t)field << 20 | (v >> (one + 3) & 0x7fffff) >> 3 : 0;
  r = e == 0 ? 0x7ff00000 : e == 2047 ? 0 : r;
  return real64((uint64_t)((x & 0x7fffffff) > 0x7ff00000 ? 0x7fffffff : r | sign) << 32); }
static inline double TABLE_RSQRT64(double a)
{ uint32_t x = bits64(a) >> 32, e = x >> 20 & 2047, f = x & 0xfffff, low; int32_t un = (int32_t)e - 1023;
  uint32_t odd = un & 1, v = EVALUATE(rsqrt, f << 3, odd << 6, 12, low), power = !(f | odd);
  uint32_t r = (uint32_t)(1022 - (un >> 1) + power) << 20 | (power ? 0 : (v >> 4 & 0x7fffff) >> 3);
  r = e == 2047 ? 0 : r; r = x >> 31 ? 0x7fffffff : r; r = e == 0 ? (x & 1u << 31) | 0x7ff00000 : r;
  return real64((uint64_t)((x & 0x7fffffff) > 0x7ff00000 ? 0x7fffffff : r) << 32); }
static inline double REFINED_RSQRT(double a)
{ double scaled = a < 0x1p-1022 ? a * 0x1p54 : a, y = TABLE_RSQRT64(scaled);
  double d = __builtin_fma(-scaled, y * y, 1.0), r = __builtin_fma(__builtin_fma(d, 0.375, 0.5), y * d, y);
  r = a < 0x1p-1022 ? r * 0x1p27 : r;
  return a < 0 ? __builtin_nan("") : a == 0 ? 1 / a : a > 0x1.fffffffffffffp1023 ? 0 : r; }
static inline float TABLE_EX2(float a)
{ uint32_t x = bits(a), e = x >> 23 & 255, m = (x & 0x7fffff) | 1 << 23, low;
  int32_t s = (e < 96 ? 96 : e > 134 ? 134 : (int32_t)e) - 127;
  uint32_t fixed = s < 0 ? m >> -s : m << s, part = fixed & 0x7fffff; int32_t whole = fixed >> 23;
  uint32_t minus = x >> 31, broken = minus & (part != 0);
  whole = minus ? -whole - (int32_t)broken : whole; part = broken ? part ^ 0x7fffff : part;
  uint32_t v = EVALUATE(ex2, part, 0, 12, low), r = (uint32_t)(whole + 127) << 23 | (v >> 3 & 0x7fffff);
  r = whole > 127 ? 0x7f800000 : whole < -126 ? 0 : r; r = e >= 135 ? (minus ? 0 : 0x7f800000) : r;
  r = e == 0 ? 0x3f800000 : r;
  return real((x & 0x7fffffff) > 0x7f800000 ? 0x7fffffff : r); }
static inline float QUARTERS(float a, uint32_t ahead) /* sin, of `ahead` quarter turns more */
{ float t = a * 0.15915494f; uint32_t x = bits(t), e = x >> 23 & 255, m = (x & 0x7fffff) | 1 << 23, low;
  int32_t s = (int32_t)e - 125, right = s < 0 ? (s < -31 ? 31 : -s) : 0, left = s > 0 ? (s > 25 ? 25 : s) : 0;
  uint32_t fixed = e ? (m >> right << left) & 0x1ffffff : 0, quadrant = (fixed >> 23) + ahead, part = fixed & 0x7fffff;
  part = quadrant & 1 ? part ^ 0x7fffff : part;
  uint32_t sign = (ahead ? 0 : x & 1u << 31) ^ (quadrant >> 1) << 31, v = EVALUATE(sin, part, 0, 7, low), tiny = v < 1u << 24;
  uint32_t n = tiny ? v << 7 | low : v; int32_t spare = 8 - (n ? __builtin_clz(n) : 32); spare = spare < 0 ? 0 : spare;
  float r = (float)(int32_t)(n >> spare << spare) * (tiny ? 0x1p-37f : 0x1p-30f);
  return real((bits(a) & 0x7fffffff) >= 0x7f800000 ? 0x7fffffff : bits(r) | sign); }
#define TABLE_SIN(a) QUARTERS(a, 0)
#define TABLE_COS(a) QUARTERS(a, 1)

#define TINY(x) (__builtin_fabsf(x) < 0x1p-126f)
#define RANGE(x) (TINY(x) ? 0x1p24f : __builtin_fabsf(x) > 0x1p126f ? 0.25f : 1.0f)
static inline float RCP(float a) { float s = RANGE(a); return TABLE_RCP(a * s) * s; }
static inline float SQRT(float a) { float r = TABLE_SQRT(TINY(a) ? a * 0x1p24f : a); return TINY(a) ? r * 0x1p-12f : r; }
static inline float RSQRT(float a) { float r = TABLE_RSQRT(TINY(a) ? a * 0x1p24f : a); return TINY(a) ? r * 0x1p12f : r; }
static inline float DIV(float a, float b) { float s = TINY(b) ? 0x1p24f : 1; return a * s * TABLE_RCP(b * s); }
static inline float FULL_DIV(float a, float b) { float s = RANGE(b); return a * s * TABLE_RCP(b * s); }
static inline float EX2(float a) { float r = TABLE_EX2(a < -126 ? a * 0.5f : a); return a < -126 ? r * r : r; }
static inline float TABLE_LG2(float a)
{ uint32_t x = bits(a), e = x >> 23 & 255, low, v = EVALUATE(lg2, x & 0x7fffff, 0, 12, low);
  int64_t fixed = ((int64_t)((int32_t)e - 127) << 39) + ((uint64_t)v << 12 | low);
  double d = (double)((fixed < 0 ? -fixed : fixed) & ~7ll) * 0x1p-39;
  uint32_t r = bits((float)real64(bits64(d) & -1ull << 29)) | (e < 127 ? 1u << 31 : 0);
  r = x == 0x3f800000 ? 0 : r; r = e == 255 ? 0x7f800000 : r; r = x >> 31 ? 0x7fffffff : r; r = e == 0 ? 0xff800000 : r;
  return real((x & 0x7fffffff) > 0x7f800000 ? 0x7fffffff : r); }
static inline float LG2(float a) { float r = TABLE_LG2(TINY(a) ? a * 0x1p24f : a); return TINY(a) ? r - 24 : r; }
static inline float TANH(float x)
{ float m = __builtin_fabsf(x), q = x * x, s = -0.0053974f;
  s = __builtin_fmaf(s, q, 0.0206390f); s = __builtin_fmaf(s, q, -0.0537397f); s = __builtin_fmaf(s, q, 0.1333145f);
  s = __builtin_fmaf(s, q, -0.3333332f);
  float near = __builtin_fmaf(s * q, x, x), far = 1 - 2 / (TABLE_EX2(m * 2.885390081777927f) + 1);
  return x != x ? x : m < 0.55f ? near : __builtin_copysignf(far, x); }
