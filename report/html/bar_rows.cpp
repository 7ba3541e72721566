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

namespace {

struct Rows {
  Json values = Json::array();
  int step = 0;           // px from one row to the next
  bool has_mark = false;  // of any row
};

Rows rows_of(const std::vector<BarRow>& rows) {
  Rows out;
  std::size_t lines = 1;
  for (std::size_t k = 0; k < rows.size(); ++k) {
    const BarRow& r = rows[k];
    const auto name = wrap(r.name, kNameWidth);
    lines = std::max(lines, name.size());
    out.has_mark = out.has_mark || r.mark;
    out.values.push_back({{"row", k},
                          {"name", fmt::format("{}", fmt::join(name, "\n"))},
                          {"value", r.value},
                          {"from", number(r.from)},
                          {"to", number(r.to)},
                          {"color", r.color}});
    if (r.mark) out.values.back()["mark"] = number(*r.mark);
  }
  out.step = int(lines) * kLineHeight + kBarHeight + kGap;
  return out;
}

Json axis_scale(const BarScale& scale) {
  Json out = {{"nice", !scale.low && !scale.high}, {"zero", scale.from_zero}};
  if (scale.low) out["domainMin"] = *scale.low;
  if (scale.high) out["domainMax"] = *scale.high;
  return out;
}

Json bars_layer(const BarScale& scale, const Json& y, int offset) {
  return {{"mark", {{"type", "bar"}, {"height", kBarHeight}, {"yOffset", offset}, {"clip", true}}},
          {"encoding",
           {{"y", y},
            {"x",
             {{"field", "from"},
              {"type", "quantitative"},
              {"scale", axis_scale(scale)},
              {"axis", number_axis(scale.title)}}},
            {"x2", {{"field", "to"}}},
            {"color", {{"field", "color"}, {"type", "nominal"}, {"scale", nullptr}}},
            {"tooltip", {{{"field", "name"}, {"title", "part"}}, {{"field", "value"}}}}}}};
}

Json marks_layer(const Json& y, int offset) {
  return {{"mark",
           {{"type", "tick"},
            {"orient", "vertical"},
            {"thickness", 2},
            {"size", kBarHeight},
            {"yOffset", offset},
            {"color", "var(--ink)"}}},
          {"encoding", {{"y", y}, {"x", {{"field", "mark"}, {"type", "quantitative"}}}}}};
}

Json limit_layer(double limit) {
  return {{"data", {{"values", {{{"at", limit}}}}}},
          {"mark", limit == 0 ? Json{{"type", "rule"}, {"color", "var(--line)"}}
                              : Json{{"type", "rule"}, {"strokeWidth", 2}, {"strokeDash", {5, 3}}}},
          {"encoding",
           {{"x", {{"field", "at"}, {"type", "quantitative"}}},
            {"y", {{"value", 0}}},
            {"y2", {{"value", "height"}}}}}};
}

}  // namespace

Json bar_rows(const std::string& description, const std::vector<BarRow>& rows,
              const BarScale& scale) {
  Rows drawn = rows_of(rows);
  const Json y = y_of_rows(rows.size());
  const int offset = (drawn.step - kBarHeight) / 2 - 5;  // bars stand at the foot of their rows
  Json spec = chart_head(description, drawn.step * int(rows.size()));
  spec["data"] = {{"values", std::move(drawn.values)}};
  spec["layer"] = {bars_layer(scale, y, offset), label("name", "left", 0, y),
                   label("value", "right", "width", y)};
  if (drawn.has_mark) spec["layer"].push_back(marks_layer(y, offset));
  if (scale.limit) spec["layer"].push_back(limit_layer(*scale.limit));
  return spec;
}

}  // namespace reckon::html
