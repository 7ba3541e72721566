#include "sim/scenario/resolve/training/size.h"

namespace reckon {

double bytes_of(const PlannedWorkload& job) {
  constexpr double kHeapOfLayer = 160;  // its inputs, its shape, its texts
  const double layers = double(job.model.layers().size());
  return sizeof(PlannedWorkload) + layers * (sizeof(Layer) + sizeof(LayerCount) + kHeapOfLayer);
}

}  // namespace reckon
