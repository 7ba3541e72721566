#include "report/plan/controls.h"

#include <fmt/format.h>

#include "report/json_parts.h"

namespace reckon {
namespace {

Json option_object(const planner::ControlOption& o) {
  return {{"text", o.text},
          {"group", text_or_null(o.group)},
          {"set", o.set},
          {"why_not", text_or_null(o.why_not)}};
}

Json control_limit(const std::optional<planner::Limit>& limit) {
  if (!limit) return nullptr;
  return {{"value", limit->value},
          {"probability", limit->probability ? Json(*limit->probability) : Json(nullptr)}};
}

}  // namespace

std::string controls_json(const planner::Controls& controls) {
  Json out = head("explore");
  out["scenario"] = controls.scenario;
  out["controls"] = Json::array();
  for (const planner::Control& c : controls.all) {
    Json options = Json::array();
    for (const planner::ControlOption& o : c.options) options.push_back(option_object(o));
    out["controls"].push_back({{"name", c.name},
                               {"label", c.label},
                               {"value", c.value},
                               {"options", std::move(options)},
                               {"ascending", c.ascending},
                               {"key", text_or_null(c.key)},
                               {"suggestions", c.suggestions},
                               {"whole_number", c.whole_number},
                               {"of_question", c.of_question},
                               {"limit", control_limit(c.limit)}});
  }
  out["search"] = controls.search;
  return dump(out, 2);
}

std::string controls_table(const planner::Controls& controls) {
  std::string out = fmt::format("{}: what may be chosen\n", controls.scenario);
  for (const planner::Control& c : controls.all) {
    std::size_t fit = 0;
    for (const planner::ControlOption& o : c.options) fit += o.why_not.empty();
    const std::string choice = c.options.empty()
                                   ? fmt::format("--set {}=...", c.key)
                                   : fmt::format("{} of {} values fit", fit, c.options.size());
    out += fmt::format("  {:<24} {:<60} {}\n", c.label, c.value.empty() ? "none" : c.value, choice);
  }
  return out;
}

}  // namespace reckon
