#include "report/json.h"

#include "report/check/lock_change_json.h"
#include "report/json_parts.h"
#include "report/serving/json.h"

namespace reckon {
namespace {

/// What a step waits for others for; the sum is exposed_communication_seconds.
Json json_of(const ExposedCommunication& x) {
  return {{"gradients", x.gradients.count()},  {"parameters", x.parameters.count()},
          {"tensor", x.tensor.count()},        {"context", x.context.count()},
          {"expert", x.expert.count()},        {"pipeline", x.pipeline.count()},
          {"servers", x.servers.count()},      {"stragglers", x.stragglers.count()},
          {"contention", x.contention.count()}};
}

/// Is the model cut, so that there is more to wait for than gradients?
bool waits_for_more_than_gradients(const ExposedCommunication& x) {
  return (x.parameters + x.tensor + x.context + x.expert + x.pipeline).count() > 0;
}

Json json_of(const StepEstimate& s) {
  Json json = {{"seconds", s.step.count()},
               {"compute_seconds", s.compute.count()},
               {"communication_seconds", s.communication.count()},
               {"exposed_communication_seconds", s.exposed_communication.count()},
               {"input_seconds", s.input.count()},
               {"bubble_seconds", s.bubble.count()},
               {"bottleneck", to_text(s.bottleneck)},
               {"mfu", s.mfu > 0 ? Json(s.mfu) : Json(nullptr)},
               {"exposed_input_seconds", s.exposed_input.count()},
               {"update_seconds", s.update.count()},
               {"host_seconds", s.host.count()}};
  if (s.push.count() > 0) {
    json["push_seconds"] = s.push.count();
    json["pull_seconds"] = s.pull.count();
  }
  if (s.delay > 0) json["delay_updates"] = s.delay;
  if (waits_for_more_than_gradients(s.exposed)) json["exposed_seconds"] = json_of(s.exposed);
  return json;
}

Json json_of(const MemoryEstimate& m) {
  Json json = {{"required_bytes", m.required().v},
               {"available_bytes", m.available.v},
               {"margin_bytes", m.margin().v},
               {"out_of_memory", m.out_of_memory()},
               {"parts",
                {{"parameters", m.parameters.v},
                 {"gradients", m.gradients.v},
                 {"optimizer", m.optimizer.v},
                 {"activations", m.activations.v},
                 {"workspace", m.workspace.v},
                 {"reserve", m.reserve.v}}}};
  if (m.gathered.v > 0) json["parts"]["gathered"] = m.gathered.v;
  if (m.evidence.v != 0) json["parts"]["evidence"] = m.evidence.v;
  if (m.fragmentation.v > 0) json["parts"]["fragmentation"] = m.fragmentation.v;
  return json;
}

/// {"name of cause": value, ...} of an array that an enum indexes.
template <class Enum, std::size_t N>
Json by_name(const std::array<double, N>& values) {
  Json object = Json::object();
  for (std::size_t k = 0; k < N; ++k) object[std::string(to_text(Enum(k)))] = values[k];
  return object;
}

/// A part that few forecasts have is left out where it is 0.
Json without_zero(Json parts, std::string_view rare) {
  const std::string key(rare);
  if (parts[key] == 0.0) parts.erase(key);
  return parts;
}

Json json_of(const AssumptionEffect& a) {
  return {{"what", a.what},
          {"value", a.value},
          {"source", a.source},
          {"time_effect_seconds", number(a.time_effect_seconds)},
          {"cost_effect_usd", a.cost_effect_usd ? number(*a.cost_effect_usd) : Json(nullptr)},
          {"key", a.key},
          {"unit", a.unit},
          {"median", number(a.median)},
          {"low", number(a.low)},
          {"high", number(a.high)},
          {"effects_seconds", a.effects_seconds},
          {"effects_usd", a.effects_usd}};
}

double usd_per_hour(HourlyRate rate) { return double(rate.nano_usd_per_hour) / 1e9; }

Json json_of(const RunRates& rates) {
  Json pools = Json::array();
  for (const PoolRates& p : rates.pools) {
    Json pool = {{"pool", p.pool},
                 {"nodes", p.nodes},
                 {"machine_usd_per_hour", usd_per_hour(p.price.machine)},
                 {"accelerators_usd_per_hour", usd_per_hour(p.price.accelerators)}};
    if (const auto& r = p.reservation)
      pool["reserved"] = {{"nodes", r->nodes},
                          {"usd_per_hour", usd_per_hour(r->price)},
                          {"until_seconds", r->until ? Json(r->until->count()) : Json(nullptr)}};
    if (p.minimum_rental.count() > 0) pool["minimum_rental_seconds"] = p.minimum_rental.count();
    pools.push_back(std::move(pool));
  }
  return {{"pools", pools},
          {"management_usd_per_hour", usd_per_hour(rates.billing.management)},
          {"storage_usd_per_hour", usd_per_hour(rates.storage)},
          {"granularity_seconds", rates.billing.granularity.count()},
          {"minimum_seconds", rates.billing.minimum.count()}};
}

Json json_of(const PriceForecast& p) {
  return {{"what", p.what},
          {"certain", p.certain},
          {"usd_per_hour", p.usd_per_hour},
          {"low", p.low},
          {"high", p.high},
          {"as_of", text_or_null(p.as_of)},
          {"source", text_or_null(p.source)},
          {"usd", p.usd}};
}

Json json_of(const PurchaseForecast& p) {
  const auto or_null = [](const auto& value) { return value ? number(*value) : Json(nullptr); };
  return {{"pool", p.pool},
          {"machine", p.machine},
          {"kind", to_text(p.kind)},
          {"nodes", p.nodes},
          {"usd_per_hour", p.usd_per_hour},
          {"paid_seconds", p.time ? number(p.time->count()) : Json(nullptr)},
          {"total_usd", or_null(p.total_usd)},
          {"used_share", or_null(p.used)},
          {"used_usd", number(p.used_usd)},
          {"break_even_share", or_null(p.break_even)},
          {"outlived_probability", number(p.outlived)},
          {"text", text_or_null(text_of(p))}};
}

Json json_of(const EnergyForecast& e) {
  return {{"joules", json_of(e.joules)},
          {"co2_grams", e.co2_grams ? json_of(*e.co2_grams) : Json(nullptr)},
          {"watts_of_node", e.watts},
          {"pue", e.pue},
          {"grams_per_kwh", e.grams_per_kwh ? Json(*e.grams_per_kwh) : Json(nullptr)},
          {"grid_source", text_or_null(e.grid_source)}};
}

Json json_of(const RestartForecast& r) {
  Json out{{"kind", to_text(r.kind)},
           {"spares", r.spares},
           {"kept_by_processes", r.keeps_state},
           {"smaller_share", r.smaller},
           {"growths", r.growths}};
  if (r.local)
    out["local_checkpoint"] = {{"to", to_text(r.local->to)},
                               {"every_seconds", r.local->every.count()},
                               {"replicas", r.local->replicas}};
  return out;
}

Json json_of(const NoticeForecast& n) {
  return {{"policy", n.policy == OnNotice::save ? "save" : "none"},
          {"stated", n.stated},
          {"program", n.own_program ? "container" : "reckon-worker"},
          {"notice_seconds", n.notice.count()},
          {"save_seconds", n.save.count()},
          {"probability_in_time", n.probability},
          {"notices", n.notices},
          {"in_time", n.in_time}};
}

Json json_of(const JobForecast& job, bool lived) {
  Json out = {{"name", job.name},
              {"submit_seconds", job.submit.count()},
              {"step", lived ? json_of(job.step) : Json(nullptr)},
              {"steps", job.steps},
              {"accelerators", job.accelerators},
              {"memory", json_of(job.memory)},
              {"checkpoint_interval_seconds",
               lived ? Json(job.checkpoint_interval.count()) : Json(nullptr)},
              {"queued_seconds", lived ? json_of(job.queued_seconds) : Json(nullptr)},
              {"time_seconds", lived ? json_of(job.time_seconds) : Json(nullptr)},
              {"finish_seconds", lived ? json_of(job.finish_seconds) : Json(nullptr)},
              {"unfinished_share", job.unfinished_share}};
  if (job.delayed) out["steps_for_staleness"] = job.delayed->steps_of_delay();
  out["on_notice"] = lived && job.on_notice ? json_of(*job.on_notice) : Json(nullptr);
  if (lived && job.restart) out["restart"] = json_of(*job.restart);
  return out;
}

/// What only a life of the cluster can tell: all null where the plan cannot
/// exist.
void add_life(Json& out, const Forecast& f) {
  Json hours = Json::object();
  for (const auto& [pool, value] : f.node_hours) hours[pool] = value;
  const bool lived = f.feasible;
  out["time_seconds"] = lived ? json_of(f.time_seconds) : Json(nullptr);
  out["cost_usd"] = lived && f.cost_usd ? json_of(*f.cost_usd) : Json(nullptr);
  out["node_hours"] = lived ? hours : Json(nullptr);
  out["cost_breakdown_usd"] =
      lived && f.cost_usd
          ? without_zero(by_name<CostPart>(f.cost_breakdown_usd), to_text(CostPart::spares))
          : Json(nullptr);
  out["prices"] = Json::array();
  for (const PriceForecast& p : f.prices) out["prices"].push_back(json_of(p));
  out["purchases"] = Json::array();
  for (const PurchaseForecast& p : f.purchases) out["purchases"].push_back(json_of(p));
  out["energy"] = lived && f.energy ? json_of(*f.energy) : Json(nullptr);
  out["rates"] = lived && f.rates ? json_of(*f.rates) : Json(nullptr);
  out["goodput"] = lived ? Json(f.goodput.mean) : Json(nullptr);
  out["goodput_range"] = lived ? json_of(f.goodput) : Json(nullptr);
  out["badput"] =
      lived ? without_zero(by_name<Badput>(f.badput), to_text(Badput::stragglers)) : Json(nullptr);
  out["lost_work_seconds"] = lived ? json_of(f.lost_work_seconds) : Json(nullptr);
  // Of several jobs each of "jobs" has its own.
  const JobForecast* only = lived && f.jobs.size() == 1 ? &f.jobs.front() : nullptr;
  out["on_notice"] = only && only->on_notice ? json_of(*only->on_notice) : Json(nullptr);
  out["interruptions"] = lived ? by_name<Interruption>(f.interruptions) : Json(nullptr);
  if (only && only->restart) out["restart"] = json_of(*only->restart);
}

Json json_of(const Forecast& f) {
  Json out = head("simulate");
  out["scenario"] = f.scenario;
  out["seed"] = f.seed;
  out["replications"] = f.replications;
  out["engine"] = f.engine;
  out["feasible"] = f.feasible;
  out["step"] = f.feasible ? json_of(f.step) : Json(nullptr);
  out["samples_per_second"] = f.feasible ? Json(f.step.samples_per_second.v) : Json(nullptr);
  out["tokens_per_second"] = f.feasible && f.tokens_per_sample > 0
                                 ? Json(f.step.samples_per_second.v * double(f.tokens_per_sample))
                                 : Json(nullptr);
  out["steps"] = f.steps;
  if (f.jobs.size() == 1 && f.jobs.front().delayed)
    out["steps_for_staleness"] = f.jobs.front().delayed->steps_of_delay();
  out["accelerators"] = f.accelerators;
  out["memory"] = json_of(f.memory);
  add_life(out, f);
  if (f.jobs.size() > 1) {
    out["jobs"] = Json::array();
    for (const JobForecast& job : f.jobs) out["jobs"].push_back(json_of(job, f.feasible));
  }
  out["prices_as_of"] = text_or_null(f.prices_as_of);
  out["catalog_digest"] = text_or_null(f.catalog_digest);
  out["calibrations"] = f.calibrations;
  out["assumptions"] = Json::array();
  for (const AssumptionEffect& a : f.assumptions) out["assumptions"].push_back(json_of(a));
  constexpr std::size_t kRuns = 5;
  out["evidence"] = evidence_object(f.evidence, kRuns);
  out["warnings"] = f.warnings;
  out["extrapolated"] = f.extrapolated;
  return out;
}

Json json_of(const CheckedScenario& s) {
  Json expectations = Json::array();
  for (const CheckedExpectation& e : s.expectations)
    expectations.push_back({{"text", e.result.text},
                            {"value", e.result.value ? number(*e.result.value) : Json(nullptr)},
                            {"passed", e.result.passed},
                            {"cause", e.cause ? Json(word_of_cause(*e.cause)) : Json(nullptr)}});
  return {{"file", s.file},
          {"passed", s.passed()},
          {"skipped", s.skipped ? Json(*s.skipped) : Json(nullptr)},
          {"expectations", expectations},
          {"lock", lock_change_object(s.since ? &*s.since : nullptr)}};
}

}  // namespace

Json memory_object(const MemoryEstimate& memory) { return json_of(memory); }
Json forecast_object(const Forecast& forecast) { return json_of(forecast); }

std::string forecast_json(const Forecast& forecast, const ServingForecast* serving) {
  Json out = json_of(forecast);
  if (serving != nullptr) out["serving"] = serving_object(*serving);
  return dump(out, 2);
}

std::string check_json(std::span<const CheckedScenario> scenarios) {
  Json out = head("check");
  out["scenarios"] = Json::array();
  for (const CheckedScenario& s : scenarios) out["scenarios"].push_back(json_of(s));
  return dump(out, 2);
}

}  // namespace reckon
