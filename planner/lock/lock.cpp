#include "planner/lock/lock.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <nlohmann/json.hpp>

#include "sim/base/reading_iterator.h"
#include "sim/scenario/artifact/json_read.h"
#include "sim/scenario/artifact/json_write.h"

namespace reckon {

RECKON_FIELDS(Quantiles, mean, p5, p50, p95)

}  // namespace reckon

namespace reckon::planner {

RECKON_FIELDS(LockOrigin, reckon_version, catalog_digest, prices_digest, prices_as_of,
              evidence_digest)
RECKON_FIELDS(LockedSampling, seed, replications)
RECKON_FIELDS(LockedScenario, file, text)
RECKON_FIELDS(LockedFile, path, digest)
RECKON_FIELDS(LockedCalibration, name, text)
RECKON_FIELDS(LockedExpectation, text, value, passed)
RECKON_FIELDS(LockedForecast, sampling, time_seconds, cost_usd, expect)
RECKON_FIELDS(LockedPlan, sampling, objective, score, file, time_seconds, cost_usd)
RECKON_FIELDS(LockedPrice, provider, region, zones, covers, item, count, on_demand_usd_per_hour,
              spot_usd_per_hour, on_demand_usd_per_second, spot_usd_per_second, date, source,
              suspect, layer)
RECKON_FIELDS(LockedRun, id, source, trust, samples_per_second, peak_memory_bytes,
              peak_is_of_device, run)
RECKON_FIELDS(LockedSource, source, runs)
RECKON_FIELDS(Lock, made, scenario, files, calibrations, forecast, plan, prices, used, evidence)

namespace {

using artifact::Json;

constexpr const char* kVersionKey = "reckon_lock";

std::string compact(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// `,` but for the first.
class Commas {
 public:
  const char* next() { return std::exchange(first_, false) ? "" : ","; }

 private:
  bool first_ = true;
};

/// A list a row a line; what is no list is one line.
std::string lines_of(const Json& json) {
  if (!json.is_array() || json.empty()) return compact(json);
  std::string out = "[";
  Commas commas;
  for (const Json& row : json) out += fmt::format("{}\n    {}", commas.next(), compact(row));
  return out + "\n  ]";
}

Diagnostics refused(const std::string& file, std::string what) {
  return {{.at = {.file = file},
           .what = std::move(what),
           .hint = "write it again: reckon plan FILE --lock, or reckon check FILE --lock"}};
}

}  // namespace

std::string digest_of_text(std::string_view text) {
  return fmt::format("{:016x}", XXH3_64bits(text.data(), text.size()));
}

bool is_lock(std::string_view bytes) {
  const std::size_t at = bytes.find_first_not_of(" \t\r\n");
  return at != std::string_view::npos && bytes[at] == '{' &&
         bytes.find(fmt::format("\"{}\"", kVersionKey)) != std::string_view::npos;
}

std::string write_lock(const Lock& lock) {
  std::string out = fmt::format("{{\n  \"{}\": {}", kVersionKey, kLockVersion);
  each_field(lock, [&](const char* name, const auto& field) {
    out += fmt::format(",\n  \"{}\": {}", name, lines_of(artifact::to_json(field)));
  });
  return out + "\n}\n";
}

Expected<Lock> read_lock(std::string_view bytes, const std::string& file) {
  if (bytes.size() > kLargestLock)
    return tl::unexpected(
        refused(file, fmt::format("no lock: larger than {} MiB", kLargestLock >> 20U)));
  Json json = Json::parse(bytes, nullptr, false);
  if (json.is_discarded() || !json.is_object())
    return tl::unexpected(refused(file, "no lock: it is no JSON object, or was cut off"));
  const auto version = json.find(kVersionKey);
  if (version == json.end() || !version->is_number_integer())
    return tl::unexpected(refused(file, fmt::format("no lock: '{}' is missing", kVersionKey)));
  if (*version != kLockVersion)
    return tl::unexpected(
        refused(file, fmt::format("a lock of version {}, and this reckon reads version {}",
                                  compact(*version), kLockVersion)));
  json.erase(kVersionKey);
  artifact::Reader reader(file);
  Lock lock;
  reader.read(json, lock, artifact::Where{});
  Diagnostics problems = reader.take_problems();
  for (Diagnostic& d : problems)
    d.hint = "write it again: reckon plan FILE --lock, or reckon check FILE --lock";
  if (!problems.empty()) return tl::unexpected(std::move(problems));
  return lock;
}

}  // namespace reckon::planner
