#include "executor/train/recipe/training_recipe.h"

#include <fmt/format.h>

#include <algorithm>

namespace reckon {

std::string setting_of(const Recipe& recipe, std::string_view name) {
  const auto found = std::ranges::find(recipe, name, &Setting::name);
  return found == recipe.end() ? "" : found->value;
}

std::vector<SettingChange> changes_between(const Recipe& recorded, const Recipe& now) {
  std::vector<SettingChange> changes;
  for (const Setting& setting : now) {
    const auto before = std::ranges::find(recorded, setting.name, &Setting::name);
    if (before != recorded.end() && before->value != setting.value)
      changes.push_back({setting.name, before->value, setting.value});
  }
  return changes;
}

std::string to_text(const std::vector<SettingChange>& changes) {
  std::string out;
  const auto shown = [](const std::string& value) { return value.empty() ? "none" : value; };
  for (const SettingChange& c : changes)
    out += fmt::format("  {}: recorded {}, now {}\n", c.name, shown(c.recorded), shown(c.now));
  return out;
}

}  // namespace reckon
