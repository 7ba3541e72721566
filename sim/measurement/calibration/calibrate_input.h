#pragma once
#include <string>
#include <vector>

#include "sim/measurement/calibration/calibration.h"
#include "sim/measurement/measured_run.h"

namespace reckon {

/// What runs measured of their samples, which needs no fit: bytes of a sample, which are counted;
/// processor time of decoding; of a store its rate, where it is more than was said, and the time of
/// a request without its bytes.
struct MeasuredInput {
  std::vector<Correction> corrections;
  std::vector<CalibratedRow> rows;
  std::vector<OwnData> own_data;
  bool empty() const { return rows.empty(); }
};

/// Takes it out of the runs' quantities. Data sets of the catalog then have it in `catalog`, those
/// that a scenario says itself in the run's scenario, so that the step is not explained by others.
MeasuredInput take_input(std::vector<MeasuredRun>& runs, Catalog& catalog);

}  // namespace reckon
