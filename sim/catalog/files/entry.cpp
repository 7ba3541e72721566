#include "sim/catalog/files/entry.h"

#include <chrono>

namespace reckon::catalog_text {

std::optional<SourceId> SourceTable::find(std::string_view id) const {
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    if (sources_[i].id == id) return static_cast<SourceId>(i);
  }
  return std::nullopt;
}

std::vector<std::string> SourceTable::ids() const {
  std::vector<std::string> result;
  for (const Source& source : sources_) result.push_back(source.id);
  return result;
}

std::string_view Reader::peek(std::string_view field) {
  asked_.push_back(field);
  const Cell* cell = entry_.find(field);
  return cell ? cell->text : std::string_view{};
}

const Cell* Reader::required(std::string_view field) {
  asked_.push_back(field);
  const Cell* cell = entry_.find(field);
  if (!cell) complain(entry_.at, fmt::format("'{}' is missing", field));
  return cell;
}

std::vector<std::string> Reader::lines(std::string_view field) {
  std::vector<std::string> result;
  std::string_view rest = peek(field);
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    if (end > 0) result.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return result;
}

int Reader::integer(std::string_view field, int otherwise, int least, int most) {
  if (!entry_.find(field)) {
    asked_.push_back(field);
    return otherwise;
  }
  return required_integer(field, least, most);
}

int Reader::required_integer(std::string_view field, int least, int most) {
  const Cell* cell = required(field);
  if (!cell) return least;
  const Parsed<std::int64_t> value = parse_integer(cell->text);
  if (!value) return wrong_number(field, *cell, value.error()), least;
  if (*value < least || *value > most) {
    wrong_number(
        field, *cell,
        fmt::format("'{}' is not between {} and {}", cell->text, least, format_count(most)));
    return least;
  }
  return static_cast<int>(*value);
}

bool Reader::flag(std::string_view field, std::string_view yes, std::string_view no) {
  const std::string_view text = peek(field);
  if (text != yes && text != no) {
    complain(
        field, fmt::format("{} is '{}'", field, text),
        no.empty() ? fmt::format("'{}' or nothing", yes) : fmt::format("'{}' or '{}'", yes, no));
  }
  return text == yes;
}

std::string Reader::iso_date(std::string_view field) {
  const Cell* cell = required(field);
  if (!cell) return {};
  int part[3] = {};
  const std::string_view text = cell->text;
  bool good = text.size() == 10 && text[4] == '-' && text[7] == '-';
  const std::string_view parts[3] = {text.substr(0, 4), text.substr(good ? 5 : 0, 2),
                                     text.substr(good ? 8 : 0, 2)};
  for (int i = 0; i < 3 && good; ++i) {
    const Parsed<std::int64_t> value = parse_integer(parts[i]);
    good = value.has_value();
    if (good) part[i] = static_cast<int>(*value);
  }
  using namespace std::chrono;
  good = good && year_month_day{year{part[0]}, month{static_cast<unsigned>(part[1])},
                                day{static_cast<unsigned>(part[2])}}
                     .ok();
  if (!good) complain(*cell, fmt::format("'{}' is not a date", text), "ISO dates only: 2026-07-20");
  return std::string(text);
}

std::optional<SourceId> Reader::source_of(const Cell& cell) {
  if (cell.source.empty()) {
    complain(cell, "the number has no source", "name an entry of sources.yaml as its `source`");
    return std::nullopt;
  }
  const std::optional<SourceId> id = sources_.find(cell.source);
  if (!id) {
    complain(cell, fmt::format("unknown source '{}'", cell.source),
             "add it to sources.yaml with its reference and the date",
             did_you_mean(cell.source, sources_.ids()));
  }
  return id;
}

void Reader::wrong_number(std::string_view field, const Cell& cell, const std::string& sentence) {
  complain(cell, fmt::format("{}: {}", field, sentence));
}

void Reader::beyond(std::string_view field, const Cell& cell, std::string_view number, Most most) {
  wrong_number(field, cell, fmt::format("'{}' is more than {}", number, most.text));
}

void Reader::complain(std::string_view field, std::string what, std::string hint) {
  const Cell* cell = entry_.find(field);
  complain(cell ? *cell : entry_.at, std::move(what), std::move(hint));
}

void Reader::complain(const Cell& at, std::string what, std::string hint,
                      std::string_view suggestion) {
  texts_.error(at, fmt::format("{} in {}{}", what, entry_.name, suggestion), std::move(hint));
}

void Reader::finish() {
  asked_.push_back("source");
  for (const Field& field : entry_.fields) {
    if (std::ranges::find(asked_, field.name) != asked_.end()) continue;
    const std::vector<std::string> known(asked_.begin(), asked_.end());
    complain(field.cell, fmt::format("unknown key '{}'", field.name),
             fmt::format("known keys: {}", fmt::join(asked_, ", ")),
             did_you_mean(field.name, known));
  }
}

}  // namespace reckon::catalog_text
