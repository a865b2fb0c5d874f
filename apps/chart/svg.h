// Drawings as SVG. Text stays text; colours come from a style sheet with a light and a dark variant, chosen by the
// viewer (style.h), on paper the light one alone.
#pragma once
#include <string>
#include <string_view>

#include "apps/chart/drawing.h"

namespace braid::apps {

std::string svg_of(const Drawing& drawing);  // the document

// Bytes as text of A-Z a-z 0-9 + / (RFC 4648), for data: URLs.
std::string base64(std::string_view bytes);

}  // namespace braid::apps
