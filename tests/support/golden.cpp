#include "tests/support/golden.h"

#include <boost/test/unit_test.hpp>

#include "braid/autograd.h"
#include "braid/models/families/dcformer/config.h"
#include "braid/tensor/io/reader.h"
#include "tests/support/compare.h"

namespace braid::test {

void compare_golden(const io::SafetensorsFile& want, const std::string& name, const Tensor& got, double tolerance,
                    int& seen) {
  if (!want.find(name)) return;
  ++seen;
  BOOST_TEST_CONTEXT(name) BOOST_TEST(is_close(got, want.load(name), tolerance));
}

int golden_results(const io::SafetensorsFile& want) {
  int count = 0;
  for (const io::TensorInfo& info : want.tensors())
    count += info.name != "input_ids" && info.name != "targets" && info.name != "decode.prompt_ids";
  return count;
}

void check_golden_attention(const std::string& name, DType dtype, double tolerance, AttentionImpl impl, Device device) {
  const std::string folder = kGolden + name, file = folder + "/config.json";
  const models::AttentionCase attention = models::read_attention_case(io::read_text_file(file, 1 << 20), file);
  io::SafetensorsFile inputs(folder + "/inputs.safetensors"), want(folder + "/golden.safetensors");
  BOOST_TEST_CONTEXT(name << " " << str(dtype) << " impl " << static_cast<int>(impl) << " on " << str(device)) {
    std::vector<std::pair<std::string, Tensor>> leaves;
    const auto input = [&](const std::string& what) {
      if (!inputs.find(what)) return Tensor();
      Tensor x = inputs.load(what).to(dtype).to(device).clone();
      require_grad(x);
      leaves.emplace_back(what, x);
      return x;
    };
    const auto stage = [&](const std::string& s) {
      return HeadMixing{input(s + ".w"),   input(s + ".qw1"), input(s + ".qw2"), input(s + ".kw1"),
                        input(s + ".kw2"), input(s + ".qdd"), input(s + ".kdd")};
    };
    DcmhaOptions options;
    options.groups = attention.config.profile.num_groups;
    options.mask = {attention.config.profile.causal, attention.config.keys_of_layer(0, false), attention.q_offset};
    options.impl = impl;
    if (impl == AttentionImpl::chunked) options.chunk = 5;  // several chunks, the last one shorter
    Tensor q = input("q"), k = input("k"), v = input("v");
    const HeadMixing pre = stage("pre"), post = stage("post");
    Tensor out = dcmha(q, k, v, pre, post, options);
    backward(out, inputs.load("dout").to(dtype).to(device));
    int seen = 0;
    compare_golden(want, "out", out, tolerance, seen);
    for (const auto& [what, x] : leaves) {
      BOOST_REQUIRE(bool(grad(x)));
      compare_golden(want, "grad." + what, grad(x), tolerance, seen);
    }
    BOOST_TEST(seen == golden_results(want));  // nothing of the file was left out
  }
}

}  // namespace braid::test
