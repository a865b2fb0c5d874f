#include "apps/dump/attention_folder.h"

#include <map>

#include "braid/autograd.h"

namespace braid::apps {
namespace {

// The names in the file.
std::string file_name(const AttentionRole& role) {
  static const std::map<std::string, std::string> names = {{"base", "w"},     {"q_down", "qw1"}, {"q_up", "qw2"},
                                                           {"k_down", "kw1"}, {"k_up", "kw2"},   {"q_gate", "qdd"},
                                                           {"k_gate", "kdd"}};
  return *role.stage ? str(role.stage, ".", names.at(role.member)) : role.member;
}

class Inputs {
 public:
  Inputs(const std::string& path, const models::AttentionFolder& attention, DType dtype, Device device, bool with_grad)
      : file_(path), attention_(attention), dtype_(dtype), device_(device), with_grad_(with_grad) {
    using enum AttentionRole::Positions;
    q = required({"", "q", queries});
    k = required({"", "k", keys});
    v = required({"", "v", keys});
    for (auto [stage, mixing] : {std::pair{"pre", &pre}, {"post", &post}}) {
      HeadMixing::for_each(
          stage, [&](const AttentionRole& role, Tensor& x) { x = optional(role); }, *mixing);
      check(bool(mixing->q_down) == bool(mixing->q_up) && bool(mixing->k_down) == bool(mixing->k_up), ErrorKind::input,
            [&, stage = stage] {
              return str(stage, ".qw1 and qw2, and kw1 and kw2, come together: expected both or none in ",
                         file_.path());
            });
    }
  }
  // The gradient of the output; ones where the file has none.
  Tensor dout() const {
    const AttentionRole role{"", "dout", AttentionRole::Positions::queries};
    if (!file_.find("dout")) return full(attention_.shape_of(role), 1, dtype_, device_);
    return load(role, "dout");
  }
  const std::string& path() const { return file_.path(); }

  Tensor q, k, v;
  HeadMixing pre, post;
  io::NamedTensors leaves;  // all that are there, by their names in the file

 private:
  Tensor load(const AttentionRole& role, const std::string& name) const {
    const Tensor x = file_.load(name);
    const Shape expected = attention_.shape_of(role);
    check(x.shape() == expected && is_float(x.dtype()), ErrorKind::input, [&] {
      return str(name, " in ", file_.path(), " does not fit config.json: expected floats of shape ", expected,
                 ", found ", x.dtype(), " ", x.shape());
    });
    return x.to(dtype_).to(device_).clone();
  }
  Tensor optional(const AttentionRole& role) {
    const std::string name = file_name(role);
    if (!file_.find(name)) return {};
    Tensor x = load(role, name);
    if (with_grad_) require_grad(x);
    leaves.emplace_back(name, x);
    return x;
  }
  Tensor required(const AttentionRole& role) {
    const Tensor x = optional(role);
    check(bool(x), ErrorKind::input, [&] { return file_name(role) + " is missing in " + file_.path(); });
    return x;
  }

  io::SafetensorsFile file_;
  const models::AttentionFolder& attention_;
  DType dtype_;
  Device device_;
  bool with_grad_;
};

}  // namespace

io::NamedTensors dump_attention(const Arguments& arguments, const std::filesystem::path& folder,
                                const models::AttentionFolder& attention, DType dtype, Device device) {
  for (const char* name : {"ids", "prompt", "text", "decode"}) {
    check(!arguments.has(name), ErrorKind::setting, [&] {
      return str("--", name, " is for models: ", folder.string(),
                 " holds an attention with its own inputs.safetensors");
    });
  }
  const bool with_grad = arguments.has("grad");
  const Inputs in((folder / "inputs.safetensors").string(), attention, dtype, device, with_grad);
  const Tensor y = dcmha(in.q, in.k, in.v, in.pre, in.post, attention.options);
  io::NamedTensors out{{"out", y.detach()}};
  if (arguments.has("attention")) {
    NoGrad off;
    const AttentionMaps maps = attention_maps(in.q, in.k, in.pre, in.post, attention.options);
    out.emplace_back("attn_scores", maps.scores);
    out.emplace_back("attn_scores_composed", maps.scores_composed);
    out.emplace_back("attn_probs", maps.probs);
    out.emplace_back("attn_probs_composed", maps.probs_composed);
  }
  if (!with_grad) return out;
  backward(y, in.dout());
  for (const auto& [name, x] : in.leaves) out.emplace_back("grad." + name, grad(x) ? grad(x) : zeros_like(x));
  return out;
}

}  // namespace braid::apps
