#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "sim/scenario/yaml/document.h"

namespace reckon {
namespace {

void stand_at(YamlNode& node, const SourcePlace& at) {
  node.at = at;
  for (YamlNode::Entry& entry : node.entries) {
    entry.key_at = at;
    stand_at(entry.value, at);
  }
}

/// One `--set`, walking down the document.
class Override {
 public:
  Override(const std::string& text, Diagnostics& diagnostics)
      : at_{"--set " + text, 0, 0}, diagnostics_(diagnostics) {
    const std::size_t equals = text.find('=');
    path_ = text.substr(0, equals);
    has_value_ = equals != std::string::npos;
    if (has_value_) value_ = text.substr(equals + 1);
  }

  void apply(YamlNode& root) {
    if (!has_value_ || path_.empty())
      return fail("--set needs path=value", "example: --set cluster.pools.p100.nodes.max=8");
    if (std::ranges::count(path_, '.') >= kDeepestNesting)
      return fail("the path has too many parts", "");
    Expected<YamlNode> value = parse_yaml(value_, at_.file);
    if (!value) {
      for (Diagnostic& d : value.error()) {
        d.at = at_;
        diagnostics_.push_back(std::move(d));
      }
      return;
    }
    stand_at(*value, at_);
    YamlNode* node = &root;
    std::string_view rest = path_;
    while (!rest.empty()) {
      node = step(*node, rest);
      if (node == nullptr) return;
    }
    *node = std::move(*value);
  }

 private:
  /// The child that the first part of `rest` names; takes that part off. nullptr: reported.
  YamlNode* step(YamlNode& node, std::string_view& rest) {
    const std::string walked = path_.substr(0, path_.size() - rest.size());
    const std::string_view where = walked.empty()
                                       ? std::string_view(walked)
                                       : std::string_view(walked).substr(0, walked.size() - 1);
    if (node.kind == YamlNode::Kind::list) return list_item(node, rest, where);
    if (node.kind == YamlNode::Kind::scalar) {
      fail(fmt::format("{} is {}, which has nothing inside it to set", where, describe(node)),
           fmt::format("set it as a whole: --set '{}={{...}}'", where));
      return nullptr;
    }
    const std::string key(take_part(rest));
    if (key.empty()) {
      fail(fmt::format("the path '{}' has an empty part", path_), "");
      return nullptr;
    }
    node.kind = YamlNode::Kind::map;
    for (YamlNode::Entry& entry : node.entries)
      if (entry.key == key) {
        if (rest.empty()) entry.key_at = at_;
        return &entry.value;
      }
    YamlNode empty;
    empty.at = at_;
    node.entries.push_back({key, at_, std::move(empty)});
    return &node.entries.back().value;
  }

  YamlNode* list_item(YamlNode& list, std::string_view& rest, std::string_view where) {
    std::vector<std::string> names;
    for (YamlNode::Entry& item : list.entries) {
      const std::string name(item.value.name());
      if (name.empty()) continue;
      names.push_back(name);
      const bool whole = rest == name;
      if (whole || (rest.starts_with(name) && rest[name.size()] == '.')) {
        rest.remove_prefix(whole ? name.size() : name.size() + 1);
        return &item.value;
      }
    }
    const std::string part(take_part(rest));
    std::size_t index = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), index);
    if (error == std::errc{} && end == part.data() + part.size() && index < list.entries.size())
      return &list.entries[index].value;
    const std::string hint =
        names.empty() ? fmt::format("it has {} items, counted from 0", list.entries.size())
                      : fmt::format("items: {}", fmt::join(names, ", "));
    fail(fmt::format("{} has no item '{}'{}", where, shortened(part), did_you_mean(part, names)),
         hint);
    return nullptr;
  }

  static std::string_view take_part(std::string_view& rest) {
    const std::size_t dot = rest.find('.');
    const std::string_view part = rest.substr(0, dot);
    rest.remove_prefix(dot == std::string_view::npos ? rest.size() : dot + 1);
    return part;
  }

  void fail(std::string what, std::string hint) {
    diagnostics_.push_back({Severity::error, at_, std::move(what), std::move(hint)});
  }

  SourcePlace at_;
  Diagnostics& diagnostics_;
  std::string path_, value_;
  bool has_value_ = false;
};

}  // namespace

void apply_overrides(YamlNode& root, std::span<const std::string> overrides,
                     Diagnostics& diagnostics) {
  for (const std::string& text : overrides) Override(text, diagnostics).apply(root);
}

}  // namespace reckon
