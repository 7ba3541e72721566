#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/base/text/printable.h"
#include "sim/base/unit_text.h"
#include "sim/queue/gavel/gavel.h"
#include "sim/queue/lists/trace_csv.h"

namespace reckon {
namespace {

using ThroughputJson = nlohmann::json;
constexpr double kMostRate = 1e9;  // steps per second
constexpr std::int64_t kMostSteps = 1'000'000'000'000;
constexpr double kLastArrival = 3.15e9;  // seconds: a hundred years
constexpr std::int64_t kMostGpusOfJob = 1'000'000;

struct TypeAndGpus {
  std::string type;
  int gpus = 0;
};

/// "('ResNet-18 (batch size 16)', 1)".
std::optional<TypeAndGpus> parse_type(std::string_view key) {
  constexpr std::string_view kOpen = "('", kBetween = "', ", kClose = ")";
  const std::size_t between = key.rfind(kBetween);
  if (!key.starts_with(kOpen) || !key.ends_with(kClose) || between == std::string_view::npos)
    return std::nullopt;
  const std::string_view number =
      key.substr(between + kBetween.size(), key.size() - kClose.size() - between - kBetween.size());
  TypeAndGpus out{std::string(key.substr(kOpen.size(), between - kOpen.size())), 0};
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), out.gpus);
  if (error != std::errc{} || end != number.data() + number.size() || out.gpus < 1)
    return std::nullopt;
  return out;
}

class ThroughputReader {
 public:
  explicit ThroughputReader(const std::string& file) : file_(file) {}

  Expected<ThroughputTable> read(std::string_view bytes) {
    try {
      const ThroughputJson root = ThroughputJson::parse(bytes);
      if (!root.is_object() || root.empty()) mistake("the table has no kinds of accelerators");
      for (const auto& [kind, types] : root.items()) read_kind(kind, types);
    } catch (const ThroughputJson::exception& e) {
      mistake(fmt::format("this is no JSON: {}", printable(e.what())));
    }
    if (!problems_.empty()) return tl::unexpected(std::move(problems_));
    return std::move(table_);
  }

 private:
  void mistake(std::string what) {
    problems_.push_back({Severity::error,
                         {file_, 0, 0},
                         std::move(what),
                         "its form: {\"v100\": {\"('LM (batch size 5)', 1)\": {\"null\": 37.5}}}"});
  }
  void read_kind(const std::string& kind, const ThroughputJson& types) {
    if (!types.is_object())
      return mistake(fmt::format("the job types of '{}' are no object", printable(kind)));
    for (const auto& [key, rates] : types.items()) {
      const auto type = parse_type(key);
      const auto where = fmt::format("'{}' of '{}'", printable(key), printable(kind));
      if (!type) {
        mistake(where + " is no job type with its number of GPUs");
        continue;
      }
      const auto alone = rates.is_object() ? rates.find("null") : rates.end();
      if (!rates.is_object() || alone == rates.end() || !alone->is_number()) {
        mistake(where + " has no number under \"null\": its rate alone on a GPU");
        continue;
      }
      const double rate = alone->get<double>();
      if (!(rate >= 0 && rate <= kMostRate))
        mistake(fmt::format("{} makes {} steps per second", where, rate));
      else
        table_.set(kind, type->type, type->gpus, rate);
    }
  }

  const std::string& file_;
  Diagnostics problems_;
  ThroughputTable table_;
};

bool same_job(const JobRequest& a, const JobRequest& b) {
  return a.gpus() == b.gpus() && a.submit == b.submit &&
         std::get<StepsByKind>(a.work) == std::get<StepsByKind>(b.work);
}

/// See GavelList::running.
void leave_out_repeated(GavelList& list) {
  if (list.running == 0) return;
  std::size_t at_start = 0;
  while (at_start < list.jobs.size() && list.jobs[at_start].submit == SimTime{}) ++at_start;
  if (at_start < 2 || list.running + 1 < at_start || list.running > at_start) return;
  if (!same_job(list.jobs[at_start - 2], list.jobs[at_start - 1])) return;
  list.repeated_line = list.jobs[at_start - 2].line;
  list.jobs.erase(list.jobs.begin() + static_cast<std::ptrdiff_t>(at_start) - 2);
  list.running = at_start - 2;
}

}  // namespace

void ThroughputTable::set(const std::string& kind, const std::string& type, int gpus,
                          double steps_per_second) {
  by_type_[{type, gpus}][kind] = steps_per_second;
}

const std::map<std::string, double>* ThroughputTable::of(const std::string& type, int gpus) const {
  const auto found = by_type_.find({type, gpus});
  return found == by_type_.end() ? nullptr : &found->second;
}

Expected<ThroughputTable> read_throughputs(const std::string& file, std::string_view bytes) {
  return ThroughputReader(file).read(bytes);
}

Expected<GavelList> read_gavel_jobs(const std::string& file, std::string_view bytes,
                                    const ThroughputTable& table,
                                    const std::vector<GavelKind>& kinds, std::size_t running) {
  enum { job_type, total_steps, gpus, arrival };
  constexpr std::array<std::string_view, 4> kColumns{"job_type", "total_steps", "gpus",
                                                     "arrival_seconds"};
  Diagnostics problems;
  TraceCsv rows(file, bytes, kColumns, {}, problems);
  GavelList list;
  list.running = running;
  while (rows.next()) {
    const auto steps = rows.whole(total_steps, 1, kMostSteps);
    const auto count = rows.whole(gpus, 1, kMostGpusOfJob);
    const auto seconds = rows.number(arrival, 0, kLastArrival);
    if (!steps || !count || !seconds) continue;
    JobRequest job{.submit = SimTime{} + to_clock(Seconds{*seconds}),
                   .worker = pod_of_gpus(static_cast<int>(*count)),
                   .line = rows.line()};
    StepsByKind work{*steps, {}};
    const std::string type(rows.text(job_type));
    const auto* rates = table.of(type, job.gpus());
    if (rates == nullptr) {
      rows.error(job_type, fmt::format("no rate of '{}' on {} GPUs in the table of throughputs",
                                       printable(type), job.gpus()));
      continue;
    }
    for (const GavelKind& kind : kinds) {
      const auto rate = rates->find(kind.name);
      work.rates.push_back(rate == rates->end() ? 0 : rate->second);
    }
    job.work = std::move(work);
    if (!list.jobs.empty() && job.submit < list.jobs.back().submit)
      rows.error(arrival, "the job arrives before the one above it",
                 "jobs stand in order of arrival");
    list.jobs.push_back(std::move(job));
  }
  if (problems.empty() && running >= list.jobs.size())
    problems.push_back(
        {Severity::error,
         {file, 0, 0},
         fmt::format("{} jobs ran already, and the list has {}", running, list.jobs.size()),
         "a smaller trace.running"});
  if (!problems.empty()) return tl::unexpected(std::move(problems));
  leave_out_repeated(list);
  return list;
}

}  // namespace reckon
