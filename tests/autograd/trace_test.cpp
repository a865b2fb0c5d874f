// The timeline of a thread: what begins, ends and counts as an event.
#include "braid/autograd/trace.h"

#include <boost/test/unit_test.hpp>

#include "braid/autograd/ops.h"
#include "braid/autograd/recompute.h"
#include "braid/autograd/record.h"
#include "braid/tensor/kernels/kernel_meter.h"
#include "braid/tensor/layer_scope.h"
#include "braid/tensor/trace_device.h"

using namespace braid;

BOOST_AUTO_TEST_SUITE(trace)

namespace {

std::vector<std::string> names(const std::vector<TraceEvent>& events) {
  std::vector<std::string> out;
  for (const TraceEvent& e : events) out.push_back(std::string(e.kind) + " " + e.name);
  return out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(ops_derivatives_and_phases_in_their_order) {
  Tensor x = from_values({1, 2}, {2});
  require_grad(x);
  start_trace();
  {
    const TracePhase phase("step");
    backward(sum(exp(x)));
  }
  const std::vector<TraceEvent> events = stop_trace();
  const std::vector<std::string> expected{"op exp",         "op sum",         "derivative reshape", "derivative expand",
                                          "derivative sum", "derivative exp", "phase step"};
  BOOST_TEST(names(events) == expected, boost::test_tools::per_element());
  for (size_t i = 0; i + 1 < events.size(); ++i) {
    BOOST_TEST(events[i].begin <= events[i].end);
    BOOST_TEST(events[i].bytes > 0);
    if (i > 0) BOOST_TEST(events[i].begin == events[i - 1].end);
  }
  BOOST_TEST(events.back().begin <= events.front().begin);
  BOOST_TEST(events.back().end >= events[5].end);
}

BOOST_AUTO_TEST_CASE(nothing_is_kept_while_it_is_off) {
  exp(ones({2}));
  const TracePhase phase("step");
  BOOST_TEST(stop_trace().empty());
  start_trace();
  exp(ones({2}));
  BOOST_TEST(stop_trace().size() == 1);
  exp(ones({2}));
  BOOST_TEST(stop_trace().empty());
}

// y = a b (2 x 3 by 3 x 4) costs 48 FLOPs, its derivative twice that.
BOOST_AUTO_TEST_CASE(a_segment_counts_what_its_cost_says) {
  const auto product = [](const std::vector<Tensor>& in) { return matmul(in[0], in[1]); };
  for (const auto& [cost, derivative] : {std::pair{SegmentCost::computed, 144.0}, std::pair{SegmentCost::once, 96.0},
                                         std::pair{SegmentCost::twice, 96.0}}) {
    const TraceDevice device;
    Tensor a = ones({2, 3}), b = ones({3, 4});
    require_grad(a), require_grad(b);
    const Tensor y = recompute(product, {a, b}, cost);
    BOOST_TEST(device.flops().products == 48);
    backward(sum(y));
    BOOST_TEST(device.flops().products - 48 == derivative);
  }
  const TraceDevice device;
  Tensor a = ones({2, 3});
  require_grad(a);
  backward(sum(recompute(product, {a, ones({3, 4})}, SegmentCost::once)));
  BOOST_TEST(device.flops().products == 96);  // b needs none
}

// Also of a segment that is computed again.
BOOST_AUTO_TEST_CASE(derivatives_belong_to_the_layer_of_their_op) {
  for (const bool again : {false, true}) {
    Tensor x = from_values({1, 2}, {2});
    require_grad(x);
    const Segment layers = [](const std::vector<Tensor>& in) {
      const LayerScope outer("attention");
      Tensor y;
      {
        const LayerScope inner("norm");
        y = softmax(in[0]);
      }
      return log_softmax(y);
    };
    const Tensor y = again ? recompute(layers, {x}) : layers({x});
    const auto calls = record_kernel_calls([&] { backward(y, ones({2})); });
    std::vector<std::string> found;
    for (const KernelCall& call : calls)
      if (call.name.find("softmax") != call.name.npos)
        found.push_back(std::string(call.layer) + " " + std::string(call.name));
    std::vector<std::string> expected{"attention log_softmax_backward", "norm softmax_backward"};
    if (again) expected.insert(expected.begin(), {"norm softmax", "attention log_softmax"});
    BOOST_TEST(found == expected, boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_SUITE_END()
