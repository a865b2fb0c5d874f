// Logits, generation and grading with the model's shards: the same tokens as on one process, on every rank, and no
// rank holds more than its shards.
#include <boost/test/unit_test.hpp>
#include <map>

#include "braid/autograd.h"
#include "braid/distributed/comm/thread_transport.h"
#include "braid/models/eval/icl_tasks.h"
#include "braid/models/families/dcformer/cost.h"
#include "braid/models/inference/generate.h"
#include "braid/models/inference/sequence_pool.h"
#include "braid/tensor/kernels/kernel.h"
#include "tests/distributed/parity.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(generation_on_ranks)

namespace {

const Shape3 kMeshes[] = {{1, 1, 2}, {1, 2, 1}, {1, 2, 2}, {1, 1, 3}};

// Runs f(mesh) on all ranks; "" or the first failure.
std::string on_mesh(const Shape3& s, const std::function<void(const dist::ProcessMesh&)>& f) {
  try {
    on_ranks(s, [&](const dist::Communicator& world) { f(dist::make_mesh(world, s.data, s.context, s.tensor)); });
  } catch (const Error& e) {
    return str(s) + ": " + e.what();
  }
  return "";
}

std::vector<int32_t> prompt(int64_t length) {
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < length; ++i) ids.push_back(static_cast<int32_t>((i * 7 + i * i) % 61));
  return ids;
}

// The values of every parameter of `whole` that belong to a rank, into `shards`.
void copy_shards(const models::Dcformer& whole, models::Dcformer& shards, const dist::ProcessMesh& mesh) {
  std::map<std::string, Tensor> values;
  models::Dcformer copy = whole;  // handles
  for (const nn::NamedTensor& p : nn::parameters(copy)) values[p.name] = p.value.detach();
  for (nn::NamedTensor& p : nn::parameters(shards)) {
    const dist::Shard* shard = shards.shard_of(p.name);
    Tensor value = values.at(p.name);
    if (shard) value = dist::gather_ranges(value, shard->axis, shard->partition.of(mesh.tensor.rank()));
    Tensor into = p.value.detach();
    into.copy_(value);
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(logits_are_those_of_one_process) {
  for (const std::string& kind : parity_kinds()) {
    if (kind == "vocabulary-50257") continue;
    NoGrad off;
    std::unique_ptr<models::Dcformer> whole = make_model(parity_config(kind), {});
    for (int64_t T : {21, 3, 1}) {  // sharded rows; too short to be sharded
      std::vector<int32_t> tokens = prompt(2 * T);
      Tensor ids = from_vector(tokens, {2, T}), want = whole->logits(whole->hidden(ids));
      for (const Shape3& s : kMeshes) {
        BOOST_TEST(on_mesh(s, [&](const dist::ProcessMesh& mesh) {
                     NoGrad none;
                     std::unique_ptr<models::Dcformer> model = make_model(parity_config(kind), mesh);
                     Tensor got = model->logits(model->hidden(ids));
                     expect_close(got, want, 1e-12, kind + ", logits of " + std::to_string(T) + " tokens");
                     expect_close(mesh.world.broadcast(got, 0), got, 0, kind + ", logits of all ranks");
                   }) == "");
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(every_rank_generates_the_tokens_of_one_process) {
  for (const std::string& kind : parity_kinds()) {
    if (kind == "vocabulary-50257") continue;
    std::unique_ptr<models::Dcformer> whole = make_model(parity_config(kind), {});
    for (double temperature : {0.0, 0.9}) {
      const int64_t vocabulary = 23;  // of the model's 61 ids
      models::SamplingOptions options{.temperature = temperature, .seed = 5, .vocabulary = vocabulary};
      models::Generated want = models::generate(*whole, prompt(9), 30, options);
      for (const Shape3& s : kMeshes) {
        BOOST_TEST(on_mesh(s, [&](const dist::ProcessMesh& mesh) {
                     std::unique_ptr<models::Dcformer> model = make_model(parity_config(kind), mesh);
                     models::Generated got = models::generate(*model, prompt(9), 30, options);
                     expect(got.tokens == want.tokens, kind + ", tokens");
                     for (int32_t token : got.tokens) expect(token < vocabulary, kind + ", an id of the tokenizer");
                     expect(got.reason == want.reason, kind + ", reason to stop");
                   }) == "");
      }
    }
  }
}

// The keys of many sequences in blocks, each rank those of its own heads; the tables are the same on all ranks.
BOOST_AUTO_TEST_CASE(a_pool_of_sequences_gives_what_one_process_gives) {
  using Part = models::SequencePool::Part;
  for (const std::string& kind : parity_kinds()) {
    if (kind == "vocabulary-50257") continue;
    std::unique_ptr<models::Dcformer> whole = make_model(parity_config(kind), {});
    const std::vector<int32_t> a = prompt(21), b = prompt(6);
    const auto all = [&](const models::Dcformer& model) {
      const std::unique_ptr<models::SequencePool> pool = model.make_sequence_pool(80);
      const int first = pool->open(), second = pool->open();
      std::vector<Tensor> got;
      const auto compute = [&](const std::vector<Part>& parts) {
        for (const Part& part : parts) expect(pool->reserve(part.sequence, std::ssize(part.tokens)), kind + ", room");
        got.push_back(pool->hidden(parts));
      };
      const auto piece = [](const std::vector<int32_t>& ids, size_t at, size_t n) {
        return std::span(ids).subspan(at, n);
      };
      compute({{first, piece(a, 0, 9)}});
      compute({{second, piece(b, 0, 5)}, {first, piece(a, 9, 11)}});
      const int third = pool->fork(second, 5);
      expect(pool->length(third) == 5, kind + ", positions of a fork");
      compute({{first, piece(a, 20, 1)}, {third, piece(b, 5, 1)}, {second, piece(a, 3, 2)}});
      for (const int sequence : {first, second, third}) pool->close(sequence);
      expect(pool->free_blocks() == pool->blocks(), kind + ", blocks given back");
      return concat(got, 0);
    };
    const Tensor want = all(*whole);
    {
      NoGrad off;
      const Tensor one_pass = whole->hidden(from_vector(a, {1, 21})).squeezed(0);
      const Tensor of_first = concat({want.sliced(0, 0, 9), want.sliced(0, 14, 25), want.sliced(0, 25, 26)}, 0);
      expect_close(of_first, one_pass, 1e-12, kind + ", one process");
    }
    for (const Shape3& s : kMeshes) {
      BOOST_TEST(on_mesh(s, [&](const dist::ProcessMesh& mesh) {
                   std::unique_ptr<models::Dcformer> model = make_model(parity_config(kind), mesh);
                   expect_close(all(*model), want, 1e-12, kind + ", hidden states of a pool");
                 }) == "");
    }
  }
}

// A model that has learnt some answers by rote, so that some are right and some are wrong.
BOOST_AUTO_TEST_CASE(grades_are_those_of_one_process) {
  models::text::ByteTokenizer tokenizer;
  models::DcformerConfig config = parity_config("dcformer");
  config.vocab_size = tokenizer.vocab_size();
  config.block_size = 48;
  models::resolve(config);
  std::vector<models::text::TaskSample> samples;
  for (int64_t i = 0; i < 10; ++i)
    samples.push_back(models::text::make_task_sample(models::text::Vocabulary::train, 1, i));
  std::unique_ptr<models::Dcformer> whole = make_model(config, {});
  {
    models::Trainer trainer(*whole, {}, 1.0);
    std::vector<int64_t> ids, targets;
    for (int64_t b = 0; b < 4; ++b) {
      std::vector<int32_t> tokens = models::text::tokenize_task(tokenizer, samples[static_cast<size_t>(b)]).tokens;
      ids.insert(ids.end(), tokens.end() - 48, tokens.end() - 1);
      targets.insert(targets.end(), tokens.end() - 47, tokens.end());
    }
    models::Batch batch = models::text_batch(from_vector(ids, {4, 47}), from_vector(targets, {4, 47}));
    for (int step = 0; step < 60; ++step) trainer.step({batch}, 1e-2);
  }
  auto grades = [&](const models::Dcformer& model) {
    std::vector<int64_t> counts;
    models::text::TaskGrader graded = models::grade_tasks(model, tokenizer, samples);
    for (const auto& [task, score] : graded.tasks())
      counts.insert(counts.end(), {score.answers, score.right, score.first_right});
    return counts;
  };
  std::vector<int64_t> want = grades(*whole);
  double accuracy = models::grade_tasks(*whole, tokenizer, samples).accuracy();
  BOOST_TEST(accuracy > 0.0);
  BOOST_TEST(accuracy < 1.0);
  for (const Shape3& s : kMeshes) {
    BOOST_TEST(on_mesh(s, [&](const dist::ProcessMesh& mesh) {
                 std::unique_ptr<models::Dcformer> model = make_model(config, mesh);
                 copy_shards(*whole, *model, mesh);
                 expect(grades(*model) == want, "grades");
               }) == "");
  }
}

// Before and after generation a rank has its shards, and no parameter travels.
BOOST_AUTO_TEST_CASE(no_rank_holds_the_model) {
  for (const std::string kind : {"dcformer", "dcformer-g4", "dcpythia"}) {
    std::unique_ptr<models::Dcformer> whole = make_model(parity_config(kind), {});
    std::map<std::string, int64_t> elements;
    for (const nn::NamedTensor& p : nn::parameters(*whole)) elements[p.name] = p.value.numel();
    for (const Shape3& s : {Shape3{1, 1, 2}, Shape3{1, 2, 2}, Shape3{1, 1, 4}}) {
      BOOST_TEST(on_mesh(s, [&](const dist::ProcessMesh& mesh) {
                   std::unique_ptr<models::Dcformer> model = make_model(parity_config(kind), mesh);
                   auto check_shards = [&] {
                     int64_t held = 0;
                     for (const nn::NamedTensor& p : nn::parameters(*model)) {
                       held += p.value.numel();
                       bool large = p.name.ends_with("wqkv.weight") || p.name.ends_with("wo.weight") ||
                                    p.name.find("feed_forward") != std::string::npos || p.name == "output.weight" ||
                                    p.name == "tok_embeddings.weight";
                       if (!large || p.name.ends_with("w2.bias")) continue;
                       expect(model->shard_of(p.name) != nullptr, p.name + " is sharded");
                       int64_t all = mesh.tensor.sum(p.value.numel());
                       expect(all == elements.at(p.name), p.name + ": the shards are the parameter");
                       expect(p.value.numel() < all, p.name + ": a shard is less than the parameter");
                     }
                   };
                   check_shards();
                   const int64_t before = mesh.tensor.stats().total() + mesh.context.stats().total();
                   NoGrad off;
                   models::KvCache cache = model->make_cache(8);
                   Tensor h = model->hidden(from_vector(prompt(1), {1, 1}), &cache);
                   model->logits(h);
                   int64_t sent = mesh.tensor.stats().total() + mesh.context.stats().total() - before;
                   const int64_t D = 24, heads = 4 * 5 * 8, V = 61;  // elements: rows, heads, logits; at most
                   int64_t bound = 8 * 4 * (V + 2 * (4 * D + 3 * heads) + 2 * D);
                   expect(sent <= bound, "bytes sent for one token: " + std::to_string(sent));
                   check_shards();
                 }) == "");
    }
  }
}

// A mesh of one process costs nothing: the same kernels, called as often, and nothing sent.
BOOST_AUTO_TEST_CASE(a_mesh_of_one_runs_the_kernels_of_one_process) {
  static thread_local std::map<std::string, int>* counted = nullptr;
  models::Batch batch = step_batch(parity_config("dcformer"), 0, 2, 21);
  auto kernels = [&](models::Dcformer& model) {
    nn::require_grad(model);
    std::map<std::string, int> calls;
    counted = &calls;
    detail::set_kernel_observer({[](const char* kernel) {
                                   if (counted) ++(*counted)[kernel];
                                 },
                                 [] {}});
    backward(model.loss_sum(batch));
    {
      NoGrad off;
      model.logits(model.hidden(batch.at("input_ids")));
      models::KvCache cache = model.make_cache(8);
      model.hidden(batch.at("input_ids").sliced(1, 0, 1).clone(), &cache);
    }
    detail::set_kernel_observer({nullptr, nullptr});
    counted = nullptr;
    return calls;
  };
  models::Dcformer plain(parity_config("dcformer"), RandomKey{3, 0});
  std::map<std::string, int> want = kernels(plain);
  BOOST_TEST(want["linear"] > 0);
  dist::run_thread_ranks(1, [&](const dist::Communicator& world) {
    dist::ProcessMesh mesh = dist::make_mesh(world, 1, 1, 1);
    models::Dcformer model(parity_config("dcformer"), RandomKey{3, 0}, mesh);
    expect(kernels(model) == want, "kernels of a mesh of one process");
    expect(world.stats().total() == 0, "nothing is sent");
  });
}

BOOST_AUTO_TEST_SUITE_END()
