// Parts that charts share: title, caption, axes, names of series.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "apps/chart/axis.h"
#include "apps/chart/drawing.h"

namespace braid::apps {

struct Frame {  // in chart coordinates; titles and labels lie around it
  double x, y, width, height;
};

// The title at the top, which paper has not: 0 there.
double title_height(const Medium& medium);
void draw_title(Drawing& drawing, const std::string& title);
// The caption at the bottom of the drawing, which paper has not.
double caption_height(const std::string& caption, const Medium& medium);
void draw_caption(Drawing& drawing, const std::string& caption);

// Lines with their names and hues, in columns as wide as the longest. y: their top.
using SeriesNames = std::vector<std::pair<std::string, int>>;
double series_height(const SeriesNames& names, const Medium& medium);
void draw_series(Drawing& drawing, const SeriesNames& names, double y);

// How many panels stand beside one another: `most`, on paper as many as have slots of `narrowest` units or more.
int panels_across(int most, double narrowest, const Medium& medium);

// Grid, tick labels, title and name of the horizontal axis around a panel; the axes have the frame's coordinates.
// title_x: where the title begins.
void draw_axes(Drawing& drawing, const Frame& frame, const Axis& xs, const Axis& ys, const std::string& title,
               const std::string& x_name, double title_x);

}  // namespace braid::apps
