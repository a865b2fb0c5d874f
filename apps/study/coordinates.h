// The coordinate check of muP (Yang et al. 2022, arXiv 2203.03466, appendix D.1): the sizes of activations in the first
// steps of training, against the width. Where one grows with the width, a learning rate found with a narrow model is
// too large for a wide one; where one shrinks, a part of the model stops learning.
//
//   size of x = mean of |x|      slope = d ln(size) / d ln(width), by least squares      flat: |slope| <= kFlatSlope
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "apps/study/report_writer.h"
#include "apps/study/study_state.h"

namespace braid::apps {

inline constexpr double kFlatSlope = 0.25;

// The sizes at each checkpoint of a run: of hidden.<i>, layers.<i>.attn_out, layers.<i>.ffn_out and logits
// (apps/dump/names.md) on the first validation samples, of an encoder-decoder those of both sides.
std::vector<ActivationSize> measure_coordinates(const TrainConfig& config, const std::filesystem::path& folder);
// "step,width,quantity,size" and a line for each; and back.
std::string coordinates_csv(const std::vector<ActivationSize>& sizes);
std::vector<ActivationSize> read_coordinates(const std::filesystem::path& file);

// The slope of y over x in their logarithms; NaN for fewer than two different x, or where a value is not above 0.
double log_slope(const std::vector<double>& x, const std::vector<double>& y);

// The section of the report: coordinates.csv, slopes.csv and, for each variant, the figure coordinates-<variant>.
void report_coordinates(const Study& study, const std::vector<StudyResult>& results, ReportWriter& report);

}  // namespace braid::apps
