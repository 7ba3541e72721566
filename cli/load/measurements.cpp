#include "cli/load/measurements.h"

#include "cli/errors.h"
#include "cli/load/load.h"
#include "cli/output.h"

namespace reckon::cli {

Expected<Measurements> load_measurements(const std::filesystem::path& file) {
  auto measured = parse_measurements(file.string(), read_text(file));
  if (measured) report(damage_of(*measured));
  return measured;
}

}  // namespace reckon::cli
