#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include "sim/base/unit_text.h"
#include "sim/catalog/catalog.h"
#include "sim/catalog/files/text.h"

// Entries become typed: each field that is asked for is parsed, checked and given its source;
// fields that nobody asked for are unknown keys.
namespace reckon::catalog_text {

/// Which values make sense: a peak of 0 FLOP/s does not, a price of 0 does.
enum class Need { positive, not_negative };

/// A parser of a number whose unit is in the name of the field: `scaled<Bytes>(1073741824.0)` for
/// memory_gib.
template <class T>
auto scaled(double factor) {
  return [factor](std::string_view text) -> Parsed<T> {
    return parse_number(text).map([&](double v) { return T(v * factor); });
  };
}

/// The most that is believed of a quantity, so that sums over 65,536 nodes and ten years can be
/// counted; `text` says it in the words of a message.
struct Most {
  double value;  // SI: bytes, B/s, FLOP, FLOP/s, seconds, USD/s, samples
  std::string_view text;
};
inline constexpr int kMostOfAnything = 1'000'000;
inline constexpr int kMostInMachine = 1024;  // accelerators, as in a scenario
inline constexpr int kMostNodes = 65'536;    // of a pool, as in a scenario; chips of a slice
inline constexpr double kDearestHour = 1e6;  // USD; of a node, as in a scenario
template <class T>
constexpr Most most_of() {
  if constexpr (std::is_same_v<T, Bytes>) return {1e15, "1 PB"};
  if constexpr (std::is_same_v<T, BytesPerSecond>) return {1e16, "10 PB/s"};
  if constexpr (std::is_same_v<T, Flops>) return {1e24, "1e24 FLOP"};
  if constexpr (std::is_same_v<T, FlopsPerSecond>) return {1e21, "1e9 TFLOPS"};
  if constexpr (std::is_same_v<T, Seconds>) return {100.0 * 365 * 86400, "100 years"};
  if constexpr (std::is_same_v<T, UsdPerSecond>)
    return {kDearestHour / 3600, "1,000,000 USD an hour"};
  if constexpr (std::is_same_v<T, Samples>) return {1e15, "1e15 samples"};
  return {1e18, "1e18"};
}

inline double plain_value(double v) { return v; }  // in that unit
inline double plain_value(Seconds v) { return v.count(); }
template <class Tag>
double plain_value(Quantity<Tag> v) {
  return v.v;
}

/// The sources of all layers by id; entry 0 is the user.
class SourceTable {
 public:
  explicit SourceTable(const std::vector<Source>& sources) : sources_(sources) {}
  std::optional<SourceId> find(std::string_view id) const;
  bool general_knowledge(SourceId id) const {
    return id != SourceId::user && sources_[static_cast<std::size_t>(id)].retrieved.empty();
  }
  std::vector<std::string> ids() const;

 private:
  const std::vector<Source>& sources_;
};

class Reader {
 public:
  Reader(Texts& texts, const SourceTable& sources, const Entry& entry)
      : texts_(texts), sources_(sources), entry_(entry) {}

  /// "" where the field is not given.
  std::string text(std::string_view field) { return std::string(peek(field)); }
  std::vector<std::string> lines(std::string_view field);
  int integer(std::string_view field, int otherwise, int least = 0, int most = kMostOfAnything);
  int required_integer(std::string_view field, int least, int most = kMostOfAnything);
  bool flag(std::string_view field, std::string_view yes, std::string_view no);
  std::string iso_date(std::string_view field);

  /// A field whose text is one of a few words; `from_text` gives the value or nullopt, `words`
  /// makes the list of them for the message.
  template <class F, class Words>
  auto word(std::string_view field, F from_text, Words words) {
    const Cell* cell = required(field);
    auto value = from_text(cell ? cell->text : std::string_view{});
    if (cell && !value) {
      const std::vector<std::string> allowed = words();
      complain(*cell, fmt::format("unknown {} '{}'", field, cell->text),
               fmt::format("one of: {}", fmt::join(allowed, ", ")),
               did_you_mean(cell->text, allowed));
    }
    return value;
  }

  template <class T, class F>
  Fact<T> fact(std::string_view field, F parse, Need need = Need::positive,
               Most most = most_of<T>()) {
    const Cell* cell = required(field);
    return cell ? fact_of<T>(field, *cell, parse, need, most).value_or(Fact<T>{}) : Fact<T>{};
  }
  template <class T, class F>
  std::optional<Fact<T>> optional_fact(std::string_view field, F parse,
                                       Need need = Need::positive) {
    asked_.push_back(field);
    const Cell* cell = entry_.find(field);
    return cell ? fact_of<T>(field, *cell, parse, need, most_of<T>()) : std::nullopt;
  }

  /// A name that must be known: `known` says whether it is, `names` makes the list for the message.
  template <class F, class Names>
  void reference(std::string_view field, std::string_view noun, F known, Names names) {
    const Cell* cell = entry_.find(field);
    if (!cell || known(cell->text)) return;
    complain(*cell, fmt::format("unknown {} '{}'", noun, cell->text),
             fmt::format("no layer of the catalog has this {}", noun),
             did_you_mean(cell->text, names()));
  }

  /// At the field, or where the entry starts. `what` is completed by the entry's name.
  void complain(std::string_view field, std::string what, std::string hint = {});
  void complain(const Cell& at, std::string what, std::string hint = {},
                std::string_view suggestion = {});
  /// Says which fields are unknown. Call it when all others were asked for.
  void finish();

 private:
  std::string_view peek(std::string_view field);
  const Cell* required(std::string_view field);
  std::optional<SourceId> source_of(const Cell& cell);
  void wrong_number(std::string_view field, const Cell& cell, const std::string& sentence);
  void beyond(std::string_view field, const Cell& cell, std::string_view number, Most most);

  template <class T, class F>
  std::optional<Fact<T>> fact_of(std::string_view field, const Cell& cell, F parse, Need need,
                                 Most most) {
    const std::optional<SourceId> source = source_of(cell);
    const Parsed<T> value = parse(cell.text);
    if (!value) return wrong_number(field, cell, value.error()), std::nullopt;
    const double v = plain_value(*value);
    if (v < 0 || (v == 0 && need == Need::positive)) {
      return wrong_number(field, cell,
                          fmt::format("'{}' is {}", cell.text, v < 0 ? "negative" : "zero")),
             std::nullopt;
    }
    if (!(v <= most.value)) return beyond(field, cell, cell.text, most), std::nullopt;
    if (!source) return std::nullopt;
    if (cell.low.empty() != cell.high.empty()) {
      return wrong_number(field, cell, "a range needs both low and high"), std::nullopt;
    }
    if (cell.low.empty()) {
      if (sources_.general_knowledge(*source)) {
        complain(cell, fmt::format("{} comes from general knowledge and has no range", field),
                 "give low and high, between which you are 90 % sure to find it; or a source with "
                 "a date");
        return std::nullopt;
      }
      return Fact<T>(*value, *source);
    }
    const Parsed<T> low = parse(cell.low), high = parse(cell.high);
    if (!low) return wrong_number(field, cell, low.error()), std::nullopt;
    if (!high) return wrong_number(field, cell, high.error()), std::nullopt;
    if (plain_value(*low) < 0 || plain_value(*low) > v || v > plain_value(*high)) {
      return wrong_number(
                 field, cell,
                 fmt::format("'{}' is not between {} and {}", cell.text, cell.low, cell.high)),
             std::nullopt;
    }
    if (!(plain_value(*high) <= most.value))
      return beyond(field, cell, cell.high, most), std::nullopt;
    return Fact<T>(*value, *low, *high, *source);
  }

  Texts& texts_;
  const SourceTable& sources_;
  const Entry& entry_;
  std::vector<std::string_view> asked_;
};

/// A required number of operations, whose unit ends its key (catalogs/operations.yaml); a text may
/// bring the same kind of unit along.
Fact<double> number_by_key(Reader& reader, std::string_view key);

}  // namespace reckon::catalog_text
