#include "sim/measurement/measurements.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "sim/base/check.h"
#include "sim/measurement/measurement_fields.h"
#include "sim/measurement/sealed_line.h"

namespace reckon {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::string_view, std::variant_size_v<MeasurementRecord>> kRecords{
    "run", "step",    "span",        "mark",  "interruption", "checkpoint", "provisioning",
    "end", "machine", "accelerator", "probe", "change",       "decision",   "evaluation"};

constexpr int kOldestVersion = 1;
/// Records take some hundred bytes. What is longer is not read: whoever damaged it decides its
/// length.
constexpr std::size_t kLineMax = std::size_t{1} << 20;
constexpr std::string_view kBegin = "{\"record\":";
/// Keys that older records lack. A line may be all that is read, without the record that says the
/// version.
constexpr std::array<std::string_view, 12> kLaterKeys{
    "other_seconds", "plan_digest",  "planned_digest",     "delay_updates",
    "data",          "read_samples", "skipped_samples",    "read_bytes",
    "read_seconds",  "spent_usd",    "decode_cpu_seconds", "request_seconds"};
/// StepWaits: of most layouts nearly all are 0, which is not written.
constexpr std::array<std::string_view, 7> kWaitKeys{
    "gradients_seconds", "parameters_seconds", "tensor_seconds", "context_seconds",
    "expert_seconds",    "pipeline_seconds",   "bubble_seconds"};
bool is_wait(std::string_view key) {
  return std::find(kWaitKeys.begin(), kWaitKeys.end(), key) != kWaitKeys.end();
}
bool came_later(std::string_view key) {
  return is_wait(key) || std::find(kLaterKeys.begin(), kLaterKeys.end(), key) != kLaterKeys.end();
}

// ---- values to JSON and back; read() is false where the value is of the wrong kind

Json write(const std::string& v) { return v; }
Json write(bool v) { return v; }
Json write(int v) { return v; }
Json write(std::int64_t v) { return v; }
Json write(std::uint64_t v) { return v; }
Json write(double v) { return std::isfinite(v) ? Json(v) : Json(nullptr); }
Json write(Seconds v) { return write(v.count()); }
Json write(Bytes v) { return write(v.v); }
Json write(Flops v) { return write(v.v); }
Json write(BytesPerSecond v) { return write(v.v); }
Json write(SimTime v) { return write(to_seconds(v - SimTime{}).count()); }
Json write(Interruption v) { return std::string(to_text(v)); }
Json write(const std::vector<std::string>& v) { return v; }
Json write(CheckpointAction v) { return std::string(to_text(v)); }
template <class T>
Json write(const std::optional<T>& v) {
  return v ? write(*v) : Json(nullptr);
}

bool read(const Json& json, std::string& v) {
  if (!json.is_string()) return false;
  v = json.get<std::string>();
  return true;
}
bool read(const Json& json, std::vector<std::string>& v) {
  if (!json.is_array()) return false;
  v.clear();
  for (const Json& item : json)
    if (!read(item, v.emplace_back())) return false;
  return true;
}
bool read(const Json& json, bool& v) {
  if (!json.is_boolean()) return false;
  v = json.get<bool>();
  return true;
}
template <class T>
bool read_integer(const Json& json, T& v) {
  if (!json.is_number_integer()) return false;
  if (json.is_number_unsigned()) {
    const auto n = json.get<std::uint64_t>();
    v = static_cast<T>(n);
    return std::cmp_less_equal(n, std::numeric_limits<T>::max());
  }
  const auto n = json.get<std::int64_t>();
  v = static_cast<T>(n);
  return std::in_range<T>(n);
}
bool read(const Json& json, int& v) { return read_integer(json, v); }
bool read(const Json& json, std::int64_t& v) { return read_integer(json, v); }
bool read(const Json& json, std::uint64_t& v) { return read_integer(json, v); }
bool read(const Json& json, double& v) {
  if (!json.is_number()) return false;
  v = json.get<double>();
  return std::isfinite(v);
}
bool read(const Json& json, Seconds& v) {
  double n = 0;
  const bool good = read(json, n);
  v = Seconds{n};
  return good;
}
bool read(const Json& json, Bytes& v) { return read(json, v.v) && v.v >= 0; }
bool read(const Json& json, Flops& v) { return read(json, v.v) && v.v >= 0; }
bool read(const Json& json, BytesPerSecond& v) { return read(json, v.v) && v.v >= 0; }
bool read(const Json& json, SimTime& v) {
  double n = 0;
  constexpr double kCentury = 100 * 365.25 * 86400;  // more the clock does not hold
  if (!read(json, n) || std::abs(n) > kCentury) return false;
  v = SimTime{to_clock(Seconds{n})};
  return true;
}
template <HasWords Enum>
bool read(const Json& json, Enum& v) {
  const auto known =
      json.is_string() ? from_text<Enum>(json.get_ref<const std::string&>()) : std::nullopt;
  v = known.value_or(v);
  return known.has_value();
}
template <class T>
bool read(const Json& json, std::optional<T>& v) {
  v.reset();
  return json.is_null() || read(json, v.emplace());
}

// ---- one line

class LineReader {
 public:
  LineReader(std::string_view file, Measurements& into) : file_(file), into_(into) {}

  /// The line that begins at byte `begin`, without its newline.
  void line(int number, std::size_t begin, std::string_view text) {
    line_ = number;
    Diagnostics why = read(text);
    if (why.empty()) return;
    DamagedLine damaged{number, begin, text.size(), std::move(why), {}};
    for (const std::string_view record : sealed_within(text))
      if (read(record).empty()) damaged.rescued.emplace_back(record);
    into_.damaged.push_back(std::move(damaged));
  }

  /// A last line without its newline. What begins as a record is one that a killed writer left.
  void tail(int number, std::size_t begin, std::string_view text) {
    if (text.substr(0, kBegin.size()) == kBegin.substr(0, text.size())) {
      ++into_.torn_lines;
      return;
    }
    if (text.find_first_not_of(" \t\r") == std::string_view::npos) return;
    line_ = number;
    problems_.clear();
    problem("the last line has no end, and no record begins so", "");
    into_.damaged.push_back({number, begin, text.size(), std::move(problems_), {}});
  }

  /// Records of a version that this reckon does not read.
  Diagnostics refused;

 private:
  /// What is wrong with it; empty: its record is kept.
  Diagnostics read(std::string_view text) {
    problems_.clear();
    const std::size_t first = text.find_first_not_of(" \t\r");
    if (first == std::string_view::npos) return {};
    text = text.substr(first, text.find_last_not_of(" \t\r") + 1 - first);
    const Seal seal = seal_of(text);
    sealed_ = seal == Seal::good;
    if (text.size() > kLineMax)
      problem(fmt::format("a line of {} bytes is no record", text.size()), "");
    else if (seal == Seal::broken)
      problem("the line is damaged: its checksum differs", "");
    else
      keep(Json::parse(text, nullptr, false));
    return std::exchange(problems_, {});
  }

  void keep(Json json) {
    if (!json.is_object() || !json.contains("record") || !json["record"].is_string())
      return problem("the line is no record", R"(a record looks like {"record":"step",...})");
    const std::string name = json["record"];
    const auto* found = std::find(kRecords.begin(), kRecords.end(), name);
    if (found == kRecords.end()) {
      const std::vector<std::string> known(kRecords.begin(), kRecords.end());
      return problem(fmt::format("unknown record {}{}", quoted(name), did_you_mean(name, known)),
                     fmt::format("records: {}", fmt::join(known, ", ")));
    }
    if (sealed_) json.erase("xxh3");
    switch (found - kRecords.begin()) {
      case 0:
        return versioned(json, into_.runs);
      case 1:
        return keep(json, into_.steps);
      case 2:
        return keep(json, into_.timeline.spans);
      case 3:
        return keep(json, into_.timeline.marks);
      case 4:
        return keep(json, into_.interruptions);
      case 5:
        return keep(json, into_.checkpoints);
      case 6:
        return keep(json, into_.provisioning);
      case 7:
        return keep(json, into_.ends);
      case 8:
        return versioned(json, into_.machines);
      case 9:
        return keep(json, into_.accelerators);
      case 10:
        return keep(json, into_.probes);
      case 11:
        return keep(json, into_.changes);
      case 12:
        return keep(json, into_.decisions);
      default:
        return keep(json, into_.evaluations);
    }
  }

  template <class Record>
  void versioned(const Json& json, std::vector<Record>& records) {
    const auto version = json.find("schema_version");
    if (version != json.end() && version->is_number() &&
        !(*version >= kOldestVersion && *version <= kMeasurementsVersion)) {
      problem(fmt::format("schema_version is {}", version->dump()),
              fmt::format("this reckon reads {} to {}", kOldestVersion, kMeasurementsVersion));
      // Whoever writes another version writes checksums; without one it is a damaged number.
      if (!sealed_) return;
      problems_.back().severity = Severity::error;
      refused.push_back(problems_.back());
      return;
    }
    keep(json, records);
  }

  template <class Record>
  void keep(const Json& json, std::vector<Record>& records) {
    Record record;
    std::vector<std::string> known{"record"};
    for_each_field(record, [&](const char* key, auto& value) {
      known.emplace_back(key);
      const auto found = json.find(key);
      if (found == json.end() && came_later(key)) return;
      if (found == json.end())
        problem(fmt::format("key '{}' is missing", key), "");
      else if (!reckon::read(*found, value))
        problem(fmt::format("'{}' cannot be {}", key, shown(*found)), "");
    });
    for (const auto& item : json.items())
      if (std::find(known.begin(), known.end(), item.key()) == known.end())
        problem(
            fmt::format("unknown key {}{}", quoted(item.key()), did_you_mean(item.key(), known)),
            "");
    if (problems_.empty()) records.push_back(std::move(record));
  }

  /// Whatever a damaged name holds, a terminal shows it.
  static std::string quoted(const std::string& name) {
    std::string text = shown(name);
    text.front() = text.back() = '\'';
    return text;
  }

  static std::string shown(const Json& value) {
    constexpr std::size_t kMost = 80;
    std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
    if (text.size() > kMost) text = text.substr(0, kMost) + "..." + text.back();
    return text;
  }

  void problem(std::string what, std::string hint) {
    problems_.push_back(
        {Severity::warning, {std::string(file_), line_, 0}, std::move(what), std::move(hint)});
  }

  std::string_view file_;
  Measurements& into_;
  Diagnostics problems_;  // of the line
  int line_ = 0;
  bool sealed_ = false;
};

}  // namespace

std::string to_json(const MeasurementRecord& record) {
  Json json = {{"record", std::string(kRecords[record.index()])}};
  std::visit(
      [&](const auto& r) {
        for_each_field(r, [&](const char* key, const auto& value) {
          Json written = write(value);
          const bool nothing = written.is_null() || (is_wait(key) && written == 0.0);
          if (!nothing || !came_later(key)) json[key] = std::move(written);
        });
      },
      record);
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string to_line(const MeasurementRecord& record) { return seal_line(to_json(record)) + '\n'; }

Seconds rest_of(const StepRecord& s) {
  const Seconds parts = s.compute + s.exposed_communication + s.input + s.update;
  return std::max(Seconds{}, s.seconds - parts);
}

std::vector<StepRecord> Measurements::useful_steps(int rank) const {
  std::map<std::int64_t, const StepRecord*> last;
  for (const StepRecord& s : steps) {
    if (s.rank != rank) continue;
    const StepRecord*& kept = last[s.step];
    if (kept == nullptr || kept->attempt <= s.attempt) kept = &s;
  }
  std::vector<StepRecord> useful;
  useful.reserve(last.size());
  for (const auto& [step, record] : last) useful.push_back(*record);
  return useful;
}

Expected<Measurements> parse_measurements(std::string_view file, std::string_view text) {
  Measurements measurements;
  LineReader reader(file, measurements);
  std::size_t begin = 0;
  for (int number = 1; begin < text.size(); ++number) {
    const std::size_t end = text.find('\n', begin);
    if (end == std::string_view::npos) {
      reader.tail(number, begin, text.substr(begin));
      break;
    }
    reader.line(number, begin, text.substr(begin, end - begin));
    begin = end + 1;
  }
  if (!reader.refused.empty()) return tl::unexpected(std::move(reader.refused));
  return measurements;
}

Diagnostics damage_of(const Measurements& measurements) {
  constexpr std::size_t kMost = 3;
  Diagnostics told;
  for (const DamagedLine& line : measurements.damaged) {
    told.push_back(line.why.front());
    if (told.size() == kMost) break;
  }
  if (const std::size_t rest = measurements.damaged.size() - told.size(); rest > 0)
    told.back().hint +=
        fmt::format("{}and {} more line{} of this file", told.back().hint.empty() ? "" : "\n", rest,
                    rest == 1 ? "" : "s");
  return told;
}

}  // namespace reckon
