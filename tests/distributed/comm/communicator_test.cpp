#include "braid/distributed/comm/communicator.h"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <fstream>

#include "braid/autograd.h"
#include "braid/autograd/debug.h"
#include "braid/distributed/comm/thread_transport.h"
#include "braid/distributed/job/run_on_all_ranks.h"
#include "braid/distributed/parallel/mappings.h"
#include "braid/tensor/from_memory.h"
#include "tests/distributed/support.h"
#include "tests/support/sanitizer.h"
#include "tests/support/throws.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(communicator)

using dist::Communicator;

namespace {
// While it lives, the address space has room for three more threads: stacks of 1 GiB in 3.5 GiB.
class ThreeThreads {
 public:
  ThreeThreads() {
    pthread_attr_t large;
    pthread_attr_init(&large);
    pthread_attr_setstacksize(&large, size_t{1} << 30);
    pthread_getattr_default_np(&stack_);
    pthread_setattr_default_np(&large);
    rlim_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    getrlimit(RLIMIT_AS, &space_);
    rlimit limit = space_;
    limit.rlim_cur = pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + (rlim_t{7} << 29);
    setrlimit(RLIMIT_AS, &limit);
  }
  ~ThreeThreads() {
    setrlimit(RLIMIT_AS, &space_);
    pthread_setattr_default_np(&stack_);
  }

 private:
  pthread_attr_t stack_;
  rlimit space_;
};
}  // namespace

BOOST_AUTO_TEST_CASE(one_process_is_the_identity) { check_collectives(Communicator()); }

BOOST_AUTO_TEST_CASE(collectives_follow_their_definitions) {
  for (int ranks : {1, 2, 3, 4, 5}) {
    BOOST_TEST_CONTEXT(ranks << " ranks") { dist::run_thread_ranks(ranks, check_collectives); }
  }
}

BOOST_AUTO_TEST_CASE(one_process_sends_nothing) {
  Communicator alone;
  alone.all_reduce(zeros({100}));
  alone.all_gather(zeros({100}), 0, dist::even_partition(100, 1));
  BOOST_TEST(alone.stats().total() == 0);
}

// Sending reads: what ops have saved of a tensor stays valid, and its memory may be read-only.
BOOST_AUTO_TEST_CASE(sending_a_tensor_leaves_it_as_it_is) {
  static const float lent[] = {1, 2};
  dist::run_thread_ranks(2, [](const Communicator& world) {
    world.all_reduce(from_memory(static_cast<const void*>(lent), {2}, {}, DType::f32, {}));
    Tensor x = full({2}, 0.5);
    require_grad(x);
    const Tensor w = full({2}, 2), y = mul(x, w), z = exp(x);
    world.all_reduce(w);
    world.broadcast(w, 0);
    backward(sum(add(y, dist::all_reduce(z, world))));
  });
}

BOOST_AUTO_TEST_CASE(transfers_are_printed_on_request) {
  std::FILE* file = std::tmpfile();
  set_debug(parse_debug("comm"), file);
  dist::run_thread_ranks(2, [](const Communicator& world) {
    const dist::Partition halves = dist::even_partition(4, 2);
    world.all_to_all(zeros({2, 4}), 1, halves, 0, halves);
  });
  set_debug({});
  std::string text(4096, 0);
  std::rewind(file);
  text.resize(std::fread(text.data(), 1, text.size(), file));
  std::fclose(file);
  const char* of_rank_0 = "rank 0 of 2 (world): all_to_all, to 1: f32 (2, 2), from 1: f32 (2, 2); 16 bytes sent\n";
  BOOST_TEST(text.find(of_rank_0) != std::string::npos, text);
}

BOOST_AUTO_TEST_CASE(nan_and_infinity_survive_sums_and_maxima) {
  dist::run_thread_ranks(3, [](const Communicator& world) {
    for (int bad = 0; bad < 3; ++bad) {
      Tensor x = full({2}, world.rank() == bad ? NAN : 1.0, DType::f64);
      for (auto op : {dist::Reduction::sum, dist::Reduction::max}) {
        for (double v : world.all_reduce(x, op).to_vector<double>()) expect(std::isnan(v), "NaN of one rank is lost");
      }
    }
    double inf = world.all_reduce(full({1}, world.rank() == 1 ? -INFINITY : 1.0, DType::f64)).item();
    expect(inf == -INFINITY, "infinity of one rank is lost");
  });
}

// A rank that fails must not leave the others waiting.
BOOST_AUTO_TEST_CASE(the_error_of_one_rank_ends_all) {
  BRAID_CHECK_FAILS(dist::run_thread_ranks(3,
                                           [](const Communicator& world) {
                                             if (world.rank() == 1) fail(ErrorKind::input, "rank 1 has no file");
                                             world.barrier();
                                           }),
                    ErrorKind::input, "rank 1 has no file");
}

// The ranks that run already would wait for the one that has no thread. It used to end the program.
BOOST_AUTO_TEST_CASE(a_rank_whose_thread_cannot_be_started_ends_all,
                     *boost::unit_test::enable_if<!kThreadSanitizer>()) {
  const ThreeThreads only;
  BRAID_CHECK_FAILS(dist::run_thread_ranks(8, [](const Communicator& world) { world.barrier(); }), ErrorKind::process,
                    "cannot start a thread for rank 3 of 8: ", "run fewer ranks");
}

BOOST_AUTO_TEST_CASE(ranks_that_call_different_collectives_get_an_error) {
  BOOST_CHECK_THROW(
      dist::run_thread_ranks(2, [](const Communicator& w) { w.all_reduce(zeros({w.rank() == 0 ? 8 : 4})); }), Error);
}

BOOST_AUTO_TEST_CASE(a_rank_that_does_not_take_part_is_named) {
  BRAID_CHECK_FAILS(dist::run_thread_ranks(3,
                                           [](const Communicator& world) {
                                             Communicator rows = world.split(0, "rows");
                                             world.set_timeout(0.2);
                                             world.set_context("step 17");
                                             if (world.rank() != 2)
                                               rows.all_gather(zeros({1}), 0, dist::even_partition(3, 3));
                                           }),
                    ErrorKind::process, "rank 2 did not answer within 0.2 s",
                    "all_gather of the group 'rows' at step 17");
}

BOOST_AUTO_TEST_CASE(messages_name_the_host_of_a_rank) {
  const auto with_hosts = [](const Communicator& world) { world.set_hosts({"node1", "node1", "node2"}); };
  BRAID_CHECK_FAILS(dist::run_thread_ranks(3,
                                           [&](const Communicator& world) {
                                             with_hosts(world);
                                             world.set_timeout(0.2);
                                             if (world.rank() != 2)
                                               world.all_gather(zeros({1}), 0, dist::even_partition(3, 3));
                                           }),
                    ErrorKind::process, "rank 2 on host node2 did not answer within", "on host node1; the process");
  BRAID_CHECK_FAILS(dist::run_thread_ranks(3,
                                           [&](const Communicator& world) {
                                             with_hosts(world);
                                             dist::run_on_all_ranks(world, [&] {
                                               if (world.rank() == 1) fail(ErrorKind::output, "disk is full");
                                             });
                                           }),
                    ErrorKind::output, "rank 1 on host node1: disk is full");
}

BOOST_AUTO_TEST_SUITE_END()
