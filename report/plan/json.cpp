#include <cmath>

#include "report/check/lock_change_json.h"
#include "report/json_parts.h"
#include "report/plan/memo.h"
#include "report/plan/parts.h"
#include "report/plan/plan.h"
#include "sim/scenario/resolve/draft.h"
#include "sim/scenario/restart.h"

namespace reckon {
namespace {

using planner::Answer;
using planner::RankedPlan;

std::string_view recompute_word(Recompute mode) {
  return mode == Recompute::none ? "none" : mode == Recompute::selective ? "selective" : "full";
}

Json plan_object(const RankedPlan& p) {
  const Layout& l = p.split.layout;
  return {
      {"provider", to_text(p.hardware.provider)},
      {"region", text_or_null(p.offer.region)},
      {"zone", text_or_null(p.offer.zone)},
      {"machine", text_or_null(p.hardware.machine)},
      {"accelerator", text_or_null(p.hardware.accelerator)},
      {"slice", text_or_null(p.hardware.slice)},
      {"accelerators_per_node", p.hardware.per_node},
      {"nodes", p.split.nodes},
      {"pricing", to_text(p.offer.pricing)},
      {"bought", planner::bought_text(p.offer, p.split.nodes)},
      {"strategy", to_text(p.split.kind)},
      {"parameter_servers", p.split.parameter_servers},
      {"data", l.data},
      {"tensor", l.tensor},
      {"pipeline", l.pipeline},
      {"context", l.context},
      {"expert", l.expert},
      {"zero_stage", l.zero_stage},
      {"micro_batch", l.micro_batch},
      {"micro_batches", l.micro_batches},
      {"interleave", l.interleave},
      {"recompute", recompute_word(l.recompute)},
      {"precision", p.hardware.precision ? Json(to_text(*p.hardware.precision)) : Json(nullptr)},
      {"checkpoint_interval",
       p.hardware.save_interval ? Json(p.hardware.save_interval->text) : Json(nullptr)},
      {"checkpoint_storage", text_or_null(p.hardware.checkpoint_storage)},
      {"restart", text_or_null(p.offer.restart ? restart_text(*p.offer.restart) : "")},
      {"parameter_server_machine", text_or_null(p.hardware.server_machine)},
      {"autoscaling", text_or_null(p.offer.bounds.text)},
      {"overrides", planner::texts(p.result.changes)}};
}

Json plans_array(const std::vector<RankedPlan>& plans) {
  Json out = Json::array();
  for (const RankedPlan& p : plans) out.push_back(plan_object(p));
  return out;
}

Json limit_object(const std::optional<planner::Limit>& limit, const char* unit) {
  if (!limit) return nullptr;
  return {{"text", limit->text},
          {unit, limit->value},
          {"probability", limit->probability ? Json(*limit->probability) : Json(nullptr)}};
}

Json shortfalls_array(const std::vector<planner::Shortfall>& shortfalls) {
  Json out = Json::array();
  for (const planner::Shortfall& s : shortfalls)
    out.push_back({{"of", s.of}, {"asked", s.asked}, {"needed", s.needed}});
  return out;
}

Json infeasible_object(const std::optional<planner::Infeasible>& none) {
  if (!none) return nullptr;
  Json relaxations = Json::array();
  for (const planner::Relaxation& r : none->relaxations)
    relaxations.push_back({{"limit", to_text(r.limit)},
                           {"of", text_or_null(r.of)},
                           {"asked", std::isfinite(r.asked) ? Json(r.asked) : Json(nullptr)},
                           {"needed", std::isfinite(r.needed) ? Json(r.needed) : Json(nullptr)},
                           {"also", shortfalls_array(r.also)},
                           {"plan", plan_object(r.plan)},
                           {"forecast", forecast_object(r.plan.result.forecast)}});
  return {{"reason", none->reason}, {"relaxations", std::move(relaxations)}};
}

Json search_object(const Answer& a) {
  return {{"exact", a.search.exact},
          {"replications_simulated", a.lives},
          {"proven_late", a.search.proven_late},
          {"proven_dear", a.search.proven_dear},
          {"proven_worse", a.search.proven_worse},
          {"eliminated", a.search.outrun},
          {"outrun", a.search.outrun},  // phrase: ok, the old key, for one release
          {"not_simulated", a.search.not_tried},
          {"least_open_bound",
           a.search.least_open_bound > 0 ? Json(a.search.least_open_bound) : Json(nullptr)},
          {"certain_ranks", a.certain_ranks}};
}

Json flip_object(const std::optional<planner::Flip>& flip) {
  if (!flip) return nullptr;
  return {{"factor", flip->factor},
          {"holds", flip->holds},
          {"misses", text_or_null(flip->limit)},
          {"plan", flip->rival ? plan_object(*flip->rival) : Json(nullptr)},
          {"score", flip->rival ? number(flip->rival->result.score) : Json(nullptr)}};
}

Json sensitivity_object(const std::optional<planner::Sensitivity>& s) {
  if (!s) return nullptr;
  Json levers = Json::array();
  for (const planner::LeverFlips& l : s->levers)
    levers.push_back(
        {{"lever", to_text(l.lever)}, {"up", flip_object(l.up)}, {"down", flip_object(l.down)}});
  return {{"replications", s->replications},
          {"alternatives", s->rivals},
          {"rivals", s->rivals},  // phrase: ok, the old key, for one release
          {"largest_factor", s->most},
          {"levers", std::move(levers)},
          {"ties", plans_array(s->ties)},
          {"better", plans_array(s->better)}};
}

Json measurements_array(const Answer& a) {
  const char* unit = a.objective == planner::Objective::time ? "seconds" : "usd";
  Json out = Json::array();
  for (const planner::Measurement& m : a.measurements)
    out.push_back({{"kind", to_text(m.kind)},
                   {"on", plan_object(m.on)},
                   {"nodes", m.nodes},
                   {"takes_seconds", m.takes.count()},
                   {"cost_usd", m.costs ? Json(m.costs->v) : Json(nullptr)},
                   {"reveals", m.reveals},
                   {"worth", m.worth},
                   {"saves", m.saves},
                   {"unit", unit},
                   {"share", m.share},
                   {"instead", m.instead ? plan_object(*m.instead) : Json(nullptr)},
                   {"command", text_or_null(command_for(a, m))}});
  return out;
}

Json baseline_object(const BaselineInputs* in) {
  if (in == nullptr) return nullptr;
  return {{"name", in->baseline.name},
          {"score_then", number(in->verdict.before)},
          {"score_now", number(in->verdict.now)},
          {"change", number(in->verdict.change)},
          {"tolerance", in->tolerance},
          {"worse", in->verdict.worse},
          {"cause", in->verdict.cause ? Json(word_of_cause(*in->verdict.cause)) : Json(nullptr)},
          {"lock", lock_change_object(in->since)},
          {"verdict", baseline_verdict(*in)},
          {"today",
           in->baseline.today ? forecast_object(in->baseline.today->forecast) : Json(nullptr)}};
}

}  // namespace

std::string plan_json(const Answer& a, const BaselineInputs* baseline) {
  Json out = head("plan");
  out["scenario"] = a.scenario;
  out["objective"] = to_text(a.objective);
  out["deadline"] = limit_object(a.deadline, "seconds");
  out["budget"] = limit_object(a.budget, "usd");
  out["seed"] = a.seed;
  out["replications"] = a.replications;
  out["replications_asked"] = a.replications_asked;
  out["candidates_considered"] = a.considered;
  out["feasible"] = a.feasible;
  out["search"] = search_object(a);
  out["searched"] = a.searched;
  out["held_fixed"] = a.held;
  out["plans"] = Json::array();
  for (std::size_t k = 0; k < a.plans.size(); ++k) {
    const RankedPlan& p = a.plans[k];
    out["plans"].push_back({{"rank", k + 1},
                            {"plan", plan_object(p)},
                            {"score", number(p.result.score)},
                            {"forecast", forecast_object(p.result.forecast)},
                            {"why", place_text(p)},
                            {"binding", p.binding},
                            {"equal", plans_array(p.equals)}});
  }
  out["best_by"] = Json::array();
  for (const planner::BestBy& best : a.best_by)
    out["best_by"].push_back({{"what", best.what},
                              {"plan", plan_object(best.plan)},
                              {"score", number(best.plan.result.score)},
                              {"forecast", forecast_object(best.plan.result.forecast)}});
  out["pareto"] = Json::array();
  for (const RankedPlan& p : a.front)
    out["pareto"].push_back({{"plan", plan_object(p)},
                             {"time_seconds", json_of(p.result.forecast.time_seconds)},
                             {"cost_usd", json_of(*p.result.forecast.cost_usd)},
                             {"meets_all_limits", p.result.meets_all()}});
  out["sensitivity"] = sensitivity_object(a.sensitivity);
  out["worth_measuring"] = measurements_array(a);
  out["rejected"] = Json::array();
  for (const auto& [reason, count] : a.rejected)
    out["rejected"].push_back({{"reason", reason}, {"count", count}});
  out["assumed"] = a.assumed;
  out["batch_rule"] = a.batch_rule;
  out["infeasible"] = infeasible_object(a.infeasible);
  out["baseline"] = baseline_object(baseline);
  return dump(out, 2);
}

}  // namespace reckon
