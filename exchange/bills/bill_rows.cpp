#include "exchange/bills/bill_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>

#include "exchange/json_parts.h"
#include "sim/base/unit_text.h"

namespace reckon::bills {
namespace {

char lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

/// Tags as JSON, with or without braces: {"team": "vision"}. Azure leaves the braces out.
bool json_has(std::string_view text, const BillTag& tag) {
  const std::string object =
      text.starts_with('{') ? std::string(text) : fmt::format("{{{}}}", text);
  constexpr std::array<std::string_view, 1> kEach{"*"};
  bool found = false;
  for_each_json_part(object, "", kEach, [&](const JsonPart& part) {
    // AWS writes the keys of users as user_KEY.
    const std::string key = column_name(part.path.front());
    const std::string wanted = column_name(tag.key);
    found = found || ((key == wanted || key == "user" + wanted) && part.value.text == tag.value);
    return true;
  });
  return found;
}

}  // namespace

std::string column_name(std::string_view written) {
  std::string name;
  for (const char c : written)
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) name += lower(c);
  return name;
}

bool mentions(std::string_view text, std::initializer_list<std::string_view> words) {
  const auto same = [](char a, char b) { return lower(a) == lower(b); };
  return std::ranges::any_of(words, [&](std::string_view word) {
    return std::search(text.begin(), text.end(), word.begin(), word.end(), same) != text.end();
  });
}

void BillColumns::add(std::string name, std::string as_written) {
  places.try_emplace(std::move(name), written.size());
  written.push_back(std::move(as_written));
}

std::string_view BillRow::text(std::string_view name) const {
  const auto at = columns_.places.find(name);
  return at == columns_.places.end() ? std::string_view() : values_[at->second].text;
}

std::string_view BillRow::first(std::initializer_list<std::string_view> names) const {
  for (const std::string_view name : names)
    if (const std::string_view found = text(name); !found.empty()) return found;
  return {};
}

void BillRow::mistake(std::string_view name, std::string what, std::string hint) const {
  const Value& value = values_[columns_.places.find(name)->second];
  mistakes_.add({file_, value.line, value.column}, std::move(what), std::move(hint));
}

double BillRow::number(std::string_view name) const {
  const std::string_view found = text(name);
  if (found.empty()) return 0;
  const Parsed<double> parsed = parse_number(found);
  if (parsed) return *parsed;
  mistake(name,
          fmt::format("{} is '{}', not a number",
                      columns_.written[columns_.places.find(name)->second], shortened(found)));
  return 0;
}

double BillRow::first_number(std::initializer_list<std::string_view> names) const {
  for (const std::string_view name : names)
    if (!text(name).empty()) return number(name);
  return 0;
}

void BillRow::require_usd(std::string_view name) const {
  const std::string_view currency = text(name);
  if (currency.empty() || currency == "USD") return;
  mistake(name, fmt::format("the row is in {}", shortened(currency)),
          "export the bill in USD: the ledger has no exchange rates");
}

bool BillRow::has_tag(const BillTag& tag) const {
  if (tag.key.empty()) return true;
  const std::string key = column_name(tag.key);
  for (const std::string_view before :
       {"resourcetags", "resourcetagsuser", "label", "labels", "tags"})
    if (text(std::string(before) + key) == tag.value) return true;
  if (text(key) == tag.value) return true;
  for (const std::string_view list : {"labels", "tags", "systemlabels"}) {
    for (int k = 0; has(fmt::format("{}{}key", list, k)); ++k)
      if (text(fmt::format("{}{}key", list, k)) == tag.key &&
          text(fmt::format("{}{}value", list, k)) == tag.value)
        return true;
  }
  return std::ranges::any_of(std::array<std::string_view, 3>{"resourcetags", "tags", "labels"},
                             [&](std::string_view column) {
                               return !text(column).empty() && json_has(text(column), tag);
                             });
}

void BillBook::covers_day(std::string_view time) {
  std::string day = price_lists::day_of(time);
  if (day.empty() && time.size() >= 10 && time[2] == '/' && time[5] == '/')  // 11/30/2026, of Azure
    day = price_lists::day_of(
        fmt::format("{}-{}-{}", time.substr(6, 4), time.substr(0, 2), time.substr(3, 2)));
  if (day.empty()) return;
  if (bill_.begin.empty() || day < bill_.begin) bill_.begin = day;
  if (day > bill_.end) bill_.end = day;
}

void BillBook::add(const BillRow& row, BillLine line) {
  if (!row.has_tag(tag_)) {
    if (!left_out_) ++bill_.left_out_rows;
    left_out_ = true;
    bill_.left_out_usd += line.usd;
    return;
  }
  if (line.usd == 0 && (line.part != BillPart::compute || line.quantity == 0)) return;
  const Key key{line.part, line.item, line.capacity, line.region, line.name, line.unit};
  const auto [at, fresh] = lines_.try_emplace(key, line);
  BillLine& sum = at->second;
  if (fresh) {
    sum.rows = 1;
    return;
  }
  ++sum.rows;
  sum.quantity += line.quantity;
  sum.usd += line.usd;
}

Bill BillBook::close(std::string format, std::optional<Provider> provider) {
  bill_.format = std::move(format);
  bill_.provider = std::move(provider);
  for (auto& [key, line] : lines_) bill_.lines.push_back(std::move(line));
  std::ranges::stable_sort(bill_.lines, std::greater<>(), &BillLine::usd);
  return std::move(bill_);
}

bool name_machine(BillLine& line, std::string_view provider, std::string_view machine,
                  const Catalog& catalog) {
  const Machine* found = catalog.find_machine(Provider{std::string(provider)}, machine);
  if (found == nullptr) return false;
  line.item = found->name;
  line.covers = price_lists::covers_of(*found);
  return true;
}

void name_storage(BillLine& line, std::string_view storage, const Catalog& catalog) {
  const Storage* found = catalog.find_storage(storage);
  line.item = found == nullptr ? std::string(storage) : found->name;
  if (found != nullptr) line.covers = Offering::Covers::storage;
}

}  // namespace reckon::bills
