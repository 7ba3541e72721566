#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

// What is wrong with the user's input, where it stands and what to do about it. Readers collect all
// of them and never stop at the first.
namespace reckon {

/// A place in a file; line and column count from 1, 0 means "the whole file" (or "the whole line").
struct SourcePlace {
  std::string file;
  int line = 0;
  int column = 0;
  friend bool operator==(const SourcePlace&, const SourcePlace&) = default;
};

enum class Severity { error, warning };

struct Diagnostic {
  Severity severity = Severity::error;
  SourcePlace at;
  std::string what;  // one sentence, no full stop: "unknown key 'acceleratr' in cluster.pools[2]"
  std::string hint;  // what to do: allowed values, an example, the numbers; may be empty, may have
                     // several lines
  friend bool operator==(const Diagnostic&, const Diagnostic&) = default;
};
using Diagnostics = std::vector<Diagnostic>;

template <class T>
using Expected = tl::expected<T, Diagnostics>;

/// "file:line:column: error: what" and, indented below it, the hint. No trailing newline.
std::string format(const Diagnostic& diagnostic);
/// All of them, in order of file and place, one below the other, each with its newline.
std::string format(Diagnostics diagnostics);
bool has_errors(std::span<const Diagnostic> diagnostics);

/// The candidate that `word` was probably meant to be, or "" when none is near. Optimal string
/// alignment distance (insert, delete, substitute, swap neighbours), at most a third of the longer
/// word's length; case and the choice of '-', '_' and '.' do not count.
std::string nearest(std::string_view word, std::span<const std::string> candidates);
/// "; did you mean 'x'?" or "".
std::string did_you_mean(std::string_view word, std::span<const std::string> candidates);

}  // namespace reckon
