// The program `braid` with an attention of one's own: heads mixed by a small network, which `train`, `generate`,
// `study` and all other commands then know as model.attention=head-network:
//
//   ./12_own_program train configs/demo.toml model.compose=none model.attention=head-network
#include <braid/nn.h>
#include <braid/program.h>
using namespace braid;

// p'[.] = p[.] + W2 gelu(W1 p[.])      p (B, N, T, S), over the heads N; W1 (2 N, N), W2 (N, 2 N), at first 0
class HeadNetwork final : public nn::AttentionVariant {
 public:
  HeadNetwork(const nn::VariantSizes& sizes, RandomKey key)
      : read_(sizes.queries, 2 * sizes.queries, {}, child(key, "read")),
        write_(2 * sizes.queries, sizes.queries, {.init = nn::Init::zeros()}, child(key, "write")) {}
  Tensor probabilities(const Tensor& p) const override {
    const Tensor heads = cast(permute(p, {0, 2, 3, 1}), read_.weight().dtype());  // (B, T, S, N)
    return p + cast(permute(write_(gelu(read_(heads))), {0, 3, 1, 2}), p.dtype());
  }
  void visit(nn::Visitor& v) const override { v("read", read_), v("write", write_); }

 private:
  nn::Linear read_, write_;
};

int main(int argc, char** argv) {
  nn::register_attention_variant(nn::attention_variant<HeadNetwork>(
      {.name = "head-network", .help = "a network over the heads of each query and key", .composed = true}));
  return braid_main(argc, argv);
}
