#pragma once
#include <string>
#include <string_view>
#include <vector>

// What decides what a job trains, in words: a checkpoint keeps it, so that a run is not gone on
// with under other settings unless the user says so.
namespace reckon {

struct Plan;
struct DataSpec;
class DataSource;
struct CheckpointIdentity;

/// A setting and its value: {"learning_rate", "0.1"}.
struct Setting {
  std::string name, value;
  friend bool operator==(const Setting&, const Setting&) = default;
};
using Recipe = std::vector<Setting>;

/// "" where the recipe has no such setting.
std::string setting_of(const Recipe& recipe, std::string_view name);

struct SettingChange {
  std::string name, recorded, now;
};
/// Settings that both have with different values. A recipe without any, of a checkpoint that an
/// older reckon wrote, has no changes.
std::vector<SettingChange> changes_between(const Recipe& recorded, const Recipe& now);
/// One line each, indented: "learning_rate: recorded 0.1, now 0.05".
std::string to_text(const std::vector<SettingChange>& changes);

/// What the checkpoints of the plan's first job belong to. `data` is where its samples really come
/// from; `source`: they are open, so that it is known which they are.
CheckpointIdentity identity_of_job(const Plan& plan, const DataSpec& data,
                                   const DataSource* source = nullptr);

}  // namespace reckon
