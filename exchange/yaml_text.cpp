#include "exchange/yaml_text.h"

#include <nlohmann/json.hpp>

#include "sim/base/text/yaml_writer.h"

namespace reckon {
namespace {

using Json = nlohmann::ordered_json;

void write(YamlWriter& out, const Json& v) {
  const auto style = v.empty() ? YamlWriter::Style::flow : YamlWriter::Style::block;
  if (v.is_object()) {
    out.begin_map(style);
    for (const auto& item : v.items()) {
      out.key(item.key());
      write(out, item.value());
    }
    out.end_map();
  } else if (v.is_array()) {
    out.begin_list(style);
    for (const Json& item : v) write(out, item);
    out.end_list();
  } else if (v.is_string()) {
    out.text(v.get_ref<const std::string&>());
  } else if (v.is_null()) {
    out.null();
  } else {
    out.word(v.dump());
  }
}

}  // namespace

std::string yaml_text(const Json& value) {
  YamlWriter out(YamlQuotes::for_everyone);
  write(out, value);
  return out.done();
}

}  // namespace reckon
