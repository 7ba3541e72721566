#include "sim/scenario/yaml/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace reckon {

const Fields<StepTime>& step_time_fields() {
  static const Fields<StepTime> table{required(number_field(
      "step", &StepTime::step, duration_above_zero(), "Time of one optimizer step.", "210ms"))};
  return table;
}

namespace {

/// Not the whole grammar of image names, which may stand for variables here: what would make two
/// words of one, or an option.
void read_image(Reader& reader, const YamlNode& node, ContainerSpec& container) {
  auto image = reader.text(node);
  if (!image) return;
  if (image->find(' ') != std::string::npos || image->front() == '-')
    return reader.error(fmt::format("'{}' is no image: it {}", shortened(*image),
                                    image->front() == '-' ? "begins with '-'" : "has a blank"));
  container.image = std::move(*image);
}

/// As Kubernetes takes them: letters, digits and "-_.", no digit first.
bool is_variable_name(std::string_view name) {
  const auto allowed = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.';
  };
  return !name.empty() && std::isdigit(static_cast<unsigned char>(name.front())) == 0 &&
         std::ranges::all_of(name, allowed);
}

void read_environment(Reader& reader, const YamlNode& node, ContainerSpec& container) {
  container.env = reader.program_text_map(node);
  for (const YamlNode::Entry& entry : node.entries)
    if (!is_variable_name(entry.key))
      reader.error(entry.key_at,
                   fmt::format("'{}' is no name of an environment variable", shortened(entry.key)),
                   "letters, digits, '-', '_' and '.', no digit first");
}

}  // namespace

const Fields<ContainerSpec>& container_fields() {
  using C = ContainerSpec;
  const auto texts = [](Reader& r, const YamlNode& n, C& c) { c.command = r.program_texts(n); };
  const auto profile = [](Reader& r, const YamlNode& n, C& c) {
    if (n.kind == YamlNode::Kind::map) {
      StepTime value;
      if (read_fields(r, n, step_time_fields(), value)) c.profile = value.step;
    } else if (auto name = r.text(n)) {
      c.profile = std::move(*name);
    }
  };
  Form profile_form = choice("a model's name, or {step: duration}");
  profile_form.item = Form::Kind::text;
  profile_form.fields = &infos_of<step_time_fields>;
  const Form texts_by_key{.kind = Form::Kind::map, .item = Form::Kind::text};
  static const Fields<C> table{
      required(field<C>("image", Form{Form::Kind::text}, read_image, "Container image.",
                        "registry.example.com/train:1.4")),
      field<C>("command", Form{.kind = Form::Kind::list, .item = Form::Kind::text}, texts,
               "What it runs.", "[python, train.py]"),
      field<C>("env", texts_by_key, read_environment, "Environment variables.",
               "{NCCL_DEBUG: WARN}"),
      field<C>(
          "metrics", texts_by_key,
          [](Reader& r, const YamlNode& n, C& c) { c.metrics = r.program_text_map(n); },
          "How its progress is read: log, json, prometheus.", "{log: 'step (?<step>\\d+)'}"),
      field<C>("profile", profile_form, profile,
               "What it costs to run: without one it can be run but not simulated.",
               "resnet50_v1_5"),
  };
  return table;
}

}  // namespace reckon
