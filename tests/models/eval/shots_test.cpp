#include "braid/models/eval/shots.h"

#include <boost/test/unit_test.hpp>
#include <set>

#include "tests/support/throws.h"

using namespace braid;
using namespace braid::models::eval;

BOOST_AUTO_TEST_SUITE(eval_shots)

using models::eval::Document;  // not that of attention

namespace {
Document document(const std::string& text) {
  return {.contexts = {text, text}, .choices = {"no", "yes"}, .gold = 1, .location = {"f", 9}};
}
std::vector<Document> pool(int n) {
  std::vector<Document> documents;
  for (int i = 0; i < n; ++i) documents.push_back(document(std::to_string(i)));
  return documents;
}
}  // namespace

// Each ordered pair of the other four of 5 documents is drawn about equally often; itself never.
BOOST_AUTO_TEST_CASE(every_other_document_equally_often) {
  const auto documents = pool(5);
  std::map<std::vector<size_t>, int> times;
  for (uint64_t seed = 0; seed < 2400; ++seed) ++times[draw_shots(documents, documents[2], 2, 2, seed)];
  BOOST_TEST(times.size() == 12u);
  for (const auto& [shots, n] : times) {
    BOOST_TEST(shots[0] != shots[1]);
    BOOST_TEST((shots[0] != 2 && shots[1] != 2));
    BOOST_TEST(n > 140);
    BOOST_TEST(n < 260);
  }
}

BOOST_AUTO_TEST_CASE(a_function_of_seed_and_item_alone) {
  const auto documents = pool(50);
  BOOST_TEST(draw_shots(documents, documents[1], 1, 5, 3) == draw_shots(documents, documents[1], 1, 5, 3),
             boost::test_tools::per_element());
  BOOST_TEST((draw_shots(documents, documents[1], 1, 5, 3) != draw_shots(documents, documents[1], 2, 5, 3)));
  BOOST_TEST((draw_shots(documents, documents[1], 1, 5, 3) != draw_shots(documents, documents[1], 1, 5, 4)));
  const auto all = draw_shots(documents, document("new"), 1, 50, 3);
  BOOST_TEST(std::set<size_t>(all.begin(), all.end()).size() == 50u);
}

// A copy of the item in the pool would tell its answer.
BOOST_AUTO_TEST_CASE(never_an_equal_document) {
  auto documents = pool(3);
  documents.push_back(document("1"));
  for (uint64_t seed = 0; seed < 50; ++seed)
    for (const size_t i : draw_shots(documents, document("1"), 0, 2, seed)) BOOST_TEST((i == 0 || i == 2));
  BRAID_CHECK_FAILS(draw_shots(documents, document("1"), 0, 3, 0), ErrorKind::setting,
                    "too few examples for `shots`: expected 3 items besides line 9 of f, found 2");
}

BOOST_AUTO_TEST_CASE(examples_end_with_their_answer) {
  TaskTemplate form{.delimiter = " ", .separator = "\n\n"};
  BOOST_TEST(shots_text(form, pool(3), std::vector<size_t>{2, 0}) == "2 yes\n\n0 yes\n\n");
}

BOOST_AUTO_TEST_SUITE_END()
