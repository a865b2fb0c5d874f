#include "apps/serve/api/work_queue.h"

#include <boost/test/unit_test.hpp>
#include <future>

using braid::apps::serve::WorkQueue;

BOOST_AUTO_TEST_SUITE(serve_work_queue)

BOOST_AUTO_TEST_CASE(work_is_done_in_its_order_and_what_waits_is_bounded) {
  WorkQueue queue(1, 2);
  std::promise<void> begun, go_on;
  std::vector<int> done;
  BOOST_TEST(queue.add([&] {
    begun.set_value();
    go_on.get_future().wait();
  }));
  begun.get_future().wait();
  BOOST_TEST(queue.add([&] { done.push_back(1); }));
  std::promise<void> last;
  BOOST_TEST(queue.add([&] {
    done.push_back(2);
    last.set_value();
  }));
  BOOST_TEST(!queue.add([&] { done.push_back(3); }));
  go_on.set_value();
  last.get_future().wait();
  BOOST_TEST((done == std::vector<int>{1, 2}));
  std::promise<void> again;
  BOOST_TEST(queue.add([&] { again.set_value(); }));
  again.get_future().wait();
  queue.stop();
  BOOST_TEST(queue.add([] {}));  // dropped
}

BOOST_AUTO_TEST_SUITE_END()
