#include "braid/distributed/parallel/data_parallel.h"

#include <boost/test/unit_test.hpp>

#include "braid/autograd.h"
#include "braid/distributed/comm/process_mesh.h"
#include "braid/distributed/comm/thread_transport.h"
#include "braid/distributed/job/run_on_all_ranks.h"
#include "tests/distributed/support.h"
#include "tests/support/throws.h"

using namespace braid;
using namespace braid::test;
using dist::Communicator;

namespace {
std::vector<nn::NamedTensor> some_parameters() {
  std::vector<nn::NamedTensor> list{{"a", random_tensor({3, 5}, 1, DType::f64)},
                                    {"b", random_tensor({7}, 2, DType::f64)},
                                    {"c", random_tensor({2, 2, 2}, 3, DType::f64)},
                                    {"d", random_tensor({1}, 4, DType::f64)}};
  for (nn::NamedTensor& p : list) require_grad(p.value);
  return list;
}

// The parameter as its owners have it: this rank's piece in its place and zeros elsewhere, summed over ranks.
Tensor from_owners(const dist::DataParallel& parallel, const nn::NamedTensor& p, const Tensor& piece,
                   const Communicator& world) {
  Tensor full = zeros({p.value.numel()}, DType::f64);
  const dist::Range own = parallel.owned_range(p.name);
  if (piece) full.sliced(0, own.begin, own.end).copy_(piece.reshaped({own.size()}));
  return world.all_reduce(full);
}

// A loss that gives every parameter a gradient that depends on the rank.
void run_backward(const std::vector<nn::NamedTensor>& parameters, int rank, const std::string& without = "") {
  Tensor loss = full({}, 0, DType::f64);
  for (const nn::NamedTensor& p : parameters) {
    if (p.name != without) loss = add(loss, scale(sum(square(p.value)), 0.5 * (rank + 1)));
  }
  backward(loss);
}
}  // namespace

BOOST_AUTO_TEST_SUITE(data_parallel)

BOOST_AUTO_TEST_CASE(every_element_has_one_owner_and_the_summed_gradient) {
  for (int ranks : {1, 2, 3, 4}) {
    for (int64_t bucket_bytes : {1, 100, 1 << 20}) {
      dist::run_thread_ranks(ranks, [&](const Communicator& world) {
        std::vector<nn::NamedTensor> parameters = some_parameters();
        dist::DataParallel parallel(
            parameters, [&](const std::string&) -> const Communicator& { return world; }, bucket_bytes);
        int64_t owned = 0, elements = 0;
        for (const nn::NamedTensor& p : parameters) elements += p.value.numel();
        for (int step = 0; step < 2; ++step) {
          run_backward(parameters, world.rank());  // a micro-batch before the last one
          parallel.start();
          run_backward(parameters, world.rank());
          parallel.finish();
          owned = 0;
          std::map<std::string, Tensor> own;
          for (const nn::NamedTensor& piece : parallel.pieces()) {
            owned += piece.value.numel();
            own[piece.name] = grad(piece.value);
            expect(own[piece.name].shape() == piece.value.shape(), "shape of a piece's gradient");
          }
          int64_t P = world.size();
          double factor = 2.0 * static_cast<double>(P * (P + 1)) / 2;
          for (const nn::NamedTensor& p : parameters) {
            const Tensor gradient = from_owners(parallel, p, own.contains(p.name) ? own[p.name] : Tensor(), world);
            std::vector<double> want = p.value.to_vector<double>();
            for (double& v : want) v *= factor;
            expect_close(gradient.to_vector<double>(), want, 1e-14, "gradient of " + p.name);
            expect((parallel.owned_range(p.name).size() > 0) == own.contains(p.name), "owner of " + p.name);
          }
          for (const nn::NamedTensor& piece : parallel.pieces()) zero_grad(piece.value);
          for (const nn::NamedTensor& p : parameters) zero_grad(p.value);
        }
        expect(world.sum(owned) == elements, "every element has one owner");
        // An update of the pieces reaches every rank.
        for (const nn::NamedTensor& piece : parallel.pieces()) {
          Tensor view = piece.value;
          view.fill(world.rank());
        }
        parallel.gather_parameters();
        for (const nn::NamedTensor& p : parameters) {
          expect_equal(world.broadcast(p.value.detach(), 0), p.value.detach(), p.name + " on all ranks");
          dist::Range own = parallel.owned_range(p.name);
          Tensor piece = p.value.detach().reshaped({p.value.numel()}).sliced(0, own.begin, own.end);
          expect_close(from_owners(parallel, p, piece, world).reshaped(p.value.shape()), p.value.detach(), 0,
                       "gathered pieces of " + p.name);
        }
      });
    }
  }
}

BOOST_AUTO_TEST_CASE(a_parameter_without_gradient_counts_as_zero) {
  dist::run_thread_ranks(2, [](const Communicator& world) {
    std::vector<nn::NamedTensor> parameters = some_parameters();
    dist::DataParallel parallel(parameters, [&](const std::string&) -> const Communicator& { return world; });
    parallel.start();
    run_backward(parameters, world.rank(), "b");
    parallel.finish();
    for (const nn::NamedTensor& piece : parallel.pieces()) {
      std::vector<double> g = grad(piece.value).to_vector<double>();
      for (double v : g) expect((v == 0) == (piece.name == "b"), "gradient of " + piece.name);
    }
  });
}

// A parameter of two recomputed segments: its gradient is complete after both, and is sent once.
BOOST_AUTO_TEST_CASE(a_parameter_of_several_recomputed_segments_is_sent_once) {
  dist::run_thread_ranks(2, [](const Communicator& world) {
    std::vector<nn::NamedTensor> parameters = some_parameters();
    const Tensor b = parameters[1].value;
    dist::DataParallel parallel(
        parameters, [&](const std::string&) -> const Communicator& { return world; }, 1);
    const auto segment = [b](const std::vector<Tensor>& in) { return mul(in[0], b); };
    parallel.start();
    backward(sum(recompute(segment, {recompute(segment, {full({7}, 1, DType::f64)})})));
    parallel.finish();
    for (const nn::NamedTensor& piece : parallel.pieces()) {
      if (piece.name != "b") continue;
      const dist::Range own = parallel.owned_range("b");
      std::vector<double> expected = b.detach().sliced(0, own.begin, own.end).to_vector<double>();
      for (double& v : expected) v *= 4;  // d(b b) = 2 b on each of two ranks
      expect_close(grad(piece.value).to_vector<double>(), expected, 1e-14, "gradient of b");
    }
  });
}

BOOST_AUTO_TEST_CASE(matrices_stay_matrices_for_weight_decay) {
  dist::run_thread_ranks(2, [](const Communicator& world) {
    std::vector<nn::NamedTensor> parameters = some_parameters();
    dist::DataParallel parallel(parameters, [&](const std::string&) -> const Communicator& { return world; });
    for (const nn::NamedTensor& piece : parallel.pieces())
      expect(piece.value.rank() == std::map<std::string, int>{{"a", 2}, {"b", 1}, {"c", 3}, {"d", 1}}[piece.name],
             "rank of piece " + piece.name);
  });
}

BOOST_AUTO_TEST_CASE(volumes_are_those_of_zero_stage_1) {
  dist::run_thread_ranks(2, [](const Communicator& root) {
    Communicator world = root.split(0, "counted");
    std::vector<nn::NamedTensor> parameters = some_parameters();  // 31 elements of 8 bytes
    dist::DataParallel parallel(parameters, [&](const std::string&) -> const Communicator& { return world; });
    parallel.start();
    run_backward(parameters, world.rank());
    parallel.finish();
    parallel.gather_parameters();
    int64_t own = dist::even_partition(31, 2).size(world.rank());
    expect(world.stats().bytes_of(dist::Collective::reduce_scatter) == (31 - own) * 8, "gradients sent");
    expect(world.stats().bytes_of(dist::Collective::all_gather) == own * 8, "parameters sent");
  });
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(mesh)

BOOST_AUTO_TEST_CASE(ranks_form_a_mesh) {
  dist::run_thread_ranks(8, [](const Communicator& world) {
    dist::ProcessMesh l = dist::make_mesh(world, 0, 2, 2);
    int t = world.rank() % 2, c = world.rank() / 2 % 2, d = world.rank() / 4;
    expect(l.tensor.rank() == t && l.context.rank() == c && l.data.rank() == d, "place in the mesh");
    expect(l.tensor.size() == 2 && l.context.size() == 2 && l.data.size() == 2, "sizes of the mesh");
    expect(l.replica_group.size() == 4 && l.replica_group.rank() == d * 2 + c, "replicas");
    expect(l.context.world_rank(1) == (d * 2 + 1) * 2 + t, "context neighbours");
  });
}

BOOST_AUTO_TEST_CASE(sizes_that_do_not_fit_are_errors) {
  dist::run_thread_ranks(4, [](const Communicator& world) {
    expect_error([&] { dist::make_mesh(world, 2, 1, 1); }, ErrorKind::setting,
                 "expected a product of 4, found 2 x 1 x 1");
    expect_error([&] { dist::make_mesh(world, 0, 1, 3); }, ErrorKind::setting, "found the rest x 1 x 3");
    expect_error([&] { dist::make_mesh(world, 0, 0, 2); }, ErrorKind::setting, "the rest x the rest x 2");
    expect_error([&] { dist::make_mesh(world, -2, 1, -2); }, ErrorKind::setting, "found -2 x 1 x -2");
  });
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(run_on_all_ranks)

BOOST_AUTO_TEST_CASE(an_error_of_one_rank_is_thrown_by_all) {
  dist::run_thread_ranks(3, [](const Communicator& world) {
    dist::run_on_all_ranks(world, [] {});
    for (int first = 0; first < 3; ++first) {  // all from this one on; the first of them is named
      try {
        dist::run_on_all_ranks(world, [&] {
          if (world.rank() >= first) fail(ErrorKind::output, "disk " + std::to_string(world.rank()) + " is full");
        });
        expect(false, "nothing was thrown");
      } catch (const dist::CollectiveError& e) {
        const std::string number = std::to_string(first), who = first == 0 ? "" : "rank " + number + ": ";
        expect(e.kind() == ErrorKind::output && e.what() == who + "disk " + number + " is full", e.what());
      }
    }
    world.barrier();
  });
  BRAID_CHECK_FAILS(dist::run_on_all_ranks({}, [] { fail(ErrorKind::output, "full"); }), ErrorKind::output, "full");
}

BOOST_AUTO_TEST_CASE(ranks_that_differ_are_an_error) {
  dist::run_thread_ranks(3, [](const Communicator& world) {
    dist::check_ranks_agree(world, {{"program", "1.0"}, {"data", "abc"}});
    expect_error(
        [&] {
          dist::check_ranks_agree(world, {{"program", "1.0"}, {"data", world.rank() == 2 ? "x" : "abc"}});
        },
        ErrorKind::process, "rank 2 has another data: expected abc, found x");
  });
}

BOOST_AUTO_TEST_SUITE_END()
