#include "report/run/bill.h"

#include <fmt/format.h>

#include <cmath>

#include "report/json_parts.h"
#include "report/table.h"
#include "report/text.h"
#include "sim/base/text/printable.h"
#include "sim/base/unit_text.h"

namespace reckon {
namespace {

constexpr int kBillWidth = 100;
constexpr std::size_t kMostForgotten = 20;  // lines of the table; JSON has all

std::string usd_or_dash(const std::optional<double>& usd) {
  return usd ? format_usd(Usd{*usd}) : "-";
}
std::string hours_or_dash(const std::optional<double>& hours) {
  return hours ? fmt::format("{:.1f}", *hours) : "-";
}
/// In money, and as a share of the forecast where that says something.
std::string difference_text(const LedgerRow& row) {
  const double difference = row.bill_usd.value_or(0) - row.ledger_usd.value_or(0);
  std::string text = signed_usd(difference);
  constexpr double kMostTimes = 10;
  if (row.bill_usd && row.ledger_usd && *row.ledger_usd > 0 &&
      std::abs(difference) < kMostTimes * *row.ledger_usd)
    text += fmt::format(" ({:+.1f} %)", difference / *row.ledger_usd * 100);
  return text;
}
std::string rows_text(std::int64_t rows) {
  return rows == 1 ? "1 row" : fmt::format("{} rows", rows);
}
std::string part_text(BillPart part) {
  std::string text(to_text(part));
  for (char& c : text)
    if (c == '_') c = ' ';
  return text;
}

std::string bill_answer(const BillComparison& c) {
  std::string out =
      fmt::format("{}: the bill is {}", printable(c.scenario), format_usd(Usd{c.bill.usd()}));
  if (c.forecast_usd) {
    const bool within = c.forecast_usd->p5 <= c.bill.usd() && c.bill.usd() <= c.forecast_usd->p95;
    out += fmt::format(", {} the forecast's {} .. {}", within ? "within" : "outside",
                       format_usd(Usd{c.forecast_usd->p5}), format_usd(Usd{c.forecast_usd->p95}));
  } else {
    out += "; the forecast has no cost, as a price is unknown";
  }
  out += fmt::format("\n{}, {}", c.bill.format, rows_text(c.bill.rows));
  if (!c.bill.begin.empty()) out += fmt::format(", {} to {}", c.bill.begin, c.bill.end);
  if (c.bill.left_out_rows > 0)
    out += fmt::format("; left out, without the tag: {}, {}", rows_text(c.bill.left_out_rows),
                       format_usd(Usd{c.bill.left_out_usd}));
  return out + "\n\n";
}

std::string ledger_rows(const BillComparison& c) {
  Columns table;
  table.row({"part", "item", "forecast h", "bill h", "forecast", "bill", "difference"});
  LedgerRow sum;
  for (const LedgerRow& row : c.rows) {
    table.row({part_text(row.part), row.item.empty() ? "" : printable(row.item),
               hours_or_dash(row.ledger_hours), hours_or_dash(row.bill_hours),
               usd_or_dash(row.ledger_usd), usd_or_dash(row.bill_usd), difference_text(row)});
    if (row.ledger_usd) sum.ledger_usd = sum.ledger_usd.value_or(0) + *row.ledger_usd;
    if (row.bill_usd) sum.bill_usd = sum.bill_usd.value_or(0) + *row.bill_usd;
  }
  table.row({"all", "", "", "", usd_or_dash(sum.ledger_usd), usd_or_dash(sum.bill_usd),
             difference_text(sum)});
  std::string out = table.text();
  if (c.ledger_idle_usd > 0)
    out += fmt::format("Nodes that start, wait or are rounded up: {} of the forecast's compute.\n",
                       format_usd(Usd{c.ledger_idle_usd}));
  return out;
}

std::string forgotten_lines(const BillComparison& c) {
  if (c.forgotten.empty()) return "";
  const double all = c.bill.usd();
  std::string out =
      fmt::format("\nThe forecast has no line for {}", format_usd(Usd{c.forgotten_usd()}));
  if (all > 0) out += fmt::format(" ({:.1f} % of the bill)", c.forgotten_usd() / all * 100);
  out += ":\n";
  Columns table;
  for (const BillLine& line :
       std::span(c.forgotten).first(std::min(kMostForgotten, c.forgotten.size())))
    table.row({"  " + part_text(line.part), printable(line.name),
               line.unit.empty() ? "" : fmt::format("{:.6g} {}", line.quantity, line.unit),
               format_usd(Usd{line.usd})});
  out += table.text();
  if (c.forgotten.size() > kMostForgotten)
    out +=
        fmt::format("  and {} more (--format json has all)\n", c.forgotten.size() - kMostForgotten);
  return out;
}

std::string learnt_prices(const BillCalibration& calibration) {
  std::string out;
  if (!calibration.learnt.empty()) {
    out += "\nPrices of the bill:\n";
    Columns table;
    for (const BillCalibration::Learnt& learnt : calibration.learnt) {
      const std::string_view unit = std::string_view(learnt.unit).substr(learnt.unit.find('/') + 1);
      table.row({"  " + printable(learnt.what), fmt::format("{:.6g} {}", learnt.usd, learnt.unit),
                 fmt::format("of {:.6g} {}", learnt.quantity, unit)});
    }
    out += table.text();
  }
  for (const std::string& note : calibration.notes)
    for (const std::string& line : wrap("Note: " + printable(note), kBillWidth)) out += line + '\n';
  return out;
}

Json number_or_null(const std::optional<double>& value) {
  return value ? number(*value) : Json(nullptr);
}

}  // namespace

std::string bill_table(const BillComparison& comparison, const BillCalibration& calibration) {
  return bill_answer(comparison) + ledger_rows(comparison) + forgotten_lines(comparison) +
         learnt_prices(calibration);
}

Json bill_object(const BillComparison& comparison) {
  const Bill& bill = comparison.bill;
  Json out;
  out["scenario"] = comparison.scenario;
  out["format"] = bill.format;
  out["begin"] = text_or_null(bill.begin);
  out["end"] = text_or_null(bill.end);
  out["rows"] = bill.rows;
  out["left_out"] = {{"rows", bill.left_out_rows}, {"usd", bill.left_out_usd}};
  out["bill_usd"] = bill.usd();
  out["forecast_usd"] = comparison.forecast_usd ? json_of(*comparison.forecast_usd) : Json(nullptr);
  out["forecast_idle_usd"] = comparison.ledger_idle_usd;
  out["ledger"] = Json::array();
  for (const LedgerRow& row : comparison.rows)
    out["ledger"].push_back({{"part", to_text(row.part)},
                             {"item", text_or_null(row.item)},
                             {"forecast_hours", number_or_null(row.ledger_hours)},
                             {"bill_hours", number_or_null(row.bill_hours)},
                             {"forecast_usd", number_or_null(row.ledger_usd)},
                             {"bill_usd", number_or_null(row.bill_usd)}});
  out["forgotten"] = Json::array();
  for (const BillLine& line : comparison.forgotten)
    out["forgotten"].push_back(
        {{"part", to_text(line.part)},
         {"name", line.name},
         {"item", text_or_null(line.item)},
         {"region", text_or_null(line.region)},
         {"quantity", line.unit.empty() ? Json(nullptr) : Json(line.quantity)},
         {"unit", text_or_null(line.unit)},
         {"usd", line.usd},
         {"rows", line.rows}});
  return out;
}

std::string bill_json(const BillComparison& comparison, const BillCalibration& calibration) {
  Json out = head("import bill");
  out.update(bill_object(comparison));
  out["prices"] = Json::array();
  for (const BillCalibration::Learnt& learnt : calibration.learnt)
    out["prices"].push_back({{"what", learnt.what},
                             {"usd", learnt.usd},
                             {"unit", learnt.unit},
                             {"quantity", learnt.quantity}});
  out["notes"] = calibration.notes;
  return dump(out, 2);
}

}  // namespace reckon
