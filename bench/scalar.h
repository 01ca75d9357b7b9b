/* What the C beside scalar forms (scalar_*.py) is written in: helpers that compute as the instructions do. */
#include <fenv.h>
#include <immintrin.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
typedef _Float16 H;
typedef float __attribute__((may_alias)) F;
#define N 512
#define KEEP __asm__ volatile("" ::: "memory")
#define SAT8(x) ((x) < 0 ? 0 : (x) > 255 ? 255 : (x))
#define SAT(x) ({ float s_ = (x); s_ > 0 ? (s_ < 1 ? s_ : 1) : 0; })
static inline int32_t SATADD(int32_t a, int32_t b)
{ int64_t s = (int64_t)a + b; return s > INT32_MAX ? INT32_MAX : s < INT32_MIN ? INT32_MIN : s; }
static inline uint32_t BREV(uint32_t a)
{ a = (a >> 1 & 0x55555555) | (a & 0x55555555) << 1; a = (a >> 2 & 0x33333333) | (a & 0x33333333) << 2;
  a = (a >> 4 & 0x0f0f0f0f) | (a & 0x0f0f0f0f) << 4; return __builtin_bswap32(a); }
static inline uint32_t BFE(uint32_t a, uint32_t p, uint32_t n)
{ uint32_t x = p > 31 ? 0 : a >> p; return n > 31 ? x : x & ((1u << n) - 1); }
static inline uint32_t FNS(uint32_t mask, uint32_t base, int32_t n)
{ if (n == 0) return mask >> (base & 31) & 1 ? base : -1;
  uint32_t step = n > 0 ? 1 : -1, left = n > 0 ? n : -n, at = base;
  for (; at < 32; at += step) if (mask >> at & 1 && !--left) return at;
  return -1; }
static inline int32_t DP4A(int32_t a, int32_t b, int32_t c)
{ for (int k = 0; k < 32; k += 8) c += (int8_t)(a >> k) * (int8_t)(b >> k); return c; }
static inline uint32_t PRMT(uint32_t a, uint32_t b, uint32_t c)
{ uint64_t x = (uint64_t)b << 32 | a; uint32_t d = 0;
  for (int k = 0; k < 4; k++) { uint32_t s = c >> 4 * k; uint8_t v = x >> 8 * (s & 7);
    d |= (uint32_t)(uint8_t)(s & 8 ? (int8_t)v >> 7 : v) << 8 * k; }
  return d; }
#define BYTES(f) ({ uint32_t r_ = 0; for (int k = 0; k < 32; k += 8) { uint32_t x = a >> k & 255, y = b >> k & 255; \
  r_ |= (uint32_t)(f) << k; } r_; })
static inline uint32_t DIFF4(uint32_t a, uint32_t b, uint32_t c)
{ for (int k = 0; k < 32; k += 8) { int x = a >> k & 255, y = b >> k & 255; c += x < y ? y - x : x - y; } return c; }
static inline uint32_t bits(float x) { uint32_t u; memcpy(&u, &x, 4); return u; }
static inline float real(uint32_t u) { float x; memcpy(&x, &u, 4); return x; }
static inline uint64_t bits64(double x) { uint64_t u; memcpy(&u, &x, 8); return u; }
static inline double real64(uint64_t u) { double x; memcpy(&x, &u, 8); return x; }
static inline float FTZ(float x) { return real((bits(x) & 0x7f800000) ? bits(x) : bits(x) & 1u << 31); }

/* each 32 lanes go on with the carries of the 32 before, as a warp does; the loops' index is i */
static uint8_t carry[32];
#define CARRIED(sum, term) ({ __auto_type t_ = (term); __typeof__(t_) s_ = (sum); carry[i & 31] = s_ < t_; s_; })
#define CARRIED_ON(sum, term) ({ __auto_type t_ = (term); __typeof__(t_) s_ = (sum); \
  carry[i & 31] = (s_ < t_) | (carry[i & 31] & (s_ == t_)); s_; })
#define CARRIED_32(sum) ({ uint64_t s_ = (sum); carry[i & 31] = s_ >> 32 != 0; (uint32_t)s_; })
#define SAT64(x) ({ double s_ = (x); s_ > 0 ? (s_ < 1 ? s_ : 1) : 0; })
#define ABSF(x) __builtin_fabsf(x)
#define XORSIGN(a, b, x) real((bits(x) & 0x7fffffff) | ((bits(a) ^ bits(b)) & 1u << 31))
static inline float ODD(double x) /* rounded to odd: rounding it again rounds once */
{ float f = x; uint32_t u = bits(f); u -= __builtin_fabs((double)f) > __builtin_fabs(x); return real(u | ((double)f != x)); }
static inline int32_t CLAMP(int64_t x) { return x > INT32_MAX ? INT32_MAX : x < INT32_MIN ? INT32_MIN : x; }
static inline uint32_t UCLAMP(int64_t x) { return x > UINT32_MAX ? UINT32_MAX : x < 0 ? 0 : x; }
#define BETWEEN(x, low, high) ((x) < (low) ? (low) : (x) > (high) ? (high) : (x))
#define MIN(x, y) ((x) < (y) ? (x) : (y))
#define MAX(x, y) ((x) > (y) ? (x) : (y))
#define ABS(x) ((x) < 0 ? -(x) : (x))
#define SBYTES(f) ({ uint32_t r_ = 0; for (int k = 0; k < 32; k += 8) { int x = (int8_t)(a >> k), y = (int8_t)(b >> k); \
  r_ |= (uint32_t)((f) & 255) << k; } r_; })
#define HALVES(f) ({ uint32_t r_ = 0; for (int k = 0; k < 32; k += 16) { int x = a >> k & 0xffff, y = b >> k & 0xffff; \
  r_ |= (uint32_t)((f) & 0xffff) << k; } r_; })
#define SHALVES(f) ({ uint32_t r_ = 0; for (int k = 0; k < 32; k += 16) { int x = (int16_t)(a >> k), y = (int16_t)(b >> k); \
  r_ |= (uint32_t)((f) & 0xffff) << k; } r_; })
#define BYTESUM(f) ({ uint32_t r_ = c; for (int k = 0; k < 32; k += 8) { int x = a >> k & 255, y = b >> k & 255; r_ += (f); } r_; })
#define HALFSUM(f) ({ uint32_t r_ = c; for (int k = 0; k < 32; k += 16) { int x = (int16_t)(a >> k), y = (int16_t)(b >> k); \
  r_ += (f); } r_; })
static inline uint64_t BFE64(uint64_t a, uint32_t p, uint32_t n)
{ uint64_t x = p > 63 ? 0 : a >> p; return n > 63 ? x : x & ((1ull << n) - 1); }
static inline int32_t SBFE(int32_t a, uint32_t p, uint32_t n)
{ int32_t x = a >> (p > 31 ? 31 : p); uint32_t have = p > 31 ? 1 : 32 - p; n = n < have ? n : have;
  return n ? (int32_t)((uint32_t)x << (32 - n)) >> (32 - n) : 0; }
static inline uint64_t BREV64(uint64_t a) { return (uint64_t)BREV(a) << 32 | BREV(a >> 32); }
#define PRMT_F4E(a, b, c) ((uint32_t)((((uint64_t)(b) << 32 | (a)) >> 8 * ((c) & 3))))
static inline uint32_t PRMT_RC8(uint32_t a, uint32_t c) { return (a >> 8 * (c & 3) & 255) * 0x01010101u; }

/* bf16 and the narrow floats: f32 to nearest, subnormals by adding a number whose last bit is theirs */
static inline uint16_t BF(float x)
{ uint32_t u = bits(x); return x != x ? 0x7fff : (u + 0x7fff + (u >> 16 & 1)) >> 16; }
static inline float FROMBF(uint32_t x) { return real(x << 16); }
static inline uint32_t SMALL(float x, int mantissa, int bias, uint32_t most, uint32_t nan, int sign)
{ uint32_t u = bits(x), m = u & 0x7fffffff, s = u >> 31 << sign, cut = 23 - mantissa;
  uint32_t normal = (m + ((1u << (cut - 1)) - 1) + (m >> cut & 1) - ((127u - bias) << 23)) >> cut;
  float magic = real((128u - bias + cut) << 23); uint32_t tiny = bits(real(m) + magic) - bits(magic);
  uint32_t r = m < (128u - bias) << 23 ? tiny : normal; r = r > most ? most : r;
  return m > 0x7f800000 ? nan : r | s; }
#define E4M3(x) SMALL(x, 3, 7, 0x7e, 0x7f, 7)
#define E5M2(x) SMALL(x, 2, 15, 0x7b, 0x7f, 7)
#define E2M3(x) SMALL(x, 3, 1, 0x1f, 0x1f, 5)
#define E3M2(x) SMALL(x, 2, 3, 0x1f, 0x1f, 5)
#define E2M1(x) SMALL(x, 1, 1, 7, 7, 3)
static inline uint16_t CUTBF(float x) { return x != x ? 0x7fff : bits(x) >> 16; }
/* scales, 2 ** (e - 127), and what one divides by; 64ths in a signed byte */
static inline float POWER(uint32_t e) { return e == 255 ? __builtin_nanf("") : real(e ? e << 23 : 0x400000); }
static inline float INVERSE(uint32_t e)
{ return e == 255 ? __builtin_nanf("") : real(e < 254 ? (254 - e) << 23 : 0x400000); }
static inline uint32_t S2F6(float x) { return (int32_t)(x >= -128 ? x < 127 ? x : 127 : x < 0 ? -128 : 127) & 255; }
#ifdef __PCLMUL__
#define CLMUL(a, b) _mm_clmulepi64_si128(_mm_cvtsi64_si128(a), _mm_cvtsi64_si128(b), 0)
#define CLMUL_LO(a, b) ((uint64_t)_mm_cvtsi128_si64(CLMUL(a, b)))
#define CLMUL_HI(a, b) ((uint64_t)_mm_cvtsi128_si64(_mm_unpackhi_epi64(CLMUL(a, b), CLMUL(a, b))))
#else
static inline uint64_t CLMUL_LO(uint64_t a, uint64_t b)
{ uint64_t r = 0; for (int k = 0; k < 64; k++) r ^= -(b >> k & 1) & a << k; return r; }
static inline uint64_t CLMUL_HI(uint64_t a, uint64_t b)
{ uint64_t r = 0; for (int k = 1; k < 64; k++) r ^= -(b >> k & 1) & a >> (64 - k); return r; }
#endif
/* random bits are added below the last place kept, then all is cut off */
#define RANDOM(x, r, keep) real(bits(x) + ((r) & (1u << (23 - (keep))) - 1) & -1u << (23 - (keep)))
static inline uint32_t SCALE_UP(float x)
{ uint32_t m = bits(x) & 0x7fffffff, e = m >> 23; e += (m & 0x7fffff) && m > 0x400000; e = e > 0xfe ? 0xfe : e;
  return m > 0x7f800000 ? 0xff : e; }
static inline uint32_t FROMSCALE(uint32_t e) { return e == 0 ? 0x40 : e == 255 ? 0x7fff : e << 7; }
static inline uint32_t TF32(float x)
{ uint32_t u = bits(x); return x != x ? 0x7fffffff : (u + 0x1000) & ~0x1fffu; }
static uint16_t from_e4m3[256], from_e5m2[256], from_e2m3[256], from_e3m2[256], from_e2m1[16];
static void widen_table(uint16_t *table, int mantissa, int exponent, int bias)
{ int count = 1 << (mantissa + exponent);
  for (int i = 0; i < count; i++)
  { int e = i >> mantissa, f = i & ((1 << mantissa) - 1);
    float x = e ? ldexpf((1 << mantissa) + f, e - bias - mantissa) : ldexpf(f, 1 - bias - mantissa);
    H h = x; uint16_t u; memcpy(&u, &h, 2); table[i] = u; table[i + count] = u | 0x8000; }
  if (exponent == 5) for (int i = 0x7c; i < 0x80; i++) table[i] = table[i + 128] = i == 0x7c ? 0x7c00 : 0x7fff;
  if (exponent == 4) table[0x7f] = table[0xff] = 0x7fff; }
static void prepare(void)
{ widen_table(from_e4m3, 3, 4, 7); widen_table(from_e5m2, 2, 5, 15); widen_table(from_e2m3, 3, 2, 1);
  widen_table(from_e3m2, 2, 3, 3); widen_table(from_e2m1, 1, 2, 1); }
static inline uint16_t HALFBITS(H x) { uint16_t u; memcpy(&u, &x, 2); return u; }
static inline H REALHALF(uint16_t u) { H x; memcpy(&x, &u, 2); return x; }
#define SOME_F16 (0x3800 + rand() % 0xc00)
#define SOME_BF16 (0x3f00 + rand() % 0x180)
#ifndef __F16C__
#define _cvtss_sh(x, mode) HALFBITS((H)(x))
#endif
#define PACK(high, low) ((uint32_t)(uint16_t)(high) << 16 | (uint16_t)(low))
#define EACH_HALF(f) ({ float x = REALHALF(a); uint32_t r_ = HALFBITS((H)(f)); x = REALHALF(a >> 16); \
  PACK(HALFBITS((H)(f)), r_); })

#if defined(__AVX512F__) && defined(__AVX512BW__)
#define HAVE_WIDE 1
/* sixteen halves at a time, in f32: what `f16:` and `bf16:` loops are made of */
static inline __m512 get_f16(const void *p) { return _mm512_cvtph_ps(_mm256_load_si256(p)); }
static inline void put_f16(void *p, __m512 x)
{ __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q); __m256i h = _mm512_cvtps_ph(x, 8);
  _mm256_store_si256(p, _mm256_mask_mov_epi16(h, nan, _mm256_set1_epi16(0x7fff))); }
static inline __m512 get_bf16(const void *p)
{ return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_load_si256(p)), 16)); }
static inline void put_bf16(void *p, __m512 x)
{ __m512i u = _mm512_castps_si512(x), odd = _mm512_and_si512(_mm512_srli_epi32(u, 16), _mm512_set1_epi32(1));
  u = _mm512_srli_epi32(_mm512_add_epi32(u, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff))), 16);
  u = _mm512_mask_mov_epi32(u, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), _mm512_set1_epi32(0x7fff));
  _mm256_store_si256(p, _mm512_cvtepi32_epi16(u)); }
static inline __m512 FMA_ODD(__m512 a, __m512 b, __m512 c) /* rounded to odd: rounding it again rounds once */
{ __m512 down = _mm512_fmadd_round_ps(a, b, c, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
  __m512 up = _mm512_fmadd_round_ps(a, b, c, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC);
  return _mm512_mask_mov_ps(up, _mm512_test_epi32_mask(_mm512_castps_si512(down), _mm512_set1_epi32(1)), down); }
#define WIDE(x) _mm512_set1_ps(x)
#define SATURATED(x) _mm512_min_ps(_mm512_max_ps(x, WIDE(0)), WIDE(1))
#define MINNUM(a, b) _mm512_mask_mov_ps(_mm512_min_ps(a, b), _mm512_cmp_ps_mask(b, b, _CMP_UNORD_Q), a)
#define MAXNUM(a, b) _mm512_mask_mov_ps(_mm512_max_ps(a, b), _mm512_cmp_ps_mask(b, b, _CMP_UNORD_Q), a)
#define UNNAN(x, a, b) _mm512_mask_mov_ps(x, _mm512_cmp_ps_mask(a, b, _CMP_UNORD_Q), WIDE(__builtin_nanf("")))
#define MAGNITUDE(x) _mm512_abs_ps(x)
#define FLUSHED(x) _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(_mm512_abs_ps(x), WIDE(0x1p-14f), _CMP_NLT_UQ), x)
#endif
