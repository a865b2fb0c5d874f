#include "braid/tensor/random.h"

namespace braid {

namespace {
// The finaliser of SplitMix64 (Steele, Lea, Flood 2014): a bijection with good avalanche.
uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}
}  // namespace

RandomKey child(RandomKey key, uint64_t index) {
  return {key.seed, mix(key.stream + 0x9e3779b97f4a7c15u) ^ mix(index + 0x632be59bd9b4e019u) * 0x9e3779b97f4a7c15u};
}

RandomKey child(RandomKey key, const char* name) {
  uint64_t h = 0xcbf29ce484222325u;  // FNV-1a
  for (; *name; ++name) h = (h ^ static_cast<unsigned char>(*name)) * 0x100000001b3u;
  return child(key, h);
}

}  // namespace braid
