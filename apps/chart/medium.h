// What charts are drawn for: a screen, or a column of a paper.
//
// Charts are laid out in units of which 12 are the height of their text. On a screen a unit is a pixel. On paper text
// has 8 pt, so a unit is 2/3 pt and a column of 3.25 inches (234 pt) is 351 units wide. Titles are missing on paper,
// where the caption of the article stands.
#pragma once
#include "apps/cli/command.h"

namespace braid::apps {

inline constexpr double kPaperPoints = 2.0 / 3;   // points of a unit on paper
inline constexpr double kScreenPoints = 3.0 / 4;  // of a unit on a screen, which has 96 pixels an inch

struct Medium {
  double inches = 0;  // width of the column; 0: a screen
  bool paper() const { return inches > 0; }
  double points() const { return paper() ? kPaperPoints : kScreenPoints; }  // of a unit
  // Width of a chart in units; `screen`: on a screen.
  double width(double screen = 760) const { return paper() ? inches * 72 / kPaperPoints : screen; }
};

// --for paper, --for paper=INCHES; without it a screen.
Flag medium_flag();
// Error(setting) for another value or a width out of 1.5 to 20 inches.
Medium medium_of(const Arguments& arguments);

}  // namespace braid::apps
