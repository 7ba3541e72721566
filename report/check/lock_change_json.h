#pragma once
#include <string_view>

#include "report/check/lock_change.h"
#include "report/json_parts.h"

// Included by .cpp files of this folder only: nlohmann is heavy.
namespace reckon {

/// The key of a cause: "edit", "prices", "evidence", "reckon".
constexpr std::string_view word_of_cause(planner::Cause cause) {
  return cause == planner::Cause::edit ? "edit" : to_text(cause);
}
/// null where there is no lock.
Json lock_change_object(const LockChange* change);

}  // namespace reckon
