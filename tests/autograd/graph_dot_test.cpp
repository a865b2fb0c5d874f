#include "braid/autograd/graph_dot.h"

#include <boost/test/unit_test.hpp>
#include <fstream>
#include <sstream>

#include "braid/autograd.h"
#include "tests/support/compare.h"
#include "tests/support/temp_folder.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(graph_dot)

BOOST_AUTO_TEST_CASE(boxes_are_ops_ellipses_are_named_leaves) {
  Tensor w = full({2, 3}, 1), b = full({2}, 1), x = full({4, 3}, 1);
  require_grad(w);
  require_grad(b);
  const Tensor y = sum(square(linear(x, w, b)));
  const std::string expected = R"dot(digraph {
  rankdir=LR;
  node [shape=box];
  n0 [label="sum"];
  n1 [label="square"];
  n2 [label="linear"];
  n3 [label="w", shape=ellipse];
  n4 [label="leaf", shape=ellipse];
  n1 -> n0 [label="(4, 2)"];
  n2 -> n1 [label="(4, 2)"];
  n3 -> n2 [label="(2, 3)"];
  n4 -> n2 [label="(2)"];
}
)dot";
  BOOST_TEST(dot(y, {{"w", w}, {"x", x}}) == expected);
  BOOST_TEST(dot(y, {{"say \"w\"", w}}).find(R"--(label="say \"w\"")--") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_node_used_twice_is_drawn_once) {
  Tensor x = full({2}, 1);
  require_grad(x);
  const std::string text = dot(mul(x, x), {{"x", x}});
  BOOST_TEST(text.find("n1 -> n0") != text.rfind("n1 -> n0"));
  BOOST_TEST(text.find("n2") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(it_is_written_to_a_file) {
  TempFolder folder;
  const std::string path = folder / "graph.dot";
  Tensor x = full({1}, 1);
  require_grad(x);
  write_dot(exp(x), path);
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  BOOST_TEST(text.str() == dot(exp(x)));
  BOOST_TEST(throws_with([&] { dot(full({1}, 1)); }, "[dot] the tensor has no history"));
}

BOOST_AUTO_TEST_SUITE_END()
