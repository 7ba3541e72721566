#include "report/accuracy/accuracy.h"
#include "report/accuracy/rows.h"
#include "report/json_parts.h"

namespace reckon {
namespace {

Json score_json(const Scores& s) {
  if (s.runs == 0) return {{"runs", 0}};
  return {{"runs", s.runs},
          {"median_absolute_error", s.median_absolute_error},
          {"mean_absolute_error", s.mean_absolute_error},
          {"p90_absolute_error", s.p90_absolute_error},
          {"max_absolute_error", s.max_absolute_error},
          {"bias", s.bias},
          {"rank_correlation", s.rank_correlation},
          {"interval_coverage", s.interval_coverage},
          {"interval_median_half_width", s.interval_median_half_width}};
}

/// Of peaks no interval is predicted.
Json json_of_memory(const Scores& s) {
  Json out = score_json(s);
  out.erase("interval_coverage");
  out.erase("interval_median_half_width");
  return out;
}

Json score_json(const Evaluation& e) {
  Json out = score_json(e.runs);
  out["groups"] = score_json(e.groups);
  out["targets"] = Json::object();
  for (const NamedScores& t : e.targets) out["targets"][t.name] = score_json(t.groups);
  out["does_not_fit"] = e.does_not_fit;
  out["over_plans_risk"] = e.over_plans_risk;
  out["memory_unknown"] = e.memory_unknown;
  if (e.memory.runs > 0) out["memory"] = json_of_memory(e.memory);
  return out;
}

Json score_json(const RegretScores& r) {
  if (r.groups == 0) return {{"groups", 0}};
  return {{"groups", r.groups}, {"mean", r.mean}, {"max", r.max}};
}

Json parts_of(const Evaluation& e) {
  Json out = Json::object();
  for (const auto& [dimension, parts] : e.by) {
    Json& object = out[dimension] = Json::object();
    for (const NamedScores& part : parts) {
      object[part.name] = score_json(part.runs);
      object[part.name]["groups"] = score_json(part.groups);
    }
  }
  return out;
}

Json score_json(const ScoredRun& r) {
  Json out = {{"line", r.at.line},
              {"id", r.at.id},
              {"source", r.at.source},
              {"accelerator", r.at.run.accelerator},
              {"accelerators", r.at.run.accelerators},
              {"model", model_name(r.at.run)},
              {"measured", r.measured},
              {"predicted", r.predicted},
              {"low", r.low},
              {"high", r.high},
              {"device_share", r.device_share},
              {"error", r.error()}};
  if (r.memory.available.v > 0) {
    out["required_memory_bytes"] = r.memory.required().v;
    out["out_of_memory"] = r.memory.out_of_memory();
    out["memory_known"] = r.memory_known;
  }
  if (!r.evidence.empty()) out["evidence"] = r.evidence;
  if (r.at.peak_memory.v > 0) {
    out["peak_memory_bytes"] = r.at.peak_memory.v;
    out["predicted_peak_memory_bytes"] = predicted_peak(r.memory, r.at).v;
  }
  return out;
}

}  // namespace

std::string accuracy_json(const AccuracyReport& report, int worst) {
  Json out = head("accuracy");
  out["from"] = report.from;
  out["rows"] = report.rows;
  out["filtered_out"] = report.filtered_out;
  out["scored"] = report.runs.size();
  out["skipped"] = Json::array();
  for (const auto& [reason, rows] : report.skipped)
    out["skipped"].push_back(
        {{"reason", reason}, {"count", rows.count}, {"first_line", rows.first_line}});
  out["cross_validated"] = report.cross_validated;
  out["cold"] = score_json(report.cold);
  if (!report.warm.empty()) {
    Json& warm = out["warm"] = Json::object();
    for (const WarmEvaluation& w : report.warm) {
      Json& points = warm[std::to_string(w.points)] = score_json(w.rest);
      points["larger_scale"] = score_json(w.larger_runs);
      points["larger_scale"]["groups"] = score_json(w.larger_groups);
    }
  }
  if (report.regret)
    out["regret"] = {{"one_node", score_json(report.regret->one_node)},
                     {"many_nodes", score_json(report.regret->many_nodes)},
                     {"trust_c", score_json(report.regret->weak)}};
  out["others"] = Json::object();
  for (const OthersScores& same : report.others)
    out["others"][same.name] = {{"floor", score_json(same.floor)},
                                {"others", score_json(same.others)},
                                {"predicted", score_json(same.predicted)}};
  out["by"] = parts_of(report.cold);
  if (worst > 0) {
    out["worst"] = Json::array();
    for (const ScoredRun* r : worst_runs(report, worst)) out["worst"].push_back(score_json(*r));
  }
  return dump(out, 2);
}

}  // namespace reckon
