#include "braid/tensor/random.h"

#include <limits>

#include "braid/tensor/convert.h"

namespace braid {

namespace {
// The finaliser of SplitMix64 (Steele, Lea, Flood 2014): a bijection with good avalanche.
uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// The number before x among those of T.
template <class T>
T before(T x) {
  if constexpr (sizeof(T) > 2) {
    return std::nextafter(x, -std::numeric_limits<T>::infinity());
  } else {
    const auto value = static_cast<float>(x);
    T y;
    y.bits = static_cast<uint16_t>(value > 0 ? x.bits - 1 : value < 0 ? x.bits + 1 : 0x8001);
    return y;
  }
}
// The largest number of T below x, or up to x.
template <class T>
double largest(double x, bool below) {
  const T nearest = convert<T>(x);
  const auto value = static_cast<double>(nearest);
  return value < x || (value == x && !below) ? value : static_cast<double>(before(nearest));
}
}  // namespace

UniformRange<double> uniform_range(DType result, double low, double high) {
  return visit_float(result, "uniform", [&]<class T>() {
    return UniformRange<double>{low, high - low, -largest<T>(-low, false), largest<T>(high, true)};
  });
}

RandomKey child(RandomKey key, uint64_t index) {
  return {key.seed, mix(key.stream + 0x9e3779b97f4a7c15u) ^ mix(index + 0x632be59bd9b4e019u) * 0x9e3779b97f4a7c15u};
}

RandomKey child(RandomKey key, const char* name) {
  uint64_t h = 0xcbf29ce484222325u;  // FNV-1a
  for (; *name; ++name) h = (h ^ static_cast<unsigned char>(*name)) * 0x100000001b3u;
  return child(key, h);
}

}  // namespace braid
