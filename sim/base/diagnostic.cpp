#include "sim/base/diagnostic.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <tuple>

#include "sim/base/text/printable.h"

namespace reckon {

std::string format(const Diagnostic& d) {
  std::string text = printable_file(d.at.file);
  if (d.at.line > 0) text += fmt::format(":{}", d.at.line);
  if (d.at.line > 0 && d.at.column > 0) text += fmt::format(":{}", d.at.column);
  if (!text.empty()) text += ": ";
  text += d.severity == Severity::error ? "error: " : "warning: ";
  text += printable(d.what);
  std::size_t begin = 0;
  while (begin < d.hint.size()) {
    const std::size_t end = std::min(d.hint.find('\n', begin), d.hint.size());
    text += "\n    " + printable(std::string_view(d.hint).substr(begin, end - begin));
    begin = end + 1;
  }
  return text;
}

std::string format(Diagnostics diagnostics) {
  std::stable_sort(diagnostics.begin(), diagnostics.end(), [](const auto& a, const auto& b) {
    return std::tie(a.at.file, a.at.line, a.at.column) <
           std::tie(b.at.file, b.at.line, b.at.column);
  });
  std::string text;
  for (const Diagnostic& d : diagnostics) text += format(d) + "\n";
  return text;
}

bool has_errors(std::span<const Diagnostic> diagnostics) {
  return std::ranges::any_of(diagnostics,
                             [](const auto& d) { return d.severity == Severity::error; });
}

namespace {

std::string folded(std::string_view word) {
  std::string out;
  for (const char c : word) {
    const bool separator = c == '-' || c == '.' || c == ' ';
    out += separator ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return out;
}

// Optimal string alignment: Levenshtein with swaps of neighbours [Damerau 1964; restricted edit
// distance].
std::size_t distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> before(b.size() + 1), previous(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) previous[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substitute = previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({previous[j] + 1, row[j - 1] + 1, substitute});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, previous);
    std::swap(previous, row);
  }
  return previous[b.size()];
}

}  // namespace

namespace {

/// "meta-llama/Llama-3-8B" is "llama38b": names of one thing differ in its owner, in case and in
/// separators.
std::string bare(std::string_view word) {
  std::string out;
  for (const char c : word.substr(word.rfind('/') + 1))
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

}  // namespace

std::string nearest(std::string_view word, std::span<const std::string> candidates) {
  constexpr std::size_t kLongest =
      64;  // longer words are no typing mistakes; keeps the work bounded
  if (word.empty() || word.size() > kLongest) return "";
  if (const std::string bare_word = bare(word); !bare_word.empty())
    for (const std::string& candidate : candidates)
      if (bare(candidate) == bare_word) return candidate;
  const std::string folded_word = folded(word);
  std::string best;
  std::size_t best_distance = kLongest;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > kLongest) continue;
    const std::size_t d = distance(folded_word, folded(candidate));
    const std::size_t allowed = std::max(word.size(), candidate.size()) / 3;
    if (d <= allowed && d < best_distance) {
      best = candidate;
      best_distance = d;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view word, std::span<const std::string> candidates) {
  const std::string candidate = nearest(word, candidates);
  return candidate.empty() ? "" : fmt::format("; did you mean '{}'?", candidate);
}

}  // namespace reckon
