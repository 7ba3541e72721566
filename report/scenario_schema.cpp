#include "report/scenario_schema.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "sim/base/unit_text.h"
#include "sim/scenario/yaml/document.h"
#include "sim/scenario/yaml/fields.h"

namespace reckon {
namespace {

using Json = nlohmann::ordered_json;
using FormKind = Form::Kind;

// Numbers as sim/base/unit_text.cpp reads them: "1_000", ".5", "1e3".
constexpr std::string_view kNumber =
    R"([-+]?(?:[0-9][0-9_]*\.?[0-9_]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)";

/// Text forms that more than one key uses, by name.
Json definitions() {
  const auto pattern = [](std::string_view behind_number, std::string_view what) {
    return Json{{"type", "string"},
                {"pattern", fmt::format(R"(^\s*{}\s*{}\s*$)", kNumber, behind_number)},
                {"description", what}};
  };
  const auto texts = [](std::string_view expression, std::string_view what) {
    return Json{{"type", "string"}, {"pattern", expression}, {"description", what}};
  };
  const std::string duration = fmt::format(
      R"(^\s*(?:{}\s*(?:ns|us|ms|s|sec|m|min|h|hours?|d|days?|w|weeks?|y|years?)\s*)+$)", kNumber);
  return {
      {"text",
       {{"type", {"string", "number", "boolean"}}, {"minLength", 1}, {"description", "a text"}}},
      {"name", texts("^(?=.*[A-Za-z_-])[A-Za-z0-9_][A-Za-z0-9_-]{0,62}$",
                     "letters, digits, '-' and '_', at most 63, not digits only")},
      {"duration", texts(duration, "a duration such as 30s, 10min, 8h, 30d or 1h30min")},
      {"bytes", pattern("(?:[kKMGTP]?B|[KMGTP]iB)", "a size such as 110kB, 512MiB or 16GiB")},
      {"bandwidth", pattern("(?:(?:[kMGT]?B|[MGT]iB)/s|[kMGT]bps|[MGT]bit/s)",
                            "a bandwidth such as 100Gbps (bits) or 12.5GB/s (bytes)")},
      {"price", pattern("[A-Z]{3}\\s*/\\s*[a-z]+", "a price such as 4.10 USD/h")},
      {"date", texts("^20[0-9]{2}-[0-9]{2}-[0-9]{2}$|^2100-[0-9]{2}-[0-9]{2}$",
                     "a date such as 2027-06-30")},
      {"time", texts("^2[01][0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$",
                     "a time in UTC such as 2026-12-04T18:00:00Z")},
  };
}

Json reference(std::string_view name) { return {{"$ref", fmt::format("#/definitions/{}", name)}}; }

/// A number with its limits, or the text forms that the reader takes as well (`suffix`).
Json number_form(std::string_view type, const Form& form, std::string_view suffix) {
  Json plain{{"type", type}};
  if (form.above_low)
    plain["exclusiveMinimum"] = form.low;
  else
    plain["minimum"] = form.low;
  if (std::isfinite(form.high)) plain["maximum"] = form.high;
  const std::string pattern = fmt::format(R"(^\s*{}\s*{}\s*$)", kNumber, suffix);
  return {{"anyOf", {plain, {{"type", "string"}, {"pattern", pattern}}}}};
}

Json block(const std::vector<const FieldInfo*>& fields, bool complete);

/// Of a value that is no block.
Json scalar(FormKind kind, const Form& form) {
  switch (kind) {
    case FormKind::name:
      return reference("name");
    case FormKind::boolean:
      return {{"type", "boolean"}};
    case FormKind::word:
      return {{"enum", form.words}};
    case FormKind::date:
      return reference("date");
    case FormKind::time:
      return reference("time");
    case FormKind::whole:
      return number_form("integer", form, "");
    case FormKind::number:
      return number_form("number", form, "");
    case FormKind::count:
      return number_form("number", form, "[kKMBGT]?");
    case FormKind::fraction:
      return number_form("number", form, "%?");
    case FormKind::duration:
      return reference("duration");
    case FormKind::bytes:
      return reference("bytes");
    case FormKind::bandwidth:
      return reference("bandwidth");
    case FormKind::price:
      return reference("price");
    case FormKind::map:
      return {{"type", "object"}};
    default:
      return reference("text");
  }
}

Json choice(const Form& form, bool complete) {
  Json single = Json::array();
  if (!form.words.empty()) single.push_back({{"enum", form.words}});
  if (form.item) single.push_back(scalar(*form.item, form));
  Json any = single;
  if (form.or_list)
    any.push_back({{"type", "array"}, {"minItems", 1}, {"items", {{"anyOf", single}}}});
  if (form.or_map)
    any.push_back({{"type", "object"}, {"additionalProperties", scalar(*form.or_map, Form{})}});
  if (form.fields != nullptr) any.push_back(block(form.fields(), complete));
  for (const Form::Tagged& tagged : form.tagged) {
    Json law = block(tagged.fields(), complete);
    law["description"] = fmt::format("with the tag {}", tagged.tag);
    any.push_back(std::move(law));
  }
  return {{"anyOf", any}};
}

Json schema_of(const Form& form, bool complete) {
  switch (form.kind) {
    case FormKind::block:
      return block(form.fields(), complete);
    case FormKind::choice:
      return choice(form, complete);
    case FormKind::list: {
      const Form any;
      return {{"type", "array"},
              {"items", form.fields != nullptr ? block(form.fields(), complete)
                                               : scalar(form.item.value_or(FormKind::text), any)}};
    }
    case FormKind::map: {
      Json map{{"type", "object"}};
      if (!form.item) return map;
      const Json value = scalar(*form.item, form);
      map["additionalProperties"] = value;
      if (form.or_list)
        map["additionalProperties"] = {
            {"anyOf", {value, {{"type", "array"}, {"minItems", 1}, {"items", value}}}}};
      return map;
    }
    default:
      return scalar(form.kind, form);
  }
}

/// YAML text as JSON, as an editor would read it.
Json to_json(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::null:
      return nullptr;
    case YamlNode::Kind::scalar: {
      if (node.text == "true" || node.text == "false") return node.text == "true";
      const Json number = Json::parse(node.text, nullptr, false);
      return number.is_number() ? number : Json(node.text);
    }
    case YamlNode::Kind::list: {
      Json list = Json::array();
      for (const auto& entry : node.entries) list.push_back(to_json(entry.value));
      return list;
    }
    case YamlNode::Kind::map: {
      Json map = Json::object();
      for (const auto& entry : node.entries) map[entry.key] = to_json(entry.value);
      return map;
    }
  }
  return nullptr;
}

/// Examples that leave something out ("[...]") are for people only.
bool is_whole(std::string_view example) { return example.find("...") == std::string_view::npos; }

Json property(const FieldInfo& field, bool complete) {
  Json out{{"description", fmt::format("{} Example: {}: {}", field.doc, field.key, field.example)}};
  out.update(schema_of(field.form, complete));
  if (!is_whole(field.example)) return out;
  if (const auto example = parse_yaml(field.example, "example"))
    out["examples"] = Json::array({to_json(*example)});
  return out;
}

/// `complete`: keys that must be there are missed. A file that extends another leaves them out.
Json block(const std::vector<const FieldInfo*>& fields, bool complete) {
  Json properties = Json::object(), required = Json::array();
  for (const FieldInfo* field : fields) {
    properties[std::string(field->key)] = property(*field, complete);
    if (!field->former.empty()) {
      Json former = schema_of(field->form, complete);
      former["description"] = fmt::format("Earlier releases' word for {}.", field->key);
      former["deprecated"] = true;
      properties[std::string(field->former)] = std::move(former);
    }
    if (complete && field->required) required.push_back(field->key);
  }
  Json out{{"type", "object"}, {"properties", properties}, {"additionalProperties", false}};
  if (!required.empty()) out["required"] = required;
  return out;
}

}  // namespace

std::string scenario_schema() {
  const auto fields = infos_of<scenario_fields>();
  Json all = definitions();
  all["scenario"] = block(fields, true);
  all["part"] = block(fields, false);
  const Json schema{
      {"$schema", "http://json-schema.org/draft-07/schema#"},
      {"title", "reckon scenario"},
      {"description", "What is trained, on which cluster, and what is expected of it."},
      {"if", {{"type", "object"}, {"required", Json::array({"extends"})}}},
      {"then", reference("part")},
      {"else", reference("scenario")},
      {"definitions", all}};
  return schema.dump(2) + "\n";
}

}  // namespace reckon
