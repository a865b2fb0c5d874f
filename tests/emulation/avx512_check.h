// Every intrinsic of avx512.h against plain loops. Compiled twice: as the instructions themselves and in emulation. The
// file that includes this one says which: CHECK_NAMESPACE. Nothing of the standard library is included: one of its
// inline functions compiled here could be the one that the whole program runs.
#include <immintrin.h>
#include <stdint.h>

namespace braid::test::CHECK_NAMESPACE {
namespace {

struct Random {
  uint64_t state = 1;
  uint32_t bits() {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<uint32_t>(state >> 32);
  }
};

template <class To, class From>
To as(const From& x) {
  static_assert(sizeof(To) == sizeof(From));
  To y;
  __builtin_memcpy(&y, &x, sizeof y);
  return y;
}
bool same(const void* x, const void* y, int bytes) { return __builtin_memcmp(x, y, static_cast<size_t>(bytes)) == 0; }
float f32(uint32_t bits) { return as<float>(bits); }
float flushed(float x) { return __builtin_fabsf(x) < 0x1p-126f ? __builtin_copysignf(0, x) : x; }

// A vector of 64 bytes and its elements.
struct Vector {
  alignas(64) uint32_t word[16] = {};
  template <class V>
  Vector& operator=(V v) {
    static_assert(sizeof v == 64);
    __builtin_memcpy(word, &v, 64);
    return *this;
  }
  template <class V>
  V get() const {
    V v;
    __builtin_memcpy(&v, word, 64);
    return v;
  }
  __m512 ps() const { return get<__m512>(); }
  __m512i si() const { return get<__m512i>(); }
  uint16_t half(int i) const { return static_cast<uint16_t>(word[i / 2] >> i % 2 * 16); }
  uint8_t byte(int i) const { return static_cast<uint8_t>(word[i / 4] >> i % 4 * 8); }
  bool operator==(const Vector& v) const { return same(word, v.word, 64); }
};

// Values of all kinds: mostly of moderate size, some subnormal, zero, huge. No infinity and no NaN: those, as the
// result of an operation on others, may differ in their bits.
uint32_t float_bits(Random& random) {
  const uint32_t bits = random.bits(), kind = random.bits() % 16;
  if (kind == 0) return bits & 0x807fffff;  // subnormal
  if (kind == 1) return bits & 0x80000000;
  const uint32_t exponent = kind == 2 ? 1 + random.bits() % 200 : 120 + random.bits() % 16;
  return (bits & 0x807fffff) | exponent << 23;
}
// bf16, two in a word; the sums of their products stay finite.
uint32_t pair_bits(Random& random) {
  const auto one = [&] {
    const uint32_t bits = random.bits(), kind = random.bits() % 8;
    const uint32_t exponent = kind == 0 ? 0 : kind == 1 ? 1 + random.bits() % 100 : 120 + random.bits() % 16;
    return (bits & 0x807f) | exponent << 7;
  };
  const uint32_t low = one();
  return low | one() << 16;
}

#define CHECK(name, ok) \
  if (!(ok)) return name

const char* check_moves(Random& random) {
  Vector x, y, got, want;
  for (auto& w : x.word) w = random.bits();
  for (auto& w : y.word) w = random.bits();
  const __mmask16 mask = static_cast<__mmask16>(random.bits());
  const __mmask32 mask32 = random.bits();

  got = _mm512_loadu_si512(x.word);
  CHECK("loadu_si512", got == x);
  got = _mm512_load_si512(x.word);
  CHECK("load_si512", got == x);
  got = _mm512_loadu_ps(x.word);
  CHECK("loadu_ps", got == x);
  got = _mm512_loadu_pd(x.word);
  CHECK("loadu_pd", got == x);
  got = _mm512_castsi512_ps(x.si());
  CHECK("castsi512_ps", got == x);
  _mm512_store_si512(got.word, y.si());
  CHECK("store_si512", got == y);
  _mm512_storeu_ps(reinterpret_cast<float*>(got.word), x.ps());
  CHECK("storeu_ps", got == x);

  for (int i = 0; i < 16; ++i) want.word[i] = mask >> i & 1 ? x.word[i] : 0;
  got = _mm512_maskz_loadu_ps(mask, x.word);
  CHECK("maskz_loadu_ps", got == want);
  for (int i = 0; i < 16; ++i) want.word[i] = mask >> i & 1 ? x.word[i] : y.word[i];
  got = y;
  _mm512_mask_storeu_ps(got.word, mask, x.ps());
  CHECK("mask_storeu_ps", got == want);
  for (int i = 0; i < 16; ++i)
    want.word[i] =
        (mask32 >> 2 * i & 1 ? x.word[i] & 0xffff : 0) | (mask32 >> (2 * i + 1) & 1 ? x.word[i] & 0xffff0000 : 0);
  got = _mm512_maskz_loadu_epi16(mask32, x.word);
  CHECK("maskz_loadu_epi16", got == want);
  uint16_t half[16], want_half[16];
  for (int i = 0; i < 16; ++i) want_half[i] = mask >> i & 1 ? x.half(i) : 0;
  __m256i low = _mm256_maskz_loadu_epi16(mask, x.word);
  CHECK("mm256_maskz_loadu_epi16", same(&low, want_half, 32));
  for (int i = 0; i < 16; ++i) half[i] = y.half(i), want_half[i] = mask >> i & 1 ? x.half(i) : y.half(i);
  __builtin_memcpy(&low, x.word, 32);
  _mm256_mask_storeu_epi16(half, mask, low);
  CHECK("mm256_mask_storeu_epi16", same(half, want_half, 32));

  for (int i = 0; i < 16; ++i) want.word[i] = x.word[0];
  got = _mm512_set1_epi32(static_cast<int>(x.word[0]));
  CHECK("set1_epi32", got == want);
  const float one = f32(x.word[0] & 0xbfffffff);  // not NaN
  for (int i = 0; i < 16; ++i) want.word[i] = as<uint32_t>(one);
  got = _mm512_set1_ps(one);
  CHECK("set1_ps", got == want);
  const double wide = one;
  for (int i = 0; i < 8; ++i) __builtin_memcpy(&want.word[2 * i], &wide, sizeof wide);
  got = _mm512_set1_pd(wide);
  CHECK("set1_pd", got == want);
  for (auto& w : want.word) w = 0;
  got = _mm512_setzero_ps();
  CHECK("setzero_ps", got == want);
  got = _mm512_setzero_si512();
  CHECK("setzero_si512", got == want);
  return nullptr;
}

const char* check_integers(Random& random) {
  Vector x, y, z, got, want;
  for (auto& w : x.word) w = random.bits();
  for (auto& w : y.word) w = random.bits();
  for (auto& w : z.word) w = random.bits() >> 8;  // of which four products are no overflow

  for (int i = 0; i < 16; ++i) want.word[i] = x.word[i] | y.word[i];
  got = _mm512_or_si512(x.si(), y.si());
  CHECK("or_si512", got == want);
  for (int i = 0; i < 16; ++i) want.word[i] = x.word[i] << 16;
  got = _mm512_slli_epi32(x.si(), 16);
  CHECK("slli_epi32", got == want);
  for (int i = 0; i < 16; ++i) want.word[i] = x.half(i);
  __m256i low;
  __builtin_memcpy(&low, x.word, 32);
  got = _mm512_cvtepu16_epi32(low);
  CHECK("cvtepu16_epi32", got == want);
  const Vector all = want;
  for (int i = 0; i < 16; ++i) want.word[i] = 0xa35c >> i & 1 ? all.word[i] : 0;
  got = _mm512_maskz_cvtepu16_epi32(0xa35c, low);
  CHECK("maskz_cvtepu16_epi32", got == want);
  want = all;
  uint32_t sum = 0;  // of numbers of both signs, without the overflow that GCC's own header must not have
  for (int i = 0; i < 16; ++i) sum += want.word[i] = i % 2 ? z.word[i] : 0u - z.word[i];
  CHECK("reduce_add_epi32", static_cast<uint32_t>(_mm512_reduce_add_epi32(want.si())) == sum);

  // Inside each quarter: words 0 and 1 (lo) or 2 and 3 (hi) of both, in turn; or 64-bit numbers 0 or 1.
  for (int q = 0; q < 16; q += 4)
    for (int i = 0; i < 4; ++i) want.word[q + i] = (i % 2 ? y : x).word[q + i / 2];
  got = _mm512_unpacklo_epi32(x.si(), y.si());
  CHECK("unpacklo_epi32", got == want);
  for (int q = 0; q < 16; q += 4)
    for (int i = 0; i < 4; ++i) want.word[q + i] = (i % 2 ? y : x).word[q + 2 + i / 2];
  got = _mm512_unpackhi_epi32(x.si(), y.si());
  CHECK("unpackhi_epi32", got == want);
  for (int q = 0; q < 16; q += 4)
    for (int i = 0; i < 4; ++i) want.word[q + i] = (i / 2 ? y : x).word[q + i % 2];
  got = _mm512_unpacklo_epi64(x.si(), y.si());
  CHECK("unpacklo_epi64", got == want);
  for (int q = 0; q < 16; q += 4)
    for (int i = 0; i < 4; ++i) want.word[q + i] = (i / 2 ? y : x).word[q + 2 + i % 2];
  got = _mm512_unpackhi_epi64(x.si(), y.si());
  CHECK("unpackhi_epi64", got == want);
  const int even[] = {0, 2, 0, 2}, odd[] = {1, 3, 1, 3};
  for (int i = 0; i < 16; ++i) want.word[i] = (i < 8 ? x : y).word[4 * even[i / 4] + i % 4];
  got = _mm512_shuffle_i32x4(x.si(), y.si(), 0x88);
  CHECK("shuffle_i32x4, 0x88", got == want);
  for (int i = 0; i < 16; ++i) want.word[i] = (i < 8 ? x : y).word[4 * odd[i / 4] + i % 4];
  got = _mm512_shuffle_i32x4(x.si(), y.si(), 0xdd);
  CHECK("shuffle_i32x4, 0xdd", got == want);

  for (int i = 0; i < 16; ++i) {
    want.word[i] = z.word[i];
    for (int b = 4 * i; b < 4 * i + 4; ++b)
      want.word[i] += static_cast<uint32_t>(int{x.byte(b)} * int{static_cast<int8_t>(y.byte(b))});
  }
  got = _mm512_dpbusd_epi32(z.si(), x.si(), y.si());
  CHECK("dpbusd_epi32", got == want);
  for (int i = 0; i < 16; ++i) {
    want.word[i] = z.word[i];
    for (int h = 2 * i; h < 2 * i + 2; ++h)
      want.word[i] +=
          static_cast<uint32_t>(int{static_cast<int16_t>(x.half(h))} * int{static_cast<int16_t>(y.half(h))});
  }
  got = _mm512_dpwssd_epi32(z.si(), x.si(), y.si());
  CHECK("dpwssd_epi32", got == want);
  return nullptr;
}

const char* check_floats(Random& random) {
  Vector x, y, z, got, want;
  for (auto& w : x.word) w = float_bits(random);
  for (auto& w : y.word) w = float_bits(random);
  for (auto& w : z.word) w = float_bits(random);
  const auto of = [](const Vector& v, int i) { return f32(v.word[i]); };
  for (int i = 0; i < 16; ++i) want.word[i] = as<uint32_t>(of(x, i) + of(y, i));
  got = _mm512_add_ps(x.ps(), y.ps());
  CHECK("add_ps", got == want);
  for (int i = 0; i < 16; ++i) want.word[i] = as<uint32_t>(__builtin_fmaf(of(x, i), of(y, i), of(z, i)));
  got = _mm512_fmadd_ps(x.ps(), y.ps(), z.ps());
  CHECK("fmadd_ps", got == want);
  double a[8], b[8], c[8], d[8];
  for (int i = 0; i < 8; ++i) {
    a[i] = static_cast<double>(of(x, i)) + 0x1p-40 * static_cast<double>(of(x, i + 8)),
    b[i] = static_cast<double>(of(y, i));
    c[i] = static_cast<double>(of(z, i)), d[i] = __builtin_fma(a[i], b[i], c[i]);
  }
  const auto pd = [](const double* p) {
    __m512d v;
    __builtin_memcpy(&v, p, 64);
    return v;
  };
  got = _mm512_fmadd_pd(pd(a), pd(b), pd(c));
  CHECK("fmadd_pd", same(got.word, d, 64));

  // f16: of the bits s eeeee mmmmmmmmmm the value is m 2^-24, or (1024 + m) 2^(e - 25).
  for (int i = 0; i < 16; ++i) {
    const int bits = x.half(i) & 0xfbff, e = bits >> 10 & 31, m = bits & 1023;  // no infinity, no NaN
    x.word[i / 2] &= i % 2 ? 0xfbffffff : 0xfffffbff;
    double value = e ? 1024 + m : m;
    for (int k = 25; k > (e ? e : 1); --k) value /= 2;
    for (int k = 25; k < e; ++k) value *= 2;
    want.word[i] = as<uint32_t>(static_cast<float>(bits >> 15 ? -value : value));
  }
  __m256i low;
  __builtin_memcpy(&low, x.word, 32);
  got = _mm512_cvtph_ps(low);
  CHECK("cvtph_ps", got == want);
  got = _mm512_maskz_cvtph_ps(0xffff, low);
  CHECK("maskz_cvtph_ps", got == want);
  const __m256i again = _mm512_maskz_cvtps_ph(0xffff, want.ps(), _MM_FROUND_TO_NEAREST_INT);
  CHECK("maskz_cvtps_ph", same(&again, &low, 32));
  return nullptr;
}

const char* check_bf16(Random& random) {
  Vector x, y, z, got, want;
  for (auto& w : x.word) w = pair_bits(random);
  for (auto& w : y.word) w = pair_bits(random);
  for (auto& w : z.word) w = float_bits(random);
  for (int i = 0; i < 16; ++i) {
    float sum = flushed(f32(z.word[i]));
    for (int h = 1; h >= 0; --h)
      sum = flushed(__builtin_fmaf(flushed(f32(uint32_t{x.half(2 * i + h)} << 16)),
                                   flushed(f32(uint32_t{y.half(2 * i + h)} << 16)), sum));
    want.word[i] = as<uint32_t>(sum);
  }
  got = _mm512_dpbf16_ps(z.ps(), x.get<__m512bh>(), y.get<__m512bh>());
  CHECK("dpbf16_ps", got == want);

  z.word[0] = 0x3f808000, z.word[1] = 0x3f818000;  // halfway: down and up, to the even one
  z.word[2] = 0x7f800000, z.word[3] = 0x7f7fffff;  // infinity, and what is rounded to it
  z.word[4] = 0xffc00001;                          // NaN
  uint16_t half[16];
  for (int i = 0; i < 16; ++i) {
    const float value = flushed(f32(z.word[i]));
    const uint32_t bits = as<uint32_t>(value), down = bits & 0xffff0000;
    // The neighbours are down and up; the difference to each is exact.
    const uint32_t rest = bits & 0xffff;
    const bool up = rest > 0x8000 || (rest == 0x8000 && (down & 0x10000));
    half[i] = static_cast<uint16_t>((value != value ? bits | 0x400000 : up ? down + 0x10000 : down) >> 16);
  }
  const auto narrow = _mm512_cvtneps_pbh(z.ps());
  CHECK("cvtneps_pbh", same(&narrow, half, 32));
  return nullptr;
}

}  // namespace

// The name of an intrinsic whose result is wrong; null: none. With or without those of AVX512-VNNI and AVX512-BF16.
const char* wrong_intrinsic(bool vnni, bool bf16) {
  Random random;
  for (int i = 0; i < 2000; ++i) {
    if (const char* name = check_moves(random)) return name;
    if (vnni)
      if (const char* name = check_integers(random)) return name;
    if (const char* name = check_floats(random)) return name;
    if (bf16)
      if (const char* name = check_bf16(random)) return name;
  }
  return nullptr;
}

}  // namespace braid::test::CHECK_NAMESPACE
