#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "sim/measurement/calibration/calibration.h"
#include "sim/measurement/measurements.h"
#include "sim/measurement/sealed_line.h"
#include "sim/measurement/step_log.h"

// A file of measurements is read or gives diagnostics; what is read can be written, and reads as
// the same again. The first byte says which kind of file it is.
namespace {

using namespace reckon;

void require(bool condition) {
  if (!condition) std::abort();
}

template <class T>
bool read(const Expected<T>& value) {
  if (!value) require(!format(value.error()).empty());
  return bool(value);
}

/// All records, in the order of their kinds.
std::string written(const Measurements& m) {
  std::string text;
  for_each_record(m, [&](const auto& record) { text += to_line(record); });
  return text;
}

/// A damaged line costs itself alone, and lies where it is said to.
void measurements(std::string_view text) {
  const auto first = parse_measurements("run/measurements.jsonl", text);
  if (!read(first)) return;
  for (const DamagedLine& line : first->damaged) {
    require(!line.why.empty() && line.begin + line.bytes <= text.size());
    for (const std::string& record : line.rescued) require(text.find(record) != text.npos);
  }
  for (const int rank : {0, 1}) {
    const auto useful = first->useful_steps(rank);
    for (std::size_t k = 1; k < useful.size(); ++k) require(useful[k - 1].step < useful[k].step);
  }
  const std::string lines = written(*first);
  const auto second = parse_measurements("again", lines);
  require(second && second->damaged.empty() && second->torn_lines == 0);
  require(written(*second) == lines);
}

/// The same text whose lines have checksums, as they are written today.
std::string sealed(std::string_view text) {
  std::string lines;
  while (!text.empty()) {
    const std::string line(text.substr(0, text.find('\n')));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const bool object = line.size() > 2 && line.front() == '{' && line.back() == '}';
    lines += (object ? seal_line(line) : line) + '\n';
  }
  return lines;
}

void steps(std::string_view text) {
  const auto log = parse_step_csv("steps.csv", text);
  if (!read(log)) return;
  for (const double v : log->seconds(8)) require(std::isfinite(v) && v > 0);
}

void waits(std::string_view text) {
  (void)is_waiting_csv(text);
  const auto records = parse_waiting_csv("waits.csv", text);
  if (!read(records)) return;
  for (const WaitRecord& r : *records) require(std::isfinite(r.sample.seconds.count()));
}

void collectives(std::string_view text) {
  (void)is_nccl_tests(text);
  const auto log = parse_nccl_tests("all_reduce.txt", text);
  if (!read(log)) return;
  for (const CollectiveSample& s : log->samples)
    require(std::isfinite(s.time.count()) && std::isfinite(s.size.v) && std::isfinite(s.error));
  require(log->ranks >= 0);
  require(std::isfinite(line_through(log->samples).latency.count()));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0]) {
    case 'm':
      measurements(text);
      break;
    case 'M':
      measurements(sealed(text));
      break;
    case 's':
      steps(text);
      break;
    case 'w':
      waits(text);
      break;
    case 'n':
      collectives(text);
      break;
    case 'c':
      read(parse_calibration("calibration.yaml", text));
      break;
    default:
      break;
  }
  return 0;
}
