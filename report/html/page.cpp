#include "report/html/page.h"

#include <fmt/format.h>

#include "report/markup.h"

namespace reckon::html {
namespace {

/// A JSON text, a style sheet or a script inside its element: nothing in it may end the element.
std::string spec_text(const Json& spec) {
  std::string out;
  for (const char c : dump(spec, -1)) {
    if (c == '<')
      out += "\\u003c";
    else
      out += c;
  }
  return out;
}

bool is_number(std::string_view cell) {
  return !cell.empty() && (cell[0] == '+' || cell[0] == '-' || (cell[0] >= '0' && cell[0] <= '9'));
}

/// "yes" and "no" are marked by colour besides saying so.
std::string_view class_of(std::string_view cell) {
  if (is_number(cell)) return " class=\"number\"";
  if (cell == "yes") return " class=\"yes\"";
  return cell == "no" || cell.starts_with("no: ") ? " class=\"no\"" : "";
}

/// A column is as its cells are: numbers, if most of them are.
bool column_of_numbers(const Table& table, std::size_t column) {
  std::size_t numbers = 0;
  for (const auto& row : table.rows)
    if (column < row.size() && is_number(row[column])) ++numbers;
  return column > 0 && 2 * numbers > table.rows.size();
}

std::string table_text(const Table& table, std::string_view label) {
  std::string out = fmt::format(
      "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{}\"><table{}>",
      markup_text(label), table.stacks ? " class=\"stacks\"" : "");
  if (!table.head.empty()) {
    out += "<thead><tr>";
    for (std::size_t c = 0; c < table.head.size(); ++c)
      out += fmt::format("<th scope=\"col\"{}>{}</th>",
                         column_of_numbers(table, c) ? " class=\"number\"" : "",
                         markup_text(table.head[c]));
    out += "</tr></thead>";
  }
  out += "<tbody>\n";
  for (const auto& row : table.rows) {
    out += "<tr>";
    for (std::size_t c = 0; c < row.size(); ++c)
      out += c == 0 ? fmt::format("<th scope=\"row\">{}</th>", markup_text(row[c]))
                    : fmt::format("<td{} data-head=\"{}\">{}</td>", class_of(row[c]),
                                  c < table.head.size() ? markup_text(table.head[c]) : "",
                                  markup_text(row[c]));
    out += "</tr>\n";
  }
  return out + "</tbody></table></div>\n";
}

}  // namespace

void Page::heading(std::string_view text) {
  body_ += fmt::format("<h1>{}</h1>\n", markup_text(text));
}

void Page::paragraph(std::string_view text, std::string_view css_class) {
  const std::string attribute =
      css_class.empty() ? "" : fmt::format(" class=\"{}\"", markup_text(css_class));
  body_ += fmt::format("<p{}>{}</p>\n", attribute, markup_text(text));
}

void Page::facts(const std::vector<Fact>& facts) {
  body_ += "<dl class=\"answer\">\n";
  for (const Fact& f : facts)
    body_ += fmt::format("<div><dt>{}</dt><dd><b>{}</b>{}</dd></div>\n", markup_text(f.name),
                         markup_text(f.value), markup_text(f.range));
  body_ += "</dl>\n";
}

void Page::warnings(std::string_view title, const std::vector<std::string>& texts) {
  if (texts.empty()) return;
  body_ += fmt::format("<section class=\"warnings\"><h2>{}</h2><ul>\n", markup_text(title));
  for (const std::string& text : texts) body_ += fmt::format("<li>{}</li>\n", markup_text(text));
  body_ += "</ul></section>\n";
}

void Page::chart(const Chart& c) {
  const std::string id = markup_text(c.id);
  body_ += fmt::format("<figure id=\"{0}\" aria-labelledby=\"{0}-title\">\n<figcaption>", id);
  body_ += fmt::format("<h2 id=\"{}-title\">{}</h2>", id, markup_text(c.title));
  if (!c.note.empty()) body_ += fmt::format("<p>{}</p>", markup_text(c.note));
  body_ += "</figcaption>\n";
  if (!c.legend.empty()) {
    body_ += "<ul class=\"legend\">";
    for (const LegendEntry& e : c.legend)
      body_ += fmt::format("<li><i style=\"background:{}\"></i>{}</li>", markup_text(e.color),
                           markup_text(e.text));
    body_ += "</ul>\n";
  }
  const std::string description = c.spec.value("description", c.title);
  body_ += fmt::format("<div class=\"chart\" data-chart=\"{}\" role=\"img\" aria-label=\"{}\">", id,
                       markup_text(description));
  body_ += "</div>\n";
  body_ += fmt::format("<script type=\"application/json\" id=\"spec-{}\">{}</script>\n", id,
                       spec_text(c.spec));
  if (!c.numbers.rows.empty())
    body_ += "<details><summary>The same as a table</summary>" +
             table_text(c.numbers, c.title + ", as a table") + "</details>\n";
  body_ += "</figure>\n";
}

void Page::section(std::string_view title, const Table& table, std::string_view note) {
  body_ += fmt::format("<section><h2>{}</h2>\n", markup_text(title));
  if (!note.empty()) paragraph(note, "note");
  body_ += table_text(table, title) + "</section>\n";
}

void Page::footer(std::string_view text) {
  body_ += fmt::format("<footer>{}</footer>\n", markup_text(text));
}

std::string Page::text(const HtmlAssets& assets) const {
  // The policy makes the browser itself refuse to ask anyone for anything. Vega compiles the
  // expressions of a specification with Function(): 'unsafe-eval'.
  std::string out =
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src "
      "'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; img-src data:\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n";
  out += fmt::format("<title>{}</title>\n", markup_text(title_));
  out += "<style>\n";
  out += assets.style;
  out += "</style>\n</head>\n<body>\n<main>\n";
  out += body_;
  out +=
      "</main>\n<noscript><p>The charts need JavaScript; the table below each says the same.</p>"
      "</noscript>\n<script>\n";
  out += assets.scripts;
  out += "</script>\n<script>\n";
  out += assets.program;
  return out + "</script>\n</body>\n</html>\n";
}

}  // namespace reckon::html
