#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "sim/forecast/forecast.h"

// Pieces of Markdown pages: what the memos of `simulate` and of `plan` share.
namespace reckon {

/// Text of users inside Markdown, on one line: what would end a cell or begin markup is escaped.
std::string markdown_safe(std::string_view text);
/// As a code span, between more backticks than the text has [CommonMark, 6.1].
std::string markdown_code(std::string_view text);
std::string markdown_row(const std::vector<std::string>& cells);
/// The row with the line below it.
std::string markdown_header(const std::vector<std::string>& cells);

// Sections, each with its heading and an empty line behind it.
std::string memo_risks(const Forecast& forecast);
std::string memo_assumptions(const Forecast& forecast);  // "" where there is none
std::string memo_prices(const Plan& plan, const Forecast& forecast);

std::string memo_cost(const Forecast& forecast);
/// The last line: calibrations, replications, seed, engine, catalog.
std::string memo_provenance(const Forecast& forecast);

}  // namespace reckon
