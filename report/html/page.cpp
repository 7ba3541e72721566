#include "report/html/page.h"

#include <fmt/format.h>

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
      escape(label), table.stacks ? " class=\"stacks\"" : "");
  if (!table.head.empty()) {
    out += "<thead><tr>";
    for (std::size_t c = 0; c < table.head.size(); ++c)
      out += fmt::format("<th scope=\"col\"{}>{}</th>",
                         column_of_numbers(table, c) ? " class=\"number\"" : "",
                         escape(table.head[c]));
    out += "</tr></thead>";
  }
  out += "<tbody>\n";
  for (const auto& row : table.rows) {
    out += "<tr>";
    for (std::size_t c = 0; c < row.size(); ++c)
      out += c == 0
                 ? fmt::format("<th scope=\"row\">{}</th>", escape(row[c]))
                 : fmt::format("<td{} data-head=\"{}\">{}</td>", class_of(row[c]),
                               c < table.head.size() ? escape(table.head[c]) : "", escape(row[c]));
    out += "</tr>\n";
  }
  return out + "</tbody></table></div>\n";
}

/// Bytes of the UTF-8 character that `text` begins with; 0: it begins with none (RFC 3629).
std::size_t character_length(std::string_view text) {
  const auto byte = [&](std::size_t k) { return static_cast<unsigned char>(text[k]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return 0;
  for (std::size_t k = 1; k < length; ++k)
    if ((byte(k) & 0xC0U) != 0x80U) return 0;
  if ((lead == 0xE0 && byte(1) < 0xA0) || (lead == 0xED && byte(1) > 0x9F) ||
      (lead == 0xF0 && byte(1) < 0x90) || (lead == 0xF4 && byte(1) > 0x8F))
    return 0;
  return length;
}

}  // namespace

std::string escape(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = character_length(text);
    const char c = text.front();
    if (length == 0)
      out += "\xEF\xBF\xBD";
    else if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else if (c == '\'')
      out += "&#39;";
    else
      out += text.substr(0, length);
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

void Page::heading(std::string_view text) { body_ += fmt::format("<h1>{}</h1>\n", escape(text)); }

void Page::paragraph(std::string_view text, std::string_view css_class) {
  const std::string attribute =
      css_class.empty() ? "" : fmt::format(" class=\"{}\"", escape(css_class));
  body_ += fmt::format("<p{}>{}</p>\n", attribute, escape(text));
}

void Page::facts(const std::vector<Fact>& facts) {
  body_ += "<dl class=\"answer\">\n";
  for (const Fact& f : facts)
    body_ += fmt::format("<div><dt>{}</dt><dd><b>{}</b>{}</dd></div>\n", escape(f.name),
                         escape(f.value), escape(f.range));
  body_ += "</dl>\n";
}

void Page::warnings(std::string_view title, const std::vector<std::string>& texts) {
  if (texts.empty()) return;
  body_ += fmt::format("<section class=\"warnings\"><h2>{}</h2><ul>\n", escape(title));
  for (const std::string& text : texts) body_ += fmt::format("<li>{}</li>\n", escape(text));
  body_ += "</ul></section>\n";
}

void Page::chart(const Chart& c) {
  const std::string id = escape(c.id);
  body_ += fmt::format("<figure id=\"{0}\" aria-labelledby=\"{0}-title\">\n<figcaption>", id);
  body_ += fmt::format("<h2 id=\"{}-title\">{}</h2>", id, escape(c.title));
  if (!c.note.empty()) body_ += fmt::format("<p>{}</p>", escape(c.note));
  body_ += "</figcaption>\n";
  if (!c.legend.empty()) {
    body_ += "<ul class=\"legend\">";
    for (const LegendEntry& e : c.legend)
      body_ += fmt::format("<li><i style=\"background:{}\"></i>{}</li>", escape(e.color),
                           escape(e.text));
    body_ += "</ul>\n";
  }
  const std::string description = c.spec.value("description", c.title);
  body_ += fmt::format("<div class=\"chart\" data-chart=\"{}\" role=\"img\" aria-label=\"{}\">", id,
                       escape(description));
  body_ += "</div>\n";
  body_ += fmt::format("<script type=\"application/json\" id=\"spec-{}\">{}</script>\n", id,
                       spec_text(c.spec));
  if (!c.numbers.rows.empty())
    body_ += "<details><summary>The same as a table</summary>" +
             table_text(c.numbers, c.title + ", as a table") + "</details>\n";
  body_ += "</figure>\n";
}

void Page::section(std::string_view title, const Table& table, std::string_view note) {
  body_ += fmt::format("<section><h2>{}</h2>\n", escape(title));
  if (!note.empty()) paragraph(note, "note");
  body_ += table_text(table, title) + "</section>\n";
}

void Page::footer(std::string_view text) {
  body_ += fmt::format("<footer>{}</footer>\n", escape(text));
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
  out += fmt::format("<title>{}</title>\n", escape(title_));
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
