#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <span>

#include "exchange/bills/bill_rows.h"
#include "exchange/json_parts.h"
#include "sim/base/text/csv.h"

namespace reckon {
namespace {

using bills::BillBook;
using bills::BillFormat;
using bills::BillRow;
using bills::Mistakes;

/// The columns are documented at docs.aws.amazon.com/cur (data dictionary),
/// cloud.google.com/billing/docs/how-to/export-data-bigquery-tables, learn.microsoft.com/azure/
/// cost-management-billing/dataset-schema, focus.finops.org (FOCUS 1.0), opencost.io (CSV export).
const std::array<BillFormat, 5>& bill_formats() {
  static const std::array<BillFormat, 5> kFormats{
      BillFormat{"AWS Cost and Usage Report",
                 "aws",
                 {"lineitemlineitemtype", "lineitemusagetype", "lineitemunblendedcost"},
                 bills::read_aws_row},
      BillFormat{"FOCUS", "", {"chargecategory", "billedcost"}, bills::read_focus_row},
      BillFormat{"Google Cloud billing export",
                 "gcp",
                 {"servicedescription", "skudescription", "cost"},
                 bills::read_google_row},
      BillFormat{"Azure cost export",
                 "azure",
                 {"metercategory", "metername", "quantity"},
                 bills::read_azure_row},
      BillFormat{"OpenCost", "", {"cpucost", "ramcost", "totalcost"}, bills::read_opencost_row}};
  return kFormats;
}

std::string needed_columns() {
  std::string out;
  for (const BillFormat& format : bill_formats())
    out += fmt::format("{}{}: {}", out.empty() ? "" : "\n", format.name,
                       fmt::join(format.columns, ", "));
  return out;
}

class BillReader {
 public:
  BillReader(const std::string& file, const BillTag& tag, const Catalog& catalog)
      : file_(file), catalog_(catalog), book_(catalog, tag) {}

  void read_table(std::string_view bytes) {
    CsvReader reader(bytes);
    std::vector<CsvField> fields;
    bills::BillColumns columns;
    std::vector<BillRow::Value> values;
    while (!mistakes_.full() && !too_many() && reader.next(fields)) {
      for (const CsvProblem& problem : reader.problems())
        mistakes_.add({file_, problem.line, problem.column}, problem.what, problem.hint);
      if (columns.written.empty()) {
        for (const CsvField& field : fields)
          columns.add(bills::column_name(field.text), std::string(field.text));
        choose(columns);
        if (format_ == nullptr) return;
        continue;
      }
      if (fields.size() != columns.written.size()) {
        mistakes_.add({file_, fields.front().line, fields.front().column},
                      fmt::format("{} fields in a table of {} columns", fields.size(),
                                  columns.written.size()));
        continue;
      }
      values.clear();
      for (const CsvField& field : fields) values.push_back({field.text, field.line, field.column});
      book_.next_row();
      format_->read(BillRow(columns, values, file_, mistakes_), book_);
    }
  }

  void read_lines(std::string_view bytes) {
    constexpr std::array<std::string_view, 2> kRows{"", "*"};
    // A list of rows, or a row after the other.
    const std::size_t begin = bytes.find_first_not_of(" \t\r\n\xef\xbb\xbf");
    const bool list = begin != std::string_view::npos && bytes[begin] == '[';
    const Diagnostics broken = for_each_json_part(
        bytes, file_, std::span(kRows).subspan(list ? 1 : 0, 1), [&](const JsonPart& part) {
          bills::BillColumns columns;
          std::vector<BillRow::Value> values;
          flatten(part.value, "", "", columns, values);
          if (format_ == nullptr) choose(columns);
          if (format_ == nullptr) return false;
          book_.next_row();
          format_->read(BillRow(columns, values, file_, mistakes_), book_);
          return !mistakes_.full() && !too_many();
        });
    for (const Diagnostic& d : broken) mistakes_.add(d.at, d.what, d.hint);
  }

  Expected<Bill> close() {
    if (mistakes_.empty() && format_ == nullptr)
      mistakes_.add({file_}, "the file is empty", needed_columns());
    if (!mistakes_.empty()) return tl::unexpected(mistakes_.take());
    std::optional<Provider> provider;
    if (!format_->provider.empty())
      provider = price_lists::provider_named(format_->provider, catalog_, file_, mistakes_);
    if (!mistakes_.empty()) return tl::unexpected(mistakes_.take());
    return book_.close(std::string(format_->name), std::move(provider));
  }

 private:
  void choose(const bills::BillColumns& columns) {
    for (const BillFormat& format : bill_formats())
      if (format_ == nullptr && std::ranges::all_of(format.columns, [&](std::string_view column) {
            return columns.places.contains(column);
          }))
        format_ = &format;
    if (format_ == nullptr)
      mistakes_.add({file_, 1}, "the columns are those of no bill that reckon reads",
                    needed_columns());
  }

  static void flatten(const YamlNode& node, const std::string& name, const std::string& path,
                      bills::BillColumns& columns, std::vector<BillRow::Value>& values) {
    if (node.kind == YamlNode::Kind::scalar) {
      columns.add(name, path);
      values.push_back({node.text, node.at.line, node.at.column});
      return;
    }
    for (std::size_t k = 0; k < node.entries.size(); ++k) {
      const YamlNode::Entry& entry = node.entries[k];
      const std::string key = node.kind == YamlNode::Kind::map ? entry.key : std::to_string(k);
      flatten(entry.value, name + bills::column_name(key), path.empty() ? key : path + "." + key,
              columns, values);
    }
  }

  bool too_many() {
    if (!book_.full()) return false;
    mistakes_.add({file_},
                  fmt::format("the bill is for more than {} different things", kMostBillLines),
                  "export it without resource ids, or of one project only");
    return true;
  }

  const std::string& file_;
  const Catalog& catalog_;
  BillBook book_;
  Mistakes mistakes_;
  const BillFormat* format_ = nullptr;
};

}  // namespace

double Bill::usd() const {
  return std::accumulate(lines.begin(), lines.end(), 0.0,
                         [](double sum, const BillLine& line) { return sum + line.usd; });
}

Expected<Bill> read_bill(std::string_view bytes, const std::string& file, const BillTag& tag,
                         const Catalog& catalog) {
  const std::size_t begin = bytes.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  const bool json = begin != std::string_view::npos && (bytes[begin] == '{' || bytes[begin] == '[');
  BillReader reader(file, tag, catalog);
  if (json)
    reader.read_lines(bytes);
  else
    reader.read_table(bytes);
  return reader.close();
}

}  // namespace reckon
