#include "sim/measurement/history.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/measurement/sealed_line.h"
#include "sim/scenario/split_text.h"

namespace reckon {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::string_view, 3> kHistoryKinds{"forecast", "run", "decision"};  // by Kind

Json json_of(const Quantiles& q) {
  const auto number = [](double v) { return std::isfinite(v) ? Json(v) : Json(nullptr); };
  return {{"mean", number(q.mean)},
          {"p5", number(q.p5)},
          {"p50", number(q.p50)},
          {"p95", number(q.p95)}};
}

/// Null: a run that may never finish.
double number_or_infinite(const Json& json) {
  return json.is_null() ? std::numeric_limits<double>::infinity() : json.get<double>();
}
Quantiles quantiles_in(const Json& json) {
  return {number_or_infinite(json.at("mean")), number_or_infinite(json.at("p5")),
          number_or_infinite(json.at("p50")), number_or_infinite(json.at("p95"))};
}

Json json_of(const OwnRun& run) {
  return {{"machine", run.machine},
          {"network", run.network},
          {"unit", run.unit},
          {"strategy", run.strategy},
          {"synchronous", run.synchronous},
          {"workers", run.workers},
          {"servers", run.servers},
          {"batch", run.batch},
          {"modelled_step_seconds", run.modelled.count()},
          {"step_seconds", run.step.count()},
          {"steps", run.steps},
          {"start_seconds", run.start.count()},
          {"save_seconds", run.save.count()}};
}

OwnRun own_run_in(const Json& json) {
  const auto seconds = [&](const char* key) { return Seconds{json.at(key).get<double>()}; };
  return {.machine = json.at("machine"),
          .network = json.at("network"),
          .unit = json.at("unit"),
          .strategy = json.at("strategy"),
          .synchronous = json.at("synchronous"),
          .workers = json.at("workers"),
          .servers = json.at("servers"),
          .batch = json.at("batch"),
          .modelled = seconds("modelled_step_seconds"),
          .step = seconds("step_seconds"),
          .start = seconds("start_seconds"),
          .save = seconds("save_seconds"),
          .steps = json.at("steps")};
}

HistoryRecord record_in(const Json& json) {
  HistoryRecord r;
  if (json.at("schema_version") != kHistoryVersion) throw std::invalid_argument("version");
  const auto kind = json.at("record").get<std::string>();
  const auto known = std::ranges::find(kHistoryKinds, kind);
  if (known == kHistoryKinds.end()) throw std::invalid_argument("kind");
  r.kind = static_cast<HistoryRecord::Kind>(known - kHistoryKinds.begin());
  r.at = json.at("at").get<std::string>();
  r.plan = json.at("plan").get<std::string>();
  r.time_seconds = quantiles_in(json.at("time_seconds"));
  if (!json.at("cost_usd").is_null()) r.cost_usd = quantiles_in(json.at("cost_usd"));
  r.step_seconds = json.at("step_seconds").get<double>();
  r.calibrations = json.at("calibrations").get<std::vector<std::string>>();
  r.directory = json.at("directory").get<std::string>();
  if (const auto own = json.find("own"); own != json.end()) r.own = own_run_in(*own);
  return r;
}

bool same_forecast(const HistoryRecord& a, const HistoryRecord& b) {
  return a.plan == b.plan && a.time_seconds.p5 == b.time_seconds.p5 &&
         a.time_seconds.p95 == b.time_seconds.p95 && a.calibrations == b.calibrations;
}

double median_or_zero(std::vector<double> values) {
  return values.empty() ? 0 : quantile(std::move(values), 0.5);
}

}  // namespace

std::string plan_identity(const Plan& plan) {
  std::string text = plan.name;
  for (const PlannedWorkload& job : plan.jobs) {
    const PlannedStrategy& s = job.strategy;
    text += fmt::format(", {} {}: {} steps of {}, {} workers, {} servers", job.model.name(),
                        to_text(job.precision), job.steps, job.global_batch, s.workers,
                        s.server_count());
    if (cuts_the_model(s)) text += ", " + split_text(job);
  }
  for (const PlannedPool& pool : plan.pools)
    text += fmt::format(
        ", {} {} of {} vCPU{}", pool.nodes_initial,
        pool.machine.name.empty() ? "machines" : pool.machine.name, pool.machine.vcpus,
        pool.accelerator
            ? fmt::format(" with {} {}", pool.accelerators_per_node, pool.accelerator->name)
            : std::string());
  return text;
}

HistoryRecord record_of(const Plan& plan, const Forecast& forecast, std::string at) {
  HistoryRecord r;
  r.at = std::move(at);
  r.plan = plan_identity(plan);
  r.time_seconds = forecast.time_seconds;
  r.cost_usd = forecast.cost_usd;
  r.step_seconds = forecast.step.step.count();
  r.calibrations = forecast.calibrations;
  return r;
}

std::string to_line(const HistoryRecord& r) {
  Json json{{"record", std::string(kHistoryKinds[std::size_t(r.kind)])},
            {"schema_version", kHistoryVersion},
            {"at", r.at},
            {"plan", r.plan},
            {"time_seconds", json_of(r.time_seconds)},
            {"cost_usd", r.cost_usd ? json_of(*r.cost_usd) : Json(nullptr)},
            {"step_seconds", r.step_seconds},
            {"calibrations", r.calibrations},
            {"directory", r.directory}};
  if (r.own) json["own"] = json_of(*r.own);
  return seal_line(json.dump(-1, ' ', false, Json::error_handler_t::replace)) + '\n';
}

History parse_history(std::string_view text) {
  History history;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.empty()) continue;
    if (seal_of(line) == Seal::broken) {
      ++history.passed_over;
      continue;
    }
    try {
      history.records.push_back(record_in(Json::parse(line)));
    } catch (const std::exception&) {
      ++history.passed_over;
    }
  }
  return history;
}

HistoryScore score_history(const History& history) {
  HistoryScore score;
  const auto& records = history.records;
  std::vector<double> errors, calibrated;
  for (std::size_t k = 0; k < records.size(); ++k) {
    if (records[k].kind == HistoryRecord::Kind::run) continue;
    const bool decision = records[k].kind == HistoryRecord::Kind::decision;
    ScoredForecast scored{.forecast = records[k]};
    bool repeated = false;  // the same was forecast again before anything was run
    for (std::size_t later = k + 1; later < records.size() && !scored.run && !repeated; ++later) {
      const HistoryRecord& then = records[later];
      if (decision && then.directory != records[k].directory) continue;
      if (decision && then.kind == HistoryRecord::Kind::run && then.plan != records[k].plan) break;
      if (then.plan != records[k].plan) continue;
      if (then.kind == HistoryRecord::Kind::run)
        scored.run = then;
      else
        repeated = then.kind == records[k].kind && same_forecast(records[k], then);
    }
    if (repeated) continue;
    if (scored.run) {
      const double took = scored.run->time_seconds.p50;
      const Quantiles& said = scored.forecast.time_seconds;
      scored.inside = said.p5 <= took && took <= said.p95;
      scored.error = said.p50 / took - 1;
      ++score.scored;
      score.inside += scored.inside ? 1 : 0;
      errors.push_back(std::abs(scored.error));
      if (!scored.forecast.calibrations.empty()) calibrated.push_back(errors.back());
    }
    score.forecasts.push_back(std::move(scored));
  }
  score.median_error = median_or_zero(errors);
  score.calibrated = int(calibrated.size());
  score.median_error_calibrated = median_or_zero(calibrated);
  return score;
}

}  // namespace reckon
