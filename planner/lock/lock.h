#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "planner/lock/locked_rows.h"
#include "sim/base/diagnostic.h"
#include "sim/forecast/forecast.h"

// A lock: an answer with all that may change below it, in one file beside the scenario, so that
// whoever asks again can tell what moved the answer: an edit, prices, evidence, or reckon itself.
//
// The file is JSON, one entry or row a line, so that a review shows which price moved. Written by
// `reckon plan --lock` and `reckon check --lock`.
namespace reckon::planner {

inline constexpr int kLockVersion = 1;
inline constexpr std::size_t kLargestLock = std::size_t{64} << 20U;  // bytes of a file

/// By what the answer was made.
struct LockOrigin {
  std::string reckon_version;
  std::string catalog_digest;               // of all facts of the catalog, prices among them
  std::string prices_digest, prices_as_of;  // of `prices`; the newest date among them
  std::string evidence_digest;              // of `evidence`
};

/// Of the command line; nullopt: the scenario's.
struct LockedSampling {
  std::optional<std::uint64_t> seed;
  std::optional<int> replications;
  friend bool operator==(const LockedSampling&, const LockedSampling&) = default;
};

/// The scenario as one document, with what the command line put over it.
struct LockedScenario {
  std::string file;  // its name, without a directory
  std::string text;
};

/// A file that the scenario names: its text is not kept.
struct LockedFile {
  std::string path, digest;
};

struct LockedCalibration {
  std::string name, text;
};

struct LockedExpectation {
  std::string text;
  std::optional<double> value;  // as evaluate() has it, in the unit of its metric
  bool passed = false;
};

/// What the scenario was forecast to take, as `simulate` and `check` have it.
struct LockedForecast {
  LockedSampling sampling;
  std::optional<Quantiles> time_seconds, cost_usd;  // nullopt: it has none
  std::vector<LockedExpectation> expect;
};

/// The best plan then.
struct LockedPlan {
  LockedSampling sampling;
  std::string objective;
  double score = 0;  // score_of(): seconds, USD or USD x seconds
  std::string file;  // what --out writes of it
  Quantiles time_seconds;
  std::optional<Quantiles> cost_usd;
};

struct Lock {
  LockOrigin made;
  LockedScenario scenario;
  std::vector<LockedFile> files;
  std::vector<LockedCalibration> calibrations;
  std::optional<LockedForecast> forecast;  // nullopt: the scenario alone is no plan
  std::optional<LockedPlan> plan;          // nullopt: none was searched for
  std::vector<LockedPrice> prices;         // all of the providers that the answer may use
  std::vector<LockedRun> used;             // runs that the answer's step rests on
  std::vector<LockedSource> evidence;      // all runs that there were, by source
};

std::string write_lock(const Lock& lock);
/// Errors: no lock, a version that this reckon does not know, fields that are missing, unknown or
/// out of range. `file` names it. Never throws for what is in `bytes`.
Expected<Lock> read_lock(std::string_view bytes, const std::string& file);
/// Does it begin as a lock does, and no scenario?
bool is_lock(std::string_view bytes);

/// XXH3-64, 16 hexadecimal digits.
std::string digest_of_text(std::string_view text);

}  // namespace reckon::planner
