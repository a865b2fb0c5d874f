#include "braid/models/eval/shots.h"

#include <unordered_map>

#include "braid/tensor/error.h"
#include "braid/tensor/random.h"

namespace braid::models::eval {

std::vector<size_t> draw_shots(std::span<const Document> pool, const Document& document, int64_t item, int64_t count,
                               uint64_t seed) {
  const RandomKey key = child(child(RandomKey{seed, 0}, "shots"), static_cast<uint64_t>(item));
  std::vector<size_t> shots;
  // A shuffle of 0 .. n - 1 that goes only as far as needed: `moved` has the places that no longer hold their own
  // number.
  std::unordered_map<size_t, size_t> moved;
  const auto at = [&](size_t i) {
    const auto found = moved.find(i);
    return found == moved.end() ? i : found->second;
  };
  for (size_t i = 0; i < pool.size() && std::ssize(shots) < count; ++i) {
    const uint64_t left = pool.size() - i;
    const size_t j = i + static_cast<size_t>((uint64_t{random_bits(i, key)} * left) >> 32);
    const size_t drawn = at(j);
    moved[j] = at(i);
    if (!pool[drawn].same(document)) shots.push_back(drawn);
  }
  check(std::ssize(shots) == count, ErrorKind::setting, [&] {
    return str("too few examples for `shots`: expected ", count, " items besides line ", document.location.line, " of ",
               document.location.file, ", found ", shots.size(),
               "; ask for fewer, or give a longer file as `shots_from`");
  });
  return shots;
}

std::string shots_text(const TaskTemplate& form, std::span<const Document> pool, std::span<const size_t> shots) {
  std::string text;
  for (const size_t i : shots) {
    const auto gold = static_cast<size_t>(pool[i].gold);
    text += pool[i].contexts[gold] + form.delimiter + pool[i].choices[gold] + form.separator;
  }
  return text;
}

}  // namespace braid::models::eval
