#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "report/html/html.h"
#include "report/json_parts.h"

// What the pages are made of. All text is escaped here and nowhere else: callers hand over what
// users wrote.
namespace reckon::html {

/// A row's first cell is its heading. Cells that start with a digit or a sign stand to the right.
struct Table {
  std::vector<std::string> head;
  std::vector<std::vector<std::string>> rows;
  bool stacks = false;  // on a narrow screen each row's cells stand below one another
};

struct LegendEntry {
  std::string color, text;
};

/// A figure: the specification's "description" is what a screen reader says of the picture.
struct Chart {
  std::string id;     // of letters and '-'
  std::string title;  // "Time to the last step"
  std::string note;   // below the title; may be empty
  Json spec;
  std::vector<LegendEntry> legend;
  Table numbers;  // the same as figures, folded away
};

class Page {
 public:
  explicit Page(std::string title) : title_(std::move(title)) {}

  void heading(std::string_view text);
  void paragraph(std::string_view text, std::string_view css_class = "");
  struct Fact {
    std::string name, value, range;
  };
  /// The few numbers that the page is about.
  void facts(const std::vector<Fact>& facts);
  void warnings(std::string_view title, const std::vector<std::string>& texts);
  void chart(const Chart& chart);
  void section(std::string_view title, const Table& table, std::string_view note = "");
  void footer(std::string_view text);

  std::string text(const HtmlAssets& assets) const;

 private:
  std::string title_, body_;
};

}  // namespace reckon::html
