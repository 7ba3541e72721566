#include <fmt/format.h>

#include <algorithm>

#include "report/html/charts.h"
#include "report/text.h"

namespace reckon::html {
namespace {

// px
constexpr int kBarHeight = 14, kLineHeight = 15, kGap = 10;
/// Characters of a name that leave room for a value on the narrowest screen.
constexpr int kNameWidth = 38;

Json y_of_rows(std::size_t rows) {
  Json order = Json::array();
  for (std::size_t k = 0; k < rows; ++k) order.push_back(k);
  return {{"field", "row"},
          {"type", "ordinal"},
          {"axis", nullptr},
          {"scale", {{"domain", order}, {"paddingInner", 0}, {"paddingOuter", 0}}}};
}

/// A line of text at the top of each row.
Json label(const char* field, const char* align, Json x, Json y) {
  y["bandPosition"] = 0;
  return {{"mark",
           {{"type", "text"},
            {"align", align},
            {"baseline", "top"},
            {"dy", 4},
            {"lineBreak", "\n"},
            {"lineHeight", kLineHeight}}},
          {"encoding", {{"x", {{"value", std::move(x)}}}, {"y", y}, {"text", {{"field", field}}}}}};
}

}  // namespace

Json chart_head(const std::string& description, int height) {
  return {{"description", description}, {"width", "container"}, {"height", height}};
}

std::string long_name(const TimeUnit& unit) {
  const std::string_view name = unit.name;
  if (name == "d") return "days";
  if (name == "h") return "hours";
  return name == "min" ? "minutes" : name == "s" ? "seconds" : "milliseconds";
}

Json number_axis(const std::string& title) { return {{"title", title}, {"tickCount", 5}}; }

Json bar_rows(const std::string& description, const std::vector<BarRow>& rows,
              const BarScale& scale) {
  Json values = Json::array();
  std::size_t lines = 1;
  for (const BarRow& r : rows) lines = std::max(lines, wrap(r.name, kNameWidth).size());
  const int step = int(lines) * kLineHeight + kBarHeight + kGap;
  for (std::size_t k = 0; k < rows.size(); ++k)
    values.push_back({{"row", k},
                      {"name", fmt::format("{}", fmt::join(wrap(rows[k].name, kNameWidth), "\n"))},
                      {"value", rows[k].value},
                      {"from", number(rows[k].from)},
                      {"to", number(rows[k].to)},
                      {"color", rows[k].color}});
  Json x_scale = {{"nice", true}};
  if (scale.low) x_scale["domainMin"] = *scale.low;
  if (scale.high) x_scale["domainMax"] = *scale.high;
  if (scale.low || scale.high) x_scale["nice"] = false;
  const Json y = y_of_rows(rows.size());
  const Json bars = {
      {"mark",
       {{"type", "bar"},
        {"height", kBarHeight},
        {"yOffset", (step - kBarHeight) / 2 - 5},
        {"clip", true}}},
      {"encoding",
       {{"y", y},
        {"x",
         {{"field", "from"},
          {"type", "quantitative"},
          {"scale", x_scale},
          {"axis", number_axis(scale.title)}}},
        {"x2", {{"field", "to"}}},
        {"color", {{"field", "color"}, {"type", "nominal"}, {"scale", nullptr}}},
        {"tooltip", {{{"field", "name"}, {"title", "part"}}, {{"field", "value"}}}}}}};
  Json spec = chart_head(description, step * int(rows.size()));
  spec["data"] = {{"values", values}};
  spec["layer"] = {bars, label("name", "left", 0, y), label("value", "right", "width", y)};
  if (scale.limit)
    spec["layer"].push_back(
        {{"data", {{"values", {{{"at", *scale.limit}}}}}},
         {"mark", scale.limit == 0.0
                      ? Json{{"type", "rule"}, {"color", "var(--line)"}}
                      : Json{{"type", "rule"}, {"strokeWidth", 2}, {"strokeDash", {5, 3}}}},
         {"encoding",
          {{"x", {{"field", "at"}, {"type", "quantitative"}}},
           {"y", {{"value", 0}}},
           {"y2", {{"value", "height"}}}}}});
  return spec;
}

}  // namespace reckon::html
