#pragma once
#include <set>

#include "sim/model/layers.h"

// One layer's text, read attribute by attribute. What a kind reads is in its family's file.
namespace reckon::layer_text {

struct Mistake {
  std::string key, what, hint;
};

class Attributes {
 public:
  /// `inputs`: shapes of what the layer takes; an unknown one is empty.
  Attributes(const LayerText& text, std::string kind, std::vector<Shape> inputs)
      : text_(text), kind_(std::move(kind)), inputs_(std::move(inputs)) {}

  /// The value behind the kind.
  std::int64_t main_number() { return number(kind_, std::nullopt); }
  /// "3x224x224"
  Shape main_shape();
  double main_real() { return real(kind_, std::nullopt); }
  template <HasWords E>
  E main_word() {
    return from_text<E>(word(kind_, texts_of<E>())).value_or(E{});
  }
  /// There is none: only `true`.
  void no_main();

  /// nullopt as default: it must be given.
  std::int64_t number(const std::string& key, std::optional<std::int64_t> otherwise);
  double real(const std::string& key, std::optional<double> otherwise);
  bool flag(const std::string& key, bool otherwise);
  std::string word(const std::string& key, const std::vector<std::string>& allowed);
  /// "7" or "1x7": height, width.
  std::pair<std::int64_t, std::int64_t> pair(const std::string& key, std::int64_t otherwise);

  /// Of the first input; a number that does no harm where it is unknown.
  std::int64_t features() const { return size(false); }
  std::int64_t channels() const { return size(true); }
  std::int64_t inputs() const { return static_cast<std::int64_t>(inputs_.size()); }
  const Shape& input(std::size_t i) const { return inputs_[i]; }
  /// All inputs are there and their shapes known.
  bool known() const;

  void mistake(std::string key, std::string what, std::string hint = {}) {
    mistakes_.push_back({std::move(key), std::move(what), std::move(hint)});
  }
  const std::set<std::string>& used() const { return used_; }
  std::vector<Mistake>& mistakes() { return mistakes_; }

 private:
  const std::string* find(const std::string& key);
  std::int64_t size(bool first) const {
    if (inputs_.empty() || inputs_[0].empty()) return 1;
    return first ? inputs_[0].front() : inputs_[0].back();
  }

  const LayerText& text_;
  std::string kind_;
  std::vector<Shape> inputs_;
  std::set<std::string> used_;
  std::vector<Mistake> mistakes_;
};

struct Kind {
  LayerKindText text;
  LayerOp (*read)(Attributes&);
  bool takes_names = false;  // the value behind the kind names its inputs
};
std::span<const Kind> kinds();

/// "3x224x224" or "1024"; nullopt: no shape.
std::optional<Shape> parse_shape(std::string_view text);
/// "a, b"
std::vector<std::string> split_names(std::string_view text);

}  // namespace reckon::layer_text
