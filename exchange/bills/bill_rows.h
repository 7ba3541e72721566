#pragma once
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "exchange/bills/bill.h"
#include "exchange/prices/price_rows.h"

// What the readers of bills share: rows by the names of their columns, and the book of lines.
namespace reckon::bills {

using price_lists::Mistakes;

/// Lower case letters and digits: "lineItem/UsageType", "line_item_usage_type" and
/// "LineItemUsageType" are one column.
std::string column_name(std::string_view written);

/// Where values stand, by column_name(); a nested value's is that of all keys and indices down to
/// it.
struct BillColumns {
  std::map<std::string, std::size_t, std::less<>> places;
  std::vector<std::string> written;  // as the file has them: for messages
  /// The first of a name counts.
  void add(std::string name, std::string as_written);
};

/// One row of a table or one document of JSON lines. Its values are views of the text.
class BillRow {
 public:
  struct Value {
    std::string_view text;
    int line = 0, column = 0;
  };

  BillRow(const BillColumns& columns, std::span<const Value> values, const std::string& file,
          Mistakes& mistakes)
      : columns_(columns), values_(values), file_(file), mistakes_(mistakes) {}

  /// Is it there, and not empty?
  bool has(std::string_view name) const { return !text(name).empty(); }
  /// "" where there is none.
  std::string_view text(std::string_view name) const;
  /// The first of these that is not empty.
  std::string_view first(std::initializer_list<std::string_view> names) const;
  /// 0 where it is empty; a mistake where it is no number.
  /// In the column's own unit.
  double number(std::string_view name) const;
  double first_number(std::initializer_list<std::string_view> names) const;
  /// A mistake unless the column, which may be missing, says USD.
  void require_usd(std::string_view name) const;
  /// Does the row have the tag? By columns of the key's name, lists of keys and values, and JSON.
  bool has_tag(const BillTag& tag) const;

 private:
  void mistake(std::string_view name, std::string what, std::string hint = {}) const;
  const BillColumns& columns_;
  std::span<const Value> values_;
  const std::string& file_;
  Mistakes& mistakes_;
};

/// Adds rows up to lines.
class BillBook {
 public:
  BillBook(const Catalog& catalog, const BillTag& tag) : catalog_(catalog), tag_(tag) {}
  const Catalog& catalog() const { return catalog_; }
  /// Another row of the bill, which may become several lines.
  void next_row() {
    ++bill_.rows;
    left_out_ = false;
  }
  /// `line.usd` of a row; nothing where it is 0 and no hours stand behind it.
  void add(const BillRow& row, BillLine line);
  /// The day of a row, from its time.
  void covers_day(std::string_view time);
  bool full() const { return lines_.size() >= kMostBillLines; }
  Bill close(std::string format, std::optional<Provider> provider);

 private:
  using Key =
      std::tuple<BillPart, std::string, CapacityType, std::string, std::string, std::string>;
  const Catalog& catalog_;
  const BillTag& tag_;
  std::map<Key, BillLine> lines_;
  bool left_out_ = false;  // the row is counted so
  Bill bill_;
};

/// One format: the columns that only it has, and what its rows say.
struct BillFormat {
  std::string_view name;
  std::string_view provider;  // "": of several
  std::vector<std::string_view> columns;
  void (*read)(const BillRow& row, BillBook& book);
};
void read_aws_row(const BillRow& row, BillBook& book);
void read_google_row(const BillRow& row, BillBook& book);
void read_azure_row(const BillRow& row, BillBook& book);
void read_focus_row(const BillRow& row, BillBook& book);
void read_opencost_row(const BillRow& row, BillBook& book);

/// Sets item and covers of a machine of the catalog; false: it has no such machine.
bool name_machine(BillLine& line, std::string_view provider, std::string_view machine,
                  const Catalog& catalog);
/// The same of a kind of storage, whose name stays as it is where the catalog has none.
void name_storage(BillLine& line, std::string_view storage, const Catalog& catalog);

/// Whether `text` holds one of `words`, whatever their case.
bool mentions(std::string_view text, std::initializer_list<std::string_view> words);

}  // namespace reckon::bills
