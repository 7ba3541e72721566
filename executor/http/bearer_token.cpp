#include "executor/http/bearer_token.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace reckon {
namespace {

constexpr std::size_t kLongest = 4096;  // a quarter of the largest header

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

bool same_letters(std::string_view a, std::string_view b) {
  return std::ranges::equal(
      a, b, [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

/// Looks at every character, whatever it has found; only the lengths are told apart at once.
bool same_secret(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  volatile unsigned char difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    difference = static_cast<unsigned char>(difference | (a[i] ^ b[i]));
  return difference == 0;
}

}  // namespace

std::string read_token_file(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  if (!in) throw std::runtime_error(fmt::format("the token file {} cannot be read", file.string()));
  std::string token(trimmed(text));
  const bool visible = std::ranges::all_of(token, [](char c) { return c > ' ' && c < '\x7f'; });
  if (token.empty() || !visible || token.size() > kLongest)
    throw std::runtime_error(
        fmt::format("the token file {} needs one word of 1 to {} visible ASCII characters, such as "
                    "`openssl rand -hex 32` prints",
                    file.string(), kLongest));
  return token;
}

bool shows_token(std::string_view authorization, std::string_view token) {
  constexpr std::string_view kScheme = "Bearer ";  // in any case [RFC 9110, section 11.1]
  return authorization.size() > kScheme.size() &&
         same_letters(authorization.substr(0, kScheme.size()), kScheme) &&
         same_secret(trimmed(authorization.substr(kScheme.size())), token);
}

bool query_shows_token(std::string_view query, std::string_view token) {
  constexpr std::string_view kKey = "token=";
  while (!query.empty()) {
    const std::size_t end = std::min(query.find('&'), query.size());
    const std::string_view part = query.substr(0, end);
    query.remove_prefix(std::min(end + 1, query.size()));
    if (part.starts_with(kKey)) return same_secret(part.substr(kKey.size()), token);
  }
  return false;
}

}  // namespace reckon
