#include "sim/scenario/training_text.h"

#include <vector>

#include "sim/scenario/yaml/document.h"
#include "sim/scenario/yaml/scenario_yaml.h"

namespace reckon {

Expected<std::string> training_text(std::string_view text, const std::string& name,
                                    std::span<const std::string> overrides,
                                    std::span<const std::filesystem::path> layers,
                                    std::span<const std::string_view> left_out) {
  std::vector<std::string_view> all{"serving", "extends"};
  all.insert(all.end(), left_out.begin(), left_out.end());
  const auto flat = flat_scenario(text, name, overrides, layers, all);
  if (!flat) return flat;
  YamlNode root = parse_yaml(*flat, name).value();
  for (YamlNode::Entry& entry : root.entries) {
    if (entry.key != "cluster") continue;
    for (YamlNode::Entry& part : entry.value.entries)
      if (part.key == "pools")
        std::erase_if(part.value.entries, [](const YamlNode::Entry& pool) {
          const auto* role = pool.value.find("role");
          return role != nullptr && role->value.text == "inference";
        });
  }
  return write_yaml(root);
}

}  // namespace reckon
