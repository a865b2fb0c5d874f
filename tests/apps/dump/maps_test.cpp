// braid dump --attention: the maps against a computation of their own in f64 from the other tensors of the dump, and
// the table of names against what is written.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <map>
#include <regex>
#include <set>

#include "braid/models/folders/pretrained.h"
#include "braid/models/registry.h"
#include "braid/tensor/base/strings.h"
#include "braid/tensor/io/safetensors.h"
#include "tests/apps/support.h"
#include "tests/support/compare.h"
#include "tests/support/places.h"
#include "tests/support/random.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(dump_maps)

namespace fs = std::filesystem;

namespace {

const std::string kGolden = source_dir() + "/tests/golden/";

struct Array {
  Array() = default;
  explicit Array(const Tensor& x) : shape(x.shape()), values(x.to_vector<double>()) {}
  explicit operator bool() const { return !values.empty(); }
  template <class... I>
  double operator()(I... index) const {
    int64_t at = 0;
    int axis = 0;
    ((at = at * shape[axis++] + index), ...);
    return values.at(static_cast<size_t>(at));
  }
  Shape shape;
  std::vector<double> values;
};

struct Mixing {
  Array base, q_down, q_up, k_down, k_up, q_gate, k_gate;
};

// One attention of a dump: window keys of a query, 0: all. Everything is read by name, so that nothing of the library
// takes part.
struct Case {
  Array q, k;
  Mixing pre, post;
  int64_t window = 0;

  int64_t B() const { return q.shape[0]; }
  int64_t T() const { return q.shape[1]; }
  int64_t N() const { return q.shape[2]; }
  bool masked(int64_t i, int64_t j) const { return j > i || (window > 0 && j <= i - window); }
};

using Map = std::vector<double>;  // (B, N, T, T)

size_t place(const Case& c, int64_t b, int64_t n, int64_t i, int64_t j) {
  return static_cast<size_t>(((b * c.N() + n) * c.T() + i) * c.T() + j);
}

template <class F>
Map make_map(const Case& c, F&& value) {
  Map map(static_cast<size_t>(c.B() * c.N() * c.T() * c.T()));
  for (int64_t b = 0; b < c.B(); ++b)
    for (int64_t n = 0; n < c.N(); ++n)
      for (int64_t i = 0; i < c.T(); ++i)
        for (int64_t j = 0; j < c.T(); ++j) map[place(c, b, n, i, j)] = value(b, n, i, j);
  return map;
}

// O[n] of the formula for one pair (i, j); A has no infinities where the pair is unmasked.
Map composed(const Case& c, const Map& a, const Mixing& x, double at_masked) {
  const Array& factors = x.q_down ? x.q_down : x.k_down;
  const int64_t G = x.base ? x.base.shape[0] : factors ? factors.shape[2] : 1, M = c.N() / G;
  return make_map(c, [&](int64_t b, int64_t n, int64_t i, int64_t j) {
    if (c.masked(i, j)) return at_masked;
    const int64_t g = n / M, m = n % M;
    const auto read = [&](int64_t k) { return a[place(c, b, g * M + k, i, j)]; };
    double o = read(m);
    for (int64_t k = 0; k < M && x.base; ++k) o += read(k) * x.base(g, k, m);
    const auto low_rank = [&](const Array& down, const Array& up, int64_t p) {
      for (int64_t r = 0; down && r < down.shape[3]; ++r) {
        double hidden = 0;
        for (int64_t k = 0; k < M; ++k) hidden += read(k) * down(b, p, g, r, k);
        o += hidden * up(b, p, g, r, m);
      }
    };
    low_rank(x.q_down, x.q_up, i);
    low_rank(x.k_down, x.k_up, j);
    if (x.q_gate) o += read(m) * x.q_gate(b, i, g, m);
    if (x.k_gate) o += read(m) * x.k_gate(b, j, g, m);
    return o;
  });
}

void check_maps(const Case& c, const io::SafetensorsFile& dump, const std::string& prefix) {
  const double none = -std::numeric_limits<double>::infinity();
  const int64_t d = c.q.shape[3];
  const Map scores = make_map(c, [&](int64_t b, int64_t n, int64_t i, int64_t j) {
    double sum = 0;
    for (int64_t e = 0; e < d; ++e) sum += c.q(b, i, n, e) * c.k(b, j, n, e);
    return c.masked(i, j) ? none : sum / std::sqrt(static_cast<double>(d));
  });
  const Map scores_composed = composed(c, scores, c.pre, none);
  const Map probs = make_map(c, [&](int64_t b, int64_t n, int64_t i, int64_t j) {
    double total = 0;
    for (int64_t s = 0; s < c.T(); ++s) total += std::exp(scores_composed[place(c, b, n, i, s)]);
    return std::exp(scores_composed[place(c, b, n, i, j)]) / total;
  });
  const Map probs_composed = composed(c, probs, c.post, 0);
  const auto compare = [&](const std::string& name, const Map& want) {
    BOOST_TEST_CONTEXT(prefix << name) {
      const Tensor got = dump.load(prefix + name);
      BOOST_TEST((got.shape() == Shape{c.B(), c.N(), c.T(), c.T()}));
      BOOST_TEST(is_close(got.to_vector<double>(), want, 1e-12));
    }
  };
  compare("attn_scores", scores);
  compare("attn_scores_composed", scores_composed);
  compare("attn_probs", probs);
  compare("attn_probs_composed", probs_composed);
}

Mixing mixing(const io::SafetensorsFile& file, const std::vector<std::string>& names) {
  const auto load = [&](size_t i) { return file.find(names[i]) ? Array(file.load(names[i])) : Array(); };
  return {load(0), load(1), load(2), load(3), load(4), load(5), load(6)};
}

Mixing of_layer(const io::SafetensorsFile& file, const std::string& stage) {
  std::vector<std::string> names = {stage + ".w"};
  for (const char* term : {"_q.w1", "_q.w2", "_k.w1", "_k.w2", "_q.dd", "_k.dd"}) names.push_back(stage + term);
  return mixing(file, names);
}

// A model with every term, random weights and a tokenizer: static, two groups, local and global layers.
void write_model(const fs::path& folder, const std::string& attention = "plain", const std::string& residual = "plain",
                 bool compose = true) {
  const auto spec = models::configure_model("dcformer-tiny", {{"attention", attention},
                                                              {"residual", residual},
                                                              {"use_dcmha", compose ? "true" : "false"},
                                                              {"dim", "32"},
                                                              {"n_head", "4"},
                                                              {"n_layer", "2"},
                                                              {"intermediate_size", "48"},
                                                              {"vocab_size", "260"},
                                                              {"window_size", "5"},
                                                              {"block_size", "64"},
                                                              {"initializer_std", "0.3"},
                                                              {"profile.static_proj", compose ? "true" : "false"},
                                                              {"profile.num_groups", "2"}});
  const auto model = spec->make({5, 0});
  for (nn::NamedTensor& p : nn::parameters(*model)) {
    if (p.name.find("dyn_w_proj") == std::string::npos) continue;
    Tensor x = p.value.detach();
    x.copy_(normal_tensor(x.shape(), 0.3, child({9, 9}, p.name.c_str())));
  }
  fs::create_directories(folder);
  const models::text::ByteTokenizer tokenizer;
  models::save_model(*model, &tokenizer, folder);
}

void write_image_model(const fs::path& folder) {
  const auto spec = models::configure_model("dc-vit-28", {{"hidden_size", "16"},
                                                          {"num_attention_heads", "2"},
                                                          {"num_hidden_layers", "2"},
                                                          {"intermediate_size", "24"},
                                                          {"image_size", "8,12"},
                                                          {"patch_size", "4"},
                                                          {"num_labels", "5"}});
  fs::create_directories(folder);
  models::save_model(*spec->make({5, 0}), nullptr, folder);
}

// The rows of the table in names.md: a pattern of the name, and the axes.
struct Row {
  std::string name;
  std::regex pattern;
  std::vector<std::string> axes;  // empty: as another tensor
};
// The first table is that of models that read text; in the second some rows differ for those that read images.
std::vector<Row> table(bool images) {
  std::vector<Row> rows;
  bool second = false;
  for (const std::string& line : detail::split(slurp(source_dir() + "/apps/dump/names.md"), '\n')) {
    second |= line.starts_with("## Models that read images");
    if (!line.starts_with("| `") || (second && !images)) continue;
    const std::vector<std::string> cells = detail::split(line, '|');
    BOOST_REQUIRE(cells.size() == 6u);
    std::string name(detail::trim(cells[1])), axes(detail::trim(cells[2]));
    name = name.substr(1, name.size() - 2);
    std::string pattern = std::regex_replace(name, std::regex("\\."), "\\.");
    pattern = std::regex_replace(pattern, std::regex("<i>"), "[0-9]+");
    pattern = std::regex_replace(pattern, std::regex("<stage>"), "(pre|post)");
    pattern = std::regex_replace(pattern, std::regex("<name>"), ".+");
    Row row{name, std::regex(pattern), {}};
    if (axes.starts_with("(")) {
      for (const std::string& axis : detail::split(axes.substr(1, axes.size() - 2), ','))
        row.axes.emplace_back(detail::trim(axis));
    }
    std::erase_if(rows, [&](const Row& earlier) { return earlier.name == name; });
    rows.push_back(row);
  }
  return rows;
}

// Every name of the dump matches one row and has its axes, each letter one size. Marks the rows that occurred.
void check_names(const fs::path& dump, const std::vector<Row>& rows, std::vector<int>& seen) {
  std::map<std::string, int64_t> sizes{{"1", 1}};
  const io::SafetensorsFile file(dump.string());
  for (const io::TensorInfo& tensor : file.tensors()) {
    BOOST_TEST_CONTEXT(tensor.name) {
      int matches = 0;
      for (size_t r = 0; r < rows.size(); ++r) {
        if (!std::regex_match(tensor.name, rows[r].pattern)) continue;
        ++matches;
        ++seen[r];
        if (rows[r].axes.empty()) continue;
        BOOST_REQUIRE(static_cast<int>(rows[r].axes.size()) == tensor.shape.rank());
        for (int axis = 0; axis < tensor.shape.rank(); ++axis) {
          const auto [at, is_new] = sizes.emplace(rows[r].axes[static_cast<size_t>(axis)], tensor.shape[axis]);
          BOOST_TEST(at->second == tensor.shape[axis], "axis " + at->first);
        }
      }
      BOOST_TEST(matches == 1, "rows of apps/dump/names.md with this name: " << matches);
    }
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(of_models_with_and_without_compose) {
  const Scratch scratch;
  write_model(scratch / "static");
  struct Model {
    std::string folder;
    std::vector<int64_t> windows;
  };
  for (const Model& m : {Model{kGolden + "model_dcformer_lg", {9, 0}}, Model{kGolden + "model_transformer", {0, 0}},
                         Model{(scratch / "static").string(), {5, 0}}}) {
    const fs::path out = scratch / "maps";
    const Outcome made =
        run("dump " + m.folder + " --ids 3,1,4,1,5,9,2,6,5,3,5,8,9,7 --attention --dtype f64 -o " + out.string());
    BOOST_REQUIRE_MESSAGE(made.code == 0, made.output);
    const io::SafetensorsFile file(out.string());
    for (size_t i = 0; i < m.windows.size(); ++i) {
      BOOST_TEST_CONTEXT(m.folder) {
        const std::string layer = "layers." + std::to_string(i) + ".";
        check_maps({Array(file.load(layer + "q")), Array(file.load(layer + "k")), of_layer(file, layer + "dyn.pre"),
                    of_layer(file, layer + "dyn.post"), m.windows[i]},
                   file, layer);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(of_an_attention_folder) {
  const Scratch scratch;
  for (const auto& [name, window] : {std::pair<std::string, int64_t>{"attn_full", 8}, {"attn_static_g2", 7}}) {
    const fs::path out = scratch / "maps";
    const Outcome made = run("dump " + kGolden + name + " --attention --dtype f64 -o " + out.string());
    BOOST_REQUIRE_MESSAGE(made.code == 0, made.output);
    const io::SafetensorsFile in(kGolden + name + "/inputs.safetensors"), file(out.string());
    const auto stage = [&](const std::string& s) {
      return mixing(in, {s + ".w", s + ".qw1", s + ".qw2", s + ".kw1", s + ".kw2", s + ".qdd", s + ".kdd"});
    };
    check_maps({Array(in.load("q")), Array(in.load("k")), stage("pre"), stage("post"), window}, file, "");
  }
}

BOOST_AUTO_TEST_CASE(of_some_layers_and_only_when_requested) {
  const Scratch scratch;
  const fs::path out = scratch / "out";
  const auto found = [&](const std::string& flags) {
    const Outcome made = run("dump " + kGolden + "model_transformer --ids 1,2,3 -o " + out.string() + flags);
    BOOST_TEST(made.code == 0, made.output);
    std::string layers;
    const io::SafetensorsFile file(out.string());
    for (const io::TensorInfo& t : file.tensors()) {
      if (t.name.ends_with("attn_probs")) layers += t.name + " ";
    }
    return layers;
  };
  BOOST_TEST(found("") == "");
  BOOST_TEST(found(" --attention 1") == "layers.1.attn_probs ");
  BOOST_TEST(found(" --attention=0,1") == "layers.0.attn_probs layers.1.attn_probs ");
  BOOST_TEST(found(" --attention --dtype bf16") == "layers.0.attn_probs layers.1.attn_probs ");
  BOOST_TEST((io::SafetensorsFile(out.string()).load("layers.0.attn_probs").dtype() == DType::f32));
}

BOOST_AUTO_TEST_CASE(text_instead_of_ids) {
  const Scratch scratch;
  write_model(scratch / "model");
  const auto ids = [&](const std::string& flags, const std::string& before = "") {
    const Outcome made =
        run("dump " + (scratch / "model").string() + " -o " + (scratch / "out").string() + " " + flags, before);
    BOOST_TEST(made.code == 0, made.output);
    return io::SafetensorsFile((scratch / "out").string()).load("input_ids").to_vector<int64_t>();
  };
  const std::vector<int64_t> hello{'h', 'i', '\n', '!'};
  write(scratch / "text", "hi\n!");
  BOOST_TEST(ids("--ids 104,105,10,33") == hello, boost::test_tools::per_element());
  BOOST_TEST(ids("--text " + (scratch / "text").string()) == hello, boost::test_tools::per_element());
  BOOST_TEST(ids("-e --prompt 'hi\\n!'") == hello, boost::test_tools::per_element());
  BOOST_TEST(ids("-p -", "printf 'hi\\n!' |") == hello, boost::test_tools::per_element());
  BOOST_TEST(ids("-p 'a<|endoftext|>' --parse-specials") == (std::vector<int64_t>{'a', 256}),
             boost::test_tools::per_element());
  write(scratch / "long", std::string(65, 'x'));
  const Outcome rejected = run("dump " + (scratch / "model").string() + " --text " + (scratch / "long").string());
  BOOST_TEST(rejected.code == 3);
  BOOST_TEST(
      rejected.output.find("long is too long: expected at most the model's longest sequence of 64 tokens, found 65") !=
          std::string::npos,
      rejected.output);
}

BOOST_AUTO_TEST_CASE(every_name_is_in_the_table) {
  const Scratch scratch;
  std::set<std::string> missing;
  const auto dump = [&](bool images, const std::vector<std::string>& inputs) {
    const std::vector<Row> rows = table(images);
    std::vector<int> seen(rows.size());
    for (const std::string& input : inputs) {
      const fs::path out = scratch / "out";
      const Outcome made = run("dump " + input + " --attention --grad -o " + out.string());
      BOOST_REQUIRE_MESSAGE(made.code == 0, made.output);
      check_names(out, rows, seen);
    }
    for (size_t r = 0; r < rows.size(); ++r)
      if (seen[r] == 0) missing.insert(rows[r].name);
  };
  write_model(scratch / "model");
  write_model(scratch / "varied", "diff-v2,gated,gated-head,value-embedding");
  std::vector<std::string> inputs = {(scratch / "model").string() + " --ids 1,2,3,4,5,6,7 --decode 5 6",
                                     kGolden + "attn_static_g2", (scratch / "varied").string() + " --ids 1,2,3"};
  write_model(scratch / "composed", "mta", "plain", false);
  inputs.push_back((scratch / "composed").string() + " --ids 1,2,3");
  for (const char* residual : {"attnres", "mhc"}) {
    write_model(scratch / residual, "plain", residual);
    inputs.push_back((scratch / residual).string() + " --ids 1,2,3");
  }
  dump(false, inputs);
  BOOST_TEST(missing.empty(), "no tensor has the name " + (missing.empty() ? "" : *missing.begin()));

  write_image_model(scratch / "vit");
  io::save_safetensors((scratch / "pictures").string(), {{"pixel_values", normal_tensor({3, 1, 8, 12}, 1, {1, 2})},
                                                         {"labels", from_vector<int64_t>({0, 4, 2}, {3})}});
  missing.clear();
  dump(true, {(scratch / "vit").string() + " --ids " + (scratch / "pictures").string()});
  for (const char* name : {"pixel_values", "labels", "position_embeddings", "pooled", "logits", "loss", "hidden.<i>"})
    BOOST_TEST(!missing.contains(name), name);
}

BOOST_AUTO_TEST_SUITE_END()
