#pragma once
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "sim/base/diagnostic.h"

namespace reckon {

/// Calls `item(object, line)` for each object of a JSON list, one after the other, so that a long
/// list takes the memory of one of its objects; `line` is where it begins. `key`: of the list in
/// the outermost object; "": the list is outermost. Reports what is no JSON, with its place.
void each_json_item(const std::string& file, std::string_view bytes, std::string_view key,
                    Diagnostics& problems,
                    const std::function<void(const nlohmann::json&, int)>& item);

}  // namespace reckon
