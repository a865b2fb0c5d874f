#include "apps/study/table.h"

#include <boost/test/unit_test.hpp>

using namespace braid::apps;

BOOST_AUTO_TEST_SUITE(study_table)

BOOST_AUTO_TEST_CASE(characters_of_latex_are_escaped) {
  BOOST_TEST(latex_escaped("a_b & 95 % of #1 {$x}") == "a\\_b \\& 95 \\% of \\#1 \\{\\$x\\}");
  BOOST_TEST(latex_escaped("\\~^<>|") ==
             "\\textbackslash{}\\textasciitilde{}\\textasciicircum{}\\textless{}\\textgreater{}\\textbar{}");
  BOOST_TEST(latex_escaped("-0.5") == "$-$0.5");
  BOOST_TEST(latex_escaped("[-0.5, -0.1]") == "[$-$0.5, $-$0.1]");
  BOOST_TEST(latex_escaped("dc-1 1e-05") == "dc-1 1e-05");
  BOOST_TEST(latex_escaped("") == "");
}

BOOST_AUTO_TEST_CASE(both_forms) {
  Table table({"variant", "loss"});
  table.row({"dc_1", "-2.5"});
  table.row({"plain", "**3.25** (edge)"});
  BOOST_TEST(table.markdown() == "| variant | loss |\n|---|--:|\n| dc_1 | -2.5 |\n| plain | **3.25** (edge) |\n");
  BOOST_TEST(table.latex("Losses, 95 %", "losses") ==
             "\\begin{table}\n  \\centering\n  \\caption{Losses, 95 \\%}\n  \\label{tab:losses}\n"
             "  \\begin{tabular}{lr}\n    \\toprule\n    variant & loss \\\\\n    \\midrule\n"
             "    dc\\_1 & $-$2.5 \\\\\n    plain & \\textbf{3.25} (edge) \\\\\n"
             "    \\bottomrule\n  \\end{tabular}\n\\end{table}\n");
}

BOOST_AUTO_TEST_SUITE_END()
