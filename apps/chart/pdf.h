// Drawings as PDF 1.4: one page of vectors, with text in the fonts Helvetica and Symbol that readers bring along (they
// are not embedded; where a publisher wants that, convert the SVG). The same drawing gives the same bytes. Colors are
// those of a white page; words under the pointer are not there.
#pragma once
#include <string>

#include "apps/chart/drawing.h"

namespace braid::apps {

std::string pdf_of(const Drawing& drawing);  // the file

}  // namespace braid::apps
