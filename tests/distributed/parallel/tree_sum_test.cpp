#include "braid/distributed/parallel/tree_sum.h"

#include <boost/test/unit_test.hpp>
#include <cmath>

#include "tests/support/throws.h"

using namespace braid;
using dist::TreeNode, dist::TreeSum, dist::Range, dist::tree_nodes;

BOOST_AUTO_TEST_SUITE(tree_sum)

namespace {

// Terms whose sum in f32 depends on its order.
Tensor term(int64_t sample) {
  return full({1}, std::sin(1.0 + double(sample)) * std::pow(3.0, double(sample % 9)), DType::f32);
}

float value(const Tensor& x) { return x.to_vector<float>()[0]; }

// The sum by the definition of the tree.
float expected(int64_t begin, int64_t size, int64_t end) {
  if (begin >= end) return 0;
  if (size == 1) return value(term(begin));
  const float left = expected(begin, size / 2, end);
  return begin + size / 2 < end ? left + expected(begin + size / 2, size / 2, end) : left;
}

}  // namespace

BOOST_AUTO_TEST_CASE(nodes_of_a_range) {
  const auto text = [](const Range& range) {
    std::string all;
    for (const TreeNode& n : tree_nodes(range)) all += std::to_string(n.level) + ":" + std::to_string(n.index) + " ";
    return all;
  };
  BOOST_TEST(text({0, 8}) == "3:0 ");
  BOOST_TEST(text({0, 6}) == "2:0 1:2 ");
  BOOST_TEST(text({1, 7}) == "0:1 1:1 1:2 0:6 ");
  BOOST_TEST(text({4, 8}) == "2:1 ");
  BOOST_TEST(text({3, 3}).empty());
}

BOOST_AUTO_TEST_CASE(any_cut_of_the_samples_gives_the_tree_of_the_whole) {
  int other_orders = 0;
  for (const int64_t n : {1, 2, 3, 5, 8, 13, 64}) {
    int64_t size = 1;
    while (size < n) size *= 2;
    const float want = expected(0, size, n);
    float in_order = 0;
    for (int64_t i = 0; i < n; ++i) in_order += value(term(i));
    other_orders += in_order != want;
    for (int64_t ranks = 1; ranks <= std::min<int64_t>(n, 9); ++ranks) {
      TreeSum all;
      int64_t begin = 0;
      for (int64_t r = 0; r < ranks; ++r) {  // of uneven sizes
        const int64_t end = r + 1 == ranks ? n : std::max(begin, n * (r + 1) * (r + 1) / (ranks * ranks));
        TreeSum part;
        for (int64_t i = begin; i < end; ++i) part.add({0, i}, {term(i), i % 3 ? Tensor() : term(i)});
        const std::vector<TreeNode> nodes = tree_nodes({begin, end});
        BOOST_TEST_REQUIRE(part.sums().size() == nodes.size());
        for (size_t k = 0; k < nodes.size(); ++k) all.add(nodes[k], part.sums()[k]);
        begin = end;
      }
      BOOST_TEST(value(all.total().at(0)) == want, n << " samples of " << ranks << " ranks");
    }
  }
  BOOST_TEST(other_orders > 0);  // the terms can tell orders apart
}

BOOST_AUTO_TEST_CASE(samples_come_in_order) {
  TreeSum sum;
  sum.add({0, 0}, {term(0)});
  BOOST_CHECK_THROW(sum.add({0, 2}, {term(2)}), Error);
  BOOST_TEST(TreeSum().total().empty());
}

BOOST_AUTO_TEST_SUITE_END()
