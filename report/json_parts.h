#pragma once
#include <cmath>
#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "sim/forecast/forecast.h"

// What the JSON of several commands is made of. Included by .cpp files of this folder and
// of html/ only: nlohmann is heavy.
namespace reckon {

struct BillComparison;
struct ProfiledFile;

using Json = nlohmann::ordered_json;

inline Json head(const char* command) { return {{"schema_version", 1}, {"command", command}}; }

/// Unknown, and what never ends, is null.
inline Json number(double v) { return std::isfinite(v) ? Json(v) : Json(nullptr); }
inline Json text_or_null(const std::string& s) { return s.empty() ? Json(nullptr) : Json(s); }

inline Json json_of(const Quantiles& q) {
  return {{"mean", number(q.mean)},
          {"p5", number(q.p5)},
          {"p50", number(q.p50)},
          {"p95", number(q.p95)}};
}

/// The objects of `reckon simulate`, for commands that hold several.
Json memory_object(const MemoryEstimate& memory);
Json forecast_object(const Forecast& forecast);
/// null where evidence was not asked; `most` of the runs, most alike first.
Json evidence_object(const std::optional<StepEvidence>& evidence, std::size_t most);
/// A forecast's ledger beside a bill, of `import bill` and `diff`.
Json bill_object(const BillComparison& comparison);
Json profiles_array(std::span<const ProfiledFile> files);

/// Names of files and of nodes come from users: bytes that are no UTF-8 are replaced, not thrown
/// about.
inline std::string dump(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace reckon
