#include "report/explain/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/explain/evidence.h"
#include "report/json_parts.h"
#include "report/table.h"
#include "report/text.h"
#include "sim/base/unit_text.h"

namespace reckon {
namespace {

constexpr int kPartWidth = 30;
constexpr std::size_t kGroupsShown = 20;

std::string percent_of_step(double share) { return fmt::format("{:.1f} %", 100 * share); }

/// How much longer or shorter: "-12.3 %"; "0 %" where it is the same to a tenth.
std::string change_against(double now, double before) {
  const double change = 100 * (now / before - 1);
  return std::abs(change) < 0.05 ? "0 %" : fmt::format("{:+.1f} %", change);
}

std::string phases(const Explanation& e) {
  Columns rows;
  for (const Phase& p : e.phases)
    rows.row({p.name, format_duration(p.time), percent_of_step(p.share), bar(p.share, kPartWidth)});
  return "\nWhere a step goes\n" + rows.text();
}

/// Neighbours that are alike in all that is printed, as the blocks of a transformer are.
struct Block {
  LayerGroupTime each;
  std::string last;  // the name of the last of them
  int groups = 1;
  Seconds time() const { return groups * (each.forward + each.backward); }
};

bool alike(const LayerGroupTime& a, const LayerGroupTime& b) {
  const auto same = [](Seconds x, Seconds y) {
    return std::abs((x - y).count()) <= 1e-6 * (x + y).count();
  };
  return a.layers == b.layers && a.parameters == b.parameters &&
         a.bound_by_memory == b.bound_by_memory && same(a.forward, b.forward) &&
         same(a.backward, b.backward);
}

std::vector<Block> blocks_of(const std::vector<LayerGroupTime>& groups) {
  std::vector<Block> out;
  for (const LayerGroupTime& g : groups) {
    if (out.empty() || !alike(out.back().each, g)) {
      out.push_back({.each = g, .last = g.name});
      continue;
    }
    ++out.back().groups;
    out.back().last = g.name;
  }
  return out;
}

std::string name_of_block(const Block& b) {
  const std::string& first = b.each.name;
  if (b.groups == 1)
    return b.each.layers > 1 ? fmt::format("{} ({} layers)", first, b.each.layers) : first;
  // "transformer.h.0 to 95": what both names begin with is said once.
  const std::size_t number = b.last.find_last_not_of("0123456789") + 1;
  const bool counted = first.starts_with(b.last.substr(0, number));
  return fmt::format("{} to {} ({} layer{} each)", first, counted ? b.last.substr(number) : b.last,
                     b.each.layers, b.each.layers > 1 ? "s" : "");
}

std::string layers(const Explanation& e) {
  const std::vector<Block> blocks = blocks_of(e.layers);
  std::vector<Seconds> sorted;
  for (const Block& b : blocks) sorted.push_back(b.time());
  std::sort(sorted.rbegin(), sorted.rend());
  const Seconds least = sorted.size() > kGroupsShown ? sorted[kGroupsShown - 1] : Seconds{};
  Columns rows;
  rows.row({"", "forward", "backward", "of step", "parameters", "bound by"});
  std::size_t shown = 0, left_out = 0;
  double share_left_out = 0;
  for (const Block& b : blocks) {
    const LayerGroupTime& g = b.each;
    if (b.time() < least || shown == kGroupsShown) {
      left_out += std::size_t(b.groups);
      share_left_out += b.groups * g.share;
      continue;
    }
    ++shown;
    rows.row({name_of_block(b), format_duration(b.groups * g.forward),
              format_duration(b.groups * g.backward), percent_of_step(b.groups * g.share),
              format_count(double(b.groups) * double(g.parameters)),
              g.bound_by_memory ? "memory" : "arithmetic"});
  }
  std::string out = "\nCompute by layer group\n" + rows.text();
  if (left_out > 0)
    out += fmt::format("  and {} shorter ones, {} of the step together\n", left_out,
                       percent_of_step(share_left_out));
  return out;
}

std::string memory_parts(const MemoryEstimate& m) {
  Columns rows;
  const auto line = [&](const char* name, Bytes b) {
    if (b.v == 0) return;
    const double share = b / m.available;
    rows.row({name, format_bytes(b), percent_of_step(share), bar(share, kPartWidth)});
  };
  line("parameters", m.parameters);
  line("gradients", m.gradients);
  line("optimizer", m.optimizer);
  line("activations", m.activations);
  line("workspace", m.workspace);
  line("gathered parameters and gradients", m.gathered);
  line("reserve", m.reserve);
  line("comparable runs", m.evidence);
  line("fragmentation", m.fragmentation);
  line("free", m.margin());
  return fmt::format("\nMemory of an accelerator ({})\n", memory_text(m)) + rows.text();
}

std::string help(const Explanation& e) {
  Columns rows;
  rows.row({"", "step", rate_unit(e.tokens_per_sample), "training", "", "cost", "", "plan"});
  const auto line = [&](const Change& c, bool now) {
    const std::string cost = c.cost ? format_usd(*c.cost) : "unknown";
    rows.row({c.what, format_duration(c.step), rate_value(c.throughput, e.tokens_per_sample),
              time_value(c.training),
              now ? "" : change_against(c.training.count(), e.now.training.count()), cost,
              now || !c.cost ? "" : change_against(c.cost->v, e.now.cost->v),
              now                     ? ""
              : c.plan_option.empty() ? "outside"
                                      : c.plan_option.substr(2)});
  };
  line(e.now, true);
  for (const Change& c : e.what_would_help) line(c, false);
  return "\nWhat would help (one change at a time; training alone, at today's price a node; plan: "
         "the "
         "option of\n`reckon plan` that searches it, or outside of its search)\n" +
         rows.text();
}

std::string crossover_table(const Crossover& c) {
  Columns rows;
  std::vector<std::string> header{"workers"};
  for (const std::string& s : c.strategies) header.push_back(s);
  rows.row(header);
  for (const CrossoverRow& row : c.rows) {
    std::vector<std::string> cells{fmt::format("{}", row.workers)};
    for (std::size_t s = 0; s < row.throughput.size(); ++s)
      cells.push_back(format_count(std::round(row.throughput[s].v)) +
                      (s == row.best ? " *" : "  "));
    rows.row(cells);
  }
  return rows.text();
}

/// Share of perfect scaling: throughput over that of so many workers that need not talk.
std::string crossover_chart(const Crossover& c) {
  Columns rows;
  for (const CrossoverRow& row : c.rows)
    for (std::size_t s = 0; s < row.throughput.size(); ++s) {
      const double share = row.throughput[s] / (c.one_worker * row.workers);
      rows.row({s == 0 ? fmt::format("{} workers", row.workers) : "", c.strategies[s],
                fmt::format("{:.0f} %", 100 * share), bar(share, kPartWidth)});
    }
  return "\nShare of perfect scaling (one worker alone: " +
         format_count(std::round(c.one_worker.v)) + " samples/s)\n" + rows.text();
}

std::string crossover(const Explanation& e, int width) {
  if (!e.crossover) return "";
  const Crossover& c = *e.crossover;
  std::string out =
      "\nAll-reduce or synchronous parameter servers (samples/s)\n" + crossover_table(c);
  for (const std::string& line :
       wrap(fmt::format("* fastest: {}. Servers are {} of their own; \"server for 4\": one for "
                        "each 4 workers.",
                        who_is_fastest(c), c.server_machine),
            width - 2))
    out += "  " + line + '\n';
  return out + crossover_chart(c);
}

Json explained_json(const Change& c) {
  return {{"change", c.what},
          {"plan_option", text_or_null(c.plan_option)},
          {"step_seconds", number(c.step.count())},
          {"samples_per_second", number(c.throughput.v)},
          {"training_seconds", number(c.training.count())},
          {"training_cost_usd", c.cost ? number(c.cost->v) : Json(nullptr)}};
}

Json explained_json(const Crossover& c) {
  Json rows = Json::array();
  for (const CrossoverRow& row : c.rows) {
    Json throughput = Json::object();
    for (std::size_t s = 0; s < c.strategies.size(); ++s)
      throughput[c.strategies[s]] = number(row.throughput[s].v);
    rows.push_back({{"workers", row.workers},
                    {"samples_per_second", std::move(throughput)},
                    {"fastest", c.strategies[row.best]}});
  }
  return rows;
}

}  // namespace

std::string who_is_fastest(const Crossover& c) {
  std::string text;
  for (std::size_t begin = 0; begin < c.rows.size();) {
    std::size_t end = begin;
    while (end < c.rows.size() && c.rows[end].best == c.rows[begin].best) ++end;
    const int from = c.rows[begin].workers, to = c.rows[end - 1].workers;
    if (!text.empty()) text += ", ";
    text += c.strategies[c.rows[begin].best];
    if (end == c.rows.size())
      text += begin == 0 ? " at every size" : fmt::format(" from {} workers", from);
    else
      text += from == to ? fmt::format(" with {} workers", from)
                         : fmt::format(" with {} to {} workers", from, to);
    begin = end;
  }
  return text;
}

std::string explain_table(const Explanation& e, int width) {
  std::string out = fmt::format("{}\n  step {}, bound by {}; {}\n", e.scenario,
                                format_duration(e.step.step), to_text(e.step.bottleneck),
                                throughput_text(e.step, e.accelerators, e.tokens_per_sample));
  return out + evidence_section(e.evidence, width) + phases(e) + layers(e) +
         memory_parts(e.memory) + help(e) + crossover(e, width);
}

std::string restarts_table(const std::vector<RestartChange>& restarts) {
  if (restarts.empty()) return "";
  const RestartChange& now = restarts.front();
  Columns rows;
  rows.row({"", "time", "", "cost", "", "goodput", "plan"});
  for (const RestartChange& r : restarts) {
    const bool first = &r == &now;
    rows.row({r.what, format_duration(Seconds{r.seconds}),
              first ? "" : change_against(r.seconds, now.seconds),
              r.usd ? format_usd(Usd{*r.usd}) : "unknown",
              first || !r.usd || !now.usd ? "" : change_against(*r.usd, *now.usd),
              percent_of_step(r.goodput),
              first                   ? ""
              : r.plan_option.empty() ? "outside"
                                      : r.plan_option.substr(2)});
  }
  std::string out = fmt::format(
      "\nAfter a loss ({:.1f} interruptions; means of few replications of the whole run)\n",
      now.interruptions);
  out += rows.text();
  for (const RestartChange& r : restarts)
    if (!r.set.empty()) out += fmt::format("  {}: --set '{}'\n", r.what, r.set);
  return out;
}

std::string explain_json(const Explanation& e, const std::vector<RestartChange>& restarts) {
  Json out = head("explain");
  out["scenario"] = e.scenario;
  out["engine"] = e.engine;
  out["step_seconds"] = number(e.step.step.count());
  out["phases"] = Json::array();
  for (const Phase& p : e.phases)
    out["phases"].push_back(
        {{"name", p.name}, {"seconds", number(p.time.count())}, {"share", number(p.share)}});
  out["layers"] = Json::array();
  for (const LayerGroupTime& g : e.layers)
    out["layers"].push_back({{"name", g.name},
                             {"layers", g.layers},
                             {"forward_seconds", number(g.forward.count())},
                             {"backward_seconds", number(g.backward.count())},
                             {"share", number(g.share)},
                             {"parameters", g.parameters},
                             {"bound_by", g.bound_by_memory ? "memory" : "arithmetic"}});
  constexpr std::size_t kAllRuns = 1000;
  out["evidence"] = evidence_object(e.evidence, kAllRuns);
  out["memory"] = memory_object(e.memory);
  out["bottleneck"] = to_text(e.step.bottleneck);
  out["now"] = explained_json(e.now);
  out["what_would_help"] = Json::array();
  for (const Change& c : e.what_would_help) out["what_would_help"].push_back(explained_json(c));
  for (const RestartChange& r : restarts)
    out["restarts"].push_back({{"what", r.what},
                               {"set", r.set.empty() ? Json(nullptr) : Json(r.set)},
                               {"time_seconds", number(r.seconds)},
                               {"cost_usd", r.usd ? number(*r.usd) : Json(nullptr)},
                               {"goodput", number(r.goodput)},
                               {"interruptions", number(r.interruptions)}});
  out["crossover"] = e.crossover ? explained_json(*e.crossover) : Json(nullptr);
  return dump(out, 2);
}

}  // namespace reckon
