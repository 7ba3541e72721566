#pragma once
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/quantity.h"

namespace reckon::worker {

struct OptionRow {
  const char *name, *value, *help;  // value: its word in the help text; "" is a flag
};
/// A line for each, names and values in `width` columns.
std::string describe(std::span<const OptionRow> rows, int width);

/// A command line taken apart. All throw std::invalid_argument with what is wrong.
class Arguments {
 public:
  /// Words without a name are values of `positional`; `flags` are taken besides `help`.
  Arguments(std::span<const OptionRow> rows, const char* positional,
            std::span<const std::string> words, std::span<const char* const> flags = {});

  bool given(const std::string& name) const { return values_.contains(name); }
  std::vector<std::string> all(const std::string& name) const;
  std::optional<std::string> one(const std::string& name) const;
  template <class T>
  std::optional<T> whole(const std::string& name, T least,
                         T most = std::numeric_limits<T>::max()) const {
    const auto value = integer(name, least, most);
    return value ? std::optional(static_cast<T>(*value)) : std::nullopt;
  }
  std::optional<Seconds> duration(const std::string& name) const;  // not negative

 private:
  std::optional<std::int64_t> integer(const std::string& name, std::int64_t least,
                                      std::int64_t most) const;

  std::map<std::string, std::vector<std::string>> values_;
};

}  // namespace reckon::worker
