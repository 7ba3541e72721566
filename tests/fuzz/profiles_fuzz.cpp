#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "sim/measurement/profiles/dcgm.h"
#include "sim/measurement/profiles/kineto.h"
#include "sim/measurement/profiles/nsys.h"

// A profile of another tool is read or gives diagnostics; its parts add up and none is negative.
// The first byte says which kind of file it is.
namespace {

using namespace reckon;

void require(bool condition) {
  if (!condition) std::abort();
}

template <class T>
bool read(const Expected<T>& value) {
  if (!value) require(!value.error().empty() && !format(value.error()).empty());
  return bool(value);
}

void check(const Expected<Profile>& profile) {
  if (!read(profile)) return;
  const ProfiledParts& p = profile->parts;
  for (const Seconds t : {p.product, p.attention, p.memory, p.exposed_communication, p.idle})
    require(std::isfinite(t.count()) && t.count() >= 0);
  require(p.communication >= p.exposed_communication * (1 - 1e-9));
  double sum = 0;
  for (const double step : profile->steps) {
    require(std::isfinite(step) && step > 0);
    sum += step;
  }
  if (profile->steps.empty() || profile->devices == 0) return;
  const double mean = sum / double(profile->steps.size());
  require(std::abs(p.total().count() - mean) <= 1e-6 * mean);
}

void activity(std::string_view text) {
  (void)is_dcgm(text);
  const auto samples = parse_dcgm("dmon.txt", text);
  if (!read(samples)) return;
  require(samples->gpus >= 0 && samples->samples + samples->idle_samples > 0);
  if (samples->active) require(*samples->active >= 0 && *samples->active <= 1);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0]) {
    case 'k':
      (void)is_kineto(text);
      check(parse_kineto("trace.json", text));
      break;
    case 'q':
      if (is_sqlite(text)) check(parse_nsys_sqlite("report.sqlite", text, 2));
      break;
    case 't':
      if (is_nsys_csv(text)) check(parse_nsys_csv("trace.csv", text, 3));
      break;
    case 'd':
      activity(text);
      break;
    default:
      break;
  }
  return 0;
}
