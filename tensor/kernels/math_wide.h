// Elementary functions of f32, computed in f64 without branches, so that the compiler vectorises loops over them. The
// polynomials are good to 1e-10, so the f32 result is within 0.51 units in the last place, but atan(), see there;
// limits, signs of zero and NaN are those of the C standard. Under CUDA, and in f64, they are the library's.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace braid::math_wide {

#if defined(__CUDACC__)

using std::acos;
using std::acosh;
using std::asin;
using std::asinh;
using std::atan;
using std::atan2;
using std::atanh;
using std::cos;
using std::cosh;
using std::exp2;
using std::expm1;
using std::fmod;
using std::hypot;
using std::log;
using std::log10;
using std::log1p;
using std::log2;
using std::pow;
using std::sin;
using std::sinh;
using std::tan;

#else

inline constexpr double kInf = std::numeric_limits<double>::infinity();
inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
inline constexpr double kLn2 = 0.69314718055994530942, kLog2e = 1.44269504088896340736;
inline constexpr double kPi = 3.14159265358979323846;

// Horner's rule: polynomial(x, a, b, c) = (a x + b) x + c.
template <class A, class... Rest>
A polynomial(A x, A first, Rest... rest) {
  A y = first;
  ((y = y * x + A(rest)), ...);
  return y;
}

// 2^t, 0 below -1000 and infinity above 1000. t = n + r, |r| <= 1/2.
inline double power_of_2(double t) {
  constexpr double kMagic = 0x1.8p52;  // adding it rounds to an integer held in the low bits
  const double c = t > 1000 ? 1000 : t < -1000 ? -1000 : t;
  const double shifted = c + kMagic, r = c - (shifted - kMagic);
  const double p =
      polynomial(r, 1.32552407972069666e-6, 1.53101023803835109e-5, 1.54034557927496445e-4, 1.33334504818193268e-3,
                 9.6181291594647592e-3, 5.55041094129571744e-2, 2.40226506958128327e-1, 6.93147180545911006e-1, 1.0);
  const uint64_t scale = (std::bit_cast<uint64_t>(shifted) + 1023) << 52;
  return p * std::bit_cast<double>(scale);
}

// x = 2^exponent m, m in [sqrt(1/2), sqrt(2)), of a finite x above 0.
struct Binary {
  double exponent, m;
};
inline Binary binary(double x) {
  constexpr uint64_t kSqrtHalf = 0x3fe6a09e667f3bcdu;
  constexpr uint64_t kIntegers = 0x4330000000000000u;  // 2^52: an integer in its low bits is added to it
  const uint64_t i = std::bit_cast<uint64_t>(x) - kSqrtHalf + (uint64_t{1} << 62);  // positive: the shift needs no sign
  return {std::bit_cast<double>((i >> 52) | kIntegers) - (0x1p52 + 1024),
          std::bit_cast<double>((i & 0xfffffffffffffu) + kSqrtHalf)};
}
// y = log2(x) where that is finite.
inline double with_limits(double x, double y) {
  const double limit = x == kInf ? kInf : x == 0 ? -kInf : kNan;
  return x > 0 && x < kInf ? y : limit;
}

// log2(x), by a polynomial of m - 1.
inline double log_2(double x) {
  const auto [exponent, m] = binary(x);
  const double f = m - 1;
  return with_limits(
      x, f * polynomial(f, 0.0755375371077568, -0.141453125934424, 0.144954400430099, -0.143489944414024,
                        0.158782817784353, -0.180270993745367, 0.206172883758129, -0.240454340913545, 0.288537392924516,
                        -0.360673655212748, 0.480898360190774, -0.721347520963774, 1.44269504087086) +
             exponent);
}

// log2(x) to 1e-13, which powers need: log2(m) = 2 atanh(f) / ln 2, f = (m - 1) / (m + 1).
inline double log_2_of_base(double x) {
  const auto [exponent, m] = binary(x);
  const double f = (m - 1) / (m + 1);
  return with_limits(x, f * polynomial(f * f, 0.28288718263073564, 0.319906660889147401, 0.412209227330524442,
                                       0.577077942630261799, 0.961796694112359448, 2.88539008177785058) +
                            exponent);
}

// atan(a) of a in [0, 1].
inline double arc(double a) {
  return a * polynomial(a * a, 0.00105760743805724, -0.00703066947042421, 0.0219129458654484, -0.0439284107332675,
                        0.0668528151787742, -0.0878504328236285, 0.110507712758497, -0.14278576024808, 0.19999558100364,
                        -0.333333224889116, 0.999999999553538);
}
// The angle of the point (x, y), both at least 0: in [0, pi/2]. 0 / 0 and infinity / infinity are the caller's.
inline double angle(double y, double x) {
  const bool steep = y > x;
  const double a = arc((steep ? x : y) / (steep ? y : x));
  return steep ? kPi / 2 - a : a;
}

// sin(x) for shift 0, -cos(x) for shift 1/2: with n the integer nearest to x / pi - shift and r = x - (n + shift) pi,
// which lies in [-pi/2, pi/2], both are (-1)^n sin(r). The reduction is exact up to kLargestAngle.
inline constexpr float kLargestAngle = 0x1p20f;
inline double sine(double x, double shift) {
  constexpr double kMagic = 0x1.8p52, kHigh = 0x1.921fb54400000p1, kLow = 0x1.0b4611a626331p-33;  // pi in two parts
  const double shifted = (x * (1 / kPi) - shift) + kMagic, n = (shifted - kMagic) + shift;
  const double r = (x - n * kHigh) - n * kLow;
  const double s = r * polynomial(r * r, -2.3888990281027e-8, 2.75252571773013e-6, -1.98408609367188e-4,
                                  8.3333309723358e-3, -0.16666666616766, 0.999999999982899);
  return std::bit_cast<double>(std::bit_cast<uint64_t>(s) ^ (std::bit_cast<uint64_t>(shifted) << 63));
}

// The functions. `small`: where a series is exact and the formula loses digits.

inline float log(float x) { return static_cast<float>(log_2(x) * kLn2); }
inline float exp2(float x) { return x != x ? x : static_cast<float>(power_of_2(x)); }
inline float log2(float x) { return static_cast<float>(log_2(x)); }
inline float log10(float x) { return static_cast<float>(log_2(x) * 0.30102999566398119521); }

inline float expm1(float x) {
  const double t = x, large = power_of_2(t * kLog2e) - 1;
  const double small = t * polynomial(t, 1.0 / 120, 1.0 / 24, 1.0 / 6, 1.0 / 2, 1);
  const double y = std::fabs(t) < 0x1p-8 ? small : large;
  return x != x ? x : static_cast<float>(y);
}
inline float log1p(float x) {
  const double t = x, y = log_2(1 + t) * kLn2;
  return static_cast<float>(std::fabs(t) < 0x1p-27 ? t : y);
}
inline float sinh(float x) {
  const double t = x, up = power_of_2(t * kLog2e), z = t * t;
  const double small = t * polynomial(z, 1.0 / 362880, 1.0 / 5040, 1.0 / 120, 1.0 / 6, 1);
  const double y = std::fabs(t) < 0.25 ? small : 0.5 * (up - 1 / up);
  return x != x ? x : static_cast<float>(y);
}
inline float cosh(float x) {
  const double up = power_of_2(double{x} * kLog2e);
  return x != x ? x : static_cast<float>(0.5 * (up + 1 / up));
}
// log(a + sqrt(a^2 + 1)) = log1p(a + a^2 / (1 + sqrt(a^2 + 1))), a = |x|
inline float asinh(float x) {
  const double a = std::fabs(double{x}), z = a * a;
  const double large = log_2(1 + (a + z / (1 + std::sqrt(z + 1)))) * kLn2, small = a - a * z * (1.0 / 6);
  const double y = a < 0x1p-10 ? small : a < 1e300 ? large : kInf;
  return static_cast<float>(std::copysign(x != x ? kNan : std::isinf(x) ? kInf : y, double{x}));
}
inline float acosh(float x) {
  const double t = x, y = log_2(t + std::sqrt((t - 1) * (t + 1))) * kLn2;
  return static_cast<float>(t < 1 ? kNan : y);
}
inline float atanh(float x) {
  const double t = x, large = log_2((1 + t) / (1 - t)) * (kLn2 / 2);
  const double small = t * polynomial(t * t, 1.0 / 7, 1.0 / 5, 1.0 / 3, 1);
  return static_cast<float>(std::fabs(t) < 0x1p-5 ? small : large);
}

// These three need |x| <= kLargestAngle.
inline float sin(float x) { return x == 0 ? x : static_cast<float>(sine(x, 0)); }
inline float cos(float x) { return static_cast<float>(-sine(x, 0.5)); }
inline float tan(float x) { return x == 0 ? x : static_cast<float>(-sine(x, 0) / sine(x, 0.5)); }

// In f32, within 2 units in the last place: of a = |x| or its inverse, whichever is below 1.
inline float atan(float x) {
  const float a = std::fabs(x);
  const bool steep = a > 1;
  const float t = steep ? 1 / a : a, z = t * t;
  const float y = t + t * z *
                          polynomial(z, -0.002386997317f, 0.01350777143f, -0.03587153898f, 0.06250169445f,
                                     -0.0865688043f, 0.1103376412f, -0.1427856875f, 0.1999973933f, -0.3333333173f);
  constexpr float kHalfPi = 1.57079637f, kHalfPiLow = -4.37113883e-8f;
  return std::copysign(steep ? (kHalfPi - y) + kHalfPiLow : y, x);
}
inline float asin(float x) {
  const double a = std::fabs(double{x});
  return static_cast<float>(std::copysign(angle(a, std::sqrt((1 - a) * (1 + a))), double{x}));
}
inline float acos(float x) {
  const double t = x;
  return static_cast<float>(2 * angle(std::sqrt(1 - t), std::sqrt(1 + t)));
}
inline float atan2(float y, float x) {
  const double b = std::fabs(double{y}), a = std::fabs(double{x});
  const bool zeros = a == 0 && b == 0, infinities = a == kInf && b == kInf;
  const double first = zeros ? 0 : infinities ? kPi / 4 : angle(b, a);
  const double upper = std::signbit(x) ? kPi - first : first;
  return static_cast<float>(x != x || y != y ? kNan : std::copysign(upper, double{y}));
}

inline float hypot(float x, float y) {
  const double a = x, b = y, root = std::sqrt(a * a + b * b);
  return static_cast<float>(std::fabs(a) == kInf || std::fabs(b) == kInf ? kInf : root);
}

// x^y = 2^(y log2 |x|), negative for a negative x and an odd y, NaN for a negative x and no integer.
// An integer below 2^53 is odd where its half is none; above that all are even.
inline float pow(float x, float y) {
  const double t = y, a = std::fabs(double{x}), half = 0.5 * t;
  const bool even = half == std::trunc(half), integer = t == std::trunc(t);
  const double product = a == 1 ? 0 : t * log_2_of_base(a);
  const double size = product != product ? kNan : power_of_2(product);
  const double of_fraction = a == kInf ? size : a == 0 ? size : kNan;
  const double of_integer = even ? size : -size;
  const double of_negative = integer ? of_integer : of_fraction;
  const double value = std::copysign(1.0, double{x}) < 0 ? of_negative : size;
  const double known = y != y ? kNan : value;
  const double one = t == 0 ? 1 : x == 1 ? 1 : known;
  return static_cast<float>(one);
}

// x - y trunc(x / y): exact while the quotient is below 2^28, as then its product with y has 52 bits.
inline bool quotient_is_exact(float x, float y) {
  const double b = std::fabs(double{y});
  return std::fabs(double{x}) < b * 0x1p28 && b < kInf;
}
inline float fmod(float x, float y) {
  const double a = x, b = y;
  return static_cast<float>(std::copysign(a - std::trunc(a / b) * b, a));
}

// f64: the C library's.
inline double sin(double x) { return std::sin(x); }
inline double cos(double x) { return std::cos(x); }
inline double tan(double x) { return std::tan(x); }
inline double asin(double x) { return std::asin(x); }
inline double acos(double x) { return std::acos(x); }
inline double atan(double x) { return std::atan(x); }
inline double sinh(double x) { return std::sinh(x); }
inline double cosh(double x) { return std::cosh(x); }
inline double asinh(double x) { return std::asinh(x); }
inline double acosh(double x) { return std::acosh(x); }
inline double atanh(double x) { return std::atanh(x); }
inline double exp2(double x) { return std::exp2(x); }
inline double expm1(double x) { return std::expm1(x); }
inline double log1p(double x) { return std::log1p(x); }
inline double log2(double x) { return std::log2(x); }
inline double log(double x) { return std::log(x); }
inline double log10(double x) { return std::log10(x); }
inline double atan2(double x, double y) { return std::atan2(x, y); }
inline double hypot(double x, double y) { return std::hypot(x, y); }
inline double pow(double x, double y) { return std::pow(x, y); }
inline double fmod(double x, double y) { return std::fmod(x, y); }

#endif

}  // namespace braid::math_wide
