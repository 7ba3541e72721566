#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/diagnostic.h"
#include "sim/base/words.h"

// What both programs say of mistakes, on standard error: as text, or as JSON, an object a line.
namespace reckon::cli {

enum class ErrorFormat { text, json };
constexpr auto words_of(ErrorFormat) {
  return std::array{Word<ErrorFormat>{"text", ErrorFormat::text},
                    Word<ErrorFormat>{"json", ErrorFormat::json}};
}

/// What a mistake is of: "usage" the command line, "input" a file, "limit" a question that is too
/// large, "environment" this machine.
enum class ErrorCode { usage, input, limit, environment };
constexpr auto words_of(ErrorCode) {
  return std::array{Word<ErrorCode>{"usage", ErrorCode::usage},
                    Word<ErrorCode>{"input", ErrorCode::input},
                    Word<ErrorCode>{"limit", ErrorCode::limit},
                    Word<ErrorCode>{"environment", ErrorCode::environment}};
}

/// Takes `--errors FORMAT`, which every command has, out of the words before a "--", and prints
/// errors of this process so from now on. Throws UsageError.
void take_error_format(std::vector<std::string>& words);

/// Of files. As JSON: {"schema_version":1,"severity":"error","code":"input","file":"a.yaml",
/// "line":3,"column":7,"message":"...","hint":"..."}; null is what is not known.
void report(const Diagnostics& diagnostics, ErrorCode code = ErrorCode::input);

/// The same as JSON, whatever the format of errors.
std::string error_lines(const Diagnostics& diagnostics, ErrorCode code);

/// Of no file. `text` is all of it for people; `what` and `hint` are its parts.
void report(ErrorCode code, std::string_view what, std::string_view hint, const std::string& text);

}  // namespace reckon::cli
