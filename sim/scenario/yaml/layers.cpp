#include "sim/scenario/yaml/layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <system_error>

#include "sim/catalog/catalog.h"
#include "sim/scenario/yaml/fields.h"

namespace reckon {
namespace {

bool has_named_items(const YamlNode& list) {
  return list.kind == YamlNode::Kind::list && !list.entries.empty() &&
         std::ranges::all_of(list.entries, [](const YamlNode::Entry& item) {
           return item.value.kind == YamlNode::Kind::map && !item.value.name().empty();
         });
}

void merge_maps(YamlNode& base, const YamlNode& over) {
  for (std::size_t i = 0; i < over.entries.size(); ++i) {
    const YamlNode::Entry& entry = over.entries[i];
    const auto same_key = [&](const YamlNode::Entry& e) { return e.key == entry.key; };
    // The second of a key within one file stays beside the first: the reader reports it.
    const bool again =
        std::any_of(over.entries.begin(), over.entries.begin() + std::ptrdiff_t(i), same_key);
    const auto found = std::ranges::find_if(base.entries, same_key);
    if (again || found == base.entries.end()) {
      base.entries.push_back(entry);
    } else if (entry.value.kind == YamlNode::Kind::null) {
      base.entries.erase(found);
    } else {
      found->key_at = entry.key_at;
      put_over(found->value, entry.value);
    }
  }
}

void merge_named_items(YamlNode& base, const YamlNode& over) {
  for (std::size_t i = 0; i < over.entries.size(); ++i) {
    const YamlNode::Entry& item = over.entries[i];
    const auto same_name = [&](const YamlNode::Entry& e) {
      return e.value.name() == item.value.name();
    };
    const auto here = over.entries.begin() + std::ptrdiff_t(i);
    const bool again =
        std::any_of(over.entries.begin(), here, same_name);  // the reader's to report
    const auto found = std::ranges::find_if(base.entries, same_name);
    if (again || found == base.entries.end())
      base.entries.push_back(item);
    else
      put_over(found->value, item.value);
  }
}

Diagnostic wrong(SourcePlace at, std::string what, std::string hint = "") {
  return {Severity::error, std::move(at), std::move(what), std::move(hint)};
}

/// A scenario may name any file that its reader may read. What looks like no scenario is not
/// quoted, in no mistake: neither its words nor its keys. Half of its keys are those of a scenario,
/// or it is none.
std::optional<Diagnostic> no_scenario(const YamlNode& root, const std::string& name,
                                      std::string_view noun) {
  if (root.kind != YamlNode::Kind::map)
    return wrong({name, 0, 0},
                 fmt::format("{} must be a map of keys, not {}", noun,
                             root.kind == YamlNode::Kind::scalar ? "a text" : describe(root)));
  const auto is_known = [](const YamlNode::Entry& entry) {
    return std::ranges::any_of(scenario_fields(),
                               [&](const auto& field) { return field.is_called(entry.key); });
  };
  const auto known = std::ranges::count_if(root.entries, is_known);
  if (known > 0 && 2 * std::size_t(known) >= root.entries.size()) return std::nullopt;
  return wrong({name, 0, 0}, "the file is no scenario, nor a part of one",
               "its keys are those of a scenario: name, workload, cluster, ...");
}

/// One name for one file, however it was written.
std::string identity(const std::string& file) {
  std::error_code ignored;
  const auto canonical = std::filesystem::weakly_canonical(file, ignored);
  return ignored ? file : canonical.string();
}

/// "scenarios/x.yaml" of the pages, where whoever types it is not in reckon's own folder.
std::string installed_beside(const std::filesystem::path& file) {
  if (file.is_absolute() || file.empty() || *file.begin() != "scenarios") return "";
  std::error_code none;
  const auto installed =
      std::filesystem::weakly_canonical(default_catalog_directory(), none).parent_path() / file;
  return std::filesystem::is_regular_file(installed, none)
             ? fmt::format("reckon's own is {}", installed.string())
             : "";
}

}  // namespace

void put_over(YamlNode& base, YamlNode over) {
  const bool same = base.kind == over.kind && base.tag == over.tag;
  if (same && base.kind == YamlNode::Kind::map)
    merge_maps(base, over);
  else if (same && has_named_items(base) && has_named_items(over))
    merge_named_items(base, over);
  else
    base = std::move(over);
}

Expected<std::string> read_text(const std::filesystem::path& file) {
  const auto unreadable = [&](std::string what, std::string hint = "") {
    return tl::unexpected<Diagnostics>(
        Diagnostics{wrong({file.string(), 0, 0}, std::move(what), std::move(hint))});
  };
  std::error_code error;
  const auto status = std::filesystem::status(file, error);
  if (!std::filesystem::exists(status))
    return unreadable("there is no such file", installed_beside(file));
  if (std::filesystem::is_directory(status))
    return unreadable("this is a directory, not a scenario file");
  const auto size =
      std::filesystem::is_regular_file(status) ? std::filesystem::file_size(file, error) : 0;
  if (error) return unreadable("cannot be read: " + error.message());
  std::ifstream stream(file, std::ios::binary);
  if (!stream) return unreadable("cannot be opened for reading");
  // One byte beyond the limit tells a file that is too large; a pipe has no size to ask for.
  std::string text(kLargestDocument + 1, '\0');
  stream.read(text.data(), std::streamsize(text.size()));
  text.resize(std::size_t(stream.gcount()));
  if (stream.bad()) return unreadable("cannot be read to its end");
  if (text.size() > kLargestDocument)
    return unreadable(
        size > 0 ? fmt::format("the file has {} bytes", size) : "the input is too long",
        fmt::format("a scenario has at most {} MiB", kLargestDocument >> 20));
  return text;
}

Expected<LayeredDocument> LayeredDocument::of(YamlNode root, const std::string& name) {
  LayeredDocument document;
  std::vector<std::string> chain{identity(name)};
  Diagnostics diagnostics = document.extend(root, name, chain);
  document.name_both_files(diagnostics);
  if (!diagnostics.empty()) return tl::unexpected(std::move(diagnostics));
  document.root = std::move(root);
  return document;
}

/// Replaces `node` by what its `extends` names with `node` over it.
Diagnostics LayeredDocument::extend(YamlNode& node, const std::string& name,
                                    std::vector<std::string>& chain) {
  const YamlNode::Entry* found = node.find("extends");
  if (node.kind != YamlNode::Kind::map || found == nullptr) return {};
  const SourcePlace at = found->value.at;
  if (found->value.kind != YamlNode::Kind::scalar || found->value.text.empty())
    return {wrong(at, fmt::format("extends must be a file, not {}", describe(found->value)),
                  "example: extends: base.yaml")};
  const std::string base_name =
      (std::filesystem::path(name).parent_path() / found->value.text).lexically_normal().string();
  if (std::ranges::find(chain, identity(base_name)) != chain.end())
    return {wrong(
        at, fmt::format("extends goes in a circle: '{}' extends this file", shortened(base_name)),
        "a file cannot extend itself, nor a file that extends it")};
  if (chain.size() >= kLongestChain)
    return {wrong(at, fmt::format("more than {} files extend one another", kLongestChain))};
  named_by_.emplace_back(base_name, at);
  std::error_code unknown;
  if (const auto status = std::filesystem::status(base_name, unknown);
      std::filesystem::exists(status) && std::filesystem::is_other(status))
    return {wrong({base_name, 0, 0}, "this is a pipe or a device, not a scenario file")};
  const auto text = read_text(base_name);
  if (!text) return text.error();
  Expected<YamlNode> base = parse_yaml(*text, base_name);
  if (!base) return base.error();
  if (auto other = no_scenario(*base, base_name, "a scenario")) return {std::move(*other)};
  chain.push_back(identity(base_name));
  if (Diagnostics problems = extend(*base, base_name, chain); !problems.empty()) return problems;
  node.entries.erase(node.entries.begin() + (found - node.entries.data()));
  put_over(*base, std::move(node));
  node = std::move(*base);
  return {};
}

Diagnostics LayeredDocument::add_layer(const std::filesystem::path& file) {
  const std::string name = file.string();
  const auto text = read_text(file);
  if (!text) return text.error();
  Expected<YamlNode> layer = parse_yaml(*text, name);
  if (!layer) return layer.error();
  if (auto other = no_scenario(*layer, name, "a layer")) return {std::move(*other)};
  std::vector<std::string> chain{identity(name)};
  Diagnostics problems = extend(*layer, name, chain);
  name_both_files(problems);
  if (problems.empty()) put_over(root, std::move(*layer));
  return problems;
}

void LayeredDocument::name_both_files(Diagnostics& diagnostics) const {
  for (Diagnostic& d : diagnostics)
    for (const auto& [file, by] : named_by_)
      if (d.at.file == file) {
        if (!d.hint.empty()) d.hint += '\n';
        d.hint += fmt::format("{} extends this file (line {})", by.file, by.line);
        break;
      }
}

}  // namespace reckon
