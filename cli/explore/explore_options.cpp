#include "cli/explore/explore_options.h"

#include "cli/options/usage_error.h"
#include "cli/options/values.h"

namespace reckon::cli {

std::vector<Option> ExploreOptions::declared() {
  constexpr int kLastPort = 65535;
  return {
      {{"port", "N", "port at 127.0.0.1 (0: any free one)"}, whole(port, 0, kLastPort)},
      {{"print", "", "print what may be chosen, as --format says, and open no page"}, given(print)},
      format_option(),
      {{"quick", "N", "replications of the first redrawing (100)"}, whole(quick, 1, 1000000)},
      seed_option(),
      replications_option(),
      set_option(),
      layer_option(),
      engine_option(),
      catalog_option(),
      calibration_option(),
      evidence_option(),
      without_evidence_option(),
      threads_option()};
}

void ExploreOptions::check() const {
  if (files.size() > 1) throw UsageError("explore takes one scenario file");
  if (!print && format == OutputFormat::json) throw UsageError("--format json needs --print");
}

}  // namespace reckon::cli
