#pragma once
#include "sim/scenario/yaml/fields.h"

// `pace` and `across_leaves`, of a class and of a recorded list.
namespace reckon {

/// Pools by name, and how fast a job is on each.
inline void read_pace_of_pools(Reader& reader, const YamlNode& node, PaceSpec& pace) {
  reader.each_entry(node, [&](const std::string& key, const YamlNode& value) {
    if (const auto own = reader.number(value, Form{Form::Kind::fraction, 0, 1000}))
      pace.by_pool[key] = *own;
  });
}

template <class T>
Field<T> pace_field() {
  return field<T>(
      "pace", Form{.kind = Form::Kind::map, .item = Form::Kind::fraction},
      [](Reader& r, const YamlNode& n, T& t) { read_pace_of_pools(r, n, t.pace); },
      "Work done in a second on the nodes of a pool, over that for which lengths are said; 0: not "
      "there. A gang over several pools has the lowest. Default: 1.",
      "{v100: 45%}");
}

template <class T>
Field<T> across_leaves_field() {
  return field<T>(
      "across_leaves", fraction(true),
      [](Reader& r, const YamlNode& n, T& t) {
        if (const auto own = r.number(n, fraction(true))) t.pace.across_leaves = *own;
      },
      "Pace of a gang on nodes of several leaves (cluster.fabric.nodes_per_leaf); default: 1.",
      "80%");
}

}  // namespace reckon
