#pragma once
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/diagnostic.h"
#include "sim/scenario/yaml/document.h"

// JSON that is too large to hold: one value after the other, of those that the reader asks for. A
// price list of a cloud has gigabytes, and a few hundred lines of it count.
namespace reckon {

struct JsonPart {
  std::vector<std::string> path;  // keys down to it; "" for an item of a list
  YamlNode value;                 // with its places
};

/// Reads one JSON document, or several in a row (JSON lines), and hands over each value whose path
/// fits one of `wanted`: keys with dots between them, `*` for any key or item; "" is a whole
/// document. What is below a value that was handed over is not handed over again. `take` returns
/// false to stop. Memory: the bytes (which may be a mapped file) and one value. Errors: not JSON,
/// at its place; a value of more than kMostValues or deeper than kDeepestNesting.
Diagnostics for_each_json_part(std::string_view bytes, const std::string& file,
                               std::span<const std::string_view> wanted,
                               const std::function<bool(const JsonPart&)>& take);

}  // namespace reckon
