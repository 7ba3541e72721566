#include "report/run/leftovers.h"

#include <fmt/format.h>

#include "executor/kubernetes/lease.h"
#include "report/json_parts.h"
#include "report/text.h"
#include "sim/base/unit_text.h"

namespace reckon {
namespace {

using kubernetes::Leftover;
using kubernetes::Leftovers;

Usd dollars_an_hour(HourlyRate rate) { return Usd{double(rate.nano_usd_per_hour) * 1e-9}; }

std::string price_cell(const std::optional<HourlyRate>& price) {
  return price ? format_usd(dollars_an_hour(*price)) : "price unknown";
}

std::string plural(int count, const char* one) {
  return fmt::format("{} {}{}", count, one, count == 1 ? "" : "s");
}

/// "2 pods on node1, node2; 1 waits; 3 ended".
std::string pods_text(const Leftover& left) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : "; ") + part; };
  if (left.pods_running > 0) {
    constexpr std::size_t kMostNames = 2;
    const bool named = left.nodes.size() <= kMostNames;
    add(fmt::format("{} on {}", plural(left.pods_running, "pod"),
                    named ? fmt::format("{}", fmt::join(left.nodes, ", "))
                          : plural(int(left.nodes.size()), "node")));
  }
  if (left.pods_waiting > 0) add(fmt::format("{} without a node", left.pods_waiting));
  if (left.pods_ended > 0) add(fmt::format("{} ended", left.pods_ended));
  return text;
}

std::string kind_cell(const Leftover& left) {
  switch (left.kind) {
    case Leftover::Kind::jobs:
      return plural(left.jobs, "Job");
    case Leftover::Kind::claim:
      return "claim";
    case Leftover::Kind::node:
      break;
  }
  return "node";
}

const char* kind_word(Leftover::Kind kind) {
  return kind == Leftover::Kind::jobs ? "jobs" : kind == Leftover::Kind::claim ? "claim" : "node";
}

Json price_json(const std::optional<HourlyRate>& price) {
  return price ? Json(dollars_an_hour(*price).v) : Json(nullptr);
}

Json leftover_object(const Leftover& left) {
  Json out = {{"kind", kind_word(left.kind)},
              {"name", left.name},
              {"namespace", text_or_null(left.name_space)},
              {"run", text_or_null(left.run)},
              {"why", left.why},
              {"hourly_usd", price_json(left.price)}};
  if (left.kind == Leftover::Kind::jobs) {
    out["jobs"] = left.jobs;
    out["pods"] = {{"with_node", left.pods_running},
                   {"without_node", left.pods_waiting},
                   {"ended", left.pods_ended}};
    out["nodes"] = left.nodes;
  }
  if (left.kind == Leftover::Kind::claim)
    out["size_bytes"] = left.size ? Json(left.size->v) : Json(nullptr);
  return out;
}

Json run_object(const ClusterRunStatus& run) {
  Json ranks = Json::array();
  for (const kubernetes::RankStatus& rank : run.ranks)
    ranks.push_back(
        {{"name", rank.name},
         {"node", text_or_null(rank.node)},
         {"state", rank.state},
         {"steps_done", rank.steps_done},
         {"step_seconds", rank.step.count() > 0 ? Json(rank.step.count()) : Json(nullptr)}});
  Json launcher = nullptr;
  if (run.launcher)
    launcher = {{"identity", text_or_null(run.launcher->identity)},
                {"renewed", text_or_null(run.launcher->renewed)},
                {"lives", run.launcher->lives}};
  return {{"name", run.state.run},
          {"phase", std::string(to_text(run.state.phase))},
          {"reason", text_or_null(run.state.reason)},
          {"started", run.state.started},
          {"attempt", run.attempt ? Json(*run.attempt) : Json(nullptr)},
          {"launcher", launcher},
          {"ranks", ranks}};
}

}  // namespace

std::string leftovers_table(const Leftovers& leftovers) {
  std::string text;
  if (!leftovers.items.empty()) {
    Columns table;
    table.row({"what", "name", "namespace", "run", "has", "why", "an hour"});
    for (const Leftover& left : leftovers.items) {
      std::string has = pods_text(left);
      if (left.size) has = format_bytes(*left.size);
      table.row({kind_cell(left), left.name, left.name_space, left.run, has, left.why,
                 price_cell(left.price)});
    }
    text = "nobody owns any more:\n" + table.text();
    text += fmt::format(
        "{} an hour in all, each node once{}\n", format_usd(dollars_an_hour(leftovers.total)),
        leftovers.unknown_prices == 0
            ? ""
            : fmt::format("; {} unknown", plural(leftovers.unknown_prices, "price")));
  }
  for (const std::string& what : leftovers.not_seen) text += what + '\n';
  return text;
}

std::string launcher_line(const ClusterRunStatus& status) {
  const auto& launcher = status.launcher;
  const std::string take =
      fmt::format("; `reckon run --on kubernetes --attach {}` goes on with it", status.state.run);
  if (!launcher) return "no launcher is known: none holds a lease" + take;
  if (launcher->identity.empty())
    return fmt::format("no launcher since {}{}", launcher->renewed, take);
  return launcher->lives
             ? fmt::format("{}, which renewed its lease at {}",
                           kubernetes::launcher_text(launcher->identity), launcher->renewed)
             : fmt::format("no launcher: the {} was last heard of at {}{}",
                           kubernetes::launcher_text(launcher->identity), launcher->renewed, take);
}

std::string status_json(const ClusterRunStatus* run, const Leftovers& leftovers) {
  Json out = head("status");
  out["run"] = run != nullptr ? run_object(*run) : Json(nullptr);
  Json items = Json::array();
  for (const Leftover& left : leftovers.items) items.push_back(leftover_object(left));
  out["leftovers"] = items;
  out["leftovers_hourly_usd"] = dollars_an_hour(leftovers.total).v;
  out["unknown_prices"] = leftovers.unknown_prices;
  out["not_seen"] = leftovers.not_seen;
  return dump(out, 2);
}

}  // namespace reckon
