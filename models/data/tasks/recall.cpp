#include "braid/models/data/tasks/recall.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "braid/models/data/tasks/draw.h"
#include "braid/tensor/error.h"

namespace braid::models::text {
namespace {

enum class Family : uint8_t { again, back, kinds, opposites, color };
constexpr const char* family_names[] = {"again", "back", "kinds", "opposites", "color"};  // in the order of Family

constexpr size_t kWords = 4, kLists = 3;
constexpr std::array colors = {"red", "blue", "green", "black", "white", "brown"};

struct Kind {
  const char* name;
  std::array<const char*, 6> things;
};
constexpr std::array kinds = {
    Kind{"animal", {"fox", "horse", "goat", "camel", "otter", "badger"}},
    Kind{"bird", {"owl", "robin", "stork", "parrot", "swan", "heron"}},
    Kind{"fruit", {"apple", "pear", "plum", "fig", "melon", "cherry"}},
    Kind{"drink", {"tea", "coffee", "cider", "cocoa", "milk", "juice"}},
    Kind{"instrument", {"cello", "flute", "harp", "trumpet", "drum", "banjo"}},
    Kind{"tree", {"oak", "birch", "willow", "maple", "pine", "cedar"}},
    Kind{"garment", {"coat", "scarf", "shirt", "skirt", "glove", "sock"}},
    Kind{"tool", {"saw", "hammer", "ladder", "spade", "broom", "knife"}},
};
constexpr std::array<std::array<const char*, 2>, 12> opposites = {{{"hot", "cold"},
                                                                   {"tall", "short"},
                                                                   {"rich", "poor"},
                                                                   {"happy", "sad"},
                                                                   {"fast", "slow"},
                                                                   {"strong", "weak"},
                                                                   {"young", "old"},
                                                                   {"loud", "quiet"},
                                                                   {"clean", "dirty"},
                                                                   {"early", "late"},
                                                                   {"wet", "dry"},
                                                                   {"thin", "thick"}}};

using Words = std::array<std::string, kWords>;

// The words of a list, and what the family makes of them, in the order of the list.
struct List {
  Words said, related;
};

List draw_list(Family family, Draw& draw) {
  const auto of = draw.distinct_below<kWords>(family == Family::opposites ? opposites.size() : kinds.size());
  List list;
  for (size_t i = 0; i < kWords; ++i) {
    if (family == Family::opposites) {
      const size_t side = draw.below(2);
      list.said[i] = opposites[of[i]][side];
      list.related[i] = opposites[of[i]][1 - side];
      continue;
    }
    const Kind& kind = kinds[of[i]];
    list.said[i] = kind.things[draw.below(kind.things.size())];
    list.related[i] = family == Family::kinds ? kind.name : list.said[i];
  }
  if (family == Family::back) std::ranges::reverse(list.related);
  return list;
}

class Writer {
 public:
  explicit Writer(const char* task) : sample_{task, "<", {}} {}
  void text(const std::string& text) { sample_.text += text; }
  void answer(const std::string& word) {
    const auto begin = std::ssize(sample_.text) + 1;
    sample_.text += " " + word;
    sample_.answers.push_back({begin, std::ssize(sample_.text)});
  }
  TaskSample finish() {
    sample_.text += " >\n";
    return std::move(sample_);
  }

 private:
  TaskSample sample_;
};

// " fox tea oak harp. Kinds: animal drink tree instrument."
void write_list(Writer& writer, Family family, Draw& draw) {
  constexpr const char* lead[] = {" Again:", " Back:", " Kinds:", " Opposites:"};  // in the order of Family
  const List list = draw_list(family, draw);
  for (const std::string& word : list.said) writer.text(" " + word);
  writer.text(str(".", lead[static_cast<size_t>(family)]));
  for (const std::string& word : list.related) writer.answer(word);
  writer.text(".");
}

// " red fox, blue tea, green oak, white harp. The green oak. The red fox. ..."
void write_colors(Writer& writer, Draw& draw) {
  const List list = draw_list(Family::color, draw);
  const auto of = draw.distinct_below<kWords>(colors.size());
  for (size_t i = 0; i < kWords; ++i)
    writer.text(str(" ", colors[of[i]], " ", list.said[i], i + 1 < kWords ? "," : "."));
  for (size_t q = 0; q < kLists * kWords; ++q) {  // as many as the other families have
    const size_t i = draw.below(kWords);
    writer.text(str(" The ", colors[of[i]]));
    writer.answer(list.said[i]);
    writer.text(".");
  }
}

}  // namespace

std::string recall_task_name(int task) { return family_names[task]; }

TaskSample make_recall_sample(Vocabulary vocabulary, uint64_t seed, int64_t index) {
  const auto family = static_cast<Family>(index % recall_task_count);
  Draw draw(vocabulary, seed, index);
  Writer writer(family_names[static_cast<size_t>(family)]);
  if (family == Family::color) {
    write_colors(writer, draw);
  } else {
    for (size_t i = 0; i < kLists; ++i) write_list(writer, family, draw);
  }
  return writer.finish();
}

}  // namespace braid::models::text
