#define BOOST_TEST_MODULE braid
#include <boost/test/unit_test.hpp>
