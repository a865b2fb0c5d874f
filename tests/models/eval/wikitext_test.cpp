#include "braid/models/eval/wikitext.h"

#include <boost/test/unit_test.hpp>

using namespace braid::models::eval;

BOOST_AUTO_TEST_SUITE(eval_wikitext)

// What lm-evaluation-harness makes of these texts.
BOOST_AUTO_TEST_CASE(marks_become_text) {
  const auto becomes = [](const std::string& page, const std::string& text) {
    BOOST_TEST(wikitext_as_text(page) == text);
  };
  becomes("= Valkyria = \n = = Game play = = \n \n the players ' 2 @-@ 3 , 1 @,@ 000 @.@ 5 ; it : . ! ? \n",
          "= Valkyria =\n== Game play ==\n\nthe players' 2-3, 1,000.5; it:.!?\n");
  becomes("( a ( b )\u00a0) [ x ] { y\n } \" q \" ' r ' s ' t", "(a ( b)\u00a0) [x] {y} \"q\" 'r' s' t");
  becomes("/' 5/ /' x/ /' 5/' 6/", "/'[0-9]/ /' x/ /'[0-9]/' 6/");
  becomes("20 \u00b0 C N E Bob 's ( open", "20\u00b0C 1 E Bob's ( open");
  becomes("= = = = h = = = =", "==== h ====");
  becomes("(\u3000\x1C) \"\" \" ", "() \"\" \" ");
  becomes("/' 5", "/' 5");
  becomes("", "");
}

BOOST_AUTO_TEST_SUITE_END()
