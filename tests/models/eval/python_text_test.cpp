#include "braid/models/eval/python_text.h"

#include <boost/test/unit_test.hpp>

using namespace braid::models::eval;

BOOST_AUTO_TEST_SUITE(eval_python_text)

// What Python 3.11 gives.
BOOST_AUTO_TEST_CASE(capitals) {
  BOOST_TEST(capitalize("") == "");
  BOOST_TEST(capitalize("heLLO World") == "Hello world");
  BOOST_TEST(capitalize("élan HE") == "Élan he");
  BOOST_TEST(capitalize("ß") == "Ss");
  BOOST_TEST(capitalize("\u0149A") == "\u02bcNa");
  BOOST_TEST(capitalize("\u01c6X") == "\u01c5x");  // a letter with a title case of its own
  BOOST_TEST(capitalize("\ufb03X") == "Ffix");
  BOOST_TEST(capitalize("\u1ff7a") == "\u03a9\u0342\u0345a");
  BOOST_TEST(capitalize("\u10d0") == "\u10d0");
  BOOST_TEST(capitalize("İI") == "İi");
  BOOST_TEST(capitalize("aİ") == "Ai\u0307");
  BOOST_TEST(capitalize("\u00a0é") == "\u00a0é");
  BOOST_TEST(capitalize("ΟΔΥΣΣΕΥΣ ΣΑΣ Σ ΑΣ'") == "Οδυσσευς σας σ ας'");
  BOOST_TEST(capitalize("\u24d0Σ") == "\u24b6ς");
  BOOST_TEST(capitalize("aΣ.b") == "Aσ.b");
  BOOST_TEST(capitalize("'Σ") == "'σ");
}

BOOST_AUTO_TEST_CASE(white_space) {
  BOOST_TEST(strip("\u3000\x1C a\u200bb \u0085\n") == "a\u200bb");
  BOOST_TEST(lstrip("\u00a0a ") == "a ");
  BOOST_TEST(rstrip("\u2028a\u2028") == "\u2028a");
  BOOST_TEST(strip("\u202f\t") == "");
  BOOST_TEST(strip("\xA0") == "\xA0");  // no UTF-8
}

// As len(re.split(r"\s+", text)).
BOOST_AUTO_TEST_CASE(words_by_hand) {
  BOOST_TEST(count_words("") == 1);
  BOOST_TEST(count_words("one") == 1);
  BOOST_TEST(count_words("one  two\n\tthree") == 3);
  BOOST_TEST(count_words(" one ") == 3);
  BOOST_TEST(count_words("a\xC2\xA0"
                         "b\xA0"
                         "c") == 2);
}

BOOST_AUTO_TEST_SUITE_END()
