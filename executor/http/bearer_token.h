#pragma once
#include <filesystem>
#include <string>
#include <string_view>

// Bearer tokens [RFC 6750]: whoever shows the token may ask.
namespace reckon {

/// The token that a file holds: its text without blanks and newlines around it. Throws
/// std::runtime_error where the file cannot be read, is empty, or holds what no header can carry.
std::string read_token_file(const std::filesystem::path& file);

/// Whether `authorization`, the value of that header, shows `token`. The time that this takes does
/// not tell how much of a wrong token was right.
bool shows_token(std::string_view authorization, std::string_view token);

/// Whether `query`, what follows '?' in a target, has `token=` with that token, in the same time.
bool query_shows_token(std::string_view query, std::string_view token);

}  // namespace reckon
