#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/question.h"
#include "sim/step/network/network.h"

// What a scenario leaves to choose, for people who try values out: `reckon explore`. The values are
// those of the search: the question's lists where the file says what may vary, else what the
// provider of its pool sells in its region.
namespace reckon::planner {

/// A value, and how the scenario takes it.
struct ControlOption {
  std::string text;   // "4", "a2-highgpu-8g (8 A100-SXM4-40)"
  std::string group;  // by which a long list is divided; "": by nothing
  /// Words of --set behind those of the scenario. Empty: the scenario has that value.
  std::vector<std::string> set;
  std::string why_not;  // "does not fit in memory"; "": it may be taken
};

struct Control {
  std::string name;   // "nodes"
  std::string label;  // "Nodes"
  std::string value;  // of the scenario, as an option's text or as it stands behind `key`
  std::vector<ControlOption> options;
  bool ascending = false;  // the options are numbers
  std::string key;         // that takes any value as --set KEY=VALUE; "": the options are all
  std::vector<std::string> suggestions;  // for that key
  bool whole_number = false;             // the key takes one from 1
  /// The search leaves it as the scenario has it: its change is one of the question.
  bool of_question = false;
  std::optional<Limit> limit;  // that the value says: seconds or USD
};

struct Controls {
  std::string scenario;
  std::vector<Control> all;
  /// Words of --set with which `reckon plan` searches the same values; empty: the file's own
  /// question says what may vary.
  std::vector<std::string> search;
};

/// Of the base with its overrides. A scenario that the planner cannot vary is refused as
/// make_question() does.
Expected<Controls> controls_of(const Base& base, const Catalog& catalog,
                               const NetworkModel& network, int threads);

}  // namespace reckon::planner
