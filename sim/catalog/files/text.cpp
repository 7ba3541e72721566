#include "sim/catalog/files/text.h"

#include <fmt/format.h>

namespace reckon::catalog_text {
namespace {

char plain(char c) {
  if (c >= 'A' && c <= 'Z') return static_cast<char>(c - 'A' + 'a');
  return c == '-' ? '_' : c;
}

bool blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

}  // namespace

const Cell* Entry::find(std::string_view field) const {
  for (const Field& f : fields) {
    if (f.name == field) return &f.cell;
  }
  return nullptr;
}

namespace {

constexpr std::size_t kMostProblems = 200;

/// A message quotes what stands in the file, which may be a single line of megabytes.
std::string beginning(std::string text) {
  constexpr std::size_t kShown = 500;
  if (text.size() <= kShown) return text;
  std::size_t end = kShown;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0u) == 0x80u) --end;  // of UTF-8
  return text.substr(0, end) + "...";
}

}  // namespace

bool Texts::full() const { return problems.size() > kMostProblems; }

void Texts::error(const Cell& at, std::string what, std::string hint) {
  if (full()) return;
  if (problems.size() == kMostProblems) {
    what = fmt::format("more than {} mistakes", kMostProblems);
    hint = "further ones are not shown";
  }
  problems.push_back({Severity::error,
                      {files[static_cast<std::size_t>(at.file)], at.line, at.column},
                      beginning(std::move(what)),
                      std::move(hint)});
}

std::string too_many(const FileKind& kind) {
  return fmt::format("{} has more than {} entries", kind.file, kMostEntries);
}

std::string normalised(std::string_view name) {
  std::string result(name);
  for (char& c : result) c = plain(c);
  return result;
}

bool natural_less(std::string_view a, std::string_view b) {
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto run = [&](std::string_view text, std::size_t from) {
    std::size_t end = from;
    while (end < text.size() && digit(text[end])) ++end;
    return text.substr(from, end - from);
  };
  std::size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (digit(a[i]) && digit(b[j])) {
      const std::string_view x = run(a, i), y = run(b, j);
      if (x.size() != y.size()) return x.size() < y.size();
      if (x != y) return x < y;
      i += x.size();
      j += y.size();
    } else {
      if (a[i] != b[j]) return a[i] < b[j];
      ++i;
      ++j;
    }
  }
  return a.size() - i < b.size() - j;
}

bool same_name(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (plain(a[i]) != plain(b[i])) return false;
  }
  return true;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

std::vector<std::string_view> words(std::string_view text) {
  std::vector<std::string_view> result;
  while (!(text = trimmed(text)).empty()) {
    std::size_t end = 0;
    while (end < text.size() && !blank(text[end])) ++end;
    result.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return result;
}

std::vector<std::string> strings(std::string_view text) {
  const std::vector<std::string_view> list = words(text);
  return {list.begin(), list.end()};
}

}  // namespace reckon::catalog_text
