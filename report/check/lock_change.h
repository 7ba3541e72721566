#pragma once
#include <string>
#include <vector>

#include "planner/lock/attribution.h"

// What changed since a lock was written, and whose each part is.
namespace reckon {

struct FigureChange {
  enum class Unit { time, money };
  std::string what;  // "time", "cost": of medians or means, as the reader knows them
  Unit unit = Unit::time;
  planner::Swaps swaps;
};

struct LockChange {
  std::string lock;  // the file
  std::vector<FigureChange> figures;
  std::vector<std::string> notes;  // versions and dates, and what could not be told apart
  bool same = false;               // no input and no figure has changed
};

/// Lines, each indented by `indent` spaces: "time  31.1 h -> 33.0 h: your edit +1.9 h, ...".
std::string lock_change_text(const LockChange& change, int indent);
/// A table: before, each cause's share, after.
std::string lock_change_markdown(const LockChange& change);

}  // namespace reckon
