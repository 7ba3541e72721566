#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/memo/parts.h"
#include "report/queue/nodes.h"
#include "report/queue/nodes_text.h"
#include "report/text.h"
#include "sim/base/unit_text.h"

namespace reckon {
namespace {

std::string yes_or_no(bool holds) { return holds ? "yes" : "no"; }

std::string of_a_week(const FewestNodes& found, std::optional<double> cost) {
  return cost ? fmt::format("{} {}", format_count(std::round(*cost)), found.currency) : "unknown";
}

const NodesTried* tried_with(const FewestNodes& found, int nodes) {
  const auto at = std::ranges::find(found.tried, nodes, &NodesTried::nodes);
  return at == found.tried.end() ? nullptr : &*at;
}

/// What `nodes` of the pool cost a week beside what the cluster has now.
std::string more_for(const FewestNodes& found, int nodes) {
  if (found.varied == Varied::gpus_of_node_pool) {
    const NodesTried* tried = tried_with(found, nodes);
    if (tried == nullptr || !tried->cost_of_week || !found.cost_now) return "unknown";
    const double cost = std::round(*tried->cost_of_week - *found.cost_now);
    return cost == 0 ? "0" : (cost > 0 ? "+" : "-") + of_a_week(found, std::abs(cost));
  }
  const int more = nodes - found.now;
  if (more == 0) return "0";
  if (!found.cost_of_week) return "unknown";
  return (more > 0 ? "+" : "-") + of_a_week(found, std::abs(more) * *found.cost_of_week);
}

/// What a change costs a week beside what the cluster does now; another order costs nothing.
/// nullopt: unknown.
std::optional<double> more_for(const FewestNodes& found, const ChangeTried& change) {
  if (change.policy) return 0;
  if (!change.cost_of_week || !found.cost_now) return std::nullopt;
  return *change.cost_of_week - *found.cost_now;
}

/// The cheapest change that keeps the limit on the nodes that are there, of equals the first;
/// nullptr: none does whose cost is known, or more nodes are cheaper still.
const ChangeTried* cheapest_change(const FewestNodes& found) {
  const ChangeTried* best = nullptr;
  for (const ChangeTried& change : found.changes) {
    const auto more = more_for(found, change);
    if (!change.holds || !more) continue;
    if (best == nullptr || *more < *more_for(found, *best)) best = &change;
  }
  if (best == nullptr || !found.fewest) return best;
  if (*found.fewest <= found.now) return nullptr;
  const NodesTried* const at = tried_with(found, *found.fewest);
  const auto week = at == nullptr ? std::nullopt : week_with(found, *at);
  const auto now = found.varied == Varied::gpus_of_node_pool ? found.cost_now
                   : found.cost_of_week ? std::optional(found.now * *found.cost_of_week)
                                        : std::nullopt;
  const bool nodes_cheaper = week && now && *week - *now < *more_for(found, *best);
  return nodes_cheaper ? nullptr : best;
}

std::string with_nodes(const FewestNodes& found) {
  if (!found.fewest)
    return found.varied == Varied::nodes_of_pool
               ? "No number of nodes keeps the limit: more nodes change nothing."
               : "No limit of GPUs keeps it: more GPUs change nothing.";
  const NodesTried* const at = tried_with(found, *found.fewest);
  std::string text =
      *found.fewest == found.now
          ? fmt::format("**The {} are enough**", markdown_safe(amount_of_pool(found, found.now)))
          : fmt::format("**{}** in place of {}",
                        markdown_safe(amount_of_pool(found, *found.fewest)),
                        found.limited_now ? std::to_string(found.now) : "no limit");
  if (at != nullptr && at->value)
    text += fmt::format(": {} is {}", metric_of(found), value_text(found, *at->value));
  if (*found.fewest != found.now)
    text += at != nullptr && week_with(found, *at)
                ? fmt::format(", for **{} a week**", more_for(found, *found.fewest))
                : std::string(" (the nodes have no price)");
  return text + (found.varied == Varied::nodes_of_pool ? ". One node fewer is too few."
                                                       : ". One GPU fewer is too few.");
}

std::string name_of_change(const ChangeTried& change) {
  return change.policy ? fmt::format("Policy {}", to_text(*change.policy))
                       : markdown_code(change.change);
}

std::string nodes_recommendation(const FewestNodes& found) {
  std::string out = "## Recommendation\n\n";
  if (const ChangeTried* const best = cheapest_change(found)) {
    const std::string more = more_a_week(found, *best);
    out += fmt::format(
        "**{} {}**: {} is {}, {}.\n\nWithout it: ", name_of_change(*best), as_it_is(found),
        metric_of(found), value_text(found, *best->value),
        best->policy || more.empty() ? "and no node is bought" : "for **" + more + " a week**");
  }
  return out + with_nodes(found) + "\n\n";
}

std::string nodes_alternatives(const FewestNodes& found) {
  std::string out =
      "## Alternatives\n\n" +
      markdown_header({"", metric_of(found), "keeps the limit", "in use", "more a week"});
  const auto value = [&](std::optional<double> of) {
    return of ? value_text(found, *of) : std::string("unknown");
  };
  for (const NodesTried& t : found.tried)
    out += markdown_row({amount_of(found, t.nodes), value(t.value), yes_or_no(t.holds),
                         t.result.utilization ? format_percent(*t.result.utilization) : "-",
                         more_for(found, t.nodes)});
  for (const ChangeTried& c : found.changes) {
    const auto known = more_for(found, c);
    const std::string more = more_a_week(found, c);
    out += markdown_row({name_of_change(c), value(c.value), yes_or_no(c.holds), "-",
                         !known                     ? "unknown"
                         : c.policy || more.empty() ? "0"
                                                    : more});
  }
  return out + "\n";
}

std::string nodes_risks(const FewestNodes& found) {
  std::string out =
      "## Risks\n\n"
      "- The same jobs come, however long they wait. Where waits fall, people submit more.\n"
      "- No node fails or is down.\n";
  if (found.varied == Varied::gpus_of_node_pool)
    out += "- Whatever Karpenter asks for, the provider gives: no stock-out is simulated.\n";
  if (found.tried.empty()) return out + "\n";
  const TraceResult& any = found.tried.front().result;
  if (any.never > 0)
    out += fmt::format("- {} of {} jobs can never run with {} nodes.\n",
                       format_count(double(any.never)), format_count(double(any.jobs)),
                       found.tried.front().nodes);
  for (const std::string& warning : any.warnings) out += "- " + markdown_safe(warning) + "\n";
  return out + "\n";
}

std::string nodes_prices(const FewestNodes& found) {
  if (found.varied == Varied::gpus_of_node_pool)
    return "## Prices\n\n" + markdown_header({"", "a week"}) +
           markdown_row({"the nodes that Karpenter makes now", of_a_week(found, found.cost_now)}) +
           "\n";
  return "## Prices\n\n" + markdown_header({"", "a week"}) +
         markdown_row({fmt::format("a node of pool {}", markdown_safe(found.pool)),
                       of_a_week(found, found.cost_of_week)}) +
         markdown_row({"all nodes of today", of_a_week(found, found.cost_now)}) + "\n";
}

std::string nodes_provenance(const FewestNodes& found) {
  if (found.tried.empty()) return "";
  const TraceResult& any = found.tried.front().result;
  return fmt::format("{} jobs, policy {}, {} of seed {}.\n", format_count(double(any.jobs)),
                     to_text(any.policy), replications_text(any), any.seed);
}

}  // namespace

std::string nodes_memo(const FewestNodes& found, std::string_view question) {
  std::string title = found.tried.empty() ? found.pool : found.tried.front().result.scenario;
  std::string out = fmt::format("# {}\n\n## Question\n\n", markdown_safe(title));
  if (!question.empty()) out += markdown_safe(question) + "\n\n";
  out += fmt::format(
      "The limit is {}; {} {} vary.\n\n", markdown_safe(found.limit.text),
      found.varied == Varied::nodes_of_pool ? "the nodes of pool" : "the GPUs of NodePool",
      markdown_safe(found.pool));
  return out + nodes_recommendation(found) + nodes_alternatives(found) + nodes_risks(found) +
         nodes_prices(found) + nodes_provenance(found);
}

}  // namespace reckon
