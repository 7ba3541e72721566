#pragma once
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "sim/base/fact.h"

// The batches of a whole run.
namespace reckon {

struct SchedulePart {
  double global_batch = 0;  // samples
  double epochs = 0;
};
struct Schedule {
  std::vector<SchedulePart> parts;
  double image_cost = 1;  // factor: of an image, against one of the network's own size
};

/// What an image costs in the mean where training begins with small ones: 128, 224 and 288 pixels
/// for 13, 12 and 3 of 28 epochs [Howard et al. 2018, "Training Imagenet in 3 hours for 25
/// minutes", fast.ai], work growing with the area: 0.47 x 0.33 + 0.43 + 0.1 x 1.65 = 0.75.
/// Schedules differ.
inline constexpr Fact<double> kProgressiveImages{0.75, 0.5, 1.0, SourceId::user};

/// A printed batch: blank (`usual`), one number, or a list of parts, [{"batch_size": N, "epochs":
/// K}, ...], whose epochs are their numbers or, where these grow to the run's, the epochs at which
/// they end. The parts' epochs are scaled to add up to the run's `epochs`.
tl::expected<Schedule, std::string> schedule_of(std::string_view batch, double epochs,
                                                double usual);

}  // namespace reckon
